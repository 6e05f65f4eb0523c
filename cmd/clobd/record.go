package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"clobd/engine"
)

// The words for what is a number in the journal.
var (
	kindWords = [...]string{engine.Started: "started", engine.List: "list", engine.Deposit: "deposit",
		engine.Withdraw: "withdraw", engine.Link: "link", engine.Place: "place",
		engine.Cancel: "cancel", engine.CancelAll: "cancel-all", engine.SplitTokens: "split",
		engine.MergeTokens: "merge", engine.RedeemTokens: "redeem", engine.SetState: "set-state",
		engine.Adjust: "adjust", engine.Resolve: "resolve", engine.SetMode: "set-mode",
		engine.SetPrevention: "set-prevention", engine.Advance: "advance", engine.Arm: "arm",
		engine.Collect: "collect", engine.SetKey: "set-key"}
	eventWords = [...]string{engine.EpochStarted: "epoch-started", engine.Listed: "listed",
		engine.Deposited: "deposited", engine.Withdrawn: "withdrawn", engine.Linked: "linked",
		engine.Filled: "filled", engine.Placed: "placed", engine.Completed: "completed",
		engine.Cancelled: "cancelled", engine.Rejected: "rejected", engine.Swept: "swept",
		engine.Split: "split", engine.Merged: "merged", engine.Redeemed: "redeemed",
		engine.StateChanged: "state-changed", engine.Adjusted: "adjusted",
		engine.Resolved: "resolved", engine.ModeSet: "mode-set",
		engine.PreventionSet: "prevention-set", engine.Advanced: "advanced", engine.Armed: "armed",
		engine.Collected: "collected", engine.KeySet: "key-set"}
	reasonWords = [...]string{engine.ByOwner: "owner", engine.SelfTrade: "self-trade",
		engine.Unfilled: "unfilled", engine.Expired: "expired", engine.Timeout: "heartbeat",
		engine.ByOperator: "operator", engine.MarketClosed: "market-closed",
		engine.MarketResolved: "market-resolved"}
	stateWords = [...]string{engine.Unopened: "unopened", engine.Open: "open",
		engine.Paused: "paused", engine.Closed: "closed", engine.Settled: "settled"}
	modeWords       = [...]string{"normal", "post-only", "cancel-only"}
	preventionWords = [...]string{"resting", "arriving", "both", "none"}
	settlementWords = [...]string{engine.Transfer: "transfer", engine.Mint: "mint",
		engine.Merge: "merge"}
	typeWords  = [...]string{"GTC", "GTD", "FOK", "FAK"}
	sideWords  = [...]string{"BUY", "SELL"}
	classWords = [...]string{"trading", "read-only", "builder"}
)

// word is the word for a number, or the number if there is none.
func word[N ~uint8](words []string, n N) string {
	if int(n) < len(words) && words[n] != "" {
		return words[n]
	}
	return strconv.Itoa(int(n))
}

// fields are named values in the order in which they are told.
type fields []namedValue

type namedValue struct{ name, value string }

// add adds a value; none if it is empty.
func (f *fields) add(name, value string) {
	if value != "" {
		*f = append(*f, namedValue{name, value})
	}
}

// addNonzero adds a value in the form that text gives it; none if it is zero.
func addNonzero[T comparable](f *fields, name string, v T, text func(T) string) {
	var zero T
	if v != zero {
		f.add(name, text(v))
	}
}

// number adds a number, decimal base units of 10^-6; none if they are 0.
func (f *fields) number(name string, v int64) {
	addNonzero(f, name, v, func(v int64) string { return strconv.FormatInt(v, 10) })
}

func (f *fields) decimal(name string, v int64) {
	addNonzero(f, name, v, func(v int64) string { return string(engine.AppendDecimal(nil, v, 6)) })
}

func timeText(t engine.Time) string {
	return time.UnixMilli(int64(t)).UTC().Format("2006-01-02T15:04:05.000Z")
}

// wallet adds a wallet: its number and its address, if that is known.
func (f *fields) wallet(n *names, name string, no engine.WalletNo) {
	if no == 0 {
		return
	}
	text := strconv.FormatUint(uint64(no), 10)
	if a, known := n.wallets[no]; known {
		text += "/" + a.Hex()
	}
	f.add(name, text)
}

// market adds a market: its number and its condition, if that is known.
func (f *fields) market(n *names, no engine.MarketNo) {
	if no == 0 {
		return
	}
	text := strconv.FormatUint(uint64(no), 10)
	if l := n.markets[no]; l != nil {
		text += "/" + l.Condition.Hex()
	}
	f.add("market", text)
}

func commandFields(c *engine.Command, n *names) (f fields) {
	addNonzero(&f, "id", c.ID, engine.OrderID.Hex)
	f.market(n, c.Market)
	f.wallet(n, "wallet", c.Wallet)
	f.wallet(n, "owner", c.Owner)
	addNonzero(&f, "address", c.Address, engine.Address.Hex)
	addNonzero(&f, "holder", c.Holder, engine.Address.Hex)
	switch c.Kind {
	case engine.Place:
		f.add("outcome", strconv.Itoa(int(c.Outcome)))
		f.add("side", word(sideWords[:], c.Side))
		f.add("type", word(typeWords[:], c.Type))
		if c.PostOnly {
			f.add("postOnly", "true")
		}
		f.number("feeBound", int64(c.FeeBound))
	case engine.Started:
		f.number("epoch", int64(c.Seen))
		addNonzero(&f, "clock", c.Expiry, timeText)
		return f
	case engine.SetState:
		f.add("state", word(stateWords[:], c.State))
	case engine.SetMode:
		f.add("mode", word(modeWords[:], c.Mode))
	case engine.SetPrevention:
		f.add("expires", word(preventionWords[:], c.Prevention))
	case engine.SetKey:
		f.add("class", word(classWords[:], c.Class))
		if c.Revoke {
			f.add("revoke", "true")
		}
	case engine.CancelAll:
		f.add("reason", word(reasonWords[:], c.Reason))
		f.number("only", int64(c.Only))
	case engine.Arm:
		f.number("key", int64(c.Key))
		f.number("timeoutMs", int64(c.Expiry))
		return f
	case engine.Deposit, engine.Withdraw:
		if c.Market != 0 {
			f.add("outcome", strconv.Itoa(int(c.Outcome)))
		}
	}
	f.number("key", int64(c.Key))
	addNonzero(&f, "price", c.Price, engine.Price.String)
	f.decimal("size", int64(c.Size))
	f.decimal("cash", int64(c.Cash))
	addNonzero(&f, "expiry", c.Expiry, timeText)
	addNonzero(&f, "deadline", c.Deadline, timeText)
	f.number("seen", int64(c.Seen))
	listingFields(&f, c.Listing)
	f.number("proofBytes", int64(len(c.Proof)))
	return f
}

func listingFields(f *fields, l *engine.Listing) {
	if l == nil {
		return
	}
	f.add("condition", l.Condition.Hex())
	f.add("tokens", l.Tokens[0].String()+","+l.Tokens[1].String())
	f.number("group", int64(l.Group))
	addNonzero(f, "tick", l.Tick, engine.Price.String)
	f.decimal("minSize", int64(l.MinSize))
	f.decimal("minBuy", int64(l.MinBuy))
	f.number("feeRate", int64(l.Fee.Rate))
	f.number("feeExponent", int64(l.Fee.Exponent))
	f.add("negRisk", strconv.FormatBool(l.NegRisk))
	f.add("open", strconv.FormatBool(l.Open))
}

func eventFields(e *engine.Event, n *names, c *engine.Command) (f fields) {
	addNonzero(&f, "order", e.Order, engine.OrderID.Hex)
	f.market(n, e.Market)
	f.wallet(n, "wallet", e.Wallet)
	f.wallet(n, "owner", e.Owner)
	switch e.Kind {
	case engine.Filled, engine.Cancelled, engine.Placed, engine.Completed:
		f.add("outcome", strconv.Itoa(int(e.Outcome)))
		f.add("side", word(sideWords[:], e.Side))
	case engine.ModeSet:
		f.add("mode", word(modeWords[:], e.Mode))
	case engine.PreventionSet:
		f.add("expires", word(preventionWords[:], e.Prevention))
	case engine.Rejected:
		if int(e.Reject) < len(engine.Rejects) {
			f.add("code", engine.Rejects[e.Reject].Code)
			r := engine.Receipt{Order: c.ID, Reject: e.Reject, Args: e.Args, First: e.First}
			f.add("text", r.Text())
		} else {
			f.number("code", int64(e.Reject))
		}
	}
	if e.Kind == engine.Filled {
		f.add("settlement", word(settlementWords[:], e.Settlement))
	}
	if e.State != 0 {
		f.add("state", word(stateWords[:], e.State))
	}
	addNonzero(&f, "price", e.Price, engine.Price.String)
	f.decimal("size", int64(e.Size))
	f.decimal("remaining", int64(e.Remaining))
	f.decimal("fee", int64(e.Fee))
	if e.Reason != 0 {
		f.add("reason", word(reasonWords[:], e.Reason))
	}
	f.number("first", int64(e.First))
	if e.Kind != engine.Rejected && e.Args != [3]int64{} {
		f.add("args", strings.Trim(fmt.Sprint(e.Args), "[]"))
	}
	return f
}

// recorded is a Command with its stamp and its Events, as the journal has them.
type recorded struct {
	frame   *engine.Frame
	index   int
	command *engine.Command
	events  []engine.Event
}

func recordedAt(f *engine.Frame, i int) recorded {
	return recorded{f, i, &f.Commands[i], f.EventsOf(i)}
}

func (r *recorded) sequence() engine.Sequence { return r.frame.First + engine.Sequence(r.index) }

// text is the record on a line, and each of its Events on one below it.
func (r *recorded) text(n *names) string {
	var b strings.Builder
	line := func(f fields) {
		for _, one := range f {
			value := one.value
			if strings.ContainsAny(value, " \"") {
				value = strconv.Quote(value)
			}
			b.WriteString(" " + one.name + "=" + value)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d %s %s", r.sequence(), timeText(r.frame.Time),
		word(kindWords[:], r.command.Kind))
	line(commandFields(r.command, n))
	for i := range r.events {
		b.WriteString("    " + word(eventWords[:], r.events[i].Kind))
		line(eventFields(&r.events[i], n, r.command))
	}
	return b.String()
}

func (r *recorded) json(n *names) ([]byte, error) {
	events := make([]map[string]string, len(r.events))
	for i := range r.events {
		events[i] = eventFields(&r.events[i], n, r.command).object(
			word(eventWords[:], r.events[i].Kind))
	}
	return json.Marshal(map[string]any{"sequence": r.sequence(), "frame": r.frame.No,
		"epoch": r.frame.Epoch, "engine": r.frame.Engine, "time": timeText(r.frame.Time),
		"command": commandFields(r.command, n).object(word(kindWords[:], r.command.Kind)),
		"events":  events})
}

func (f fields) object(kind string) map[string]string {
	m := map[string]string{"kind": kind}
	for _, one := range f {
		m[one.name] = one.value
	}
	return m
}

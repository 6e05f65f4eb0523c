package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"clobd/engine"
)

var (
	kindWords = [...]string{engine.Started: "started", engine.List: "list", engine.Deposit: "deposit",
		engine.Withdraw: "withdraw", engine.Link: "link", engine.Place: "place",
		engine.Cancel: "cancel", engine.CancelAll: "cancel-all", engine.SplitTokens: "split",
		engine.MergeTokens: "merge", engine.RedeemTokens: "redeem", engine.SetState: "set-state",
		engine.Adjust: "adjust", engine.Resolve: "resolve", engine.SetMode: "set-mode",
		engine.SetPrevention: "set-prevention", engine.Advance: "advance", engine.Arm: "arm",
		engine.Collect: "collect", engine.SetKey: "set-key", engine.Raise: "raise"}
	eventWords = [...]string{engine.EpochStarted: "epoch-started", engine.Listed: "listed",
		engine.Deposited: "deposited", engine.Withdrawn: "withdrawn", engine.Linked: "linked",
		engine.Filled: "filled", engine.Placed: "placed", engine.Completed: "completed",
		engine.Cancelled: "cancelled", engine.Rejected: "rejected", engine.Swept: "swept",
		engine.Split: "split", engine.Merged: "merged", engine.Redeemed: "redeemed",
		engine.StateChanged: "state-changed", engine.Adjusted: "adjusted",
		engine.Resolved: "resolved", engine.ModeSet: "mode-set",
		engine.PreventionSet: "prevention-set", engine.Advanced: "advanced", engine.Armed: "armed",
		engine.Collected: "collected", engine.KeySet: "key-set", engine.Raised: "raised"}
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

func word[N ~uint8](words []string, n N) string {
	if int(n) < len(words) && words[n] != "" {
		return words[n]
	}
	return strconv.Itoa(int(n))
}

type fields []struct{ name, value string }

// add adds a value; none if it is zero.
func (f *fields) add(name string, value any) {
	text := ""
	switch v := value.(type) {
	case interface{ Hex() string }:
		text = v.Hex()
	case engine.Time:
		text = timeText(v)
	default:
		text = fmt.Sprint(v)
	}
	if !reflect.ValueOf(value).IsZero() {
		*f = append(*f, struct{ name, value string }{name, text})
	}
}

func timeText(t engine.Time) string {
	return time.UnixMilli(int64(t)).UTC().Format("2006-01-02T15:04:05.000Z")
}

func (f *fields) wallet(n *names, name string, no engine.WalletNo) {
	if a, known := n.wallets[no]; known && no != 0 {
		f.add(name, fmt.Sprintf("%d/%s", no, a.Hex()))
		return
	}
	f.add(name, no)
}

func (f *fields) market(n *names, no engine.MarketNo) {
	if l := n.markets[no]; l != nil && no != 0 {
		f.add("market", fmt.Sprintf("%d/%s", no, l.Condition.Hex()))
		return
	}
	f.add("market", no)
}

func commandFields(c *engine.Command, n *names) (f fields) {
	f.add("id", c.ID)
	f.market(n, c.Market)
	f.wallet(n, "wallet", c.Wallet)
	f.wallet(n, "owner", c.Owner)
	if replaced, is := c.Replaced(); is {
		f.add("replaces", replaced)
	} else {
		f.add("address", c.Address)
		f.add("holder", c.Holder)
	}
	switch c.Kind {
	case engine.Place:
		f.add("outcome", strconv.Itoa(int(c.Outcome)))
		f.add("side", word(sideWords[:], c.Side))
		f.add("type", word(typeWords[:], c.Type))
		f.add("postOnly", c.PostOnly)
		f.add("feeBound", c.FeeBound)
	case engine.Started:
		f.add("epoch", c.Seen)
		f.add("clock", c.Expiry)
		return f
	case engine.Raise:
		f.add("version", c.Seen)
		return f
	case engine.SetState:
		f.add("state", word(stateWords[:], c.State))
	case engine.SetMode:
		f.add("mode", word(modeWords[:], c.Mode))
	case engine.SetPrevention:
		f.add("expires", word(preventionWords[:], c.Prevention))
	case engine.SetKey:
		f.add("class", word(classWords[:], c.Class))
		f.add("revoke", c.Revoke)
	case engine.CancelAll:
		f.add("reason", word(reasonWords[:], c.Reason))
		f.add("only", c.Only)
	case engine.Arm:
		f.add("key", c.Key)
		f.add("timeoutMs", int64(c.Expiry))
		return f
	case engine.Deposit, engine.Withdraw:
		if c.Market != 0 {
			f.add("outcome", strconv.Itoa(int(c.Outcome)))
		}
	}
	f.add("key", c.Key)
	f.add("price", c.Price)
	f.add("size", c.Size)
	f.add("cash", c.Cash)
	f.add("expiry", c.Expiry)
	f.add("deadline", c.Deadline)
	f.add("seen", c.Seen)
	listingFields(&f, c.Listing)
	f.add("proofBytes", len(c.Proof))
	return f
}

func listingFields(f *fields, l *engine.Listing) {
	if l == nil {
		return
	}
	f.add("condition", l.Condition.Hex())
	f.add("tokens", l.Tokens[0].String()+","+l.Tokens[1].String())
	f.add("group", l.Group)
	f.add("tick", l.Tick)
	f.add("minSize", l.MinSize)
	f.add("minBuy", l.MinBuy)
	f.add("feeRate", l.Fee.Rate)
	f.add("feeExponent", l.Fee.Exponent)
	f.add("negRisk", strconv.FormatBool(l.NegRisk))
	f.add("open", strconv.FormatBool(l.Open))
}

func eventFields(e *engine.Event, n *names, c *engine.Command) (f fields) {
	f.add("order", e.Order)
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
			f.add("code", e.Reject)
		}
	}
	if e.Kind == engine.Filled {
		f.add("settlement", word(settlementWords[:], e.Settlement))
	}
	if e.State != 0 {
		f.add("state", word(stateWords[:], e.State))
	}
	f.add("price", e.Price)
	f.add("size", e.Size)
	f.add("remaining", e.Remaining)
	f.add("fee", e.Fee)
	if e.Reason != 0 {
		f.add("reason", word(reasonWords[:], e.Reason))
	}
	f.add("first", e.First)
	if e.Kind != engine.Rejected && e.Args != [3]int64{} {
		f.add("args", strings.Trim(fmt.Sprint(e.Args), "[]"))
	}
	return f
}

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

// text returns a line for the record and one below it for each of its Events.
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

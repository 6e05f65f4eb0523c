package engine

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// The words of scenarios that are about markets, wallets, timers and operators.

// reasons, states, modes and preventions are the words for these.
var (
	reasons = [...]string{"", "by owner", "self trade", "unfilled", "expired", "timeout",
		"by operator", "market closed", "market resolved"}
	states      = [...]string{"", "unopened", "open", "paused", "closed", "settled"}
	modes       = [...]string{"normal", "post-only", "cancel-only"}
	preventions = [...]string{"resting", "arriving", "both", "none"}
	classes     = [...]string{"trading", "readonly", "builder", "unknown"}
)

// wordOf is the number of a word, or one beyond all of them.
func wordOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return len(words)
}

// now is the Time of the next Command: its Sequence, or later if the time word said so.
func (w *world) now() Time { return max(w.clock, Time(w.seq)) }

// control makes the Command of a line.
func (w *world) control(d *datadriven.TestData, words []string, opts map[string]string) Command {
	c := Command{}
	if v, ok := opts["ref"]; ok {
		copy(c.ID[:], v)
	}
	switch words[0] {
	case "split", "merge", "redeem":
		return w.petition(words, opts)
	case "cancel-all":
		return w.cancelAll(words, opts)
	case "state":
		c.Kind, c.Market = SetState, w.named(opts)
		c.State = MarketState(wordOf(states[:], words[1]))
	case "resolve":
		c.Kind, c.Market = Resolve, w.named(opts)
		c.Price = Price(decimal(w.t, words[1], 4))
	case "adjust":
		c = w.list(words, opts)
		c.Kind, c.Market = Adjust, w.named(map[string]string{"in": words[1]})
		if v, ok := opts["in"]; ok {
			c.Market = w.named(map[string]string{"in": v})
		}
	case "mode":
		c.Kind, c.Mode = SetMode, Mode(wordOf(modes[:], words[1]))
		if _, ok := opts["in"]; ok {
			c.Market = w.named(opts)
		}
		c.Wallet = w.numbered(opts["wallet"])
	case "prevention":
		c.Kind, c.Wallet = SetPrevention, w.numbered(words[1])
		c.Prevention = Prevention(wordOf(preventions[:], words[2]))
	case "arm":
		c.Kind, c.Owner = Arm, w.numbered(words[1])
		c.Key = uint32(decimal(w.t, words[2], 0))
		c.Expiry = Time(decimal(w.t, words[3], 0))
	case "key":
		c.Kind, c.Owner = SetKey, w.numbered(words[1])
		c.Key = uint32(decimal(w.t, words[2], 0))
		c.Class = KeyClass(wordOf(classes[:], words[3]))
		c.Revoke = len(words) > 4
	case "advance":
		c.Kind = Advance
	case "collect":
		c.Kind, c.Address = Collect, addressOf(words[1])
		c.Cash = Cash(decimal(w.t, words[2], 6))
	case "drop":
		c.Kind, c.ID, c.Reason = Cancel, w.id(words[1]), ByOperator
		if v, ok := opts["owner"]; ok {
			c.Owner = w.number(v)
		}
	default:
		d.Fatalf(w.t, "unknown word %q", words[0])
	}
	return c
}

// rules reads what else a listing says: fee=441^1 (rate and exponent), buy=1, group=7.
func (w *world) rules(l *Listing, opts map[string]string) {
	if v, ok := opts["fee"]; ok {
		rate, exponent, _ := strings.Cut(v, "^")
		l.Fee.Rate = uint16(decimal(w.t, rate, 0))
		l.Fee.Exponent = uint8(decimal(w.t, exponent, 0))
	}
	if v, ok := opts["buy"]; ok {
		l.MinBuy = Cash(decimal(w.t, v, 6))
	}
	if v, ok := opts["group"]; ok {
		l.Group = uint64(decimal(w.t, v, 0))
	}
}

// numbered is the wallet of a name: 0 for none, 99 for a name that has no wallet.
func (w *world) numbered(name string) WalletNo {
	if name == "" {
		return 0
	}
	if no := w.number(name); no != 0 {
		return no
	}
	return 99
}

// petition is what a wallet asks for itself: split alice 10 as=r1.
func (w *world) petition(words []string, opts map[string]string) Command {
	c := Command{Kind: RedeemTokens, Wallet: w.numbered(words[1]), Market: w.named(opts)}
	c.Owner = c.Wallet
	if v, ok := opts["owner"]; ok {
		c.Owner = w.numbered(v)
	}
	switch words[0] {
	case "split":
		c.Kind, c.Size = SplitTokens, Size(decimal(w.t, words[2], 6))
	case "merge":
		c.Kind, c.Size = MergeTokens, Size(decimal(w.t, words[2], 6))
	}
	if v, ok := opts["as"]; ok {
		copy(c.ID[:], v)
	}
	return c
}

// cancelAll reads: cancel-all alice owner=bob in=m1 token=B key=7 because=timeout.
func (w *world) cancelAll(words []string, opts map[string]string) Command {
	c := Command{Kind: CancelAll, Wallet: w.numbered(words[1]), Reason: ByOwner}
	c.Owner = c.Wallet
	if v, ok := opts["owner"]; ok {
		c.Owner = w.numbered(v)
	}
	if _, ok := opts["in"]; ok {
		c.Market = w.named(opts)
	}
	if v, ok := opts["token"]; ok {
		c.Only, c.Outcome = c.Only|OnlyToken, Outcome(v[0]-'A')
	}
	if v, ok := opts["key"]; ok {
		c.Only, c.Key = c.Only|OnlyKey, uint32(decimal(w.t, v, 0))
	}
	switch v := opts["because"]; v {
	case "":
	case "operator":
		c.Reason = ByOperator
	default:
		c.Reason = Reason(wordOf(reasons[:], v))
	}
	if c.Reason == ByOperator && opts["owner"] == "" {
		c.Owner = 0
	}
	return c
}

// printControl prints what these words' Commands say last.
func (w *world) printControl(out *strings.Builder, e *Event) {
	switch e.Kind {
	case Rejected:
		if e.Reject == RejectDuplicate && e.Args[0] != 0 {
			fmt.Fprintf(out, ", which moved %v", Size(e.Args[0]))
		}
	case Swept:
		fmt.Fprintf(out, "swept %d", e.Size)
	case Split:
		fmt.Fprintf(out, "split %v for wallet %d", e.Size, e.Wallet)
	case Merged:
		fmt.Fprintf(out, "merged %v for wallet %d", e.Size, e.Wallet)
	case Redeemed:
		fmt.Fprintf(out, "redeemed A %v and B %v of wallet %d for %v", Size(e.Args[0]),
			Size(e.Args[1]), e.Wallet, e.Size)
	case StateChanged:
		fmt.Fprintf(out, "market %d is %s", e.Market, states[e.State])
	case Adjusted:
		m := w.x.markets.known(e.Market)
		fmt.Fprintf(out, "adjusted %d: tick %v, min %v, min buy %v, fee %d^%d", e.Market, m.tick,
			m.min, m.minBuy, m.fee.Rate, m.fee.Exponent)
	case Resolved:
		fmt.Fprintf(out, "resolved %d: A pays %v", e.Market, e.Price)
	case ModeSet:
		fmt.Fprintf(out, "mode %s, market %d, wallet %d", modes[e.Mode], e.Market, e.Wallet)
	case PreventionSet:
		fmt.Fprintf(out, "prevention %s, wallet %d", preventions[e.Prevention], e.Wallet)
	case Advanced:
		fmt.Fprintf(out, "expired %d", e.Size)
	case Armed:
		fmt.Fprintf(out, "armed key %d of %d: %d ms", e.Args[0], e.Owner, e.Args[1])
	case KeySet:
		fmt.Fprintf(out, "%s key %d of %d", classes[e.Args[1]], e.Args[0], e.Owner)
		if e.Args[2] != 0 {
			fmt.Fprint(out, " revoked")
		}
	case Collected:
		fmt.Fprintf(out, "collected %v to wallet %d", Cash(e.Size), e.Wallet)
	}
}

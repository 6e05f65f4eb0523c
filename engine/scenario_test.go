package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// world is an Exchange with names: what scenarios speak of. Every Command also goes through an
// encoded frame into a twin with another seed, which must end the same.
type world struct {
	t      testing.TB
	x      *Exchange
	twin   *Exchange
	seq    Sequence
	prev   Hash
	last   Command
	events []Event
	names  map[OrderID]string
	wallet map[WalletNo]string
	market string // the one meant if none is named
	no     map[string]MarketNo
	clock  Time // what the time word said
}

func newWorld(t testing.TB, window uint32) *world {
	return &world{
		t: t, x: newExchange(1, window), twin: newExchange(2, window),
		names: map[OrderID]string{}, wallet: map[WalletNo]string{}, no: map[string]MarketNo{},
	}
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		w := newWorld(t, Window)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t = t
			var out strings.Builder
			lines := append([]string{d.FullCmd()}, strings.Split(d.Input, "\n")...)
			for _, line := range lines {
				if line = strings.TrimSpace(line); line != "" {
					w.line(d, &out, strings.Fields(line))
				}
			}
			if err := audit(w.x); err != nil {
				d.Fatalf(t, "audit: %v", err)
			}
			return out.String()
		})
	})
}

// line carries out one line of a scenario.
func (w *world) line(d *datadriven.TestData, out *strings.Builder, f []string) {
	opts := map[string]string{}
	var words []string
	for _, s := range f {
		if k, v, ok := strings.Cut(s, "="); ok {
			opts[k] = v
		} else {
			words = append(words, s)
		}
	}
	var c Command
	switch words[0] {
	case "window":
		n, _ := strconv.Atoi(words[1])
		*w = *newWorld(w.t, uint32(n))
		return
	case "market":
		c = w.list(words, opts)
	case "deposit", "withdraw":
		c = w.move(words, opts)
	case "link":
		c = Command{Kind: Link, Address: addressOf(words[1]), Holder: addressOf(opts["owner"])}
	case "place":
		c = w.place(words, opts)
	case "cancel":
		c = Command{Kind: Cancel, Owner: w.number(words[1]), ID: w.id(words[2])}
	case "started":
		c = Command{Kind: Started, Seen: 1, Expiry: 1000}
	case "book":
		w.printBook(out, w.named(opts))
		return
	case "balance":
		w.printBalance(out, words[1])
		return
	case "vault":
		m := w.x.markets.known(w.named(opts))
		fmt.Fprintf(out, "vault %v, outside A %v B %v\n", m.vault, m.external[0], m.external[1])
		return
	case "fees":
		fmt.Fprintf(out, "fees %v\n", w.x.fees)
		return
	case "receipt":
		w.printReceipt(out)
		return
	case "time":
		w.clock = Time(decimal(w.t, words[1], 0))
		return
	default:
		c = w.control(d, words, opts)
	}
	w.run(&c)
	if c.Kind == List && w.events[0].Kind == Listed {
		w.no[words[1]], w.market = w.events[0].Market, words[1]
	}
	w.print(out, &c)
}

func (w *world) list(words []string, opts map[string]string) Command {
	l := &Listing{Tick: 100, Open: true}
	copy(l.Condition[:], words[1])
	if v, ok := opts["condition"]; ok {
		l.Condition = Condition{}
		copy(l.Condition[:], v)
	}
	copy(l.Tokens[0][:], words[1]+" A")
	copy(l.Tokens[1][:], words[1]+" B")
	for i, name := range strings.Split(opts["tokens"], ",") {
		if name != "" {
			l.Tokens[i] = Token{}
			copy(l.Tokens[i][:], name)
		}
	}
	if v, ok := opts["tick"]; ok {
		l.Tick = Price(decimal(w.t, v, 4))
	}
	if v, ok := opts["min"]; ok {
		l.MinSize = Size(decimal(w.t, v, 6))
	}
	w.rules(l, opts)
	for _, word := range words[2:] {
		switch word {
		case "unopened":
			l.Open = false
		case "neg-risk":
			l.NegRisk = true
		}
	}
	return Command{Kind: List, Listing: l}
}

func (w *world) move(words []string, opts map[string]string) Command {
	c := Command{Kind: Deposit, Address: addressOf(words[1])}
	if words[0] == "withdraw" {
		c.Kind = Withdraw
	}
	for i, name := range []string{"A", "B"} {
		if v, ok := opts[name]; ok {
			c.Market, c.Outcome = w.named(opts), Outcome(i)
			c.Size = Size(decimal(w.t, v, 6))
		}
	}
	if v, ok := opts["cash"]; ok {
		c.Cash = Cash(decimal(w.t, v, 6))
	}
	copy(c.ID[:], opts["ref"])
	return c
}

func (w *world) place(words []string, opts map[string]string) Command {
	c := Command{Kind: Place, Wallet: w.number(words[1]), ID: w.id(words[2]), Key: 7}
	c.Market, c.Owner, c.Seen = w.named(opts), c.Wallet, w.seq
	if words[3] == "sell" {
		c.Side = Sell
	}
	if words[4] == "B" {
		c.Outcome = 1
	}
	if len(words) > 7 {
		c.Size = Size(decimal(w.t, words[5], 6))
		c.Cash = Cash(int64(c.Size) * decimal(w.t, words[7], 9) / 1_000_000_000)
	}
	if v, ok := opts["size"]; ok {
		c.Size = Size(decimal(w.t, v, 6))
	}
	if v, ok := opts["for"]; ok {
		c.Cash = Cash(decimal(w.t, v, 6))
	}
	if v, ok := opts["owner"]; ok {
		c.Owner = w.number(v)
	}
	if v, ok := opts["seen"]; ok {
		n, _ := strconv.Atoi(v)
		c.Seen = Sequence(n)
	}
	if v, ok := opts["key"]; ok {
		c.Key = uint32(decimal(w.t, v, 0))
	}
	if v, ok := opts["expiry"]; ok {
		c.Expiry = Time(decimal(w.t, v, 0))
	}
	if v, ok := opts["deadline"]; ok {
		c.Deadline = Time(decimal(w.t, v, 0))
	}
	if v, ok := opts["signed-fee"]; ok {
		c.FeeBound = 1 + uint16(decimal(w.t, v, 0))
	}
	if v, ok := opts["replaces"]; ok {
		c.Replace(w.id(v))
	}
	c.PostOnly = slices.Contains(words, "post-only")
	switch opts["type"] {
	case "GTD":
		c.Type = GTD
	case "FOK":
		c.Type = FOK
	case "FAK":
		c.Type = FAK
	case "9":
		c.Type = 9
	}
	return c
}

// run applies a Command here and, through an encoded frame, to the twin.
func (w *world) run(c *Command) {
	w.t.Helper()
	before := w.x.Digest()
	w.seq++
	w.last = *c
	w.events = w.x.Apply(c, w.seq, w.now(), w.events[:0])
	last := w.events[len(w.events)-1]
	if last.Kind == Rejected && !Rejects[last.Reject].Final && w.x.Digest() != before {
		w.t.Errorf("#%d: a rejected command changed the state", w.seq)
	}
	f := Frame{
		Engine: Version, Epoch: 1, No: uint64(w.seq), First: w.seq, Time: w.now(),
		Digest: w.x.Digest(), Commands: []Command{*c}, Events: w.events,
		Ends: []uint32{uint32(len(w.events))},
	}
	f.Encode(w.prev)
	w.prev = f.Hash
	var back Frame
	if err := DecodeFrame(f.Bytes, &back); err != nil {
		w.t.Fatalf("#%d: %v", w.seq, err)
	}
	if err := w.twin.ApplyFrame(&back); err != nil {
		w.t.Fatalf("#%d: %v", w.seq, err)
	}
}

func (w *world) print(out *strings.Builder, c *Command) {
	r := ReceiptOf(c, w.seq, w.now(), w.events)
	for i := range w.events {
		e := &w.events[i]
		fmt.Fprintf(out, "#%d ", w.seq)
		switch e.Kind {
		case EpochStarted:
			fmt.Fprint(out, "started")
		case Listed:
			fmt.Fprintf(out, "listed %d %s", e.Market, states[e.State])
		case Deposited, Withdrawn:
			fmt.Fprintf(out, "%s wallet %d %v", verb(e.Kind), e.Wallet, e.Size)
		case Linked:
			w.wallet[e.Owner] = nameOf(w.x.accounts.at(uint32(e.Owner)).address)
			fmt.Fprintf(out, "linked wallet %d owner %d", e.Wallet, e.Owner)
		case Filled:
			w.printFill(out, c, e)
		case Placed:
			fmt.Fprintf(out, "placed %s %v left %v of %v", w.names[e.Order], e.Price,
				e.Remaining, e.Size)
		case Completed:
			fmt.Fprintf(out, "done %s %v", w.names[e.Order], e.Size)
			if e.Reason != 0 {
				fmt.Fprintf(out, ", left %v %s", e.Remaining, reasons[e.Reason])
			}
		case Cancelled:
			fmt.Fprintf(out, "cancelled %s %s, left %v", w.names[e.Order],
				reasons[e.Reason], e.Remaining)
		case Rejected:
			text := strings.ReplaceAll(r.Text(), c.ID.Hex(), w.names[c.ID])
			fmt.Fprintf(out, "rejected %s: %s", Rejects[e.Reject].Code, text)
			if e.First != 0 {
				fmt.Fprintf(out, " (#%d)", e.First)
			}
		}
		w.printControl(out, e)
		fmt.Fprintln(out)
	}
	if c.Kind == Place && r.Trades > 0 {
		fmt.Fprintf(out, "#%d made %v took %v", w.seq, Cash(r.Making), Cash(r.Taking))
		if r.Fee != 0 {
			fmt.Fprintf(out, " fee %v", r.Fee)
		}
		fmt.Fprintf(out, " in %d trades\n", r.Trades)
	}
}

// printReceipt prints what the caller of the last Command is told.
func (w *world) printReceipt(out *strings.Builder) {
	r := ReceiptOf(&w.last, w.seq, w.now(), w.events)
	fmt.Fprintf(out, "receipt #%d %s", r.Sequence, [...]string{"-", "live", "matched", "canceled"}[r.Status])
	if r.Reject != Accepted {
		fmt.Fprintf(out, ", %s", Rejects[r.Reject].Code)
	}
	fmt.Fprintf(out, ", market %d, wallet %d, making %v, taking %v, remaining %v, fee %v, %d trades\n",
		r.Market, r.Wallet, Cash(r.Making), Size(r.Taking), r.Remaining, r.Fee, r.Trades)
}

func verb(k EventKind) string {
	if k == Deposited {
		return "deposited"
	}
	return "withdrawn"
}

func (w *world) printFill(out *strings.Builder, c *Command, e *Event) {
	ab := [...]string{"A", "B"}
	fmt.Fprintf(out, "filled %s x %s %v @ %s %v", w.names[e.Order], w.names[c.ID], e.Size,
		ab[e.Outcome], e.Price)
	if e.Outcome != c.Outcome {
		fmt.Fprintf(out, " / %s %v", ab[c.Outcome], PriceOne-e.Price)
	}
	fmt.Fprintf(out, " %s", [...]string{"", "transfer", "mint", "merge"}[e.Settlement])
	if e.Remaining > 0 {
		fmt.Fprintf(out, ", %s left %v", w.names[e.Order], e.Remaining)
	} else {
		fmt.Fprintf(out, ", %s done", w.names[e.Order])
	}
	if e.Fee != 0 {
		fmt.Fprintf(out, ", fee %v", e.Fee)
	}
}

// printBook prints the ladder in prices of A, best ask and best bid in the middle.
func (w *world) printBook(out *strings.Builder, no MarketNo) {
	m := w.x.markets.known(no)
	empty := true
	for n := len(m.book.pages)*pageSize - 1; n > 0; n-- {
		if m.book.pages[n>>pageBits].levels == nil || m.book.Level(uint32(n)).Head == 0 {
			continue
		}
		l := m.book.Level(uint32(n))
		side := "ask"
		if uint32(n) <= m.book.Best[Buy] {
			side = "bid"
		}
		fmt.Fprintf(out, "%s %v %v:", side, Price(n)*m.tick, l.Size)
		for h := l.Head; h != 0; h = w.x.queues.behind(h) {
			o := w.x.orders.at(h)
			fmt.Fprintf(out, " %s %v", w.names[o.id], o.remaining)
		}
		fmt.Fprintln(out)
		empty = false
	}
	if empty {
		fmt.Fprintln(out, "empty")
	}
}

func (w *world) printBalance(out *strings.Builder, name string) {
	no := w.number(name)
	if no == 0 {
		fmt.Fprintf(out, "%s: no wallet\n", name)
		return
	}
	cash := w.x.accounts.at(uint32(no)).cash
	fmt.Fprintf(out, "%s: cash %v", name, Cash(cash.total))
	if cash.held != 0 {
		fmt.Fprintf(out, " (%v reserved)", Cash(cash.held))
	}
	for m := 1; m <= int(w.x.markets.used); m++ {
		i := w.x.position(no, MarketNo(m))
		if i == 0 {
			continue
		}
		for o, e := range w.x.positions.at(i).tokens {
			if e.total == 0 {
				continue
			}
			fmt.Fprintf(out, ", %d.%s %v", m, [...]string{"A", "B"}[o], Size(e.total))
			if e.held != 0 {
				fmt.Fprintf(out, " (%v reserved)", Size(e.held))
			}
		}
	}
	fmt.Fprintln(out)
}

// named is the market that a line means; one that was never listed is 99.
func (w *world) named(opts map[string]string) MarketNo {
	name := w.market
	if v, ok := opts["in"]; ok {
		name = v
	}
	if no, ok := w.no[name]; ok {
		return no
	}
	return 99
}

func (w *world) number(name string) WalletNo { return w.x.wallets[addressOf(name)] }

func (w *world) id(name string) OrderID {
	var id OrderID
	copy(id[:], name)
	w.names[id] = name
	return id
}

func addressOf(name string) Address {
	var a Address
	copy(a[:], name)
	return a
}

func nameOf(a Address) string { return strings.TrimRight(string(a[:]), "\x00") }

// decimal reads a decimal number in units of 10^-digits.
func decimal(t testing.TB, s string, digits int) int64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("number %q: %v", s, err)
	}
	return int64(math.Round(v * math.Pow10(digits)))
}

package engine

import (
	"flag"
	"fmt"
	"math/big"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A duel plays the same Commands against the exchange and its reference. After each Command it
// compares Events, Receipt, balances, orders and markets.
type duel struct {
	*deck
	x         *Exchange
	r         *reference
	collected int64
	charged   int64 // sum of the fees of all fills
	took      map[Kind]int
	met       map[Reject]int
	kinds     map[EventKind]int
	show      func(format string, args ...any) // tells the history of a failure
	after     func(c *Command, events []Event)
}

func newDuel(draw func(n int) int, window uint32) *duel {
	d := &duel{
		deck: newDeck(draw), x: newExchange(uint64(window), window), r: newReference(int(window)),
		took: map[Kind]int{}, met: map[Reject]int{}, kinds: map[EventKind]int{},
	}
	d.deck.x = d.x
	return d
}

// play draws the opening of a history and n more Commands.
func (d *duel) play(t rapid.TB, commands int) {
	for _, c := range d.opening() {
		d.step(t, c)
	}
	d.step(t, Command{Kind: Raise, Seen: Version})
	for range commands {
		d.step(t, d.next())
	}
}

// step applies one Command to both and compares their whole states.
func (d *duel) step(t rapid.TB, c Command) {
	t.Helper()
	digest := d.x.Digest()
	got := d.both(t, c)
	last := &got[len(got)-1]
	if last.Kind == Rejected && !Rejects[last.Reject].Final &&
		(len(got) > 1 || d.x.Digest() != digest) {
		t.Fatalf("#%d: %s was rejected, and changed the state%s", d.seq, brief(&c), briefly(got))
	}
	d.fair(t, &c, got)
	d.compare(t)
	if err := audit(d.x); err != nil {
		t.Fatalf("#%d: %s%s\n%v", d.seq, brief(&c), briefly(got), err)
	}
	d.saw(&c, got)
	d.count(&c, got)
	if d.after != nil {
		d.after(&c, got)
	}
}

// both applies one Command to both and compares Events and Receipts.
func (d *duel) both(t rapid.TB, c Command) []Event {
	t.Helper()
	d.seq++
	if d.show != nil {
		d.show("#%d at %d: %s", d.seq, d.now, brief(&c))
	}
	sent := c
	got := d.x.Apply(&c, d.seq, d.now, nil)
	if want := d.r.apply(&sent, d.seq, d.now); !slices.Equal(got, want) {
		t.Fatalf("#%d at %d: %s\ngot%s\nwant%s", d.seq, d.now, brief(&c), briefly(got),
			briefly(want))
	}
	told := ReceiptOf(&c, d.seq, d.now, got)
	if want := refReceipt(&c, d.seq, d.now, got); told != want {
		t.Fatalf("#%d: %s%s\nreceipt %s\nwant    %s", d.seq, brief(&c), briefly(got),
			brief(&told), brief(&want))
	}
	return got
}

func (d *duel) count(c *Command, events []Event) {
	last := &events[len(events)-1]
	d.met[last.Reject]++
	if last.Kind != Rejected {
		d.took[c.Kind]++
	}
	for i := range events {
		d.kinds[events[i].Kind]++
	}
}

// fair checks an order by its Events alone: no price is worse than the signed one, no fill is off
// the lot, and no budget is overspent.
func (d *duel) fair(t rapid.TB, c *Command, events []Event) {
	if last := events[len(events)-1]; last.Kind == Collected {
		d.collected += int64(last.Size)
	}
	for i := range events {
		if e := &events[i]; e.Kind == Filled {
			d.charged += int64(e.Fee)
			if e.Size <= 0 || e.Size%Lot != 0 || e.Fee < 0 {
				t.Fatalf("#%d: fill %+v", d.seq, *e)
			}
		}
	}
	told := ReceiptOf(c, d.seq, d.now, events)
	if c.Kind != Place || told.Trades == 0 {
		return
	}
	cash, size := told.Making, told.Taking
	if c.Side == Sell {
		cash, size = size, cash
	}
	worse := new(big.Rat).Sub(big.NewRat(cash, size), big.NewRat(int64(c.Cash), int64(c.Size)))
	if c.Side == Sell {
		worse.Neg(worse)
	}
	// One base unit of the signed amounts, or a fiftieth of a tick.
	tolerated := big.NewRat(1, int64(c.Size))
	if c.Type == FOK || c.Type == FAK {
		tick := d.r.market(c.Market).listing.Tick
		tolerated = big.NewRat(int64(tick), 50*int64(PriceOne))
	}
	last := events[len(events)-1]
	switch {
	case worse.Cmp(tolerated) > 0:
		t.Fatalf("#%d: %+v made %d for %d", d.seq, *c, told.Making, told.Taking)
	case c.Side == Buy && told.Making > int64(c.Cash):
		t.Fatalf("#%d: %+v spent %d", d.seq, *c, told.Making)
	case (c.Side == Sell || c.Type <= GTD) && size > int64(c.Size):
		t.Fatalf("#%d: %+v filled %d", d.seq, *c, size)
	case c.Type == FOK && last.Remaining != 0:
		t.Fatalf("#%d: %+v left %d of a FOK", d.seq, *c, last.Remaining)
	case c.Side == Sell && int64(told.Fee) > cash:
		t.Fatalf("#%d: %+v paid a fee of %d out of %d", d.seq, *c, told.Fee, cash)
	}
}

// compare returns the first difference between the two states.
func (d *duel) compare(t rapid.TB) {
	t.Helper()
	x, r := d.x, d.r
	if int(x.accounts.used) != len(r.wallets) || int(x.markets.used) != len(r.markets) {
		t.Fatalf("#%d: %d wallets and %d markets, want %d and %d", d.seq, x.accounts.used,
			x.markets.used, len(r.wallets), len(r.markets))
	}
	if int64(x.fees) != r.fees || d.charged-d.collected != r.fees {
		t.Fatalf("#%d: fees %d, want %d, charged %d less %d", d.seq, x.fees, r.fees, d.charged,
			d.collected)
	}
	if x.mode != r.mode || -int64(x.external) != r.outside || x.seen.floor != r.floor() {
		t.Fatalf("#%d: mode %d, outside %d, floor %d; want %d, %d, %d", d.seq, x.mode, x.external,
			x.seen.floor, r.mode, -r.outside, r.floor())
	}
	for i := range r.wallets {
		d.compareWallet(t, WalletNo(i+1))
	}
	for i := range r.markets {
		d.compareMarket(t, MarketNo(i+1))
	}
	due := Time(0)
	for i := range r.orders {
		o := &r.orders[i]
		if o.expiry != 0 && (due == 0 || o.expiry < due) {
			due = o.expiry
		}
		h, first, _ := x.seen.find(&x.orders, &o.id, x.seen.salt.tag(&o.id))
		if h == 0 || first != o.first {
			t.Fatalf("#%d: %+v does not rest", d.seq, *o)
		}
		got := x.orders.at(h)
		if got.remaining != Size(o.lots)*Lot || got.expiry != o.expiry || got.wallet != o.wallet ||
			got.owner != o.owner || got.key != o.key || int64(got.price) != o.price {
			t.Fatalf("#%d: %+v, want %+v", d.seq, *got, *o)
		}
	}
	if x.Due() != due {
		t.Fatalf("#%d: due at %d, want %d", d.seq, x.Due(), due)
	}
}

func (d *duel) compareWallet(t rapid.TB, no WalletNo) {
	t.Helper()
	x, w := d.x, d.r.wallet(no)
	a := x.accounts.at(uint32(no))
	open := d.r.some(func(o *refOrder) bool { return o.wallet == no })
	if a.owner != w.owner || a.mode != w.mode || a.prevention != w.prevention ||
		a.address != w.address || int(a.open) != len(open) {
		t.Fatalf("#%d: wallet %d is %+v with %d orders, want %+v", d.seq, no, *a, len(open), *w)
	}
	if want := (entry{w.cash, d.r.held(no)}); a.cash != want || want.free() < 0 || want.held < 0 {
		t.Fatalf("#%d: wallet %d has %+v, want %+v", d.seq, no, a.cash, want)
	}
	for i := range d.r.markets {
		m := MarketNo(i + 1)
		have, own := [2]entry{}, w.own(m)
		if p := x.position(no, m); p != 0 {
			have = x.positions.at(p).tokens
		}
		for o := range have {
			want := entry{own[o], d.r.heldTokens(no, m, Outcome(o))}
			if have[o] != want || want.free() < 0 {
				t.Fatalf("#%d: wallet %d has %+v of token %d of market %d, want %+v", d.seq, no,
					have[o], o, m, want)
			}
		}
	}
}

// compareMarket compares rules, state and vault, and looks for a crossed book and for unbacked
// tokens.
func (d *duel) compareMarket(t rapid.TB, no MarketNo) {
	t.Helper()
	got, want := d.x.markets.known(no), d.r.market(no)
	rules := want.listing
	rules.Open = false // the state says more
	if got.listing() != rules || got.state != want.state || got.mode != want.mode ||
		int64(got.payout) != want.payout || int64(got.vault) != want.vault {
		t.Fatalf("#%d: market %d is %+v, want %+v", d.seq, no, *got, *want)
	}
	bid, ask, orders := int64(0), int64(PriceOne), uint32(0)
	for i := range d.r.orders {
		o := &d.r.orders[i]
		if o.market != no {
			continue
		}
		orders++
		if side, p := o.inA(); side == Buy {
			bid = max(bid, p)
		} else {
			ask = min(ask, p)
		}
	}
	tick := int64(want.listing.Tick)
	if best := [2]uint32{uint32(bid / tick), uint32(ask / tick)}; bid >= ask ||
		got.book.Best != best || got.book.Orders != orders {
		t.Fatalf("#%d: market %d: %d orders between %d and %d, book %+v", d.seq, no, orders, bid,
			ask, got.book)
	}
	d.compareTokens(t, no)
}

// compareTokens adds up each token: wallets and the outside hold as many as were issued, and the
// vault backs them.
func (d *duel) compareTokens(t rapid.TB, no MarketNo) {
	t.Helper()
	got, want := d.x.markets.known(no), d.r.market(no)
	owed := new(big.Int)
	for o := range want.issued {
		sum := want.left[o]
		for _, w := range d.r.wallets {
			sum += w.own(no)[o]
		}
		if sum != want.issued[o] || -int64(got.issued[o]) != sum ||
			int64(got.external[o]) != want.left[o] {
			t.Fatalf("#%d: market %d: %d of token %d, issued %d, external %d; want %d, %d", d.seq,
				no, sum, o, got.issued[o], got.external[o], want.issued[o], want.left[o])
		}
		if want.state != Settled && sum != want.vault {
			t.Fatalf("#%d: market %d: %d of token %d, vault %d", d.seq, no, sum, o, want.vault)
		}
		pays := []int64{want.payout, int64(PriceOne) - want.payout}[o]
		owed.Add(owed, new(big.Int).Mul(big.NewInt(sum), big.NewInt(pays)))
	}
	vault := new(big.Int).Mul(big.NewInt(want.vault), big.NewInt(int64(PriceOne)))
	if want.state == Settled && vault.Cmp(owed) < 0 {
		t.Fatalf("#%d: market %d: vault %d owes %v", d.seq, no, want.vault, owed)
	}
}

// checks asks rapid for n sequences unless the command line sets a number.
func checks(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	if was := f.Value.String(); was == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(was) })
	}
}

// fromRapid lets rapid draw, and find the shortest sequence that fails. It draws bit by bit:
// rapid's integers are mostly small, so that rare Commands would be rarer still.
func fromRapid(t *rapid.T) func(n int) int {
	coin := rapid.Bool()
	some := map[int]*rapid.Generator[int]{}
	return func(n int) int {
		if n == 1 {
			return 0
		}
		if some[n] == nil {
			some[n] = rapid.Custom(func(t *rapid.T) int {
				v := 0
				for range bits.Len(uint(n - 1)) {
					v <<= 1
					if coin.Draw(t, "bit") {
						v++
					}
				}
				return v % n
			})
		}
		return some[n].Draw(t, "of "+strconv.Itoa(n))
	}
}

// brief returns the fields of a Command or Event that are not zero.
func brief(v any) string {
	var out strings.Builder
	s := reflect.ValueOf(v)
	if s.Kind() == reflect.Pointer {
		s = s.Elem()
	}
	for i := range s.NumField() {
		f, name := s.Field(i), s.Type().Field(i).Name
		switch {
		case f.IsZero():
		case f.Kind() == reflect.Pointer:
			fmt.Fprintf(&out, "%s:{%s} ", name, brief(f.Interface()))
		case f.Kind() == reflect.Array && f.Type().Elem().Kind() == reflect.Uint8:
			fmt.Fprintf(&out, "%s:", name)
			for i := range f.Len() {
				if b := f.Index(i).Uint(); b != 0 {
					fmt.Fprintf(&out, "%02x", b)
				}
			}
			out.WriteByte(' ')
		default:
			fmt.Fprintf(&out, "%s:%v ", name, f.Interface())
		}
	}
	return strings.TrimSpace(out.String())
}

// briefly returns Events in brief, one a line.
func briefly(events []Event) (out string) {
	for i := range events {
		out += "\n    " + brief(&events[i])
	}
	return out
}

// TestReference plays 2,000 histories of about 60 Commands against the reference. As many as one
// likes, each from another seed, and what fails made as short as it gets:
//
//	go test ./engine -run '^TestReference$' -rapid.checks=100000 -timeout 0
func TestReference(t *testing.T) {
	checks(t, 2000)
	rapid.Check(t, func(t *rapid.T) {
		draw := fromRapid(t)
		d := newDuel(draw, []uint32{Window, 1, 2, 3, 8, 30}[draw(6)])
		d.show = t.Logf
		d.play(t, 1+draw(120))
	})
}

// TestReferenceSeeded plays longer, seeded histories, and counts: every Kind was accepted, every
// refusal and every Event occurred.
func TestReferenceSeeded(t *testing.T) {
	all := newDuel(nil, 1)
	for seed := range 200 {
		dice := dice(seed)
		d := newDuel(dice.below, []uint32{4, 40, Window}[seed%3])
		d.took, d.met, d.kinds = all.took, all.met, all.kinds
		d.play(t, 300)
	}
	for k := Started; k <= lastKind; k++ {
		if all.took[k] == 0 {
			t.Errorf("no Command of kind %d was taken", k)
		}
	}
	for k := EpochStarted; k <= lastEvent; k++ {
		if all.kinds[k] == 0 {
			t.Errorf("no Event of kind %d was seen", k)
		}
	}
	for no := range Reject(len(Rejects)) {
		// These take thousands of orders, or keys of one owner.
		if all.met[no] == 0 && no != RejectWalletOrders && no != RejectMarketOrders &&
			no != RejectKeyRecords {
			t.Errorf("nothing was refused for %s", Rejects[no].Code)
		}
	}
	t.Logf("taken %v\nrefused %v\nevents %v", all.took, all.met, all.kinds)
}

// FuzzExchange takes the history from bytes. Minimizing interesting inputs takes most of the time:
// -fuzzminimizetime=1x leaves that out.
func FuzzExchange(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a history of one exchange and of its reference"))
	for seed := range 4 {
		dice, b := dice(seed), make([]byte, 400)
		for i := range b {
			b[i] = byte(dice.next())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		d := newDuel(func(n int) int {
			v := 0
			for m := n - 1; m > 0 && at < len(b); m >>= 8 {
				v, at = v<<8|int(b[at]), at+1
			}
			return v % n
		}, 3)
		for _, c := range d.opening() {
			d.step(t, c)
		}
		for at < len(b) && d.seq < 200 {
			d.step(t, d.next())
		}
	})
}

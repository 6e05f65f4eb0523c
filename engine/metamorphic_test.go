package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Metamorphic tests: a transformed history must lead to the transformed result. They need no
// expected result, so any history serves.

// A history is the Commands that a deck drew, and their Events.
type history struct {
	commands []Command
	times    []Time
	events   [][]Event
	digests  []Digest
}

// at returns the Sequence of Command i.
func (h *history) at(i int) Sequence { return Sequence(i + 1) }

// record plays a history of n Commands after its opening. The clock stands still for block Commands
// at a time, as in a frame.
func record(d *deck, x *Exchange, n, block int) *history {
	h, waiting := &history{}, d.opening()
	d.x = x
	now := d.now
	for i := 0; i < n || len(waiting) > 0; i++ {
		var c Command
		if len(waiting) > 0 {
			c, waiting, i = waiting[0], waiting[1:], i-1
		} else {
			c = d.next()
		}
		if len(h.commands)%block == 0 {
			now = d.now
		}
		d.seq++
		events := x.Apply(&c, d.seq, now, nil)
		d.saw(&c, events)
		h.commands, h.times = append(h.commands, c), append(h.times, now)
		h.events, h.digests = append(h.events, events), append(h.digests, x.Digest())
	}
	return h
}

// mirrored returns a Command with the two tokens of every market swapped.
func mirrored(c Command) Command {
	if c.Outcome <= 1 {
		c.Outcome ^= 1
	}
	if c.Kind == Resolve && c.Price <= PriceOne {
		c.Price = PriceOne - c.Price
	}
	return c
}

// mirroredEvents returns the Events of a Command with the tokens swapped, in an order that does not
// depend on which token is the first.
func mirroredEvents(c *Command, events []Event) []Event {
	out := slices.Clone(events)
	for i := range out {
		switch e := &out[i]; e.Kind {
		case Filled, Placed, Completed, Cancelled, Rejected, Deposited, Withdrawn:
			if e.Outcome <= 1 {
				e.Outcome ^= 1
			}
		case Resolved:
			e.Price = PriceOne - e.Price
		case Redeemed:
			e.Args[0], e.Args[1] = e.Args[1], e.Args[0]
		}
	}
	return unordered(c, out)
}

// unordered sorts the cancels at a market's end, which list bids before asks of outcome 0, and
// leaves out which token was too few for a merge.
func unordered(c *Command, events []Event) []Event {
	last := len(events) - 1
	if c.Kind == SetState || c.Kind == Resolve {
		slices.SortFunc(events[:last], func(a, b Event) int {
			return slices.Compare(a.Order[:], b.Order[:])
		})
	}
	if c.Kind == MergeTokens && events[last].Reject == RejectBalance {
		events[last].Args = [3]int64{}
	}
	return events
}

// TestMirror swaps the tokens in every Command: the Events must be the swapped ones.
func TestMirror(t *testing.T) {
	checks(t, 300)
	rapid.Check(t, func(t *rapid.T) {
		draw := fromRapid(t)
		x, mirror := newExchange(1, 30), newExchange(2, 30)
		h := record(newDeck(draw), x, 1+draw(120), 1)
		for i := range h.commands {
			c := mirrored(h.commands[i])
			got := mirror.Apply(&c, h.at(i), h.times[i], nil)
			swapped := mirroredEvents(&c, got)
			if want := unordered(&c, h.events[i]); !slices.Equal(swapped, want) {
				t.Fatalf("#%d: %s\nmirror%s\nwant%s", h.at(i), brief(&c), briefly(swapped),
					briefly(want))
			}
		}
		if err := audit(mirror); err != nil {
			t.Fatal(err)
		}
	})
}

// dualOf turns an order to buy B into an order to sell A at the complementary price. The order must
// be bounded by its shares, because a budget buys more where the book is better. Its amounts must
// lie on its price, because cash that is a base unit short buys less and shares do not change.
func dualOf(x *Exchange, c Command) Command {
	m := x.markets.known(c.Market)
	if c.Kind != Place || c.Side != Buy || c.Outcome != 1 || c.Type > GTD || m == nil ||
		c.Size < Lot || c.Size%Lot != 0 {
		return c
	}
	price := Price(int64(c.Cash) / int64(c.Size/Lot))
	if price < 1 || price%m.tick != 0 || price >= PriceOne || c.Cash != Cost(c.Size, price) {
		return c
	}
	c.Side, c.Outcome, c.Cash = Sell, 0, Cash(c.Size)-c.Cash
	return c
}

// dualEvents returns the Events that both orders share, in prices of A.
func dualEvents(c *Command, events []Event) []Event {
	out := slices.Clone(events)
	for i := range out {
		e := &out[i]
		switch e.Kind {
		case Filled, Placed, Completed, Cancelled:
			if e.Outcome == 1 {
				e.Price = PriceOne - e.Price
			}
			e.Side, e.Outcome, e.Settlement = ladderSide(e.Side, e.Outcome), 0, 0
		case Rejected:
			if e.Reject == RejectTick && e.Side == Buy && e.Outcome == 1 {
				e.Args[0] = int64(PriceOne) - e.Args[0]
			}
			e.Side, e.Outcome = 0, 0
		}
	}
	return out
}

// TestDual buys B by selling A: the same orders fill at the same prices for the same fees, whatever
// the settlement. The buyer of B has one pair more than the seller of A, and that much less cash.
func TestDual(t *testing.T) {
	checks(t, 300)
	rapid.Check(t, func(t *rapid.T) {
		draw := fromRapid(t)
		x, dual, d := newExchange(1, 1000), newExchange(2, 1000), newDeck(draw)
		step := func(c Command) {
			d.seq++
			got := x.Apply(&c, d.seq, d.now, nil)
			other := dualOf(x, c)
			same := dual.Apply(&other, d.seq, d.now, nil)
			d.saw(&c, got)
			if a, b := dualEvents(&c, got), dualEvents(&other, same); !slices.Equal(a, b) {
				t.Fatalf("#%d: %s\ngot%s\ndual%s", d.seq, brief(&c), briefly(a), briefly(b))
			}
		}
		for _, c := range d.opening() {
			c.Cash, c.Size = 1<<45, 1<<45 // nobody lacks anything
			if c.Kind == List {           // no fee exceeds what a SELL brings, no BUY is too small
				c.Listing.MinBuy = 0
				c.Listing.Fee.Exponent = max(1, c.Listing.Fee.Exponent%4)
				c.Listing.Fee.Rate = min(2000, c.Listing.Fee.Rate)
			}
			step(c)
		}
		for range 1 + draw(100) {
			switch c := d.next(); {
			case c.Kind == Place && c.Size < MaxOrder, c.Kind == Cancel, c.Kind == Advance,
				c.Kind == SetPrevention, c.Kind == CancelAll && c.Only&OnlyToken == 0:
				step(c)
			}
		}
		for w := uint32(1); w <= x.accounts.used; w++ {
			for m := MarketNo(1); m <= deckMarkets; m++ {
				if a, b := worthOf(x, w, m), worthOf(dual, w, m); a != b {
					t.Fatalf("wallet %d in market %d: %v, dual %v", w, m, a, b)
				}
			}
		}
		if x.fees != dual.fees {
			t.Fatalf("fees %d, dual %d", x.fees, dual.fees)
		}
	})
}

// worthOf returns two values that pairing leaves unchanged: the wallet's cash plus its A of all
// markets, and in one market its A minus its B.
func worthOf(x *Exchange, w uint32, m MarketNo) (worth [2]int64) {
	worth[0] = x.accounts.at(w).cash.total
	for i := uint32(1); i <= x.positions.used; i++ {
		if p := x.positions.at(i); uint32(p.wallet) == w {
			worth[0] += p.tokens[0].total
			if p.market == m {
				worth[1] = p.tokens[0].total - p.tokens[1].total
			}
		}
	}
	return worth
}

// TestBatches cuts a history into frames in many ways and replays each cut's bytes on an exchange
// with another seed. That exchange then goes on with the rest: Events and Digest must be the same.
func TestBatches(t *testing.T) {
	checks(t, 300)
	rapid.Check(t, func(t *rapid.T) {
		draw := fromRapid(t)
		first := newExchange(1, 8)
		h := record(newDeck(draw), first, 1+draw(100), 1+draw(40))
		for cut := range uint64(2) {
			leader, follower := newExchange(10+cut, 8), newExchange(20+cut, 8)
			f, back := Frame{Engine: Version}, Frame{}
			for i := 0; i < len(h.commands); {
				n := 1 + draw(16)
				for i+n > len(h.commands) || h.times[i+n-1] != h.times[i] {
					n--
				}
				f.No, f.First, f.Time = f.No+1, h.at(i), h.times[i]
				f.Commands, f.Events, f.Ends = h.commands[i:i+n], f.Events[:0], f.Ends[:0]
				for j := range f.Commands {
					f.Events = leader.Apply(&f.Commands[j], h.at(i+j), f.Time, f.Events)
					f.Ends = append(f.Ends, uint32(len(f.Events)))
					if got := f.EventsOf(j); !slices.Equal(got, h.events[i+j]) {
						t.Fatalf("#%d: %s\ngot%s\nwant%s", h.at(i+j), brief(&f.Commands[j]),
							briefly(got), briefly(h.events[i+j]))
					}
				}
				i += n
				if f.Digest = leader.Digest(); f.Digest != h.digests[i-1] {
					t.Fatalf("#%d: another digest in another frame", i)
				}
				f.Encode(f.Hash)
				if err := DecodeFrame(f.Bytes, &back); err != nil {
					t.Fatal(err)
				}
				if err := follower.ApplyFrame(&back); err != nil {
					t.Fatal(err)
				}
				if draw(8) == 0 { // the leader is lost: the one that replayed it goes on
					leader, follower = follower, newExchange(99, 8)
					h.replay(t, follower, i)
				}
			}
			if err := audit(follower); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// replay applies the first n Commands of a history.
func (h *history) replay(t rapid.TB, x *Exchange, n int) {
	for i := range n {
		x.Apply(&h.commands[i], h.at(i), h.times[i], nil)
	}
	if x.Digest() != h.digests[n-1] {
		t.Fatalf("#%d: another digest", n)
	}
}

// A side is a deck of its own: its wallets, markets and names differ from those of the other side.
type half struct {
	*deck
	no byte
}

// own turns a Command of the deck into one of this side. It returns false for a Command that
// concerns everybody or nobody.
func (s *half) own(c *Command) bool {
	wallets, markets := WalletNo(s.no)*deckWallets, MarketNo(s.no)*deckMarkets
	global := c.Kind == Advance || c.Kind == Collect || c.Kind == List ||
		c.Kind == SetMode && c.Wallet == 0 && c.Market == 0
	if global || c.Wallet > deckWallets || c.Owner > deckWallets || c.Market > deckMarkets ||
		c.Address[19] > deckWallets || c.Holder[19] > deckWallets {
		return false
	}
	if c.Wallet != 0 {
		c.Wallet += wallets
	}
	if c.Owner != 0 {
		c.Owner += wallets
	}
	if c.Market != 0 {
		c.Market += markets
	}
	for _, a := range []*Address{&c.Address, &c.Holder} {
		if a[19] != 0 {
			a[19] += byte(wallets)
		}
	}
	if c.ID != (OrderID{}) {
		c.ID[0] = s.no + 1
	}
	if id, is := c.Replaced(); is {
		id[0] = s.no + 1
		c.Replace(id)
	}
	if c.Listing != nil {
		c.Listing = s.named(*c.Listing)
	}
	return true
}

// named gives a listing the names of this side.
func (s *half) named(l Listing) *Listing {
	l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = s.no, s.no, s.no
	return &l
}

// TestInterleaving runs two sides that share nothing in three orders: Events and state must be the
// same, except for the order in which ids were bound.
func TestInterleaving(t *testing.T) {
	checks(t, 200)
	rapid.Check(t, func(t *rapid.T) {
		draw := fromRapid(t)
		w := &weave{t: t, draw: draw}
		for i := range w.x {
			w.x[i] = newExchange(uint64(i), 1000)
		}
		halves := [2]*half{{newDeck(draw), 0}, {newDeck(draw), 1}}
		for _, s := range halves {
			for _, c := range s.opening() {
				if c.Kind == List {
					s.rules, s.middle = append(s.rules, *c.Listing), append(s.middle, 5000)
					c.Listing = s.named(*c.Listing)
				} else {
					s.own(&c)
				}
				w.round([]Command{c}, nil)
			}
		}
		for range 1 + draw(16) {
			now := max(halves[0].now, halves[1].now)
			var each [2][]Command
			for i, s := range halves {
				s.now = now
				for range draw(5) {
					if c := s.next(); s.own(&c) {
						each[i] = append(each[i], c)
					}
				}
			}
			w.now = now
			w.round(each[0], each[1])
			if draw(4) == 0 {
				w.advance()
			}
		}
	})
}

// A weave applies the Commands of two sides in three orders.
type weave struct {
	t    *rapid.T
	draw func(n int) int
	x    [3]*Exchange
	seq  Sequence
	now  Time
}

// advance expires the due orders in all three, in the same order.
func (w *weave) advance() {
	w.seq++
	var gone [3][]Event
	for k := range w.x {
		gone[k] = w.x[k].Apply(&Command{Kind: Advance}, w.seq, w.now, nil)
		for i := range gone[k] {
			gone[k][i].First = 0
		}
		if !slices.Equal(gone[k], gone[0]) || trading(w.x[k]) != trading(w.x[0]) {
			w.t.Fatalf("expired%s\nwant%s", briefly(gone[k]), briefly(gone[0]))
		}
	}
}

// round applies the Commands of both sides at one Time: one side first, the other first, and mixed.
func (w *weave) round(a, b []Command) {
	mixed, left := []int{}, [2]int{len(a), len(b)}
	for left != [2]int{} {
		side := w.draw(2)
		if left[side] == 0 {
			side ^= 1
		}
		left[side]--
		mixed = append(mixed, side)
	}
	first := slices.Clone(mixed)
	slices.Sort(first)
	second := slices.Clone(first)
	slices.Reverse(second)
	var happened [3][2][]Event // by order and side
	for k, order := range [][]int{first, second, mixed} {
		turns := [2][]Command{a, b}
		for n, side := range order {
			c := turns[side][0]
			turns[side] = turns[side][1:]
			for _, e := range w.x[k].Apply(&c, w.seq+Sequence(n+1), w.now, nil) {
				e.First = 0 // the Sequence is that of another order
				happened[k][side] = append(happened[k][side], e)
			}
		}
		for side := range happened[k] {
			if got, want := happened[k][side], happened[0][side]; !slices.Equal(got, want) {
				w.t.Fatalf("side %d, order %v\ngot%s\nwant%s", side, order, briefly(got),
					briefly(want))
			}
		}
	}
	w.seq += Sequence(len(mixed))
	for k := range w.x {
		if trading(w.x[k]) != trading(w.x[0]) {
			w.t.Fatalf("%+v\n%+v\nanother state in another order", a, b)
		}
		same := slices.Equal(numbered(w.x[k]), numbered(w.x[0]))
		if same != (w.x[k].Digest() == w.x[0].Digest()) {
			w.t.Fatalf("ids in the same order: %v, digests the same: %v", same, !same)
		}
	}
}

// trading returns the Digest without the remembered placements and requests, because it depends on
// their order.
func trading(x *Exchange) uint64 { return x.digest - x.seen.sum() - x.requests.sum() }

// numbered returns the remembered ids in the order of the ring, which has not overflowed, and those
// of requests in the order of their list.
func numbered(x *Exchange) (ids []OrderID) {
	for i := uint32(1); i <= x.seen.ring.used; i++ {
		ids = append(ids, x.seen.ring.at(i).id)
	}
	ids = append(ids, OrderID{})
	for h := x.requests.oldest; h != 0; h = x.requests.all.at(h).next {
		ids = append(ids, x.requests.all.at(h).id)
	}
	return ids
}

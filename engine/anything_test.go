package engine

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// A crowd sends any Commands to a small exchange: few wallets, markets, prices and names, so that
// Commands affect each other, and some values out of range. draw(n) returns a number below n and
// chooses the Commands.
type crowd struct {
	draw  func(n int) int
	x     *Exchange
	twin  *Exchange // replays the frames of x
	seq   Sequence
	now   Time
	prev  Hash
	names int
	took  map[Kind]int
	met   map[Reject]int
}

func newCrowd(draw func(n int) int) *crowd {
	return &crowd{draw: draw, x: newExchange(1, 4), twin: newExchange(2, 4), now: 1,
		took: map[Kind]int{}, met: map[Reject]int{}}
}

// ask draws a Command.
func (w *crowd) ask() Command {
	d := w.draw
	c := Command{
		Kind: Kind(1 + d(int(SetKey)+1)), Type: OrderType(d(4)), Side: Side(d(2)),
		Outcome: Outcome(d(2)), Market: MarketNo(1 + d(3)), Wallet: WalletNo(1 + d(3)),
		Key: uint32(d(2)), Seen: w.seq,
	}
	if d(4) != 0 {
		c.Kind = Place
	}
	c.Owner = c.Wallet
	if d(16) == 0 {
		c.Owner, c.Wallet = WalletNo(d(4)), WalletNo(d(5))
	}
	if c.Kind != Place {
		c.Address, c.Holder = Address{byte(d(4))}, Address{byte(1 + d(3))}
	}
	switch c.Kind {
	case Place:
		w.order(&c)
		if d(8) == 0 {
			c.Replace(w.name(d(max(w.names, 1))))
		}
	case Cancel:
		c.ID = w.name(d(max(w.names, 1)))
		if n := d(8); n < 2 {
			c.Owner, c.Reason = 0, ByOperator
		} else if n == 2 { // whoever names an owner is judged as that owner
			c.Owner, c.Reason = WalletNo(1+d(3)), ByOperator
		}
	case CancelAll:
		c.Reason = []Reason{ByOwner, ByOwner, Timeout, ByOperator, Expired}[d(5)]
		c.Only, c.Market = Only(d(3)/2+d(3)/2*2+d(32)/31*4), MarketNo(d(4))
		c.Owner = WalletNo(d(2)) * c.Owner
	case List, Adjust:
		c.Listing = w.listing(&c)
	case Deposit, Withdraw, Collect:
		c.Cash, c.Size, c.Market = Cash(d(300))*Unit/7, Size(d(300))*Unit/7, MarketNo(d(4))
		c.ID = w.reference()
		if c.Kind == Collect {
			c.Cash /= 1000
		}
	default:
		w.control(&c)
	}
	return c
}

// control draws the fields of the other Kinds.
func (w *crowd) control(c *Command) {
	d := w.draw
	c.Class, c.Revoke = KeyClass(d(4)), d(2) == 0
	c.ID = w.reference()
	c.Size = Size(d(40)) * Unit / 3
	c.State = MarketState(d(6))
	c.Price = Price(d(12)) * 1000
	c.Prevention = Prevention(d(5))
	c.Expiry = Time(d(3)) * 1000
	if c.Kind == SetMode {
		c.Mode = Mode(d(4) * d(2)) // mostly normal
		c.Wallet, c.Market = WalletNo(d(4)), MarketNo(d(4))
	}
	if c.Kind == Resolve && d(4) != 0 {
		c.Kind = Advance // resolving is for good: not too soon
	}
}

// order draws an order near a half.
func (w *crowd) order(c *Command) {
	d := w.draw
	c.Size = Size(1+d(3000)) * Lot
	c.Cash = Cost(c.Size, Price(d(20)*250+2500)) + Cash(d(8)/7)
	if d(8) == 0 {
		c.Cash = Cost(c.Size, Price(d(10_000)))
	}
	if c.Type == GTD {
		c.Expiry = w.now + Time(d(100_000)) - 1000
	}
	c.PostOnly = d(8) == 0
	c.Seen -= Sequence(d(16) / 15 * d(9))
	c.FeeBound = uint16(d(8)/7) * uint16(d(500))
	c.Deadline = Time(d(16)/15) * (w.now + Time(d(3)) - 1)
	if d(16) == 0 && w.names > 0 {
		c.ID = w.name(d(w.names))
		return
	}
	w.names++
	c.ID = w.name(w.names)
}

// listing draws the rules of a market.
func (w *crowd) listing(c *Command) *Listing {
	d := w.draw
	ticks := []Price{1000, 100, 50, 25, 10, 1, 7}
	l := &Listing{Tick: ticks[d(7)], Open: d(8) != 0, MinSize: Size(d(3)) * Unit,
		MinBuy: Cash(d(3)-d(2)) * Unit}
	no := byte(c.Market)
	if c.Kind == List {
		no = byte(1 + d(6))
	}
	l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = no, no, no+9
	l.Fee = Fee{uint16(d(2) * d(10_500)), uint8(d(5))}
	return l
}

// name returns the n-th id of an order; reference returns one of few ids of transfers and requests.
func (w *crowd) name(n int) (id OrderID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)+1)
	return id
}

func (w *crowd) reference() (id OrderID) {
	id[31] = byte(w.draw(12))
	return id
}

// step applies one Command: the audit passes, a refusal changes nothing, and the twin agrees.
func (w *crowd) step(t rapid.TB) {
	c := w.ask()
	w.now += Time(w.draw(20_000))
	w.seq++
	before, bound := w.x.Digest(), w.x.seen.sum()
	events := w.x.Apply(&c, w.seq, w.now, nil)
	for i := range events {
		e := &events[i]
		if last := i == len(events)-1; last == (e.Kind == Filled || e.Kind == Cancelled) &&
			!(last && c.Kind == Cancel) {
			t.Fatalf("%+v\nevent %d of %+v", c, i, events)
		}
	}
	last := &events[len(events)-1]
	if bound = w.x.seen.sum() - bound; last.Kind == Rejected && (len(events) != 1 ||
		uint64(w.x.Digest()-before) != bound || bound != 0 && !Rejects[last.Reject].Final) {
		t.Fatalf("%+v\nrejected by %+v, and the state changed", c, events)
	}
	w.met[last.Reject]++
	if last.Kind != Rejected {
		w.took[c.Kind]++
	}
	if err := audit(w.x); err != nil {
		t.Fatalf("%+v\n%+v\n%v", c, events, err)
	}
	f := Frame{Engine: Version, No: uint64(w.seq), First: w.seq, Time: w.now, Commands: []Command{c},
		Events: events, Ends: []uint32{uint32(len(events))}, Digest: w.x.Digest()}
	f.Encode(w.prev)
	w.prev = f.Hash
	if n := c.EncodedMax() + len(events)*EventMax + FrameOverhead; len(f.Bytes) > n {
		t.Fatalf("%d bytes, bound is %d", len(f.Bytes), n)
	}
	var back Frame
	if err := DecodeFrame(f.Bytes, &back); err != nil {
		t.Fatal(err)
	}
	if err := w.twin.ApplyFrame(&back); err != nil {
		t.Fatal(err)
	}
}

// begin lists the markets and funds the wallets.
func (w *crowd) begin() {
	for i := range byte(3) {
		l := &Listing{Tick: 50, Open: true, Fee: Fee{uint16(i) * 441, i}}
		l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = i+1, i+1, i+10
		for _, c := range []Command{
			{Kind: List, Listing: l},
			{Kind: Deposit, Address: Address{i + 1}, Cash: 100 * Unit},
			{Kind: Deposit, Address: Address{i + 1}, Market: 1, Outcome: Outcome(i % 2),
				Size: 50 * Unit},
		} {
			w.seq++
			w.x.Apply(&c, w.seq, w.now, nil)
			w.twin.Apply(&c, w.seq, w.now, nil)
		}
	}
}

func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newCrowd(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") })
		w.begin()
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			w.step(t)
		}
	})
}

// TestAnythingLong applies more Commands from seeded dice: every Kind is accepted at least once,
// and every Reject occurs.
func TestAnythingLong(t *testing.T) {
	took, met := map[Kind]int{}, map[Reject]int{}
	for seed := range dice(60) {
		d := seed
		w := newCrowd(d.below)
		w.took, w.met = took, met
		w.begin()
		for range 300 {
			w.step(t)
		}
	}
	for k := Started; k <= SetKey; k++ {
		if took[k] == 0 {
			t.Errorf("no Command of kind %d was taken", k)
		}
	}
	for no := range Reject(len(Rejects)) {
		// These need thousands of orders, or of keys of one owner.
		if met[no] == 0 && no != RejectWalletOrders && no != RejectMarketOrders &&
			no != RejectKeys && no != RejectKeyRecords {
			t.Errorf("nothing was refused for %s", Rejects[no].Code)
		}
	}
	t.Logf("taken %v, refused %v", took, met)
}

// FuzzAnything draws the Commands from fuzzed bytes.
func FuzzAnything(f *testing.F) {
	f.Add([]byte("anything"))
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		w := newCrowd(func(n int) int {
			v := 0
			for i := 0; i < 2 && at < len(b); i++ {
				v = v<<8 | int(b[at])
				at++
			}
			return v % n
		})
		w.begin()
		for at < len(b) && w.seq < 150 {
			w.step(t)
		}
	})
}

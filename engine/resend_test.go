package engine

import (
	"encoding/binary"
	"testing"
)

// resends models ingress: senders who send their orders again and again, and an index of bound ids
// that lags behind. For each order, ingress reads how far the index has come, then looks the id up
// there, then sends the order with what it has read. If the exchange has forgotten more than that,
// ingress waits until the index has caught up and looks again, at most three times.
type resends struct {
	t       testing.TB
	dice    dice
	x       *Exchange
	events  []Event
	seq     Sequence
	indexed Sequence   // how far the index has come
	stalled int        // for how long it stands still
	first   []Sequence // by id: what bound it, 0 if nothing did
	bound   []int      // ids in the order in which they were bound
	live    []int      // ids of orders that came to rest
	senders []sender
	late    bool // the mistake: to read how far the index has come after looking up

	again, duplicates, rechecks, gaveUp, refused, twice int
}

// sender is one order on its way to the exchange.
type sender struct {
	id    int
	step  int // 0 read, 1 look up, 2 send
	tries int
	seen  Sequence
	wait  Sequence // until the index has come so far
	nap   Sequence // until the exchange has come so far
}

const resendWindow = 256

func newResends(t testing.TB, seed int) *resends {
	p := &resends{t: t, dice: dice(seed), x: newExchange(uint64(seed), resendWindow),
		first: []Sequence{0}}
	p.apply(&Command{Kind: List, Listing: &Listing{Tick: 100, Open: true, Tokens: [2]Token{{1}, {2}}}})
	for w := range byte(3) {
		p.apply(&Command{Kind: Deposit, Address: Address{w + 1}, Cash: MaxAmount})
	}
	p.apply(&Command{Kind: Deposit, Address: Address{3}, Market: 1, Size: MaxAmount})
	p.apply(&Command{Kind: Withdraw, Address: Address{2}, Cash: MaxAmount}) // 2 is poor
	return p
}

func (p *resends) apply(c *Command) *Event {
	p.seq++
	p.events = p.x.Apply(c, p.seq, 1, p.events[:0])
	return &p.events[len(p.events)-1]
}

// orderOf is what id says: some rest, some trade, some are killed by their own terms, and some are
// refused for money that may come later.
func orderOf(id int) Command {
	c := Command{Kind: Place, Market: 1, Wallet: 1, Owner: 1, Size: Lot, Cash: 1000, Type: FAK}
	binary.LittleEndian.PutUint64(c.ID[:], uint64(id))
	switch id % 8 {
	case 0, 1, 2:
		c.Type = GTC
	case 3:
		c.Wallet, c.Owner, c.Side = 3, 3, Sell
	case 4:
		c.Wallet, c.Owner, c.Type = 2, 2, FOK
	case 5:
		c.Type, c.PostOnly, c.Cash, c.Side = GTC, true, 100, Sell
		c.Wallet, c.Owner = 3, 3
	}
	return c
}

// turn makes one random step of the model.
func (p *resends) turn(target int) {
	switch n := p.dice.below(16); {
	case n < 2:
		p.lag()
	case n < 5 && len(p.senders) < 64 && len(p.bound) < target:
		p.arrive()
	case n == 5 && len(p.live) > 20:
		i := p.dice.below(len(p.live))
		c := orderOf(p.live[i])
		c.Kind = Cancel
		p.apply(&c)
		p.live[i] = p.live[len(p.live)-1]
		p.live = p.live[:len(p.live)-1]
	case n == 6 && p.dice.below(50) == 0:
		c := Command{Kind: Deposit, Address: Address{2}, Cash: 5000}
		if p.dice.below(2) == 0 {
			c.Kind = Withdraw
		}
		p.apply(&c)
	case len(p.senders) > 0:
		p.send(p.dice.below(len(p.senders)))
	}
}

// lag moves the index on, mostly a little, or lets it stand still.
func (p *resends) lag() {
	if p.stalled > 0 {
		p.stalled--
		return
	}
	switch p.dice.below(200) {
	case 0:
		p.stalled = p.dice.below(8 * resendWindow)
	case 1, 2:
		p.indexed = p.seq
	default:
		p.indexed = min(p.seq, p.indexed+Sequence(p.dice.below(16)))
	}
}

// arrive adds a sender with a new order, or with an old one: one on its way, one just bound, one
// about to be forgotten, or one forgotten long ago.
func (p *resends) arrive() {
	id, n := len(p.first), len(p.bound)
	switch p.dice.below(8) {
	case 0:
		if len(p.senders) > 0 {
			id = p.senders[p.dice.below(len(p.senders))].id
		}
	case 1:
		if n > 0 {
			id = p.bound[n-1-p.dice.below(min(n, 8))]
		}
	case 2:
		if n > 2*resendWindow {
			id = p.bound[n-resendWindow/2-p.dice.below(resendWindow)]
		}
	case 3:
		if n > 0 {
			id = p.bound[p.dice.below(n)]
		}
	}
	if id == len(p.first) {
		p.first = append(p.first, 0)
	} else {
		p.again++
	}
	p.senders = append(p.senders, sender{id: id})
}

// send is the next step of a sender.
func (p *resends) send(i int) {
	s := &p.senders[i]
	switch {
	case s.wait > p.indexed || s.nap > p.seq:
	case p.dice.below(40) == 0:
		s.nap = p.seq + Sequence(p.dice.below(4*resendWindow))
	case s.step == 0:
		if !p.late {
			s.seen = p.indexed
		}
		s.step = 1
	case s.step == 1:
		if first := p.first[s.id]; first != 0 && first <= p.indexed {
			p.done(i) // what was bound is answered from the index
			return
		}
		s.step = 2
	default:
		if p.late {
			s.seen = p.indexed
		}
		p.submit(i)
	}
}

// submit applies the order.
func (p *resends) submit(i int) {
	s := &p.senders[i]
	c := orderOf(s.id)
	c.Seen = s.seen
	e := p.apply(&c)
	switch {
	case e.Kind != Rejected || Rejects[e.Reject].Final:
		if p.first[s.id] != 0 {
			p.twice++
		}
		p.first[s.id] = p.seq
		p.bound = append(p.bound, s.id)
		if e.Kind == Placed {
			p.live = append(p.live, s.id)
		}
	case e.Reject == RejectDuplicate:
		p.duplicates++
		if e.First == 0 || e.First != p.first[s.id] {
			p.t.Fatalf("order %d: answered by #%d, bound by #%d", s.id, e.First, p.first[s.id])
		}
	case e.Reject == RejectRecheck:
		p.rechecks++
		if e.First <= s.seen || e.First >= p.seq {
			p.t.Fatalf("order %d at #%d: searched to #%d, told to search to #%d", s.id, p.seq,
				s.seen, e.First)
		}
		s.step, s.wait, s.tries = 0, e.First, s.tries+1
		if s.tries <= 3 {
			return
		}
		p.gaveUp++
	default:
		p.refused++
		if first := p.first[s.id]; first != 0 {
			p.t.Fatalf("order %d was bound by #%d, and is refused: %+v", s.id, first, *e)
		}
	}
	p.done(i)
}

// done ends a sender with its answer.
func (p *resends) done(i int) {
	p.senders[i] = p.senders[len(p.senders)-1]
	p.senders = p.senders[:len(p.senders)-1]
}

// drain lets the index catch up: then every sender gets its answer.
func (p *resends) drain() {
	gaveUp := p.gaveUp
	for range 1000 {
		p.seq += resendWindow // other Commands go on
		p.indexed = p.seq
		for i := len(p.senders) - 1; i >= 0; i-- {
			p.send(i)
		}
	}
	if len(p.senders) > 0 || p.gaveUp > gaveUp {
		p.t.Errorf("%d wait for ever, %d gave up", len(p.senders), p.gaveUp-gaveUp)
	}
}

// TestPlacedOnce places a million orders and sends many of them again, while the index lags behind
// and the exchange forgets. No order is placed twice, a bound id always gets its first answer, and
// no sender waits for ever.
func TestPlacedOnce(t *testing.T) {
	const million = 1_000_000
	target := million
	if testing.Short() || auditing {
		target = 20_000
	}
	p := newResends(t, 1)
	for len(p.bound) < target {
		p.turn(target)
	}
	p.drain()
	t.Logf("%d placed of %d, %d sent again, %d duplicates, %d rechecks, %d gave up, %d refused",
		len(p.bound), len(p.first)-1, p.again, p.duplicates, p.rechecks, p.gaveUp, p.refused)
	if p.twice > 0 {
		t.Errorf("%d orders were placed twice", p.twice)
	}
	for what, n := range map[string]int{"sent again": p.again, "duplicates": p.duplicates,
		"rechecks": p.rechecks, "refused": p.refused, "gave up": p.gaveUp} {
		if n == 0 && (what != "gave up" || target == million) {
			t.Errorf("%s: none", what)
		}
	}
	if err := audit(p.x); err != nil {
		t.Error(err)
	}
}

// TestReadBeforeLookup: ingress must read the watermark before it looks the id up; the other order
// places some order twice, and the model detects it.
func TestReadBeforeLookup(t *testing.T) {
	p := newResends(t, 2)
	p.late = true
	for len(p.bound) < 20_000 {
		p.turn(20_000)
	}
	if p.twice == 0 {
		t.Error("the mistake was not noticed")
	}
}

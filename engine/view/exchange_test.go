package view

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"clobd/engine"
)

// follower keeps the resting orders of a real Exchange, from Remaining of its Events; the Board
// adds up sizes instead.
type follower struct {
	orders map[engine.OrderID]engine.Event
}

func (w *follower) follow(c *engine.Command, e *engine.Event) {
	switch e.Kind {
	case engine.Placed:
		w.orders[c.ID] = *e
	case engine.Filled:
		o := w.orders[e.Order]
		if o.Remaining = e.Remaining; o.Remaining == 0 {
			delete(w.orders, e.Order)
			return
		}
		w.orders[e.Order] = o
	case engine.Cancelled:
		delete(w.orders, e.Order)
	}
}

// replace makes the order of c replace one of the resting orders.
func (w *follower) replace(c *engine.Command) {
	for id, o := range w.orders {
		c.Wallet, c.Owner = o.Wallet, o.Owner
		c.Replace(id)
		return
	}
}

// markets are the naive books of those orders.
func (w *follower) markets(n int) []*naive {
	out := make([]*naive, n)
	for i := range out {
		out[i] = &naive{no: engine.MarketNo(i + 1)}
	}
	for _, o := range w.orders {
		n := out[o.Market-1]
		n.orders = append(n.orders, resting{o.Outcome, o.Side, o.Price, o.Remaining, o.Wallet})
	}
	return out
}

// TestExchange publishes what a real Exchange makes of random Commands.
func TestExchange(t *testing.T) {
	const markets, wallets, frames = 4, 6, 300
	rng := rand.New(rand.NewPCG(3, 3))
	x, b, w := engine.NewExchange(1), NewBoard(), follower{map[engine.OrderID]engine.Event{}}
	sent := uint64(0)
	random := func() engine.Command {
		sent++
		if rng.IntN(3) == 0 {
			for id, o := range w.orders { // any: the map's order is as good as another
				return engine.Command{Kind: engine.Cancel, Owner: o.Owner, ID: id}
			}
		}
		wallet := engine.WalletNo(1 + rng.IntN(wallets))
		c := engine.Command{Kind: engine.Place, Market: engine.MarketNo(1 + rng.IntN(markets)),
			Outcome: engine.Outcome(rng.IntN(2)), Side: engine.Side(rng.IntN(2)),
			Wallet: wallet, Owner: wallet, Size: engine.Size(5+rng.IntN(50)) * engine.Unit}
		binary.BigEndian.PutUint64(c.ID[:], sent)
		c.Cash = engine.Cost(c.Size, engine.Price(30+rng.IntN(40))*100)
		if rng.IntN(8) == 0 {
			w.replace(&c)
		}
		return c
	}
	opening := []engine.Command{{Kind: engine.Started}}
	for no := engine.MarketNo(1); no <= markets; no++ {
		l := listingOf(no, 100)
		opening = append(opening, engine.Command{Kind: engine.List, Listing: &l})
	}
	for no := engine.WalletNo(1); no <= wallets; no++ {
		opening = append(opening, engine.Command{Kind: engine.Deposit, Address: addressOf(no),
			Cash: 1e9 * engine.Unit, ID: engine.OrderID{31: byte(no)}})
		for m := engine.MarketNo(1); m <= markets; m++ {
			opening = append(opening, engine.Command{Kind: engine.Deposit, Address: addressOf(no),
				Market: m, Outcome: engine.Outcome(no & 1), Size: 1e6 * engine.Unit,
				ID: engine.OrderID{30: byte(m), 31: byte(no)}})
		}
	}
	seen := map[engine.EventKind]int{}
	for i := range frames {
		f := &engine.Frame{No: uint64(i + 1), First: b.Sequence() + 1, Time: engine.Time(i + 1)}
		f.Commands = opening
		for n := rng.IntN(40); i > 0 && len(f.Commands) <= n; {
			f.Commands = append(f.Commands, random())
		}
		for j := range f.Commands {
			c, from := &f.Commands[j], len(f.Events)
			f.Events = x.Apply(c, f.First+engine.Sequence(j), f.Time, f.Events)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
			for k := range f.Events[from:] {
				w.follow(c, &f.Events[from+k])
				seen[f.Events[from+k].Kind]++
			}
		}
		opening = nil
		b.Publish(f)
		for _, n := range w.markets(markets) {
			s := b.Condition(conditionOf(n.no))
			for o := engine.Outcome(0); o < 2; o++ {
				n.checkSide(t, s, o, engine.Buy)
				n.checkSide(t, s, o, engine.Sell)
			}
		}
	}
	t.Logf("events: %v", seen)
	for _, k := range []engine.EventKind{engine.Placed, engine.Filled, engine.Cancelled} {
		if seen[k] < 100 {
			t.Errorf("only %d events of kind %d", seen[k], k)
		}
	}
}

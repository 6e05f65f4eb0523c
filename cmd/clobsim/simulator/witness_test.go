package simulator

import (
	"strings"
	"testing"

	"clobd/engine"
)

// TestWitnessOfReplacements: an order that replaces another comes with the cancellation of that
// one, or is refused and changes nothing. The witness finds everything else.
func TestWitnessOfReplacements(t *testing.T) {
	place := func(id byte, w engine.WalletNo, old byte) engine.Command {
		c := engine.Command{Kind: engine.Place, ID: engine.OrderID{id}, Market: 1, Wallet: w, Owner: w,
			Size: engine.Unit, Cash: engine.Unit / 2}
		c.Replace(engine.OrderID{old})
		return c
	}
	l := &engine.Listing{Tick: 100, Open: true, Tokens: [2]engine.Token{{1}, {2}}}
	for _, c := range []struct {
		what   string
		last   engine.Command
		damage func(c *engine.Command, events []engine.Event) []engine.Event
		want   string
	}{
		{"replaced", place(3, 1, 1), nil, ""},
		{"of another wallet", place(3, 1, 2), nil, ""},
		{"of nobody", place(3, 1, 7), nil, ""},
		{"too much", func() engine.Command {
			c := place(3, 1, 1)
			c.Size, c.Cash = 100*engine.Unit, 50*engine.Unit
			return c
		}(), nil, ""},
		{"another order left", place(3, 1, 1),
			func(c *engine.Command, events []engine.Event) []engine.Event {
				c.Replace(engine.OrderID{2})
				return events
			}, "is replaced"},
		{"the other stayed", place(3, 1, 1),
			func(_ *engine.Command, events []engine.Event) []engine.Event { return events[1:] },
			"is replaced"},
		{"for another reason", place(3, 1, 1),
			func(_ *engine.Command, events []engine.Event) []engine.Event {
				events[0].Reason = engine.ByOperator
				return events
			}, "is replaced"},
		{"refused, and it left", place(3, 1, 1),
			func(_ *engine.Command, events []engine.Event) []engine.Event {
				events[1].Kind, events[1].Reject = engine.Rejected, engine.RejectBalance
				return events
			}, "refused, and 1 orders left"},
		{"refused, but it is there", place(3, 1, 7),
			func(c *engine.Command, events []engine.Event) []engine.Event {
				c.Replace(engine.OrderID{1})
				return events
			}, "is there to replace"},
	} {
		x, w := engine.NewExchange(1), newWitness()
		f := &engine.Frame{First: 1, Commands: []engine.Command{{Kind: engine.List, Listing: l},
			{Kind: engine.Deposit, Address: engine.Address{1}, Cash: engine.Unit},
			{Kind: engine.Deposit, Address: engine.Address{2}, Cash: engine.Unit},
			place(1, 1, 0), place(2, 2, 0), c.last}}
		for i := range f.Commands {
			events := x.Apply(&f.Commands[i], engine.Sequence(i+1), 1, nil)
			if c.damage != nil && i == len(f.Commands)-1 {
				events = c.damage(&f.Commands[i], events)
			}
			f.Events = append(f.Events, events...)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
		}
		err := w.frame(f)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

package engine

import "testing"

// The parts of the reference that tests of another package use.

// Told is one Command of a history with its results.
type Told struct {
	Command  Command
	Sequence Sequence
	Time     Time
	Events   []Event
	Digest   Digest
}

// ReferenceBook is a book of the reference: the sizes by price, of each side of each outcome, and
// the last trade in prices of outcome 0.
type ReferenceBook struct {
	Condition Condition
	Levels    [2][2]map[Price]Size // by outcome and side, in prices of that outcome
	Last      Price                // 0 if there was none
	Taker     Side
}

// PlayReference plays a seeded history of n Commands against the reference, and reports each
// Command with all books after it.
func PlayReference(t testing.TB, seed, n int, tell func(Told, []ReferenceBook)) {
	dice, last := dice(seed), map[MarketNo]Told{}
	d := newDuel(dice.below, 30)
	d.after = func(c *Command, events []Event) {
		told := Told{*c, d.seq, d.now, events, d.x.Digest()}
		for i := range events {
			if events[i].Kind == Filled {
				last[c.Market] = Told{Command: *c, Events: events[i : i+1]}
			}
		}
		var books []ReferenceBook
		for i := range d.r.markets {
			no := MarketNo(i + 1)
			books = append(books, d.r.book(no, last[no]))
		}
		tell(told, books)
	}
	d.play(t, n)
}

// book adds up the resting orders of a market. Every order counts twice: on its own side, and on
// the other side of the other token.
func (r *reference) book(no MarketNo, last Told) ReferenceBook {
	b := ReferenceBook{Condition: r.market(no).listing.Condition}
	for o := range b.Levels {
		for s := range b.Levels[o] {
			b.Levels[o][s] = map[Price]Size{}
		}
	}
	for i := range r.orders {
		if o := &r.orders[i]; o.market == no {
			size := Size(o.lots) * Lot
			b.Levels[o.outcome][o.side][Price(o.price)] += size
			b.Levels[o.outcome.Other()][o.side.Other()][PriceOne-Price(o.price)] += size
		}
	}
	if len(last.Events) > 0 {
		fill := &last.Events[0]
		if b.Last = fill.Price; fill.Outcome == 1 {
			b.Last = PriceOne - b.Last
		}
		b.Taker = last.Command.Side
		if last.Command.Outcome == 1 {
			b.Taker = b.Taker.Other()
		}
	}
	return b
}

package workload

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"clobd/engine"
)

// Score is a recording as operations of bench wallets.
type Score struct {
	Ops      []Op
	Due      []time.Duration  // by Op: when it was recorded, from the first one on
	Listings []engine.Listing // by Op.Book
	Stakes   []Stake          // by Op.Trader
	unplayed map[string]int

	books   map[engine.MarketNo]uint16
	traders map[engine.WalletNo]uint16
	placed  map[engine.OrderID]uint32
	began   engine.Time
	crowded bool // there are more wallets than an Op can name
}

// Stake is what a wallet was given in a recording.
type Stake struct {
	Cash   engine.Cash
	Shares map[uint16][2]engine.Size // by Op.Book
	Books  map[uint16]bool           // where it trades
}

// ReadScore reads the recording of a folder.
func ReadScore(ctx context.Context, dir string) (*Score, error) {
	s := &Score{unplayed: map[string]int{}, books: map[engine.MarketNo]uint16{},
		traders: map[engine.WalletNo]uint16{}, placed: map[engine.OrderID]uint32{}}
	err := Recorded(ctx, dir, func(f *engine.Frame) bool {
		for i := range f.Commands {
			if events := f.EventsOf(i); len(events) > 0 {
				s.command(&f.Commands[i], &events[len(events)-1], f.Time)
			}
		}
		if len(s.Ops) >= MostOps {
			s.unplayed["cut: all that comes after 4,000,000 operations"]++
		}
		return len(s.Ops) < MostOps && !s.crowded
	})
	if err == nil && s.crowded {
		err = fmt.Errorf("replay %s: it has more than 65,536 wallets: replay it at level L0 to L2", dir)
	}
	if err == nil && len(s.Ops) == 0 {
		err = fmt.Errorf("replay %s: no order in it can be posted again; not played: %s", dir, s.Left())
	}
	return s, err
}

// command takes down one Command and its answer.
func (s *Score) command(c *engine.Command, answer *engine.Event, at engine.Time) {
	refused := answer.Kind == engine.Rejected
	switch c.Kind {
	case engine.Started, engine.Advance, engine.SetKey, engine.Link: // the node's own, or logins
	case engine.List:
		if _, known := s.books[answer.Market]; !refused && !known {
			s.books[answer.Market] = uint16(len(s.Listings))
			s.Listings = append(s.Listings, *c.Listing)
		}
	case engine.Deposit:
		if !refused {
			s.give(answer.Wallet, c.Market, c.Outcome, int64(max(c.Size, engine.Size(c.Cash))))
		}
	case engine.SplitTokens:
		if !refused {
			s.unplayed["splits: their tokens are given beforehand"]++
			s.give(c.Wallet, c.Market, 0, int64(c.Size))
			s.give(c.Wallet, c.Market, 1, int64(c.Size))
		}
	case engine.Place:
		s.place(c, answer, at)
	case engine.Cancel:
		id, known := s.placed[c.ID]
		if !known {
			s.unplayed["cancels of orders that are not played"]++
			return
		}
		s.add(Op{Cancel: true, Target: id, Trader: s.Ops[id].Trader, Book: s.Ops[id].Book}, at)
	case engine.CancelAll:
		s.cancelAll(c, at)
	default:
		s.unplayed[kindName(c.Kind)]++
	}
}

// kindName is a kind of Command that no trader can send over HTTP, or that is not played.
func kindName(k engine.Kind) string {
	return map[engine.Kind]string{engine.Withdraw: "withdrawals", engine.MergeTokens: "merges",
		engine.RedeemTokens: "redemptions", engine.SetState: "changes of a market's state",
		engine.Adjust: "changes of a market's rules", engine.Resolve: "resolutions",
		engine.SetMode: "changes of a mode", engine.SetPrevention: "changes of self-trade prevention",
		engine.Arm: "heartbeats", engine.Collect: "collections of fees"}[k]
}

// trader is the number of the bench wallet that stands for a recorded one.
func (s *Score) trader(no engine.WalletNo) uint16 {
	t, known := s.traders[no]
	if !known && len(s.Stakes) > math.MaxUint16 {
		s.crowded = true // ReadScore fails
		return 0
	}
	if !known {
		t = uint16(len(s.Stakes))
		s.traders[no] = t
		s.Stakes = append(s.Stakes, Stake{Shares: map[uint16][2]engine.Size{},
			Books: map[uint16]bool{}})
	}
	return t
}

// give adds to what a wallet was given; market 0 is collateral.
func (s *Score) give(no engine.WalletNo, market engine.MarketNo, o engine.Outcome, amount int64) {
	st := &s.Stakes[s.trader(no)]
	if market == 0 {
		st.Cash += engine.Cash(amount)
		return
	}
	shares := st.Shares[s.books[market]]
	shares[o] += engine.Size(amount)
	st.Shares[s.books[market]] = shares
}

// place takes down an order, if it was taken, or never rests and met nothing.
func (s *Score) place(c *engine.Command, answer *engine.Event, at engine.Time) {
	book, listed := s.books[c.Market]
	switch {
	case answer.Kind == engine.Rejected && answer.Reject != engine.RejectFAK:
		s.unplayed["orders that were refused"]++
		return
	case !listed:
		s.unplayed["orders of markets that are not listed"]++
		return
	case c.Type == engine.FOK:
		s.unplayed["orders of type FOK"]++
		return
	case c.Type == engine.GTD:
		s.unplayed["ends of GTD orders: they are played as GTC"]++
	case c.PostOnly:
		s.unplayed["post-only marks: they are played without"]++
	}
	tick := engine.Size(s.Listings[book].Tick)
	ticks := engine.Size(engine.PriceOne) / tick
	price := engine.Price((engine.Size(c.Cash)*ticks + c.Size/2) / c.Size * tick)
	op := Op{FAK: c.Type == engine.FAK, Side: c.Side, Outcome: c.Outcome, Price: price,
		Trader: s.trader(c.Wallet), Book: book, Size: c.Size / engine.Lot * engine.Lot}
	if price == 0 || price >= engine.PriceOne || op.Size == 0 {
		s.unplayed["orders off the grid of prices"]++
		return
	}
	if engine.Cost(op.Size, price) != c.Cash || op.Size != c.Size {
		s.unplayed["odd amounts: they are played rounded to the tick and the lot"]++
	}
	if old, replaces := c.Replaced(); replaces {
		if id, known := s.placed[old]; known {
			s.unplayed["replacements: they are played as a cancel and an order"]++
			s.add(Op{Cancel: true, Target: id, Trader: op.Trader, Book: s.Ops[id].Book}, at)
		}
	}
	s.placed[c.ID] = uint32(len(s.Ops))
	s.Stakes[op.Trader].Books[book] = true
	s.add(op, at)
}

// cancelAll takes down a cancel of many orders of one wallet.
func (s *Score) cancelAll(c *engine.Command, at engine.Time) {
	trader, known := s.traders[c.Wallet]
	switch {
	case c.Reason != engine.ByOwner || c.Only&engine.OnlyKey != 0:
		s.unplayed["cancels of all orders that no trader asked for"]++
	case !known:
		s.unplayed["cancels of all orders of wallets that place none"]++
	case c.Market == 0:
		s.add(Op{Cancel: true, All: AllOrders, Trader: trader}, at)
	case c.Only&engine.OnlyToken != 0:
		s.add(Op{Cancel: true, All: AllInToken, Trader: trader, Book: s.books[c.Market],
			Outcome: c.Outcome}, at)
	default:
		s.add(Op{Cancel: true, All: AllInMarket, Trader: trader, Book: s.books[c.Market]}, at)
	}
}

func (s *Score) add(op Op, at engine.Time) {
	if len(s.Ops) == 0 {
		s.began = at
	}
	s.Ops = append(s.Ops, op)
	s.Due = append(s.Due, time.Duration(at-s.began)*time.Millisecond)
}

// Left says what of the recording is not played as it was, for people.
func (s *Score) Left() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(s.unplayed)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.unplayed[what], what))
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// Paced are the due times at so many times the recorded pace. Each operation is one request.
func (s *Score) Paced(times float64) []time.Duration {
	due := make([]time.Duration, len(s.Due))
	for i, d := range s.Due {
		due[i] = time.Duration(float64(d) / times)
	}
	return due
}

// Play applies the operations to a fresh Exchange, in order.
func (s *Score) Play() Tally {
	x := engine.NewExchange(1)
	var events []engine.Event
	seq := engine.Sequence(0)
	apply := func(c engine.Command) []engine.Event {
		c.Seen = seq
		seq++
		events = x.Apply(&c, seq, 1, events[:0])
		return events
	}
	for i := range s.Listings {
		l := s.Listings[i]
		l.Open, l.MinBuy, l.Fee, l.NegRisk = true, 0, engine.Fee{}, false
		apply(engine.Command{Kind: engine.List, Listing: &l})
	}
	for i := range s.Stakes {
		apply(engine.Command{Kind: engine.Deposit, Address: TraderAddress(i), Cash: 1 << 50})
	}
	for i := range s.Stakes {
		for b := range s.Listings {
			if !s.Stakes[i].Books[uint16(b)] {
				continue
			}
			for o := range engine.Outcome(2) {
				apply(engine.Command{Kind: engine.Deposit, Address: TraderAddress(i),
					Market: engine.MarketNo(b + 1), Outcome: o, Size: 1 << 45})
			}
		}
	}
	var tally Tally
	for _, c := range Commands(s.Ops, 0, len(s.Ops)) {
		tally.Add(apply(c))
	}
	return tally
}

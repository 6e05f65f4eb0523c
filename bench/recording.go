package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"clobd/engine"
	"clobd/journal"
)

// recorded calls each with the frames that the node of a data folder, or of a backup, wrote. A
// frame is valid until each returns. The folder is only read.
func recorded(ctx context.Context, dir string, each func(*engine.Frame) bool) error {
	j, err := journal.Open(journal.Options{Dir: dir, ReadOnly: true,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("replay %s: %w", dir, err)
	}
	defer j.Close()
	if j.Last() == 0 {
		return fmt.Errorf("replay %s: nothing is recorded in it", dir)
	}
	err = j.Frames(1, func(f *engine.Frame) bool { return each(f) && ctx.Err() == nil })
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("replay %s: %w", dir, err)
	}
	return nil
}

// reel is some frames of a recording, ready for Apply.
type reel struct {
	commands []engine.Command
	frames   []reelFrame
}

// reelFrame is what a frame says of its Commands, which end before end.
type reelFrame struct {
	no     uint64
	end    int
	first  engine.Sequence
	time   engine.Time
	digest engine.Digest
}

// add copies a frame. Evidence is left out: Apply does not read it.
func (r *reel) add(f *engine.Frame) {
	for _, c := range f.Commands {
		r.commands = append(r.commands, retained(&c, false))
	}
	r.frames = append(r.frames, reelFrame{f.No, len(r.commands), f.First, f.Time, f.Digest})
}

// film is a recording in reels. One that is small is decoded once.
type film struct {
	reels    []*reel
	commands int  // in reels
	whole    bool // reels are all of the recording
}

// filmed is how many Commands a film keeps: some 200 MB.
const filmed = 500_000

// play calls show with the reels of a folder, while goesOn.
func (m *film) play(ctx context.Context, dir string, goesOn func() bool, show func(*reel)) error {
	if m.whole {
		for i := 0; i < len(m.reels) && goesOn() && ctx.Err() == nil; i++ {
			show(m.reels[i])
		}
		return ctx.Err()
	}
	m.reels, m.commands = nil, 0
	r := &reel{}
	next := func() {
		if len(r.commands) == 0 {
			return
		}
		show(r)
		if m.commands += len(r.commands); m.commands <= filmed {
			m.reels = append(m.reels, r)
			r = &reel{}
			return
		}
		m.reels = nil
		r = &reel{r.commands[:0], r.frames[:0]}
	}
	err := recorded(ctx, dir, func(f *engine.Frame) bool {
		if r.add(f); len(r.commands) >= block {
			next()
		}
		return goesOn()
	})
	if err == nil && goesOn() {
		next()
		m.whole = m.commands <= filmed
	}
	return err
}

// retained is a Command that stays when its frame is gone.
func retained(c *engine.Command, evidence bool) engine.Command {
	k := *c
	if k.Proof = nil; evidence {
		k.Proof = bytes.Clone(c.Proof)
	}
	if c.Listing != nil {
		l := *c.Listing
		k.Listing = &l
	}
	return k
}

// runRecorded is L0 of a replay: the recorded Commands with their Sequences and Times, on one fresh
// Exchange after the other until the time is up. After each frame the digest must be the recorded
// one.
func (t *trial) runRecorded(ctx context.Context, sum *applied) error {
	x := engine.NewExchange(t.Seed + uint64(t.report.Exchanges))
	var events []engine.Event
	apply := func(r *reel) {
		i := 0
		for k := range r.frames {
			f := &r.frames[k]
			for at := f.first; i < f.end; i, at = i+1, at+1 {
				events = x.Apply(&r.commands[i], at, f.time, events[:0])
				sum.tally.Add(events)
			}
			if x.Digest() != f.digest {
				t.report.Failure = fmt.Sprintf("after frame %d the digest is %016x, the recorded one %016x",
					f.no, uint64(x.Digest()), uint64(f.digest))
				return
			}
		}
	}
	runtime.GC()
	if _, err := t.watch.Lap(); err != nil {
		return err
	}
	goesOn := func() bool {
		return sum.took < t.Duration && t.report.Failure == "" && !sum.late(t.Duration)
	}
	err := sum.film.play(ctx, t.Data, goesOn, func(r *reel) {
		sum.time(r.commands, func([]engine.Command) { apply(r) })
		t.tell(sum)
	})
	if err != nil {
		return err
	}
	h, err := t.watch.Lap()
	t.report.Conditions.Hiccup.add(h)
	sum.digest = x.Digest()
	return err
}

// rehearse reads a recording for L1 and L2: first what makes markets, wallets and keys, and gives,
// in the recorded order, which gives them the recorded numbers; then the rest. The Sequencer makes
// Started and Advance itself. Orders that were to end at a time end as long after the start as they
// did when they were recorded.
func (t *trial) rehearse(ctx context.Context) (first, rest []engine.Command, err error) {
	began, now := engine.Time(0), engine.Time(time.Now().UnixMilli())
	err = recorded(ctx, t.Data, func(f *engine.Frame) bool {
		if began == 0 {
			began = f.Time
		}
		for i := range f.Commands {
			c := retained(&f.Commands[i], true)
			switch c.Kind {
			case engine.Started, engine.Advance:
			case engine.List, engine.Deposit, engine.Link, engine.SetKey:
				first = append(first, c)
			default:
				if c.Deadline = 0; c.Kind == engine.Place && c.Expiry != 0 {
					c.Expiry += now - began
				}
				rest = append(rest, c)
			}
		}
		return len(rest) < applyRound
	})
	return first, rest, err
}

// score is a recording as operations of bench wallets, for L3.
type score struct {
	ops      []Op
	due      []time.Duration // by Op: when it was recorded, from the first one on
	listings []engine.Listing
	stakes   []stake // by Op.Trader
	unplayed map[string]int

	books   map[engine.MarketNo]uint16
	traders map[engine.WalletNo]uint16
	placed  map[engine.OrderID]uint32
	began   engine.Time
	crowded bool // there are more wallets than an Op can name
}

// stake is what a wallet was given in a recording, by asset: market 0 is collateral.
type stake struct {
	cash   engine.Cash
	shares map[uint16][2]engine.Size
	books  map[uint16]bool // where it trades
}

// readScore reads the recording of a folder.
func readScore(ctx context.Context, dir string) (*score, error) {
	s := &score{unplayed: map[string]int{}, books: map[engine.MarketNo]uint16{},
		traders: map[engine.WalletNo]uint16{}, placed: map[engine.OrderID]uint32{}}
	err := recorded(ctx, dir, func(f *engine.Frame) bool {
		for i := range f.Commands {
			if events := f.EventsOf(i); len(events) > 0 {
				s.command(&f.Commands[i], &events[len(events)-1], f.Time)
			}
		}
		if len(s.ops) >= applyRound {
			s.unplayed["cut: all that comes after 4,000,000 operations"]++
		}
		return len(s.ops) < applyRound && !s.crowded
	})
	if err == nil && s.crowded {
		err = fmt.Errorf("replay %s: it has more than 65,536 wallets: replay it at level L0 to L2", dir)
	}
	if err == nil && len(s.ops) == 0 {
		err = fmt.Errorf("replay %s: no order in it can be posted again; not played: %s", dir, s.left())
	}
	return s, err
}

// command takes down one Command and its answer.
func (s *score) command(c *engine.Command, answer *engine.Event, at engine.Time) {
	refused := answer.Kind == engine.Rejected
	switch c.Kind {
	case engine.Started, engine.Advance, engine.SetKey, engine.Link: // the node's own, or logins
	case engine.List:
		if _, known := s.books[answer.Market]; !refused && !known {
			s.books[answer.Market] = uint16(len(s.listings))
			s.listings = append(s.listings, *c.Listing)
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
		s.add(Op{Cancel: true, Target: id, Trader: s.ops[id].Trader, Book: s.ops[id].Book}, at)
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
func (s *score) trader(no engine.WalletNo) uint16 {
	t, known := s.traders[no]
	if !known && len(s.stakes) > math.MaxUint16 {
		s.crowded = true // readScore fails
		return 0
	}
	if !known {
		t = uint16(len(s.stakes))
		s.traders[no] = t
		s.stakes = append(s.stakes, stake{shares: map[uint16][2]engine.Size{},
			books: map[uint16]bool{}})
	}
	return t
}

// give adds to what a wallet was given; market 0 is collateral.
func (s *score) give(no engine.WalletNo, market engine.MarketNo, o engine.Outcome, amount int64) {
	st := &s.stakes[s.trader(no)]
	if market == 0 {
		st.cash += engine.Cash(amount)
		return
	}
	shares := st.shares[s.books[market]]
	shares[o] += engine.Size(amount)
	st.shares[s.books[market]] = shares
}

// place takes down an order, if it was taken, or never rests and met nothing.
func (s *score) place(c *engine.Command, answer *engine.Event, at engine.Time) {
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
	tick := engine.Size(s.listings[book].Tick)
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
			s.add(Op{Cancel: true, Target: id, Trader: op.Trader, Book: s.ops[id].Book}, at)
		}
	}
	s.placed[c.ID] = uint32(len(s.ops))
	s.stakes[op.Trader].books[book] = true
	s.add(op, at)
}

// cancelAll takes down a cancel of many orders of one wallet.
func (s *score) cancelAll(c *engine.Command, at engine.Time) {
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

func (s *score) add(op Op, at engine.Time) {
	if len(s.ops) == 0 {
		s.began = at
	}
	s.ops = append(s.ops, op)
	s.due = append(s.due, time.Duration(at-s.began)*time.Millisecond)
}

// left says what of the recording is not played as it was, for people.
func (s *score) left() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(s.unplayed)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.unplayed[what], what))
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// most is the largest gift of an asset.
const most = int64(engine.MaxAmount)

// gifts are what the wallets need: what they were given, and what every bench wallet gets, so that
// no order is refused for want of what came later in the recording.
func (s *score) gifts(wallet func(trader int) string) (gifts []gift) {
	for i := range s.stakes {
		st := &s.stakes[i]
		cash := engine.Cash(min(int64(st.cash)+int64(traderCash), most))
		gifts = append(gifts, gift{"wallet": wallet(i), "amount": cash.String()})
		for book := range st.books {
			for o, t := range s.listings[book].Tokens {
				shares := engine.Size(min(int64(st.shares[book][o])+int64(traderShares), most))
				gifts = append(gifts, gift{"wallet": wallet(i), "amount": shares.String(),
					"token": t.String()})
			}
		}
	}
	return gifts
}

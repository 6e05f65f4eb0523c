package view

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"clobd/engine"
)

const (
	movingMarkets = 4
	movingTotal   = 400 * engine.Lot // on each side of each market, after every frame
)

// moving is a Board whose frames move sizes from level to level, so that the sum of each side is
// the same in every Snapshot, and number one wallet each, so that wallet 1+i belongs to frame i.
// Time is ten times the Sequence.
func moving() (*Board, *world) {
	w, b := newWorld(7), NewBoard()
	f := w.begin()
	f.deposit(1)
	for no := engine.MarketNo(1); no <= movingMarkets; no++ {
		f.list(no, 1, engine.Open)
		for i := range engine.Price(40) {
			p := 100 + i*245
			f.rest(no, resting{side: side(p), price: p, size: movingTotal / 20, wallet: 1})
		}
	}
	stamp(f)
	b.Publish(f.end())
	return b, w
}

func stamp(f builder) { f.f.Time = 10 * engine.Time(f.f.Last()) }

// move returns the next frame: in each of some markets one level moves on its side.
func move(w *world) *engine.Frame {
	f := w.begin()
	f.deposit(engine.WalletNo(w.wallets + 1))
	for range 3 {
		no := engine.MarketNo(1 + w.rng.IntN(movingMarkets))
		n := w.markets[no-1]
		i := w.rng.IntN(len(n.orders))
		r := n.orders[i]
		f.cancel(no, i)
		price := engine.Price(1 + w.rng.IntN(4_999))
		if r.side == engine.Sell {
			price += 5_000
		}
		r.price = price
		f.rest(no, r)
	}
	stamp(f)
	return f.end()
}

// checkMoving checks a Snapshot by itself.
func checkMoving(s *Snapshot, o engine.Outcome) error {
	bid, ask := s.Best(o)
	if bid == 0 || ask == 0 || bid >= ask {
		return fmt.Errorf("best %d and %d", bid, ask)
	}
	for side := engine.Buy; side <= engine.Sell; side++ {
		sum, n, first := engine.Size(0), 0, engine.Price(0)
		s.Levels(o, side, func(p engine.Price, size engine.Size) bool {
			if n == 0 {
				first = p
			}
			sum, n = sum+size, n+1
			return true
		})
		if sum != movingTotal || n != s.Depth(o, side) || first != [2]engine.Price{bid, ask}[side] {
			return fmt.Errorf("side %d: sum %d, %d levels, depth %d, first %d, best %d and %d",
				side, sum, n, s.Depth(o, side), first, bid, ask)
		}
	}
	if s.Time != 10*engine.Time(s.Sequence) {
		return fmt.Errorf("Time %d at Sequence %d", s.Time, s.Sequence)
	}
	return nil
}

// TestReaders reads while frames are published: every Snapshot is whole, none is older than the one
// read before it, and the parts of a frame are seen in the order that Board promises.
func TestReaders(t *testing.T) {
	b, w := moving()
	var stop atomic.Bool
	var reads atomic.Uint64
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			var seen [movingMarkets]engine.Sequence
			for n := i; !stop.Load(); n++ {
				if err := readOnce(b, n, &seen); err != nil {
					t.Error(err)
					return
				}
				reads.Add(1)
			}
		})
	}
	frames := 3_000
	if testing.Short() {
		frames = 300
	}
	for i := 0; (i < frames || reads.Load() < 100) && !t.Failed(); i++ {
		b.Publish(move(w))
	}
	stop.Store(true)
	group.Wait()
	t.Logf("%d frames, %d reads", w.frames, reads.Load())
}

// readOnce reads one Snapshot and then everything that must be visible once it is.
func readOnce(b *Board, n int, seen *[movingMarkets]engine.Sequence) error {
	no, o := engine.MarketNo(n%movingMarkets+1), engine.Outcome(n/movingMarkets%2)
	s, outcome, ok := b.Book(tokenOf(no, o))
	newest := engine.WalletNo(b.Counters().Wallets)
	if !ok || outcome != o || s.Market.No != no {
		return fmt.Errorf("market %d has no book", no)
	}
	if err := checkMoving(s, o); err != nil {
		return fmt.Errorf("market %d at %d: %w", no, s.Sequence, err)
	}
	if s.Sequence < seen[no-1] {
		return fmt.Errorf("market %d went from Sequence %d back to %d", no, seen[no-1], s.Sequence)
	}
	seen[no-1] = s.Sequence
	touched := b.Directory.LastNamed(newest)
	if now := b.Sequence(); s.Sequence > now || touched > now {
		return fmt.Errorf("snapshot %d, wallet %d, Board at %d", s.Sequence, touched, now)
	}
	// The first frame has movingMarkets*41+1 Commands, each later one 7 and one wallet.
	numbered := engine.WalletNo(1 + (s.Sequence-movingMarkets*41-1)/7)
	if a, known := b.Directory.Address(numbered); !known || a != addressOf(numbered) {
		return fmt.Errorf("snapshot %d is seen before wallet %d", s.Sequence, numbered)
	}
	if got, known := b.Directory.Wallet(addressOf(numbered)); !known || got != numbered {
		return fmt.Errorf("snapshot %d: the address of wallet %d finds %d", s.Sequence, numbered, got)
	}
	// The writer may be numbering the next wallet now: each look-up finds all of it or nothing.
	if a, known := b.Directory.Address(numbered + 1); known && a != addressOf(numbered+1) {
		return fmt.Errorf("wallet %d has address %x", numbered+1, a)
	}
	if no, found := b.Directory.Wallet(addressOf(numbered + 1)); found {
		if b.Directory.LastNamed(no) == 0 || no != numbered+1 {
			return fmt.Errorf("wallet %d is found as %d, or untouched", numbered+1, no)
		}
	}
	return nil
}

// TestGrowth reads the tables while they are doubled many times.
func TestGrowth(t *testing.T) {
	const each, frames = 32, 300
	b := NewBoard()
	var stop atomic.Bool
	var done atomic.Uint32 // frames wholly published
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			for n := uint32(i); !stop.Load(); n += 7 {
				upto := done.Load() * each
				if upto == 0 {
					continue
				}
				if err := lookUp(b, engine.MarketNo(n%upto+1)); err != nil {
					t.Error(err)
					return
				}
				if _, _, ok := b.Book(tokenOf(engine.MarketNo(frames*each+1+n), 0)); ok {
					t.Error("found a token that was never listed")
					return
				}
			}
		})
	}
	w := newWorld(1)
	for range frames {
		f := w.begin()
		for range each {
			f.list(engine.MarketNo(len(w.markets)+1), 100, engine.Open)
			f.deposit(engine.WalletNo(w.wallets + 1))
		}
		b.Publish(f.end())
		done.Add(1)
	}
	stop.Store(true)
	group.Wait()
	for _, n := range w.markets {
		checkMarket(t, b, n)
	}
	checkWallets(t, b, w)
}

// lookUp looks market and wallet no up in every way.
func lookUp(b *Board, no engine.MarketNo) error {
	d, wallet := b.Directory, engine.WalletNo(no)
	for o := engine.Outcome(0); o < 2; o++ {
		s, outcome, ok := b.Book(tokenOf(no, o))
		m, same, known := d.Token(tokenOf(no, o))
		if !ok || !known || s.Market != m || m.No != no || outcome != o || same != o {
			return fmt.Errorf("token %d of market %d is not found", o, no)
		}
	}
	if m := d.Condition(conditionOf(no)); m == nil || m != d.Market(no) {
		return fmt.Errorf("condition of market %d is not found", no)
	}
	if got, ok := d.Wallet(addressOf(wallet)); !ok || got != wallet {
		return fmt.Errorf("wallet %d is found as %d", wallet, got)
	}
	return nil
}

// TestTextRace asks many goroutines for texts while the market changes: all get the same text of
// one Snapshot, and never that of another.
func TestTextRace(t *testing.T) {
	b, w := moving()
	const rounds, readers = 200, 6
	for range rounds {
		s, o, _ := b.Book(tokenOf(1, 1))
		start, texts := make(chan struct{}), make([][]byte, readers)
		var group sync.WaitGroup
		for i := range readers {
			group.Go(func() {
				<-start
				texts[i] = s.Text(o, rendered)
			})
		}
		close(start)
		b.Publish(move(w))
		group.Wait()
		want := fmt.Sprint(s.Market.No, s.Sequence, o)
		for i := range texts {
			if string(texts[i]) != want || &texts[i][0] != &texts[0][0] {
				t.Fatalf("reader %d got %q, reader 0 %q, want %q", i, texts[i], texts[0], want)
			}
		}
	}
}

func rendered(s *Snapshot, o engine.Outcome) []byte {
	return fmt.Append(nil, s.Market.No, s.Sequence, o)
}

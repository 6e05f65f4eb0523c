package history

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"clobd/engine"
	"clobd/journal"
)

// leadersWorld is what leaders stand between: a list as a database would show it, batches that move
// it and are told of later, and readers of whom each is somewhere on his way.
type leadersModel struct {
	r       *rand.Rand
	l       *leaders
	of      token
	sizes   []engine.Size // in the database, by wallet
	told    []engine.Size // by the batches that update knows
	pending []shift       // of the batch that is in the database and not told yet
	reading []*leaderRead
}

// leaderRead is a reader who began, and what he saw if he has iterated.
type leaderRead struct {
	list  *leaderList
	most  int
	seen  bool
	top   []Holder
	whole bool
}

// ranked are the first most holders of sizes.
func ranked(sizes []engine.Size, most int) (top []Holder, whole bool) {
	for w, size := range sizes {
		if size > 0 {
			top = append(top, Holder{engine.WalletNo(w), size})
		}
	}
	slices.SortFunc(top, compareHolders)
	whole = len(top) < most
	return top[:min(most, len(top))], whole
}

// commit moves some wallets in the database, each once.
func (w *leadersModel) commit() {
	for _, wallet := range w.r.Perm(len(w.sizes) - 1)[:w.r.IntN(len(w.sizes))] {
		wallet++
		size := engine.Size(max(w.r.IntN(12)-3, 0))
		if before := w.sizes[wallet]; before != size {
			w.pending = append(w.pending, shift{w.of, engine.WalletNo(wallet), size, before})
			w.sizes[wallet] = size
		}
	}
}

// update tells of them.
func (w *leadersModel) update() {
	w.l.update(w.pending)
	w.pending = w.pending[:0]
	copy(w.told, w.sizes)
}

// read lets one reader begin, iterate or finish.
func (w *leadersModel) read() {
	if len(w.reading) == 0 || w.r.IntN(4) == 0 {
		most := 1 + w.r.IntN(8)
		if r := w.l.begin(w.of, most+w.r.IntN(most+1)); r != nil {
			w.reading = append(w.reading, &leaderRead{list: r, most: most})
		}
		return
	}
	i := w.r.IntN(len(w.reading))
	x := w.reading[i]
	if !x.seen {
		x.top, x.whole = ranked(w.sizes, x.most)
		x.seen = true
		return
	}
	w.l.finish(x.list, x.top, x.whole, nil)
	w.reading = slices.Delete(w.reading, i, i+1)
}

// TestLeaders lets readers and batches overlap in every way: what is copied when a batch has been
// told of is the list as that batch left it.
func TestLeaders(t *testing.T) {
	known := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := &leadersModel{r: r, l: newLeaders(), of: token{1, 1},
			sizes: make([]engine.Size, 2+r.IntN(14))}
		w.told = make([]engine.Size, len(w.sizes))
		for range 60 {
			switch w.r.IntN(9) {
			case 0, 1:
				if len(w.pending) == 0 {
					w.commit()
				}
			case 2, 3:
				w.update()
			case 4:
				if list := w.l.lists[w.of]; list != nil && w.r.IntN(4) == 0 {
					w.l.forget(list)
				}
			default:
				w.read()
			}
			if list := w.l.lists[w.of]; list != nil && len(list.top) > list.kept {
				t.Fatalf("seed %d: %d places of %d", seed, len(list.top), list.kept)
			}
			if len(w.pending) > 0 {
				continue // a list that was just read may be ahead of what was told
			}
			limit, least := 1+w.r.IntN(6), engine.Size(1+w.r.IntN(9))
			got, ok := w.l.first(w.of, limit, least)
			if !ok {
				continue
			}
			known++
			want, _ := ranked(w.told, len(w.told))
			want = slices.DeleteFunc(want, func(x Holder) bool { return x.Size < least })
			if want = want[:min(limit, len(want))]; !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v, want %v", seed, got, want)
			}
		}
	}
	if known < 10_000 {
		t.Fatalf("only %d lists were known", known)
	}
}

// TestLeadersAreBounded asks for more lists than are kept, for some again, for one that cannot be
// read, for one that takes too long, and for one that is too long.
func TestLeadersAreBounded(t *testing.T) {
	l := newLeaders()
	check := func(of token, kept bool) {
		t.Helper()
		sum := 0
		for _, r := range l.lists {
			sum += r.kept
		}
		if sum != l.count || sum > leadersMost || (l.lists[of] != nil) != kept {
			t.Fatalf("%d places in %d lists, %d counted", sum, len(l.lists), l.count)
		}
	}
	for m := range engine.MarketNo(3 * leadersMost / 1000) {
		for of := range 1 + m%2 {
			of := token{m - of, 0}
			l.finish(l.begin(of, 1000), []Holder{{1, 1}}, true, nil)
			check(of, true)
		}
	}
	if len(l.lists) < leadersMost/1000-1 {
		t.Errorf("only %d lists are kept", len(l.lists))
	}
	of := token{1 << 30, 0}
	l.finish(l.begin(of, 10), nil, true, errRow)
	check(of, false)
	if l.begin(of, leadersMost) != nil {
		t.Error("a list is as long as all may be")
	}
	slow := l.begin(of, 10)
	if l.begin(of, 10) != nil {
		t.Error("two readers make one list")
	}
	for range shiftsMost {
		l.update([]shift{{of, 1, 5, 4}})
	}
	check(of, true)
	l.update([]shift{{of, 1, 5, 4}})
	check(of, false)
	l.finish(slow, []Holder{{1, 5}}, true, nil)
	check(of, false)
	l.finish(l.begin(of, 10), []Holder{{1, 5}}, true, nil)
	l.finish(slow, nil, true, nil)
	if all, known := l.first(of, 5, 1); !known || len(all) != 1 {
		t.Errorf("%v, %v: a reader who came too late has replaced a list", all, known)
	}
}

// crowd is an index past its journal, for whoever needs more wallets than an engine would make in
// time: tokens come from outside, or go there.
type crowd struct {
	x      *Index
	seq    engine.Sequence
	events [1]engine.Event
	waits  int
}

// give moves size tokens to a wallet, or away from it if size is below 0.
func (w *crowd) give(t testing.TB, wallet engine.WalletNo, m engine.MarketNo, size engine.Size) {
	t.Helper()
	w.events[0] = engine.Event{Kind: engine.Deposited, Wallet: wallet, Market: m, Size: size}
	if size < 0 {
		w.events[0].Kind, w.events[0].Size = engine.Withdrawn, -size
	}
	w.seq++
	c := engine.Command{Kind: engine.Deposit, Market: m, Size: size}
	if err := w.x.fold.command(&c, w.seq, makerTime, w.events[:]); err != nil {
		t.Fatal(err)
	}
	w.x.fold.at.sequence = w.seq
	if w.waits++; w.waits == 8192 {
		w.commit(t)
	}
}

// commit shows what was given so far.
func (w *crowd) commit(t testing.TB) {
	t.Helper()
	if err := w.x.fold.commit(); err != nil {
		t.Fatal(err)
	}
	w.x.History.publish(w.seq)
	w.x.flush()
	w.waits = 0
}

// shownHolders are wallets of one token that give and take beside readers. What they hold after
// each Sequence is known ahead.
type shownHolders struct {
	x     *Index
	sizes [][]engine.Size // after each Sequence, by wallet
	moved []engine.WalletNo
	last  atomic.Uint64 // that readers may see
}

// newShownHolders draws what happens.
func newShownHolders(x *Index, r *rand.Rand) *shownHolders {
	const wallets, steps = 60, 6000
	c := &shownHolders{x: x, sizes: [][]engine.Size{nil}, moved: []engine.WalletNo{0}}
	c.sizes[0] = make([]engine.Size, wallets+1)
	for len(c.sizes) <= steps {
		next := slices.Clone(c.sizes[len(c.sizes)-1])
		w, size := 1+r.IntN(wallets), engine.Size(max(0, r.IntN(30)-3))
		if next[w] != size {
			next[w] = size
			c.sizes, c.moved = append(c.sizes, next), append(c.moved, engine.WalletNo(w))
		}
	}
	return c
}

// did says whether one of the Sequences since from left a wallet with what good takes.
func (c *shownHolders) did(from uint64, w int, good func(engine.Size) bool) bool {
	return slices.ContainsFunc(c.sizes[from:c.last.Load()+1], func(at []engine.Size) bool {
		return good(at[w])
	})
}

// read holds what a reader gets against what there was between his question and the answer.
func (c *shownHolders) read(t *testing.T, limit int, least engine.Size) bool {
	from := uint64(c.x.History.Sequence())
	got, err := c.x.History.Holders(1, 0, limit, least)
	if err != nil || len(got) > limit || !slices.IsSortedFunc(got, compareHolders) {
		t.Errorf("%v: %v", got, err)
		return false
	}
	for w := 1; w < len(c.sizes[0]); w++ {
		i := slices.IndexFunc(got, func(h Holder) bool { return int(h.Wallet) == w })
		good := c.did(from, w, func(size engine.Size) bool {
			behind := len(got) == limit &&
				compareHolders(got[limit-1], Holder{engine.WalletNo(w), size}) < 0
			return i >= 0 && got[i].Size == size && size >= least || i < 0 && (size < least || behind)
		})
		if !good {
			t.Errorf("since Sequence %d, limit %d, least %d: wallet %d in %v", from, limit, least, w,
				got)
			return false
		}
	}
	return true
}

// TestHoldersBesideReaders asks for holders while they move: each wallet stands where one of the
// Sequences put it that the answer may know, and when nothing moves, all where the last one did.
func TestHoldersBesideReaders(t *testing.T) {
	j := open(t, journal.Options{Dir: t.TempDir(), Async: true})
	defer j.Close()
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	r := rand.New(rand.NewPCG(3, 4))
	c, w := newShownHolders(x, r), &crowd{x: x}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for g := range 3 {
		r := rand.New(rand.NewPCG(5, uint64(g)))
		readers.Go(func() {
			for c.read(t, 1+r.IntN(1+r.IntN(80)), engine.Size(1+r.IntN(20))) {
				select {
				case <-stop:
					return
				default:
				}
				if r.IntN(50) == 0 {
					x.History.leaders.mu.Lock()
					clear(x.History.leaders.lists)
					x.History.leaders.count = 0
					x.History.leaders.mu.Unlock()
				}
			}
		})
	}
	for s := 1; s < len(c.sizes); {
		n := min(1+r.IntN(6), len(c.sizes)-s)
		c.last.Store(uint64(s + n - 1))
		for ; n > 0; n-- {
			wallet := c.moved[s]
			w.give(t, wallet, 1, c.sizes[s][wallet]-c.sizes[s-1][wallet])
			s++
		}
		if w.commit(t); len(x.fold.ledger.shifts) > 0 {
			t.Fatal("a batch is told of twice")
		}
	}
	close(stop)
	readers.Wait()
	want, _ := ranked(c.sizes[len(c.sizes)-1], 100)
	for range 2 {
		got, err := x.History.Holders(1, 0, 100, 1)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, want %v: %v", got, want, err)
		}
	}
	if _, known := x.History.leaders.first(token{1, 0}, 100, 1); !known {
		t.Error("the whole list is not known")
	}
}

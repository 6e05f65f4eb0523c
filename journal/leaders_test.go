package journal

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"clobd/engine"
)

// leadersWorld is what leaders stand between: a list as a database would show it, batches that move
// it and are told of later, and readers of whom each is somewhere on his way.
type leadersWorld struct {
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

// commit moves some wallets in the database.
func (w *leadersWorld) commit() {
	for range 1 + w.r.IntN(6) {
		wallet := 1 + w.r.IntN(len(w.sizes)-1)
		size := engine.Size(max(w.r.IntN(12)-3, 0))
		if before := w.sizes[wallet]; before != size {
			w.pending = append(w.pending, shift{w.of, engine.WalletNo(wallet), size, before})
			w.sizes[wallet] = size
		}
	}
}

// update tells of them.
func (w *leadersWorld) update() {
	w.l.update(w.pending)
	w.pending = w.pending[:0]
	copy(w.told, w.sizes)
}

// read lets one reader begin, iterate or finish.
func (w *leadersWorld) read() {
	if len(w.reading) == 0 || w.r.IntN(4) == 0 {
		most := 1 + w.r.IntN(8)
		if r := w.l.begin(w.of, 1+w.r.IntN(2*most)); r != nil {
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
		w := &leadersWorld{r: r, l: newLeaders(), of: token{1, 1},
			sizes: make([]engine.Size, 2+r.IntN(14))}
		w.told = make([]engine.Size, len(w.sizes))
		for range 60 {
			switch w.r.IntN(4) {
			case 0:
				if len(w.pending) == 0 {
					w.commit()
				}
			case 1:
				w.update()
			default:
				w.read()
			}
			if len(w.pending) > 0 {
				continue // a list that was just read may be ahead of what was told
			}
			limit, least := 1+w.r.IntN(6), engine.Size(1+w.r.IntN(9))
			got, ok := w.l.copy(w.of, limit, least)
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

// TestLeadersAreBounded asks for more lists than are kept, and for one that cannot be read.
func TestLeadersAreBounded(t *testing.T) {
	l := newLeaders()
	for m := range engine.MarketNo(3 * leadersMost / 1000) {
		of := token{m, 0}
		l.finish(l.begin(of, 1000), []Holder{{1, 1}}, true, nil)
		sum := 0
		for _, r := range l.lists {
			sum += r.most
		}
		if sum != l.count || sum > leadersMost || l.lists[of] == nil {
			t.Fatalf("%d places in %d lists, %d counted", sum, len(l.lists), l.count)
		}
	}
	of, before := token{1 << 30, 0}, l.count
	if l.finish(l.begin(of, 10), nil, true, errRow); l.lists[of] != nil || l.count != before {
		t.Fatalf("a list that could not be read is kept: %d places, %d before", l.count, before)
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

// TestHoldersBesideReaders holds what readers get beside a fold that moves holders against what it
// had moved before they asked: each wallet has gone on from there.
func TestHoldersBesideReaders(t *testing.T) {
	j := open(t, Options{Dir: t.TempDir(), Async: true})
	defer j.Close()
	x, err := OpenIndex(j, IndexOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	const wallets, rounds = 40, 2000
	w := &crowd{x: x}
	for i := range engine.WalletNo(wallets) {
		w.give(t, i+1, 1, engine.Size(i+1))
	}
	w.commit(t)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for g := range 3 {
		all.Go(func() {
			for limit := 1; ; limit = limit%30 + 1 + g {
				select {
				case <-stop:
					return
				default:
				}
				since := engine.Size(x.History.Sequence()) - wallets // each moves by one, all upwards
				got, err := x.History.Holders(1, 0, limit, 1)
				if err != nil || len(got) != min(limit, wallets) ||
					!slices.IsSortedFunc(got, compareHolders) {
					t.Errorf("%v: %v", got, err)
					return
				}
				if first := got[0].Size; first < wallets+since/wallets {
					t.Errorf("the largest has %d after %d moves", first, since)
					return
				}
			}
		})
	}
	for i := range rounds {
		w.give(t, engine.WalletNo(i%wallets+1), 1, 1)
		w.commit(t)
	}
	close(stop)
	all.Wait()
	got, err := x.History.Holders(1, 0, wallets, 1)
	if err != nil || len(got) != wallets {
		t.Fatalf("%d holders: %v", len(got), err)
	}
	for i, h := range got {
		want := Holder{engine.WalletNo(wallets - i), engine.Size(wallets - i + rounds/wallets)}
		if h != want {
			t.Fatalf("place %d: %v, want %v", i, h, want)
		}
	}
}

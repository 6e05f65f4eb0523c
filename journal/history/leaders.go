package history

import (
	"cmp"
	"slices"
	"sync"

	"clobd/engine"
)

// leaders keeps the largest holders of tokens that callers ask for, in memory. A reader of the
// database would step over all moves since the last flush.
//
//	reader        begin ── iterate the database ── finish      from then on: first
//	Index.Run     Apply ── update ── publish      Apply ── update ── publish
//
// Shifts between begin and finish wait for finish. Applying a shift twice is harmless, because it
// names the new size. Until the update of a batch that the iterator saw, two batches are mixed.
type leaders struct {
	mu    sync.RWMutex // guards all fields, and the lists
	lists map[token]*leaderList
	count int // places that all lists may have
}

const (
	leadersMost = 1 << 19 // bounds the places of all lists, of 16 bytes each, by dropping lists
	shiftsMost  = 1 << 12 // bounds the shifts that wait for finish. Beyond it the list is dropped.
)

type token struct {
	market  engine.MarketNo
	outcome engine.Outcome
}

// leaderList holds every holder of a token who does not come after the last one in top.
type leaderList struct {
	of     token
	top    []Holder // the largest first
	whole  bool     // top has all holders
	ready  bool     // finish was called
	kept   int      // places that top may have
	shifts []shift  // shifts before finish
}

// shift is a change of a holding to size. A batch has at most one for a wallet and token.
type shift struct {
	token
	wallet engine.WalletNo
	size   engine.Size
	before engine.Size
}

func newLeaders() *leaders { return &leaders{lists: make(map[token]*leaderList)} }

// compareHolders sorts the largest first, and of equal ones the lowest wallet number.
func compareHolders(a, b Holder) int {
	return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Wallet, b.Wallet))
}

// first returns at most limit holders of at least least; known is false if the list cannot tell.
func (l *leaders) first(of token, limit int, least engine.Size) (all []Holder, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	r := l.lists[of]
	if r == nil || !r.ready {
		return nil, false
	}
	n, _ := slices.BinarySearchFunc(r.top, least, func(x Holder, least engine.Size) int {
		return cmp.Or(cmp.Compare(least, x.Size), -1) // behind the last one that has it
	})
	if n < limit && n == len(r.top) && !r.whole {
		return nil, false
	}
	return slices.Clone(r.top[:min(n, limit)]), true
}

// begin begins a list of at most kept places. The caller then opens an iterator and calls finish.
// begin returns nil while another reader makes the same list, or if the list would be too large.
func (l *leaders) begin(of token, kept int) *leaderList {
	if kept > leadersMost/8 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.lists[of]; old != nil {
		if !old.ready {
			return nil
		}
		l.forget(old)
	}
	for _, some := range l.lists {
		if l.count+kept <= leadersMost {
			break
		}
		l.forget(some)
	}
	r := &leaderList{of: of, kept: kept}
	l.lists[of] = r
	l.count += kept
	return r
}

func (l *leaders) forget(r *leaderList) {
	delete(l.lists, r.of)
	l.count -= r.kept
}

// finish completes a list with the holders that were read, all if whole, or drops it after err.
func (l *leaders) finish(r *leaderList, top []Holder, whole bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists[r.of] != r {
		return // dropped meanwhile
	}
	if err != nil {
		l.forget(r)
		return
	}
	r.top, r.whole, r.ready = slices.Clone(top), whole, true
	for i := range r.shifts {
		s := &r.shifts[i]
		// The iterator may have seen the wallet before or after any of its shifts.
		at := slices.IndexFunc(r.top, func(x Holder) bool { return x.Wallet == s.wallet })
		if at >= 0 {
			s.before = r.top[at].Size
		}
		r.move(s)
	}
	r.shifts = nil
}

// update applies the shifts of a batch that is in the database by now.
func (l *leaders) update(all []shift) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lists) == 0 {
		return
	}
	for i := range all {
		switch r := l.lists[all[i].token]; {
		case r == nil:
		case r.ready:
			r.move(&all[i])
		case len(r.shifts) == shiftsMost:
			l.forget(r)
		default:
			r.shifts = append(r.shifts, all[i])
		}
	}
}

func (r *leaderList) move(s *shift) {
	at, found := slices.BinarySearchFunc(r.top, Holder{s.wallet, s.before}, compareHolders)
	if !found { // not in top, or the iterator has seen the move
		at, found = slices.BinarySearchFunc(r.top, Holder{s.wallet, s.size}, compareHolders)
	}
	if found {
		r.top = slices.Delete(r.top, at, at+1)
	}
	if s.size == 0 {
		return
	}
	x := Holder{s.wallet, s.size}
	if at, _ = slices.BinarySearchFunc(r.top, x, compareHolders); at == len(r.top) && !r.whole {
		return
	}
	if r.top = slices.Insert(r.top, at, x); len(r.top) > r.kept {
		r.top, r.whole = r.top[:r.kept], false
	}
}

package history

import (
	"cmp"
	"slices"
	"sync"

	"clobd/engine"
)

// leaders keeps the first places of those lists of holders that are asked for, in memory. In the
// database a reader steps over all that has moved since the last flush, which in a busy market is
// more than what it came for.
//
//	reader        begin ── iterate the database ── finish      from then on: first
//	Index.Run     Apply ── update ── publish      Apply ── update ── publish
//
// What moves between begin and finish waits, and is done over: a shift names the size that a wallet
// has come to. The iterator may have seen the latest batch already, of which update tells after
// finish; until then some wallets are as it left them and some as the one before it did.
type leaders struct {
	mu    sync.RWMutex // guards all below, the lists included
	lists map[token]*leaderList
	count int // of places that the lists may have
}

const (
	// leadersMost bounds the places of all lists, of 16 bytes: beyond it some are forgotten.
	leadersMost = 1 << 19
	// shiftsMost is for how many shifts a list waits that somebody reads: beyond it it is forgotten.
	shiftsMost = 1 << 12
)

// token is one of the two tokens of a market.
type token struct {
	market  engine.MarketNo
	outcome engine.Outcome
}

// leaderList are the largest holders of a token: all of those who do not come after the last of
// them.
type leaderList struct {
	of     token
	top    []Holder // the largest first
	whole  bool     // there are no others
	ready  bool     // finished
	kept   int      // places, at most
	shifts []shift  // that came before it was ready
}

// shift is a wallet that holds another size of a token than before it; 0 is none. A batch has one
// of a wallet and token at most.
type shift struct {
	token
	wallet engine.WalletNo
	size   engine.Size
	before engine.Size
}

// newLeaders makes one that knows no list.
func newLeaders() *leaders { return &leaders{lists: make(map[token]*leaderList)} }

// compareHolders is the order of the list: the largest first, of equals the oldest wallet.
func compareHolders(a, b Holder) int {
	return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Wallet, b.Wallet))
}

// first are at most limit of those who hold at least least of a token; false if they are not known.
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

// begin begins to make a list that has at most kept places: whoever gets it makes an iterator of
// the database afterwards and calls finish. It is nil while somebody else does, or if it would be
// too large.
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

// forget drops a list. Callers hold mu.
func (l *leaders) forget(r *leaderList) {
	delete(l.lists, r.of)
	l.count -= r.kept
}

// finish completes a list with its first places as they were found, all of them if whole, and
// forgets it if they could not be read.
func (l *leaders) finish(r *leaderList, top []Holder, whole bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lists[r.of] != r {
		return // forgotten meanwhile
	}
	if err != nil {
		l.forget(r)
		return
	}
	r.top, r.whole, r.ready = slices.Clone(top), whole, true
	for i := range r.shifts {
		s := &r.shifts[i]
		// The iterator may have seen it anywhere on its way.
		at := slices.IndexFunc(r.top, func(x Holder) bool { return x.Wallet == s.wallet })
		if at >= 0 {
			s.before = r.top[at].Size
		}
		r.move(s)
	}
	r.shifts = nil
}

// update takes in what a batch moved that is in the database by now.
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

// move moves a wallet to its new place, if that is among the first.
func (r *leaderList) move(s *shift) {
	at, found := slices.BinarySearchFunc(r.top, Holder{s.wallet, s.before}, compareHolders)
	if !found { // behind the last one, or the iterator has seen it moved
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

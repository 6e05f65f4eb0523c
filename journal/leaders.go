package journal

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
//	reader   begin ── iterate the database ── finish      from then on: copy
//	Index.Run       commit ── update      commit ── update
//
// What moves between begin and finish waits, and is done over: a shift names the size that a wallet
// has come to, so that it does no harm if the iterator has seen it already.
type leaders struct {
	mu    sync.RWMutex
	lists map[token]*leaderList
	count int // of places in all lists
}

// leadersMost bounds the places of all lists, of 16 bytes; with more, all are forgotten.
const leadersMost = 1 << 19

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
	most   int      // places that are kept
	shifts []shift  // that came before it was
}

// shift is a wallet that moves from one place in a list of holders to another; 0 is none.
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

// copy copies at most limit of those who hold at least least of a token; false if they are not
// known.
func (l *leaders) copy(of token, limit int, least engine.Size) (all []Holder, known bool) {
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

// begin begins to make a list that will keep most places: whoever gets it makes an iterator of the
// database afterwards and calls finish. It is nil while somebody else does.
func (l *leaders) begin(of token, most int) *leaderList {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.lists[of]
	if old != nil && !old.ready {
		return nil
	}
	if old != nil {
		l.count -= old.most
	}
	if l.count+most > leadersMost {
		clear(l.lists)
		l.count = 0
	}
	r := &leaderList{of: of, most: most}
	l.lists[of] = r
	l.count += most
	return r
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
		delete(l.lists, r.of)
		l.count -= r.most
		return
	}
	r.top, r.whole, r.ready = slices.Clone(top), whole, true
	for i := range r.shifts {
		r.shift(&r.shifts[i])
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
			r.shift(&all[i])
		default:
			r.shifts = append(r.shifts, all[i])
		}
	}
}

// shift moves a wallet to its new place, if that is among the first.
func (r *leaderList) shift(s *shift) {
	i, found := slices.BinarySearchFunc(r.top, Holder{s.wallet, s.before}, compareHolders)
	if !found { // behind the last one, or the iterator saw it elsewhere
		i = slices.IndexFunc(r.top, func(x Holder) bool { return x.Wallet == s.wallet })
	}
	if i >= 0 {
		r.top = slices.Delete(r.top, i, i+1)
	}
	if s.size == 0 {
		return
	}
	x := Holder{s.wallet, s.size}
	if i, _ = slices.BinarySearchFunc(r.top, x, compareHolders); i == len(r.top) && !r.whole {
		return
	}
	if r.top = slices.Insert(r.top, i, x); len(r.top) > r.most {
		r.top, r.whole = r.top[:r.most], false
	}
}

package history

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// moving has the holders that moved a short while ago. In the database they still stand where they
// stood before, or nowhere. Those that wait longest move there when there are many: a wallet that
// trades all the time would else cost two keys with each batch. The database has a log of who
// waits and where he stands, from which load makes moving again with the sizes of positions.
//
// Readers hold mu. All else belongs to the goroutine of Index.Run.
type moving struct {
	mu     sync.RWMutex
	tokens map[token]map[engine.WalletNo]*mover

	count int
	log   []movingSegment // oldest first
	keep  int             // how many may wait

	fresh   []*mover // those who began to wait in this batch
	changed []*mover // others who moved in this batch
	gone    []*mover // those for whom this batch moves a key
	value   []byte   // scratch
}

// mover is a holder who waits.
type mover struct {
	token
	wallet engine.WalletNo
	stands engine.Size // with which he stands in the database; 0: he does not
	size   engine.Size // what he has as of the last batch
	next   engine.Size // what he has with this batch; readers do not look at it
}

type movingSegment struct {
	key    movingKey
	movers []*mover
}

type movingKey [1 + 8 + 4]byte // space, Sequence, number among those of a batch

const (
	movingMost = 1 << 14 // who may wait
	movingPart = 1 << 10 // who is written under one key of the log
)

func newMoving() *moving {
	return &moving{tokens: make(map[token]map[engine.WalletNo]*mover), keep: movingMost}
}

// shift notes that a wallet has moved, at most once in a batch.
func (v *moving) shift(s *shift) {
	m := v.tokens[s.token][s.wallet]
	if m == nil {
		v.fresh = append(v.fresh, &mover{token: s.token, wallet: s.wallet, stands: s.before,
			next: s.size})
		return
	}
	m.next = s.size
	v.changed = append(v.changed, m)
}

// write writes to the batch up to seq who began to wait, and moves some who waited long. It returns
// how many keys were deleted, over which readers step until the next flush.
func (v *moving) write(batch *pebble.Batch, seq engine.Sequence) (moves int, err error) {
	room := movingPart + len(v.fresh) // as many as come, so that a batch costs no more than its size
	n := 0
	for v.count+len(v.fresh)-len(v.gone) > v.keep && n < len(v.log) && len(v.gone) < room {
		for _, m := range v.log[n].movers {
			moved, err := m.move(batch)
			if err != nil {
				return moves, err
			}
			moves += moved
		}
		v.gone = append(v.gone, v.log[n].movers...)
		if err := batch.Delete(v.log[n].key[:], nil); err != nil {
			return moves, fmt.Errorf("write moving holders: %w", err)
		}
		n++
	}
	v.log = slices.Delete(v.log, 0, n)
	part := uint32(0)
	for some := range slices.Chunk(v.fresh, movingPart) {
		s := movingSegment{movingKey{spaceMoving}, slices.Clone(some)}
		binary.BigEndian.PutUint64(s.key[1:], uint64(seq))
		binary.BigEndian.PutUint32(s.key[9:], part)
		v.value = v.value[:0]
		for _, m := range some {
			v.value = appendUvarints(v.value, uint64(m.market), uint64(m.outcome), uint64(m.wallet),
				uint64(m.stands))
		}
		if err := batch.Set(s.key[:], v.value, nil); err != nil {
			return moves, fmt.Errorf("write moving holders: %w", err)
		}
		v.log = append(v.log, s)
		part++
	}
	return moves, nil
}

// move moves the key of a holder, and returns how many keys that deletes. A key is set once and
// deleted once; a flush of both drops them.
func (m *mover) move(batch *pebble.Batch) (deleted int, err error) {
	if m.stands == m.next {
		return 0, nil
	}
	if m.stands != 0 {
		key := holderKey(m.market, m.outcome, Holder{m.wallet, m.stands})
		deleted, err = 1, batch.SingleDelete(key[:], nil)
	}
	if m.next != 0 && err == nil {
		key := holderKey(m.market, m.outcome, Holder{m.wallet, m.next})
		err = batch.Set(key[:], nil, nil)
	}
	if err != nil {
		return deleted, fmt.Errorf("write holder %d: %w", m.wallet, err)
	}
	return deleted, nil
}

// apply applies the batch, so that readers see the keys that it moves together with who waits.
func (v *moving) apply(db *pebble.DB, batch *pebble.Batch) error {
	early := len(v.gone) > 0 // else readers need not wait while the batch is written
	if early {
		v.mu.Lock()
		defer v.mu.Unlock()
	}
	if err := db.Apply(batch, pebble.NoSync); err != nil {
		return err
	}
	if !early {
		v.mu.Lock()
		defer v.mu.Unlock()
	}
	for _, m := range v.fresh {
		v.add(m)
	}
	for _, m := range v.changed {
		m.size = m.next
	}
	for _, m := range v.gone {
		v.count--
		if delete(v.tokens[m.token], m.wallet); len(v.tokens[m.token]) == 0 {
			delete(v.tokens, m.token)
		}
	}
	clear(v.fresh)
	clear(v.changed)
	clear(v.gone)
	v.fresh, v.changed, v.gone = v.fresh[:0], v.changed[:0], v.gone[:0]
	return nil
}

func (v *moving) add(m *mover) {
	m.size = m.next
	of := v.tokens[m.token]
	if of == nil {
		of = make(map[engine.WalletNo]*mover)
		v.tokens[m.token] = of
	}
	of[m.wallet] = m
	v.count++
}

// load reads the log, and what those who wait have.
func (v *moving) load(db *pebble.DB) error {
	var all []*mover
	err := each(db, []byte{spaceMoving}, []byte{spaceMoving + 1}, func(key, b []byte) (bool, error) {
		if len(key) != len(movingKey{}) {
			return false, errRow
		}
		s := movingSegment{key: movingKey(key)}
		for c := (varints{rest: b}); len(c.rest) > 0; {
			m := &mover{token: token{engine.MarketNo(c.uvarint()), engine.Outcome(c.uvarint())},
				wallet: engine.WalletNo(c.uvarint()), stands: engine.Size(c.uvarint())}
			if c.bad || m.outcome > 1 || v.tokens[m.token][m.wallet] != nil {
				return false, errRow
			}
			v.add(m)
			s.movers = append(s.movers, m)
		}
		all = append(all, s.movers...)
		v.log = append(v.log, s)
		return true, nil
	})
	slices.SortFunc(all, func(a, b *mover) int { // the order of positions in the database
		return cmp.Or(cmp.Compare(a.wallet, b.wallet), cmp.Compare(a.market, b.market))
	})
	for _, m := range all {
		if err != nil {
			break
		}
		var p *position
		if p, err = readPosition(db, m.wallet, m.market); err == nil {
			m.next = p.tokens[m.outcome].Size
			m.size = m.next
		}
	}
	if err != nil {
		return fmt.Errorf("read the moving holders: %w", err)
	}
	return nil
}

// holderWalk walks holders in the order of their keys: those of the database, but who waits stands
// where he belongs.
type holderWalk struct {
	it     *pebble.Iterator
	now    [][holderKeyLen]byte // where those who wait belong, in order
	before [][holderKeyLen]byte // where they stand in the database, in order
}

// walk begins with the holders of a market's tokens, both included. The caller closes the iterator.
func (v *moving) walk(db *pebble.DB, m engine.MarketNo, from, to engine.Outcome) (
	w *holderWalk, err error) {
	w = &holderWalk{}
	v.mu.RLock()
	defer v.mu.RUnlock()
	for o := from; o <= to; o++ {
		w.wait(v.tokens[token{m, o}])
	}
	w.sort()
	low := holderKey(m, from, Holder{})
	low = [holderKeyLen]byte(append(low[:6], make([]byte, holderKeyLen-6)...))
	high := append(append([]byte{}, low[:5]...), byte(to)+1)
	w.it, err = db.NewIter(&pebble.IterOptions{LowerBound: low[:], UpperBound: high})
	return w, err
}

// walkAll begins with all holders of a database that does not change.
func (v *moving) walkAll(db *pebble.DB) (w *holderWalk, err error) {
	w = &holderWalk{}
	for _, of := range v.tokens {
		w.wait(of)
	}
	w.sort()
	w.it, err = iterate(db, spaceHolder)
	return w, err
}

func (w *holderWalk) wait(of map[engine.WalletNo]*mover) {
	for _, m := range of {
		if m.size != 0 {
			w.now = append(w.now, holderKey(m.market, m.outcome, Holder{m.wallet, m.size}))
		}
		if m.stands != 0 {
			w.before = append(w.before, holderKey(m.market, m.outcome, Holder{m.wallet, m.stands}))
		}
	}
}

func (w *holderWalk) sort() {
	order := func(a, b [holderKeyLen]byte) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(w.now, order)
	slices.SortFunc(w.before, order)
}

// run calls visit with the key of each holder, until it returns false, and closes the iterator.
func (w *holderWalk) run(visit func(key []byte) (bool, error)) (err error) {
	more := true
	for ok := w.it.First(); ok && more && err == nil; ok = w.it.Next() {
		key := w.it.Key()
		if len(w.before) > 0 && bytes.Equal(key, w.before[0][:]) {
			w.before = w.before[1:]
			continue
		}
		if len(w.before) > 0 && bytes.Compare(key, w.before[0][:]) > 0 {
			err = errRow // he does not stand there
			break
		}
		if more, err = w.until(key, visit); err == nil && more {
			more, err = visit(key)
		}
	}
	if err == nil {
		err = w.it.Error()
	}
	if more && err == nil && len(w.before) > 0 {
		err = errRow
	}
	if more && err == nil {
		_, err = w.until(nil, visit)
	}
	if e := w.it.Close(); err == nil {
		err = e
	}
	return err
}

// until visits those who wait and belong before key, or all if it is nil.
func (w *holderWalk) until(key []byte, visit func(key []byte) (bool, error)) (bool, error) {
	for len(w.now) > 0 && (key == nil || bytes.Compare(w.now[0][:], key) < 0) {
		at := w.now[0]
		w.now = w.now[1:]
		if more, err := visit(at[:]); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

package history

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// resting holds the resting orders in memory, by owner: in a database, finished orders would leave
// millions of deleted keys. The database has a log of orders that came and left, one key a batch.
// When the log grows long, orders of its oldest keys that still rest move to its end.
//
// Readers hold mu. All else belongs to the goroutine of Index.Run.
type resting struct {
	mu     sync.RWMutex
	owners map[engine.WalletNo]*ownerOrders

	live  int       // orders
	log   []segment // oldest first
	size  int       // bytes of all segments
	slack int       // bytes that the log may have when nothing rests

	value []byte // scratch
	old   []addition
}

// ownerOrders are oldest first. Orders that left stay, marked, until they are most of the slice.
type ownerOrders struct {
	orders []restingOrder
	gone   int
}

// restingOrder describes an order without its row. Market 0 marks an order that left.
type restingOrder struct {
	seq     engine.Sequence
	market  engine.MarketNo
	outcome engine.Outcome
	id      engine.OrderID
}

type segment struct {
	no    engine.Sequence
	bytes int
}

type addition struct {
	owner engine.WalletNo
	restingOrder
}

const (
	segmentLoad = 44        // about how many bytes a resting order takes in the log
	logSlack    = 256 << 10 // usual slack, in bytes
	moveMost    = 4         // segments that move with one batch; a batch adds only one
	maxResting  = 1 << 16   // orders that one page looks at, in memory
)

func newResting() *resting {
	return &resting{owners: make(map[engine.WalletNo]*ownerOrders), slack: logSlack}
}

func (q *ownerOrders) indexOf(seq engine.Sequence) int {
	i, _ := slices.BinarySearchFunc(q.orders, seq, func(o restingOrder, seq engine.Sequence) int {
		return cmp.Compare(o.seq, seq)
	})
	return i
}

func (r *resting) order(owner engine.WalletNo, seq engine.Sequence) *restingOrder {
	q := r.owners[owner]
	if q == nil {
		return nil
	}
	if i := q.indexOf(seq); i < len(q.orders) && q.orders[i].seq == seq && q.orders[i].market != 0 {
		return &q.orders[i]
	}
	return nil
}

func (r *resting) add(owner engine.WalletNo, o restingOrder) {
	q := r.owners[owner]
	if q == nil {
		q = &ownerOrders{}
		r.owners[owner] = q
	}
	q.orders = append(q.orders, o)
	r.live++
}

func (r *resting) remove(o *row) error {
	at := r.order(o.Owner, o.Sequence)
	if at == nil {
		return fmt.Errorf("%w: order %x did not rest", errContradiction, o.ID)
	}
	at.market = 0
	r.live--
	q := r.owners[o.Owner]
	if q.gone++; q.gone > 16 && q.gone > len(q.orders)/2 {
		q.orders = slices.DeleteFunc(q.orders, func(o restingOrder) bool { return o.market == 0 })
		q.gone = 0
	}
	return nil
}

func (r *resting) update(placed, dirty []*row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range dirty {
		if o.listed && o.Status != engine.Live {
			o.listed = false
			if err := r.remove(o); err != nil {
				return err
			}
		}
	}
	for _, o := range placed {
		if o.Status == engine.Live {
			o.listed = true
			r.add(o.Owner, restingOrder{o.Sequence, o.Market, o.Outcome, o.ID})
		}
	}
	return nil
}

// write adds a segment to the batch of d: the orders that came and left in it, and those that move
// here from the start of the log.
func (r *resting) write(d *fold) error {
	v := r.value[:0]
	for _, o := range d.placed {
		if o.Status == engine.Live {
			v = appendAddition(v, o.Owner, &restingOrder{o.Sequence, o.Market, o.Outcome, o.ID})
		}
	}
	for _, o := range d.dirty {
		if o.listed && o.Status != engine.Live {
			v = binary.AppendUvarint(append(v, segmentLeft), uint64(o.Sequence))
		}
	}
	if r.value = v; len(v) == 0 {
		return nil
	}
	if err := r.move(d); err != nil {
		return err
	}
	seq := d.at.sequence
	key := numberKey(spaceResting, uint64(seq))
	if err := d.batch.Set(key[:], r.value, nil); err != nil {
		return fmt.Errorf("write resting orders: %w", err)
	}
	r.log = append(r.log, segment{seq, len(r.value)})
	r.size += len(r.value)
	return nil
}

// move takes segments off the start of the log while it is too long, and appends to value the
// orders in them that still rest.
func (r *resting) move(d *fold) error {
	for n := 0; n < moveMost && len(r.log) > 0 && r.size > 2*segmentLoad*r.live+r.slack; n++ {
		key := numberKey(spaceResting, uint64(r.log[0].no))
		found, err := read(d.db, key[:], func(old []byte) (err error) {
			r.old, err = readSegment(old, r.old[:0], nil)
			return err
		})
		if err == nil && !found {
			err = errRow
		}
		if err == nil {
			err = d.batch.Delete(key[:], nil)
		}
		if err != nil {
			return fmt.Errorf("move resting orders of Sequence %d: %w", r.log[0].no, err)
		}
		for i := range r.old {
			// An order that leaves in this batch is written, too, beside its leaving.
			if o := &r.old[i]; r.order(o.owner, o.seq) != nil {
				r.value = appendAddition(r.value, o.owner, &o.restingOrder)
			}
		}
		r.size -= r.log[0].bytes
		r.log = r.log[1:]
	}
	return nil
}

// The first byte of an item of a segment. The outcome is added to segmentCame.
const (
	segmentCame = 0
	segmentLeft = 2
)

func appendAddition(b []byte, owner engine.WalletNo, o *restingOrder) []byte {
	b = append(append(b, segmentCame|byte(o.outcome)), o.id[:]...)
	return appendUvarints(b, uint64(o.seq), uint64(o.market), uint64(owner))
}

// readSegment appends the orders that came in a segment to some. It adds the Sequences of those
// that left to left, unless left is nil.
func readSegment(b []byte, some []addition, left map[engine.Sequence]bool) ([]addition, error) {
	for c := (varints{rest: b}); len(c.rest) > 0; {
		kind := c.byte()
		if kind == segmentLeft {
			if seq := engine.Sequence(c.uvarint()); left != nil {
				left[seq] = true
			}
		} else {
			o := addition{restingOrder: restingOrder{outcome: engine.Outcome(kind)}}
			c.copy(o.id[:])
			o.seq, o.market = engine.Sequence(c.uvarint()), engine.MarketNo(c.uvarint())
			o.owner = engine.WalletNo(c.uvarint())
			some = append(some, o)
		}
		if c.bad || kind > segmentLeft {
			return some, errRow
		}
	}
	return some, nil
}

// load reads the log. A leaving may stand before its coming: move writes older orders again.
func (r *resting) load(db *pebble.DB) error {
	var all []addition
	left := make(map[engine.Sequence]bool)
	err := each(db, []byte{spaceResting}, []byte{spaceResting + 1}, func(key, b []byte) (
		more bool, err error) {
		no, known := numberOf(key)
		if !known {
			return false, errRow
		}
		if all, err = readSegment(b, all, left); err != nil {
			return false, err
		}
		r.log = append(r.log, segment{engine.Sequence(no), len(b)})
		r.size += len(b)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read the resting orders: %w", err)
	}
	slices.SortFunc(all, func(a, b addition) int { return cmp.Compare(a.seq, b.seq) })
	for i := range all {
		if o := &all[i]; !left[o.seq] {
			r.add(o.owner, o.restingOrder)
		}
	}
	return nil
}

// page copies at most p.Limit orders of an owner that f selects, from the Sequence p.From on. next
// is the Sequence to go on from, 0 if there are no more.
func (r *resting) page(owner engine.WalletNo, f *Filter, p Page) (
	some []restingOrder, next engine.Sequence) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	q := r.owners[owner]
	if q == nil {
		return nil, 0
	}
	orders := q.orders[q.indexOf(engine.Sequence(p.From)):]
	for i := range orders {
		o := &orders[i]
		if i == maxResting {
			return some, o.seq
		}
		if o.market == 0 || f.Market != 0 && o.market != f.Market ||
			f.OneToken && o.outcome != f.Outcome {
			continue
		}
		if len(some) == p.Limit {
			return some, o.seq
		}
		some = append(some, *o)
	}
	return some, 0
}

package history

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// History answers from the index. Anybody may use it at any time; it waits for the folding
// goroutine in Await, and else only while that notes a batch in what is kept in memory.
type History struct {
	db      *pebble.DB
	journal uint64
	filter  *filter
	resting *resting
	recent  *recent
	leaders *leaders
	gate    disk.Gate

	sequence atomic.Uint64

	wanted chan struct{} // told when somebody begins to wait

	mu     sync.Mutex
	moved  chan struct{} // closed at the next publish; nil while nobody waits
	ended  bool          // the index will not move any more
	failed error         // why, if it is not for Close
	held   error         // why it does not move for now
}

// Sequence is how far the index has come: every answer that is begun after it was read knows at
// least the Commands up to it.
func (h *History) Sequence() engine.Sequence { return engine.Sequence(h.sequence.Load()) }

// publish shows that the index has come to seq, and wakes those who wait.
func (h *History) publish(seq engine.Sequence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sequence.Store(uint64(seq))
	h.wake()
}

// wake lets all who wait look again. Callers hold mu.
func (h *History) wake() {
	if h.moved != nil {
		close(h.moved)
		h.moved = nil
	}
}

// end says that the index will not move any more, because of err if it is not nil, and wakes those
// who wait.
func (h *History) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended = true; h.failed == nil {
		h.failed = err
	}
	h.wake()
}

// hold says that the index does not move for now, because of err, and wakes those who wait; nil: it
// moves.
func (h *History) hold(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held = err; err != nil {
		h.wake()
	}
}

// Failed says why the index does not move: the error with which Index.Run ended, for good, or that
// its disk takes nothing, for as long as that lasts. It is nil if the index moves. What is asked
// while it is not is answered as of Sequence.
func (h *History) Failed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return h.failed
	}
	return h.held
}

// Await waits until the index has come to seq, at most for d, and says whether it has. It says
// false at once when the index does not move: it was closed, or Failed says why.
func (h *History) Await(seq engine.Sequence, d time.Duration) bool {
	if h.Sequence() >= seq {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		moved := h.next(seq)
		if moved == nil {
			return h.Sequence() >= seq
		}
		select {
		case <-moved:
		case <-timer.C:
			return h.Sequence() >= seq
		}
	}
}

// next is closed when the index moves; nil if there is nothing to wait for.
func (h *History) next(seq engine.Sequence) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || h.held != nil || h.Sequence() >= seq {
		return nil
	}
	if h.moved == nil {
		h.moved = make(chan struct{})
	}
	select {
	case h.wanted <- struct{}{}:
	default:
	}
	return h.moved
}

// awaited says whether somebody waits.
func (h *History) awaited() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved != nil
}

// close wakes those who wait for the last time and waits for readers.
func (h *History) close() {
	h.end(nil)
	h.filter.complete.Store(false) // from now on ErrClosed is the answer
	h.gate.Shut()
}

// Past finds what became of a Place: r is its Receipt, with status, amounts and remainder brought
// up to date. If it is not known, it was not placed at any Sequence up to seen, which is read
// before the lookup. Refusals that do not bind the id are not known. The error is ErrClosed, or
// names a row that cannot be read.
func (h *History) Past(id engine.OrderID) (
	r engine.Receipt, known bool, seen engine.Sequence, err error) {
	seen = h.Sequence()
	if !h.filter.may(&id) {
		return r, false, seen, nil
	}
	if !h.gate.Enter() {
		return r, false, seen, journal.ErrClosed
	}
	defer h.gate.Leave()
	var o row
	known, err = h.load(&id, &o)
	if known {
		r = o.receipt()
	}
	return r, known, seen, err
}

// Order finds the order id; false if there is none. The error is as for Past.
func (h *History) Order(id engine.OrderID) (OrderRow, bool, error) {
	if !h.filter.may(&id) {
		return OrderRow{}, false, nil
	}
	if !h.gate.Enter() {
		return OrderRow{}, false, journal.ErrClosed
	}
	defer h.gate.Leave()
	var o row
	known, err := h.load(&id, &o)
	if err != nil || !known {
		return OrderRow{}, false, err
	}
	if err := h.trades(&o); err != nil {
		return OrderRow{}, false, fmt.Errorf("read trades of order %x: %w", id, err)
	}
	return o.OrderRow, true, nil
}

// load reads the row of id into o; false if there is none.
func (h *History) load(id *engine.OrderID, o *row) (bool, error) {
	key := orderKey(id)
	v, closer, err := h.db.Get(key[:])
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = o.decode(id, v)
		if e := closer.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return false, fmt.Errorf("read order %x: %w", *id, err)
	}
	return true, nil
}

// trades fills in the ids of the trades that o took part in. A row never leads its chunks: they are
// written in one batch, and chunks never change.
func (h *History) trades(o *row) error {
	n := int(o.own) + int(o.chunks)*chunkTrades + len(o.made)
	if n == 0 {
		return nil
	}
	o.Trades = make([][16]byte, 0, n)
	for i := range o.own {
		o.Trades = append(o.Trades, engine.TradeID(h.journal, o.Sequence, i))
	}
	var refs []tradeRef
	for i := range o.chunks {
		key := chunkKey(&o.ID, i)
		b, found, err := disk.Get(h.db, key[:], nil)
		if err != nil {
			return err
		}
		c := cursor{rest: b}
		refs = c.trades(refs[:0])
		if !found || c.bad || len(refs) != chunkTrades {
			return fmt.Errorf("chunk %d: %w", i, errRow)
		}
		for _, t := range refs {
			o.Trades = append(o.Trades, engine.TradeID(h.journal, t.seq, t.index))
		}
	}
	for _, t := range o.made {
		o.Trades = append(o.Trades, engine.TradeID(h.journal, t.seq, t.index))
	}
	return nil
}

package sequencer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// The states of a Call. The compare-and-swap that leaves waiting decides who recycles the Call: its
// caller if it was answered, the answerer if the caller has abandoned it.
const (
	waiting uint32 = iota
	answered
	abandoned
)

// Call is the cell in which one caller waits for the answer to its Command. Calls are pooled.
//
//	Enter ─► waiting ──answer──► answered ──► the caller reads the answer and recycles
//	            └────timeout───► abandoned ─► the committer drops the answer and recycles
type Call struct {
	calls   *Calls
	state   atomic.Uint32
	wake    chan struct{} // one token: the answer is there, or the timer rang; a late one may be left
	timer   *time.Timer   // rings once a timeout at most, not once a use: the caller asks the clock
	armed   atomic.Bool   // the timer will ring
	entered time.Time     // when Enter was called

	// Written by the answerer before the compare-and-swap, read by the caller after the wake.
	receipt  engine.Receipt
	err      error
	canceled []engine.OrderID // by a CancelAll or a Place, nil for all others
	spent    Spent            // zero if the Command was not journaled

	// A copy of the Command's Proof, so that the caller may reuse its bytes. The frame points into
	// this copy: recycle the Call only after its frame is encoded and published.
	proof [engine.ProofMax]byte
}

// Calls is a pool of Calls. A Sequencer has one of its own; another one is for who takes Commands
// and lets a Sequencer elsewhere have them.
type Calls struct {
	timeout  time.Duration
	timeouts atomic.Uint64
	pool     sync.Pool
}

// NewCalls makes a pool of Calls that wait at most so long for their answers.
func NewCalls(timeout time.Duration) *Calls {
	p := &Calls{timeout: timeout}
	p.pool.New = func() any {
		c := &Call{calls: p, wake: make(chan struct{}, 1)}
		c.armed.Store(true)
		c.timer = time.AfterFunc(timeout, func() {
			c.armed.Store(false)
			c.rouse()
		})
		return c
	}
	return p
}

// Prepare returns a Call that waits for the answer to a Command, and makes to a copy of that
// Command which may be used until the Call is answered. Who prepares a Call answers it, once.
func (p *Calls) Prepare(to, c *engine.Command) *Call {
	call := p.prepare(c)
	*to = *c
	to.Proof = call.proof[:len(c.Proof)]
	return call
}

// prepare gets a Call from the pool and copies the Proof of c into it.
func (p *Calls) prepare(c *engine.Command) *Call {
	if len(c.Proof) > engine.ProofMax {
		panic(fmt.Sprintf("BUG: proof of %d bytes", len(c.Proof)))
	}
	call := p.pool.Get().(*Call)
	call.state.Store(waiting)
	call.entered = time.Now()
	copy(call.proof[:], c.Proof)
	return call
}

// Answer hands a Receipt and the orders that were canceled, or an error, to who waits.
func (c *Call) Answer(r engine.Receipt, canceled []engine.OrderID, err error) {
	c.canceled = canceled
	c.answer(r, err)
}

// Answered reports whether Wait would return at once.
func (c *Call) Answered() bool { return c.state.Load() == answered }

// Wait is the second half of Submit: it waits for the answer, at most for Options.Timeout. Call
// Wait exactly once and do not use the Call after it. Errors: ErrTimeout, ErrUnknown, and ErrClosed
// if the Sequencer failed before it applied the Command.
func (c *Call) Wait() (engine.Receipt, error) {
	receipt, _, err := c.wait(false)
	return receipt, err
}

// WaitPlaced is Wait for a Place. It also returns the rest of the answer.
func (c *Call) WaitPlaced() (engine.Receipt, Placed, error) { return c.wait(false) }

// Placed is the answer to a Place beside its Receipt.
type Placed struct {
	// Canceled holds the ids of the orders of the same wallet that were canceled for the new order:
	// first the replaced order, if any.
	Canceled []engine.OrderID
	Spent    Spent // of its frame, but Wait is that of the Place itself
}

// WaitAll is Wait for the Calls of one bundle, at most for Options.Timeout in all. It waits for the
// last Call first: answers come in order, so the caller wakes once. It returns the orders that made
// way for Places, as WaitPlaced does.
func WaitAll(
	calls []*Call, receipts []engine.Receipt, errs []error,
) (displaced []engine.OrderID) {
	late := false
	for i := len(calls) - 1; i >= 0; i-- {
		var placed Placed
		receipts[i], placed, errs[i] = calls[i].wait(late)
		displaced = append(displaced, placed.Canceled...)
		late = late || errs[i] == ErrTimeout
	}
	return displaced
}

// WaitCanceled is WaitAll for the CancelAlls of one bundle. It appends the ids of the cancelled
// orders to dst, in the order of their cancellation. The error is the first one of a Call, or names
// the first Reject.
func WaitCanceled(calls []*Call, dst []engine.OrderID) ([]engine.OrderID, error) {
	late, first := false, error(nil)
	canceled := make([][]engine.OrderID, len(calls))
	for i := len(calls) - 1; i >= 0; i-- {
		receipt, swept, err := calls[i].wait(late)
		canceled[i], late = swept.Canceled, late || err == ErrTimeout
		if err == nil && receipt.Reject != engine.Accepted {
			err = fmt.Errorf("cancel all: %s", receipt.Text())
		}
		if err != nil {
			first = err
		}
	}
	for _, ids := range canceled {
		dst = append(dst, ids...)
	}
	return dst, first
}

// wait waits for the answer, for at most Options.Timeout or not at all if late, and recycles the
// Call. After ErrTimeout the Call belongs to the answerer.
func (c *Call) wait(late bool) (engine.Receipt, Placed, error) {
	for over := late; !c.Answered(); over = time.Since(c.entered) >= c.calls.timeout {
		if over && c.state.CompareAndSwap(waiting, abandoned) {
			c.calls.timeouts.Add(1)
			return engine.Receipt{}, Placed{}, ErrTimeout
		}
		if !c.armed.Load() {
			c.armed.Store(true)
			c.timer.Reset(c.calls.timeout - time.Since(c.entered))
		}
		<-c.wake
	}
	receipt, placed, err := c.receipt, Placed{c.canceled, c.spent}, c.err
	c.recycle()
	return receipt, placed, err
}

func (c *Call) recycle() {
	c.canceled, c.spent = nil, Spent{}
	c.calls.pool.Put(c)
}

// answer hands the Receipt, or the error, to the parked caller. It never blocks.
func (c *Call) answer(receipt engine.Receipt, err error) {
	c.receipt, c.err = receipt, err
	if c.state.CompareAndSwap(waiting, answered) {
		c.rouse()
		return
	}
	c.recycle()
}

// rouse makes the caller look at the Call's state.
func (c *Call) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

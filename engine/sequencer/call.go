package sequencer

import (
	"sync/atomic"
	"time"

	"clobd/engine"
)

// The states of a Call. One compare-and-swap away from waiting decides who recycles it: the
// caller if it was answered, whoever answers if it was abandoned.
const (
	waiting uint32 = iota
	answered
	abandoned
)

// Call is one Command on its way: the cell that its caller parks on. Calls are pooled.
//
//	Enter ─► waiting ──answer──► answered ──► the caller reads the answer and recycles
//	            └────timeout───► abandoned ─► the committer drops the answer and recycles
type Call struct {
	sequencer *Sequencer
	state     atomic.Uint32
	wake      chan struct{} // one token: the answer is there
	timer     *time.Timer

	// Written by the answerer before the compare-and-swap, read by the caller after the wake.
	receipt engine.Receipt
	err     error

	// The Command's Proof, so that the caller's bytes are its own again. The frame in work points
	// into it: the Call may be recycled only when its frame is encoded and published.
	proof [engine.ProofMax]byte
}

// newCall makes a Call for the pool.
func newCall(s *Sequencer) *Call {
	c := &Call{
		sequencer: s,
		wake:      make(chan struct{}, 1),
		timer:     time.NewTimer(time.Hour),
	}
	c.timer.Stop()
	return c
}

// Wait is the second half of Submit: it parks until the answer is there, at most for
// Options.Timeout. It must be called exactly once, and the Call not be used after. Errors:
// ErrTimeout, ErrUnknown, and ErrClosed if the Sequencer failed before it took the Command.
func (c *Call) Wait() (engine.Receipt, error) {
	return c.wait(c.sequencer.options.Timeout)
}

// WaitAll is Wait for the Calls of one bundle, at most for Options.Timeout in all. The last one is
// waited for first: answers come in order, so that the caller is woken once.
func WaitAll(calls []*Call, receipts []engine.Receipt, errs []error) {
	left := time.Duration(0)
	if len(calls) > 0 {
		left = calls[0].sequencer.options.Timeout
	}
	for i := len(calls) - 1; i >= 0; i-- {
		if receipts[i], errs[i] = calls[i].wait(left); errs[i] == ErrTimeout {
			left = 0
		}
	}
}

func (c *Call) wait(d time.Duration) (engine.Receipt, error) {
	c.timer.Reset(d)
	select {
	case <-c.wake:
		c.timer.Stop()
	case <-c.timer.C:
		if c.state.CompareAndSwap(waiting, abandoned) {
			c.sequencer.counters.timeouts.Add(1)
			return engine.Receipt{}, ErrTimeout
		}
		<-c.wake // the answer won by a hair
	}
	receipt, err := c.receipt, c.err
	c.sequencer.calls.Put(c)
	return receipt, err
}

// answer hands the Receipt, or the error, to the parked caller. It never blocks.
func (c *Call) answer(receipt engine.Receipt, err error) {
	c.receipt, c.err = receipt, err
	if c.state.CompareAndSwap(waiting, answered) {
		c.wake <- struct{}{}
		return
	}
	c.sequencer.calls.Put(c)
}

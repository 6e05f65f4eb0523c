package sequencer

import (
	"errors"
	"sync"
	"testing"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer/memory"
	"clobd/engine/view"
)

// contested is a journal whose writer may have lost the right to append.
type contested struct {
	memory.Journal
	mu    sync.Mutex
	asked uint64
	reply chan error // one for each Confirm
}

func (c *contested) Ask() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.asked
}

func (c *contested) Confirm(uint64) error { return <-c.reply }

// TestContested: a cancel that finds nothing is answered once it is known that nobody else has
// appended meanwhile, and not at all if that never comes to be known. What is in a frame needs no
// question, and the Sequencer goes on.
func TestContested(t *testing.T) {
	j := &contested{reply: make(chan error)}
	s, err := New(engine.NewExchange(1), view.NewBoard(), j, Options{Ask: j.Ask, Confirm: j.Confirm})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	nothing := engine.Command{Kind: engine.Cancel, Owner: 1, ID: engine.OrderID{9}}
	lost := errors.New("lost")
	for _, reply := range []error{nil, lost, nil} {
		call, err := s.Enter(&nothing)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case j.reply <- reply:
		case <-time.After(time.Minute):
			t.Fatal("nobody asks")
		}
		r, err := call.Wait()
		if reply == nil && (err != nil || r.Reject != engine.RejectNotFound) {
			t.Errorf("confirmed: %+v %v", r, err)
		}
		if reply != nil && !errors.Is(err, ErrUnknown) {
			t.Errorf("not confirmed: %+v %v", r, err)
		}
	}
	if _, err := s.Submit(&engine.Command{Kind: engine.Deposit, Address: engine.Address{1},
		Cash: 5}); err != nil || j.asked != 3 {
		t.Errorf("a command in a frame: %v, %d questions", err, j.asked)
	}
	if err := errors.Join(s.Close(), <-ended); err != nil {
		t.Error(err)
	}
}

// TestContestedWaits: no caller gets an answer before the writer knows that it still leads.
func TestContestedWaits(t *testing.T) {
	j := &contested{reply: make(chan error, 1)}
	s, err := New(engine.NewExchange(1), view.NewBoard(), j, Options{Ask: j.Ask, Confirm: j.Confirm})
	if err != nil {
		t.Fatal(err)
	}
	call, err := s.Enter(&engine.Command{Kind: engine.Cancel, Owner: 1, ID: engine.OrderID{9}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Step()
	if err != nil || b == nil || b.Idle() != 1 {
		t.Fatal(b, err)
	}
	if err := s.Append(b); err != nil || b.Asked() != 1 {
		t.Fatal(err, b.Asked())
	}
	done := make(chan error, 1)
	go func() { done <- s.Commit(b) }()
	time.Sleep(5 * time.Millisecond)
	if call.Answered() {
		t.Error("answered from a state that may be of the past")
	}
	j.reply <- nil
	if err := <-done; err != nil {
		t.Error(err)
	}
	if r, err := call.Wait(); err != nil || r.Reject != engine.RejectNotFound {
		t.Errorf("%+v %v", r, err)
	}
}

// TestFollowAfter: when another writer goes on, the Exchange of this one follows its frames, though
// the last Command here changed nothing.
func TestFollowAfter(t *testing.T) {
	here := newRig(t, Options{}).run()
	for _, c := range setup() {
		here.submit(t, &c)
	}
	here.submit(t, &engine.Command{Kind: engine.Cancel, Owner: 1, ID: engine.OrderID{9}})
	here.submit(t, &engine.Command{Kind: engine.CancelAll, Owner: 1, Wallet: 1})
	here.close(t, nil)
	var f engine.Frame
	x := engine.NewExchange(2)
	for _, b := range here.journal.Frames() {
		if err := errors.Join(engine.DecodeFrame(b, &f), x.ApplyFrame(&f)); err != nil {
			t.Fatal(err)
		}
	}
	f.No, f.First, f.Prev = f.No+1, f.Last()+1, f.Hash // as the next writer's
	f.Commands = []engine.Command{{Kind: engine.Deposit, Address: engine.Address{99}, Cash: 5}}
	f.Events = x.Apply(&f.Commands[0], f.First, f.Time, nil)
	f.Ends, f.Digest = []uint32{uint32(len(f.Events))}, x.Digest()
	if err := here.exchange.ApplyFrame(&f); err != nil {
		t.Error(err)
	}
}

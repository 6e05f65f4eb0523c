package relay

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/memory"
	"clobd/engine/view"
)

// soon is how long a test waits for what must come.
const soon = time.Minute

// newLeader runs a Sequencer, and returns it with a Server that gives it Commands while leads is
// true.
func newLeader(t *testing.T, leads *atomic.Bool) (*sequencer.Sequencer, *Server) {
	t.Helper()
	s, err := sequencer.New(engine.NewExchange(1), view.NewBoard(), new(memory.Journal),
		sequencer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, &Server{Enter: func(c *engine.Command) (*sequencer.Call, error) {
		if !leads.Load() {
			return nil, sequencer.ErrNoLeader
		}
		return s.Enter(c)
	}, EnterAll: func(all []engine.Command, calls []*sequencer.Call) error {
		if !leads.Load() {
			return sequencer.ErrNoLeader
		}
		return s.EnterAll(all, calls)
	}}
}

// connect carries the Commands of a Client to a Server until cut is called, or the test ends.
func connect(t *testing.T, c *Client, s *Server, allowed func(*engine.Command) bool) (cut func()) {
	t.Helper()
	near, far := net.Pipe()
	var joined sync.WaitGroup
	joined.Go(func() { _ = s.Serve(far, allowed) })
	joined.Go(func() { _ = c.Carry(near) })
	cut = func() {
		near.Close()
		joined.Wait()
	}
	t.Cleanup(cut)
	return cut
}

func all(*engine.Command) bool { return true }

func deposit(n int) engine.Command {
	return engine.Command{Kind: engine.Deposit, Address: engine.Address{byte(n), byte(n >> 8), 1},
		Cash: engine.Cash(n + 1)}
}

// TestForward: Commands of many callers reach the Sequencer, alone and as neighbours, with all that
// is in them, and each caller gets his own Receipt.
func TestForward(t *testing.T) {
	var leads atomic.Bool
	leads.Store(true)
	leader, server := newLeader(t, &leads)
	c := NewClient(Options{Shown: func() engine.Sequence { return 1 << 40 }})
	connect(t, c, server, all)
	var group sync.WaitGroup
	var seen sync.Map // Sequences
	note := func(r engine.Receipt, err error) {
		if err != nil || r.Reject != engine.Accepted {
			t.Errorf("%+v %v", r, err)
		}
		if _, twice := seen.LoadOrStore(r.Sequence, true); twice {
			t.Errorf("two answers with Sequence %d", r.Sequence)
		}
	}
	for n := range 32 {
		group.Go(func() {
			for i := range 20 {
				one := deposit(n*1000 + i)
				call, err := c.Enter(&one)
				if err != nil {
					t.Error(err)
					return
				}
				note(call.Wait())
			}
			many := make([]engine.Command, 300) // more than a frame holds
			for i := range many {
				many[i] = deposit(n*1000 + 500 + i)
			}
			calls := make([]*sequencer.Call, len(many))
			if err := c.EnterAll(many, calls); errors.Is(err, sequencer.ErrBusy) {
				return
			} else if err != nil {
				t.Error(err)
				return
			}
			first := engine.Sequence(0)
			for i := range calls {
				r, err := calls[i].Wait()
				if note(r, err); i == 0 {
					first = r.Sequence
				} else if r.Sequence != first+engine.Sequence(i) {
					t.Errorf("a neighbour has Sequence %d, the first one %d", r.Sequence, first)
				}
			}
		})
	}
	group.Wait()
	if counts := leader.Counters(); counts.Commands < 32*20 || c.Held() != 0 {
		t.Errorf("%d commands, %d held", counts.Commands, c.Held())
	}
}

// TestShown: an answer waits until this node shows its Sequence.
func TestShown(t *testing.T) {
	var leads atomic.Bool
	leads.Store(true)
	leader, server := newLeader(t, &leads)
	var shown atomic.Uint64
	c := NewClient(Options{Shown: func() engine.Sequence { return engine.Sequence(shown.Load()) }})
	connect(t, c, server, all)
	one := deposit(1)
	call, err := c.Enter(&one)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return leader.Counters().Commands == 1 })
	until(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.arrived) == 1
	})
	if c.Arrive(); call.Answered() {
		t.Fatal("answered before its Sequence is shown")
	}
	shown.Store(1)
	c.Arrive()
	if r, err := call.Wait(); err != nil || r.Sequence != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// TestCut: what a connection has taken with it has an unknown outcome, and happens once at most.
// What was in the queue waits for the next connection, or is given up.
func TestCut(t *testing.T) {
	c := NewClient(Options{Patience: 100 * time.Millisecond,
		Shown: func() engine.Sequence { return 1 << 40 }})
	near, far := net.Pipe()
	carried := make(chan error, 1)
	go func() { carried <- c.Carry(near) }()
	sent := deposit(1)
	gone, err := c.Enter(&sent)
	if err != nil {
		t.Fatal(err)
	}
	r := commandReader{in: bufio.NewReader(far)}
	sizes, commands, err := r.next()
	if err != nil || len(sizes) != 1 || commands[0].Cash != sent.Cash {
		t.Fatalf("%v %+v %v", sizes, commands, err)
	}
	far.Close()
	<-carried
	if _, err := gone.Wait(); !errors.Is(err, sequencer.ErrUnknown) {
		t.Errorf("on its way: %v", err)
	}
	late, err := c.Enter(&sent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Wait(); !errors.Is(err, sequencer.ErrNoLeader) {
		t.Errorf("without a connection: %v", err)
	}
	c.Close()
	if _, err := c.Enter(&sent); !errors.Is(err, sequencer.ErrClosed) || c.Held() != 0 {
		t.Errorf("closed: %v, %d held", err, c.Held())
	}
}

// TestHomeless: a Command that finds nobody who leads did not happen. It waits until somebody does,
// in vain if that takes too long.
func TestHomeless(t *testing.T) {
	var leads atomic.Bool
	leader, server := newLeader(t, &leads)
	c := NewClient(Options{Patience: 300 * time.Millisecond,
		Shown: func() engine.Sequence { return 1 << 40 }})
	connect(t, c, server, all)
	one := deposit(1)
	call, err := c.Enter(&one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Wait(); !errors.Is(err, sequencer.ErrNoLeader) {
		t.Errorf("nobody leads: %v", err)
	}
	patient := NewClient(Options{Patience: soon, Shown: func() engine.Sequence { return 1 << 40 }})
	connect(t, patient, server, all)
	pair := []engine.Command{deposit(2), deposit(3)}
	calls := make([]*sequencer.Call, 2)
	if err := patient.EnterAll(pair, calls); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	leads.Store(true)
	for i := range calls {
		if r, err := calls[i].Wait(); err != nil || r.Sequence != engine.Sequence(i+1) {
			t.Errorf("%+v %v", r, err)
		}
	}
	if n := leader.Counters().Commands; n != 2 {
		t.Errorf("%d commands", n)
	}
}

// TestKinds: the leader refuses Commands of a kind that the sending node may not enter. A note that
// a key was heard is no Command.
func TestKinds(t *testing.T) {
	var leads atomic.Bool
	leads.Store(true)
	leader, server := newLeader(t, &leads)
	notes := make(chan uint32, 1)
	server.Heard = func(_ engine.WalletNo, key uint32) { notes <- key }
	c := NewClient(Options{Shown: func() engine.Sequence { return 1 << 40 }})
	connect(t, c, server, func(c *engine.Command) bool { return c.Kind != engine.Deposit })
	one := deposit(1)
	call, err := c.Enter(&one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Wait(); !errors.Is(err, ErrKind) || !errors.Is(err, sequencer.ErrClosed) {
		t.Errorf("a kind that is not taken: %v", err)
	}
	if !c.Heard(7, 9) || <-notes != 9 || leader.Counters().Commands != 0 {
		t.Errorf("%d commands", leader.Counters().Commands)
	}
}

// TestBusy: a Client has a bound, and cancels find room when orders do not.
func TestBusy(t *testing.T) {
	c := NewClient(Options{Most: 16, Patience: soon, Shown: func() engine.Sequence { return 0 }})
	for range 14 {
		if _, err := c.Enter(&engine.Command{Kind: engine.Place}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Enter(&engine.Command{Kind: engine.Place}); !errors.Is(err, sequencer.ErrBusy) {
		t.Errorf("the 15th order: %v", err)
	}
	if _, err := c.Enter(&engine.Command{Kind: engine.Cancel}); err != nil {
		t.Errorf("a cancel: %v", err)
	}
	calls := make([]*sequencer.Call, 2)
	err := c.EnterAll([]engine.Command{{Kind: engine.Cancel}, {Kind: engine.Cancel}}, calls)
	if !errors.Is(err, sequencer.ErrBusy) || c.Held() != 15 {
		t.Errorf("two cancels where one has room: %v, %d held", err, c.Held())
	}
}

// FuzzAnswer: an answer that can be read is written as it was read; whatever comes, nothing panics.
func FuzzAnswer(f *testing.F) {
	full := answer{receipt: engine.Receipt{Sequence: 1 << 40, Time: 9, Order: engine.OrderID{1},
		Reject: 3, Args: [3]int64{-1, 2, 1 << 60}, First: 7, Status: engine.Live, Reason: 2, Market: 5,
		Wallet: 6, Making: 11, Taking: 12, Remaining: 13, Fee: 14, Trades: 15},
		canceled: []engine.OrderID{{2}, {3}}}
	f.Add(full.append(nil))
	f.Add((&answer{err: sequencer.ErrBusy}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a, again answer
		rest, err := a.take(b)
		if err != nil {
			return
		}
		written := a.append(nil)
		if len(rest) > len(b) {
			t.Fatal("more is left than there was")
		}
		left, err := again.take(written)
		if err != nil || len(left) != 0 || again.receipt != a.receipt || again.err != a.err ||
			!bytes.Equal(again.append(nil), written) {
			t.Fatalf("%+v written and read: %+v %v", a, again, err)
		}
	})
}

// FuzzCommands: whatever comes, a reader of Commands ends with an error and panics never.
func FuzzCommands(f *testing.F) {
	var w commandWriter
	pair := []engine.Command{deposit(1), deposit(2)}
	calls := make([]*sequencer.Call, 2)
	f.Add(bytes.Clone(w.encode([]bundle{{pair, calls}, {pair[:1], calls[:1]}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := commandReader{in: bufio.NewReader(bytes.NewReader(b))}
		for {
			sizes, commands, err := r.next()
			if errors.Is(err, io.EOF) || err != nil {
				return
			}
			total := 0
			for _, n := range sizes {
				total += n
			}
			if total != len(commands) {
				t.Fatalf("bundles of %d, %d commands", total, len(commands))
			}
		}
	})
}

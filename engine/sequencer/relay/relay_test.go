package relay

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
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
	joined.Go(func() { _ = s.Serve(far, Visitor{Allowed: allowed}) })
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

// TestCharge: a bundle whose account has no room enters nothing, all who wait for it are told how
// long to wait, and the next one enters. One that makes no sense is refused. A program that does
// not know that answer is told that the leader is busy.
func TestCharge(t *testing.T) {
	var leads atomic.Bool
	leads.Store(true)
	for _, old := range []bool{false, true} {
		leader, server := newLeader(t, &leads)
		c := NewClient(Options{Shown: func() engine.Sequence { return 1 << 40 }})
		near, far := net.Pipe()
		full := &sequencer.LimitedError{Wait: 1500*time.Millisecond + 1, Window: 3}
		var charged atomic.Int32
		v := Visitor{Old: old, Allowed: func(c *engine.Command) bool { return c.Cash != 77 },
			Charge: func(b []engine.Command) error {
				charged.Add(int32(len(b)))
				switch b[len(b)-1].Cash {
				case 3:
					return full
				case 4:
					return ErrKind
				}
				return nil
			}}
		go func() { _ = server.Serve(far, v) }()
		go func() { _ = c.Carry(near) }()
		enter := func(n ...int) (calls []*sequencer.Call) {
			all := make([]engine.Command, len(n))
			for i := range n {
				all[i] = deposit(n[i])
			}
			calls = make([]*sequencer.Call, len(n))
			if err := c.EnterAll(all, calls); err != nil {
				t.Fatal(err)
			}
			return calls
		}
		refused, malformed, banned, taken := enter(0, 1, 2), enter(3), enter(76), enter(5, 6)
		for _, call := range refused {
			_, err := call.Wait()
			var got *sequencer.LimitedError
			switch {
			case old && (!errors.Is(err, sequencer.ErrBusy) || errors.As(err, &got)):
				t.Errorf("an old program hears %v", err)
			case !old && (!errors.As(err, &got) || got.Window != 3 ||
				got.Wait != 1501*time.Millisecond || !errors.Is(err, sequencer.ErrClosed)):
				t.Errorf("%v", err)
			}
		}
		for _, call := range slices.Concat(malformed, banned) {
			if _, err := call.Wait(); !errors.Is(err, ErrKind) {
				t.Errorf("what makes no sense: %v", err)
			}
		}
		for i, call := range taken {
			if r, err := call.Wait(); err != nil || r.Sequence != engine.Sequence(i+1) {
				t.Errorf("%+v %v", r, err)
			}
		}
		if n := leader.Counters().Commands; n != 2 || charged.Load() != 6 || c.Held() != 0 {
			t.Errorf("%d commands, %d charged, %d held", n, charged.Load(), c.Held())
		}
		near.Close()
	}
}

// TestWaits: a wait that is none, that nobody could keep, or that is cut off is no answer.
func TestWaits(t *testing.T) {
	long := &sequencer.LimitedError{Wait: 1000 * time.Hour, Window: 9}
	b := (&answer{err: long}).append(nil)
	var a answer
	if rest, err := a.take(append(b, 1)); err != nil || len(rest) != 1 {
		t.Errorf("%v %v", rest, err)
	}
	if full := new(sequencer.LimitedError); !errors.As(a.err, &full) || full.Wait != 24*time.Hour ||
		full.Window != 9 {
		t.Error(a.err)
	}
	for _, b := range [][]byte{{limited}, {limited, 0}, {limited, 0, 0}, {limited, 0, 0x80},
		{limited + 1, 0, 1}, binary.AppendUvarint([]byte{limited, 0}, longestWait+1)} {
		if _, err := a.take(b); !errors.Is(err, errMalformed) {
			t.Errorf("%x: %v", b, err)
		}
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
	f.Add((&answer{err: &sequencer.LimitedError{Wait: time.Second, Window: 2}}).append(nil))
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
		if err != nil || len(left) != 0 || again.receipt != a.receipt ||
			!reflect.DeepEqual(again.err, a.err) ||
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
	f.Add(message(engine.Command{Kind: engine.Place, Owner: 1, Wallet: 1, Market: 1, Size: 1,
		Proof: make([]byte, engine.ProofMax+1)}))
	f.Add(message(engine.Command{Kind: engine.Place, Owner: 1, Wallet: 1, Size: -5, Cash: -1,
		Price: 65535, Only: 255, Class: 255, Mode: 255, Prevention: 255, State: 255, Reason: 255}))
	f.Add(message(engine.Command{Kind: heard, Owner: 1, Key: 2}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := commandReader{in: bufio.NewReader(bytes.NewReader(b))}
		x, seq, calls := engine.NewExchange(1), engine.Sequence(0), sequencer.NewCalls(time.Second)
		for {
			sizes, commands, err := r.next()
			if errors.Is(err, io.EOF) || err != nil {
				return
			}
			for i := range commands {
				seq++ // as a Sequencer would
				var c engine.Command
				calls.Prepare(&c, &commands[i])
				x.Apply(&c, seq, engine.Time(seq), nil)
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

// message makes a message of Commands, whatever is in them.
func message(commands ...engine.Command) []byte {
	var w commandWriter
	return bytes.Clone(w.encode([]bundle{{commands, make([]*sequencer.Call, len(commands))}}))
}

// TestMalformed: a message that no door of this program could have caused ends the connection, and
// nothing of it is entered.
func TestMalformed(t *testing.T) {
	place := func(f func(*engine.Command)) engine.Command {
		c := engine.Command{Kind: engine.Place, Owner: 1, Wallet: 1, Market: 1, Size: 1, Cash: 1}
		f(&c)
		return c
	}
	long := make([]byte, engine.ProofMax+1)
	framed := engine.Frame{Commands: []engine.Command{deposit(1)}, Events: make([]engine.Event, 1),
		Ends: []uint32{1}}
	framed.Events[0].Kind = engine.Deposited
	framed.Encode(engine.Hash{})
	le := binary.LittleEndian
	eventful := le.AppendUint32(le.AppendUint32(nil, 1), 1)
	eventful = append(le.AppendUint32(eventful, uint32(len(framed.Bytes))), framed.Bytes...)
	for name, b := range map[string][]byte{
		"a long proof":      message(place(func(c *engine.Command) { c.Proof = long })),
		"an unknown kind":   message(place(func(c *engine.Command) { c.Kind = 200 })),
		"a note in a crowd": message(deposit(1), engine.Command{Kind: heard}),
		"no listing":        message(engine.Command{Kind: engine.List}),
		"a third side":      message(place(func(c *engine.Command) { c.Side = 2 })),
		"a third outcome":   message(place(func(c *engine.Command) { c.Outcome = 2 })),
		"an unknown type":   message(place(func(c *engine.Command) { c.Type = 9 })),
		"events":            append(le.AppendUint32(nil, uint32(len(eventful))), eventful...),
		"too many":          {8, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255},
		"nobody":            {8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
	} {
		near, far := net.Pipe()
		entered := 0
		s := &Server{Enter: func(*engine.Command) (*sequencer.Call, error) {
			entered++
			return nil, sequencer.ErrBusy
		}, EnterAll: func([]engine.Command, []*sequencer.Call) error {
			entered++
			return sequencer.ErrBusy
		}}
		go func() {
			_, _ = near.Write(b)
			_, _ = io.Copy(io.Discard, near)
		}()
		if err := s.Serve(far, Visitor{Allowed: all}); !errors.Is(err, errMalformed) || entered != 0 {
			t.Errorf("%s: %v, %d entered", name, err, entered)
		}
		near.Close()
	}
}

// TestRestOfTheLast: who lets the last connection rest does not touch the one that is used by now.
func TestRestOfTheLast(t *testing.T) {
	var leads atomic.Bool
	leads.Store(true)
	_, server := newLeader(t, &leads)
	c := NewClient(Options{Shown: func() engine.Sequence { return 1 << 40 }})
	old, other := net.Pipe()
	defer other.Close()
	defer old.Close()
	connect(t, c, server, all)
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		carries := c.carrying != nil
		c.mu.Unlock()
		if carries {
			break
		} else if time.Now().After(end) {
			t.Fatal("nothing is carried")
		}
	}
	c.Rest(old, time.Millisecond)
	one := deposit(1)
	call, err := c.Enter(&one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Wait(); err != nil {
		t.Error("it rests:", err)
	}
}

// FuzzSound: whatever is in a Command of another node, the engine takes or refuses it, unless the
// reader does.
func FuzzSound(f *testing.F) {
	f.Add([]byte{byte(engine.Place), 0, 0, 0, 1, 1, 1}, uint16(600))
	f.Add([]byte{byte(engine.SetKey), 9, 9, 9, 9, 9, 9, 9, 9, 9}, uint16(engine.ProofMax+1))
	f.Fuzz(func(t *testing.T, b []byte, proof uint16) {
		in := func() uint8 {
			if len(b) == 0 {
				return 0
			}
			v := b[0]
			b = b[1:]
			return v
		}
		number := func() int64 {
			n := int64(in())
			return n << (in() % 64)
		}
		var all []engine.Command
		for len(b) > 0 && len(all) < 8 {
			c := engine.Command{Kind: engine.Kind(in()), Type: engine.OrderType(in()),
				Side: engine.Side(in()), Outcome: engine.Outcome(in()), Market: engine.MarketNo(in()),
				Wallet: engine.WalletNo(in()), Owner: engine.WalletNo(in()), Key: uint32(in()),
				Size: engine.Size(number()), Cash: engine.Cash(number()), Expiry: engine.Time(number()),
				Seen: engine.Sequence(number()), ID: engine.OrderID{in()}, Address: engine.Address{in()},
				Holder: engine.Address{in()}, PostOnly: in()&1 != 0, Revoke: in()&1 != 0,
				Only: engine.Only(in()), Class: engine.KeyClass(in() % 32), Reason: engine.Reason(in()),
				State: engine.MarketState(in()), Mode: engine.Mode(in()),
				Prevention: engine.Prevention(in()), Price: engine.Price(number()),
				FeeBound: uint16(number()), Deadline: engine.Time(number())}
			if in()&1 != 0 {
				c.Listing = &engine.Listing{Condition: engine.Condition{1}, Group: uint64(number()),
					Tick: engine.Price(number()), MinSize: engine.Size(number()),
					MinBuy: engine.Cash(number()), Open: true}
			}
			if c.Kind == engine.Place {
				c.Proof = make([]byte, proof%2000)
			}
			all = append(all, c)
		}
		if len(all) == 0 {
			return
		}
		r := commandReader{in: bufio.NewReader(bytes.NewReader(message(all...)))}
		_, commands, err := r.next()
		if err != nil {
			if !errors.Is(err, errMalformed) {
				t.Fatal(err)
			}
			return
		}
		x, calls := engine.NewExchange(1), sequencer.NewCalls(time.Second)
		for i := range commands {
			var c engine.Command
			calls.Prepare(&c, &commands[i])
			x.Apply(&c, engine.Sequence(i+1), engine.Time(i+1), nil)
		}
	})
}

// TestWarn: a warning is answered once it is stored, and one that may not be given, or cannot be
// stored, is an error for who gives it.
func TestWarn(t *testing.T) {
	full := errors.New("disk full")
	for _, x := range []struct {
		shun    func([32]byte) error
		allowed bool
		good    bool
	}{{func([32]byte) error { return nil }, true, true}, {func([32]byte) error { return full }, true,
		false}, {func([32]byte) error { return nil }, false, false}, {nil, true, false}} {
		near, far := net.Pipe()
		got := make(chan [32]byte, 1)
		s := &Server{}
		if x.shun != nil {
			s.Shun = func(f [32]byte) error {
				got <- f
				return x.shun(f)
			}
		}
		served := make(chan error, 1)
		v := Visitor{Allowed: func(*engine.Command) bool { return x.allowed }}
		go func() { served <- s.Serve(far, v) }()
		if err := Warn(near, [32]byte{7}); (err == nil) != x.good {
			t.Errorf("%+v: %v", x, err)
		}
		if x.good && <-got != [32]byte{7} {
			t.Error("another fingerprint")
		}
		near.Close()
		<-served
	}
}

package sequencer

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"clobd/engine"
	"clobd/engine/sequencer/memory"
	"clobd/engine/view"
)

// patience is how long a test waits for an expected event: only a failing test waits that long.
const patience = time.Minute

// TestMain fails if goroutines are left. goleak looks for less than a second, so TestMain asks
// again: a goroutine that is ending may need longer.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		err := goleak.Find()
		for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// wallets is how many wallets the test rig has, numbered from 1.
const wallets = 8

// id makes an OrderID of a number.
func id(n uint64) (o engine.OrderID) {
	binary.BigEndian.PutUint64(o[:], n)
	o[31] = 1
	return o
}

// setup is the Commands that every test rig begins with: one market, and wallets with cash.
func setup() []engine.Command {
	listing := &engine.Listing{Condition: engine.Condition{1}, Tick: 100, Open: true,
		Tokens: [2]engine.Token{{1}, {2}}, MinSize: engine.Unit}
	commands := []engine.Command{{Kind: engine.List, Listing: listing}}
	for w := range wallets {
		commands = append(commands, engine.Command{Kind: engine.Deposit, Cash: 1e6 * engine.Unit,
			Address: engine.Address{byte(w + 1)}})
	}
	return commands
}

// trading makes n Commands of one trader: orders that cross others' now and then, and cancels.
func trading(random *rand.Rand, trader, n int) []engine.Command {
	commands := make([]engine.Command, n)
	for i := range commands {
		wallet := engine.WalletNo(1 + trader%wallets)
		shares, cents := 5+random.Int64N(20), 45+random.Int64N(10)
		c := engine.Command{Kind: engine.Place, Type: engine.GTC, Market: 1, Wallet: wallet,
			Owner: wallet, Outcome: engine.Outcome(random.IntN(2)),
			Size: engine.Size(shares * engine.Unit), Cash: engine.Cash(shares * cents * 10_000),
			ID: id(uint64(trader)<<32 | uint64(i))}
		c.Proof = bytes.Repeat([]byte{byte(i)}, random.IntN(400))
		if i > 0 && random.IntN(4) == 0 {
			c = engine.Command{Kind: engine.Cancel, Owner: wallet, Wallet: wallet,
				ID: id(uint64(trader)<<32 | uint64(random.IntN(i)))}
		}
		commands[i] = c
	}
	return commands
}

// rig is a Sequencer with everything around it.
type rig struct {
	*Sequencer
	exchange *engine.Exchange
	board    *view.Board
	journal  *memory.Journal
	ran      chan error
}

// newRig makes one that does not run yet. Callers wait for their answer as long as it takes,
// unless o says how long.
func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	o.Timeout = cmp.Or(o.Timeout, time.Hour)
	w := &rig{exchange: engine.NewExchange(1), board: view.NewBoard(), journal: &memory.Journal{},
		ran: make(chan error, 1)}
	var err error
	if w.Sequencer, err = New(w.exchange, w.board, w.journal, o); err != nil {
		t.Fatal(err)
	}
	return w
}

// run starts it.
func (w *rig) run() *rig {
	go func() { w.ran <- w.Run() }()
	return w
}

// close closes it and checks that Run and Close agree with want.
func (w *rig) close(t testing.TB, want error) {
	t.Helper()
	err := w.Close()
	if !errors.Is(err, want) {
		t.Fatalf("close: %v, want %v", err, want)
	}
	if ran := <-w.ran; ran != err {
		t.Fatalf("run: %v, close: %v", ran, err)
	}
}

// submit submits and expects a Receipt.
func (w *rig) submit(t testing.TB, c *engine.Command) engine.Receipt {
	t.Helper()
	receipt, err := w.Submit(c)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return receipt
}

// cycle drives one Step, Append and Commit, and reports whether there was anything to do.
func (w *rig) cycle(t testing.TB) bool {
	t.Helper()
	b, err := w.Step()
	if err != nil {
		t.Fatal(err)
	}
	if b == nil {
		return false
	}
	if err := errors.Join(w.Append(b), w.Commit(b)); err != nil {
		t.Fatal(err)
	}
	return true
}

// replay decodes the journal, checks the chain from head on, replays it into a fresh Exchange and
// compares the Digests. It returns each Command's Receipt as the journal has it, by Sequence.
func (w *rig) replay(t testing.TB, head engine.Head) map[engine.Sequence]engine.Receipt {
	t.Helper()
	x := engine.NewExchange(2)
	receipts := map[engine.Sequence]engine.Receipt{}
	var f engine.Frame
	for _, encoded := range w.journal.Frames() {
		if err := engine.DecodeFrame(encoded, &f); err != nil {
			t.Fatal(err)
		}
		if f.No != head.Frame+1 || f.Prev != head.Hash || f.First != head.Sequence+1 {
			t.Fatalf("frame %d from %d does not follow %+v", f.No, f.First, head)
		}
		if f.Epoch != 1 || f.Time < head.Time {
			t.Fatalf("frame %d: epoch %d, time %d after %d", f.No, f.Epoch, f.Time, head.Time)
		}
		if err := x.ApplyFrame(&f); err != nil {
			t.Fatal(err)
		}
		for i := range f.Commands {
			seq := f.First + engine.Sequence(i)
			receipts[seq] = engine.ReceiptOf(&f.Commands[i], seq, f.Time, f.EventsOf(i))
		}
		head = f.Head()
	}
	if x.Digest() != w.exchange.Digest() {
		t.Fatalf("digest %x after replay, %x live", x.Digest(), w.exchange.Digest())
	}
	return receipts
}

// TestByHand enters Commands, drives the three stages from one goroutine with batches of random
// sizes, and compares every Receipt with that of the same Command applied directly.
func TestByHand(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now := engine.Time(1000)
	w := newRig(t, Options{Ring: 64, Now: func() engine.Time {
		now += engine.Time(random.IntN(5) - 2) // also backwards
		return now
	}})
	x := engine.NewExchange(3)
	var calls []*Call
	var entered []engine.Command
	seq, last := engine.Sequence(0), engine.Time(0)
	commands := append(setup(), trading(random, 1, 600)...)
	for i := 0; i < len(commands) || len(calls) > 0; {
		if i < len(commands) && len(calls) < 40 && random.IntN(8) > 0 {
			call, err := w.Enter(&commands[i])
			if err != nil {
				t.Fatal(err)
			}
			calls, entered = append(calls, call), append(entered, commands[i])
			i++
			continue
		}
		for w.cycle(t) {
		}
		for j, call := range calls {
			got, err := call.Wait()
			if err != nil || got.Time < last {
				t.Fatalf("%+v, %v", got, err)
			}
			seq++
			last = got.Time
			events := x.Apply(&entered[j], seq, last, nil)
			if isIdle(&entered[j], events) {
				seq--
			}
			if want := engine.ReceiptOf(&entered[j], seq, last, events); got != want {
				t.Fatalf("receipt %+v, want %+v", got, want)
			}
		}
		calls, entered = calls[:0], entered[:0]
	}
	if x.Digest() != w.exchange.Digest() {
		t.Fatal("digests differ")
	}
	w.replay(t, engine.Head{})
}

// TestCallers runs many callers at once, each of which reuses its Command and Proof bytes. Each
// caller's Sequences rise, every Receipt is the journal's, and the journal replays.
func TestCallers(t *testing.T) {
	w := newRig(t, Options{Ring: 16, Batch: 7}).run()
	for _, c := range setup() {
		w.submit(t, &c)
	}
	const callers, each = 12, 150
	var group sync.WaitGroup
	receipts := make([][]engine.Receipt, callers)
	for k := range callers {
		group.Go(func() {
			var c engine.Command
			proof := make([]byte, 0, engine.ProofMax)
			for _, next := range trading(rand.New(rand.NewPCG(uint64(k), 1)), k, each) {
				proof = append(proof[:0], next.Proof...)
				c = next
				c.Proof = proof
				receipt, err := w.Submit(&c)
				for errors.Is(err, ErrBusy) {
					time.Sleep(time.Microsecond)
					receipt, err = w.Submit(&c)
				}
				clear(proof)
				if err != nil {
					t.Error(err)
					return
				}
				receipts[k] = append(receipts[k], receipt)
			}
		})
	}
	group.Wait()
	w.close(t, nil)
	journaled := w.replay(t, engine.Head{})
	c := w.Counters()
	if len(journaled)+int(c.Idle) != 1+wallets+callers*each || c.Idle == 0 {
		t.Fatalf("%d commands journaled, %d idle", len(journaled), c.Idle)
	}
	for k, list := range receipts {
		for i, r := range list {
			if i > 0 && r.Sequence <= list[i-1].Sequence && r.Reject != engine.RejectNotFound ||
				i > 0 && r.Sequence < list[i-1].Sequence {
				t.Fatalf("caller %d: sequence %d after %d", k, r.Sequence, list[i-1].Sequence)
			}
			if r.Reject == engine.RejectNotFound { // idle
				continue
			}
			if r != journaled[r.Sequence] {
				t.Fatalf("receipt %+v, journaled %+v", r, journaled[r.Sequence])
			}
		}
	}
	w.checkProofs(t)
	if c.Commands != uint64(len(journaled)) || c.Frames != uint64(len(w.journal.Frames())) ||
		c.Largest > 7 || c.Depth != 0 || c.Events == 0 || c.Bytes == 0 || c.Apply == 0 {
		t.Fatalf("counters %+v", c)
	}
}

// checkProofs looks for Proofs that were overwritten before they were journaled: trading fills
// them with one byte, callers clear theirs.
func (w *rig) checkProofs(t *testing.T) {
	t.Helper()
	var f engine.Frame
	for _, encoded := range w.journal.Frames() {
		if err := engine.DecodeFrame(encoded, &f); err != nil {
			t.Fatal(err)
		}
		for i := range f.Commands {
			c := &f.Commands[i]
			want := []byte{byte(binary.BigEndian.Uint64(c.ID[:8]))}
			if !bytes.Equal(c.Proof, bytes.Repeat(want, len(c.Proof))) {
				t.Fatalf("frame %d: proof of command %d is torn", f.No, i)
			}
		}
	}
}

// TestBusy fills the ring. Placements are refused at 7/8, everything else when it is full, and
// what was refused is in no frame.
func TestBusy(t *testing.T) {
	w := newRig(t, Options{Ring: 16})
	place := engine.Command{Kind: engine.Place, Wallet: 1, Owner: 1}
	cancel := engine.Command{Kind: engine.Link, Owner: 1}
	enter := func(c *engine.Command, want error) {
		t.Helper()
		c.ID[0]++
		if _, err := w.Enter(c); err != want {
			t.Fatalf("at depth %d: %v, want %v", w.Counters().Depth, err, want)
		}
	}
	for range 14 {
		enter(&place, nil)
	}
	enter(&place, ErrBusy)
	enter(&cancel, nil)
	enter(&cancel, nil)
	enter(&place, ErrBusy)
	enter(&cancel, ErrBusy)
	if c := w.Counters(); c.Busy != 3 || c.Depth != 16 {
		t.Fatalf("counters %+v", c)
	}
	for w.cycle(t) {
	}
	if got := w.replay(t, engine.Head{}); len(got) != 16 {
		t.Fatalf("%d commands journaled, want 16", len(got))
	}
	enter(&place, nil)
}

// TestBackpressure: with all batches in flight Step takes nothing, and goes on when one is free.
func TestBackpressure(t *testing.T) {
	w := newRig(t, Options{Frames: 2, Batch: 1})
	cancel := engine.Command{Kind: engine.Link}
	for range 3 {
		if _, err := w.Enter(&cancel); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := w.Step()
	second, _ := w.Step()
	if third, err := w.Step(); first == nil || second == nil || third != nil || err != nil {
		t.Fatalf("third batch %v, %v", third, err)
	}
	if err := errors.Join(w.Append(first), w.Commit(first)); err != nil {
		t.Fatal(err)
	}
	third, err := w.Step()
	if third == nil || err != nil || third.Frame.No != 3 {
		t.Fatalf("after a commit: %v, %v", third, err)
	}
}

// TestFrameBytes: a frame stays within its bytes, and full-size Proofs make it the limit.
func TestFrameBytes(t *testing.T) {
	w := newRig(t, Options{Ring: 512})
	c := engine.Command{Kind: engine.Place, Proof: make([]byte, engine.ProofMax)}
	for range 300 {
		if _, err := w.Enter(&c); err != nil {
			t.Fatal(err)
		}
	}
	for w.cycle(t) {
	}
	frames := w.journal.Frames()
	if len(frames) < 4 || len(w.replay(t, engine.Head{})) != 300 {
		t.Fatalf("%d frames", len(frames))
	}
	for _, f := range frames {
		if len(f) > engine.FrameBytes {
			t.Fatalf("frame of %d bytes", len(f))
		}
	}
}

// TestHead goes on where a journal ends.
func TestHead(t *testing.T) {
	head := engine.Head{Frame: 9, Sequence: 70, Epoch: 3, Time: 1 << 50, Hash: engine.Hash{5}}
	w := newRig(t, Options{Head: head})
	call, err := w.Enter(&engine.Command{Kind: engine.Started})
	if err != nil {
		t.Fatal(err)
	}
	w.cycle(t)
	r, err := call.Wait()
	if err != nil || r.Sequence != 71 || r.Time < head.Time {
		t.Fatalf("%+v, %v", r, err)
	}
	var f engine.Frame
	if err := engine.DecodeFrame(w.journal.Frames()[0], &f); err != nil {
		t.Fatal(err)
	}
	if f.No != 10 || f.First != 71 || f.Epoch != 4 || f.Prev != head.Hash || f.Time != r.Time {
		t.Fatalf("frame %d from %d, epoch %d", f.No, f.First, f.Epoch)
	}
}

// TestOutputCommit: while a frame is not durable, nobody sees it and nobody is answered.
func TestOutputCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRig(t, Options{})
		durable := make(chan struct{})
		w.journal.OnWait = func(uint64) error { <-durable; return nil }
		w.run()
		answered := make(chan engine.Receipt, 1)
		go func() { answered <- w.submit(t, &engine.Command{Kind: engine.Started}) }()
		synctest.Wait()
		if len(w.journal.Frames()) != 1 {
			t.Fatal("not appended")
		}
		if w.board.Sequence() != 0 || len(answered) != 0 || w.Counters().Commands != 0 {
			t.Fatal("visible before it is durable")
		}
		close(durable)
		if r := <-answered; r.Sequence != 1 || w.board.Sequence() != 1 {
			t.Fatalf("answered %d, published %d", r.Sequence, w.board.Sequence())
		}
		w.close(t, nil)
	})
}

// TestTimeout: a caller gives up after the timeout and its Command completes later; the Calls can
// be reused. It runs in virtual time.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRig(t, Options{Frames: 1, Timeout: 10 * time.Second})
		durable := make(chan struct{})
		w.journal.OnWait = func(uint64) error { <-durable; return nil }
		w.run()
		start := time.Now()
		proof := []byte{1, 2, 3}
		_, err := w.Submit(&engine.Command{Kind: engine.Place, ID: id(1), Proof: proof})
		if !errors.Is(err, ErrTimeout) || time.Since(start) != 10*time.Second {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		// The next one finds all batches in flight, and is in the ring when it gives up.
		if _, err = w.Submit(&engine.Command{Kind: engine.Link, ID: id(2)}); err != ErrTimeout {
			t.Fatal(err)
		}
		close(durable)
		synctest.Wait()
		for i := range uint64(20) {
			if r := w.submit(t, &engine.Command{Kind: engine.Link, ID: id(i)}); r.Order != id(i) {
				t.Fatalf("answer for %x, want %x", r.Order, id(i))
			}
		}
		if c := w.Counters(); c.Timeouts != 2 || c.Commands != 22 {
			t.Fatalf("counters %+v", c)
		}
		w.close(t, nil)
	})
}

// TestTimerIsLate: the timer of a Call still rings for an earlier use; that makes no use shorter or
// longer. It runs in virtual time.
func TestTimerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewCalls(10 * time.Second)
		var to engine.Command
		for _, answered := range []time.Duration{6, 9, 1, 10, 4, 11, 9, 12} {
			begun, call := time.Now(), p.Prepare(&to, &engine.Command{Kind: engine.Link})
			time.AfterFunc(answered*time.Second-1, func() { call.Answer(engine.Receipt{}, nil, nil) })
			_, err := call.Wait()
			want, late := answered*time.Second-1, error(nil)
			if answered > 10 {
				want, late = 10*time.Second, ErrTimeout
			}
			if waited := time.Since(begun); waited != want || err != late {
				t.Errorf("an answer after %d s: %v after %v", answered, err, waited)
			}
		}
		time.Sleep(time.Minute)
	})
}

// TestJournalFailure: frames before the failing one stay acknowledged. Callers of that frame and of
// later ones get ErrUnknown, nothing of these frames is published, and new Commands are refused.
func TestJournalFailure(t *testing.T) {
	for _, stage := range []string{"append frame 3", "wait for frame 3"} {
		synctest.Test(t, func(t *testing.T) {
			w := newRig(t, Options{Batch: 1, Frames: 2})
			broken := errors.New("no space")
			hook := func(frame uint64) error {
				time.Sleep(time.Second)
				if frame == 3 {
					return broken
				}
				return nil
			}
			if strings.HasPrefix(stage, "append") {
				w.journal.OnAppend = hook
			} else {
				w.journal.OnWait = hook
			}
			outcome := make([]error, 6)
			var group sync.WaitGroup
			for i := range outcome {
				call, err := w.Enter(&engine.Command{Kind: engine.Link, ID: id(uint64(i))})
				if err != nil {
					t.Fatal(err)
				}
				group.Go(func() { _, outcome[i] = call.Wait() })
			}
			w.run()
			group.Wait()
			for i, err := range outcome {
				switch {
				case i < 2 && err == nil, i == 2 && err == ErrUnknown:
				case i > 2 && (err == ErrUnknown || err == ErrClosed):
				default:
					t.Errorf("call %d: %v", i, err)
				}
			}
			if _, err := w.Submit(&engine.Command{Kind: engine.Link}); err != ErrClosed {
				t.Errorf("submit after failure: %v", err)
			}
			if w.board.Sequence() != 2 {
				t.Errorf("published %d", w.board.Sequence())
			}
			w.close(t, broken)
			if _, err := w.Step(); !strings.HasPrefix(fmt.Sprint(err), stage) {
				t.Errorf("step after failure: %v", err)
			}
		})
	}
}

// TestPoison: a panic in Apply is reported with its Command, ends the Sequencer, and keeps its
// batch out of the journal. What lay behind it in the ring was never entered.
func TestPoison(t *testing.T) {
	var reported engine.OrderID
	w := newRig(t, Options{Poison: func(c *engine.Command, seq engine.Sequence, cause any,
		stack []byte) {
		if seq != 2 || cause == nil || !bytes.Contains(stack, []byte("Apply")) {
			t.Errorf("poison %d: %v\n%s", seq, cause, stack)
		}
		reported = c.ID
	}})
	enter := func(kind engine.Kind, n uint64) *Call {
		call, err := w.Enter(&engine.Command{Kind: kind, ID: id(n)})
		if err != nil {
			t.Fatal(err)
		}
		return call
	}
	before := enter(engine.Link, 1)
	w.cycle(t)
	poison, after := enter(engine.Cancel, 666), enter(engine.Cancel, 3)
	w.Sequencer.exchange = new(engine.Exchange) // whatever is applied now panics
	w.run()
	for i, call := range []*Call{before, poison, after} {
		if _, err := call.Wait(); err != []error{nil, ErrUnknown, ErrClosed}[i] {
			t.Errorf("call %d: %v", i, err)
		}
	}
	var fatal *PoisonError
	if err := <-w.ran; !errors.As(err, &fatal) || fatal.Sequence != 2 || reported != id(666) {
		t.Fatalf("run: %v, reported %x", err, reported)
	}
	if n := len(w.journal.Frames()); n != 1 {
		t.Fatalf("%d frames journaled", n)
	}
}

// TestFatal: a panic while a frame is encoded or published is reported with its stack and ends the
// Sequencer: the frame before stays acknowledged, this one and all behind it are not.
func TestFatal(t *testing.T) {
	for what, appended := range map[string]int{"encode": 1, "publish": 3} {
		told := ""
		w := newRig(t, Options{Batch: 1, Fatal: func(what string, frame uint64, cause any,
			stack []byte) {
			if frame != 2 || cause == nil || !bytes.Contains(stack, []byte("engine")) {
				t.Errorf("%s frame %d: %v\n%s", what, frame, cause, stack)
			}
			told += what
		}})
		var calls []*Call
		for n := range uint64(4) {
			call, err := w.Enter(&engine.Command{Kind: engine.Link, ID: id(n)})
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, call)
		}
		w.cycle(t)
		second, _ := w.Step()
		third, _ := w.Step()
		if what == "encode" {
			second.Frame.Ends = nil
		} else {
			w.Sequencer.board = nil
		}
		w.Append(second)
		want := w.Commit(second)
		if w.Append(third); want == nil || w.Commit(third) == nil || told != what {
			t.Errorf("%s: %v, told %q", what, want, told)
		}
		if !strings.HasPrefix(fmt.Sprint(want), what+" frame 2: panic: ") {
			t.Errorf("%s: %v", what, want)
		}
		w.run().close(t, want)
		for i, call := range calls {
			if _, err := call.Wait(); err != []error{nil, ErrUnknown, ErrUnknown, ErrClosed}[i] {
				t.Errorf("%s: call %d: %v", what, i, err)
			}
		}
		if n := len(w.journal.Frames()); n != appended || w.board.Sequence() != 1 {
			t.Errorf("%s: %d frames journaled, %d published", what, n, w.board.Sequence())
		}
	}
}

// TestClose closes under load: every call is answered or refused, and what was answered, and only
// that, is in the journal.
func TestClose(t *testing.T) {
	for seed := range uint64(20) {
		w := newRig(t, Options{Ring: 8, Batch: 3}).run()
		var group sync.WaitGroup
		var mutex sync.Mutex
		answered := map[engine.Sequence]bool{}
		for k := range 4 {
			group.Go(func() {
				for _, c := range trading(rand.New(rand.NewPCG(seed, uint64(k))), k, 10_000) {
					r, err := w.Submit(&c)
					if errors.Is(err, ErrBusy) {
						continue
					}
					if err != nil {
						if !errors.Is(err, ErrClosed) {
							t.Error(err)
						}
						return
					}
					mutex.Lock()
					answered[r.Sequence] = true
					mutex.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(seed) * 50 * time.Microsecond)
		w.close(t, nil)
		group.Wait()
		if got := w.replay(t, engine.Head{}); len(got) != len(answered) {
			t.Fatalf("%d journaled, %d answered", len(got), len(answered))
		}
	}
}

// TestCloseFirst: a Run after Close starts nothing and refuses what had been entered.
func TestCloseFirst(t *testing.T) {
	w := newRig(t, Options{})
	call, err := w.Enter(&engine.Command{Kind: engine.Started})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), w.Run(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := call.Wait(); err != ErrClosed || len(w.journal.Frames()) != 0 {
		t.Fatalf("entered before close: %v", err)
	}
}

// TestOptions: all problems are named at once.
func TestOptions(t *testing.T) {
	_, err := New(nil, nil, nil, Options{Ring: 12, Frames: -1, Batch: 257, Timeout: -1,
		Head: engine.Head{Epoch: 4}, Epoch: 3})
	for _, word := range []string{"exchange", "board", "journal", "ring 12", "frames -1",
		"batch 257", "timeout -1ns", "epoch 3: before 4"} {
		if !strings.Contains(fmt.Sprint(err), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
	head := engine.Head{Epoch: 4}
	for given, want := range map[uint64]uint64{0: 5, 4: 4, 9: 9} {
		o := Options{Head: head, Epoch: given}.withDefaults()
		if got := newBatch(o).Frame.Epoch; got != want {
			t.Errorf("epoch %d is given: frames have %d", given, got)
		}
	}
	if got := (Options{}).withDefaults().Timeout; got != 10*time.Second {
		t.Errorf("a caller waits for %v", got)
	}
}

// TestPanicWithSlots: whoever panics with claimed slots of the ring, which the matcher would wait
// for, stops the Sequencer.
func TestPanicWithSlots(t *testing.T) {
	for _, enter := range []func(*Sequencer) error{
		func(s *Sequencer) error { _, err := s.Enter(&engine.Command{Kind: engine.Link}); return err },
		func(s *Sequencer) error {
			return s.EnterAll(make([]engine.Command, 2), make([]*Call, 2))
		},
	} {
		fatal := ""
		s, err := New(engine.NewExchange(1), view.NewBoard(), &memory.Journal{}, Options{
			Fatal: func(what string, _ uint64, cause any, _ []byte) { fatal = what }})
		if err != nil {
			t.Fatal(err)
		}
		s.ring.mask = ^uint64(0) // no slot is found beyond the ring's capacity
		s.ring.tail.Store(1 << 20)
		s.ring.head.Store(1 << 20)
		cause := func() (cause any) {
			defer func() { cause = recover() }()
			_ = enter(s)
			return nil
		}()
		if cause == nil || fatal != "enter" {
			t.Errorf("panic %v, fatal %q", cause, fatal)
		}
		if s.failure() == nil {
			t.Error("the Sequencer has not failed")
		}
		if err := enter(s); err != ErrClosed {
			t.Errorf("enter after that: %v", err)
		}
	}
}

package ingress

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
)

// troubles are what a house may be made to suffer from.
type troubles struct {
	quarantine atomic.Bool // no Command may enter
	index      atomic.Bool // it cannot be read
	leaderless atomic.Bool // no node of the cluster leads
}

// trouble carries out what scripts of a node in trouble are made of:
//
//	hanging COMMAND...  the command, while the disk hangs
//	full COMMAND...     the command, while no place is left between the door and the engine
//	quarantine BOOL | broken BOOL    no Command may enter; the index cannot be read
//	leaderless BOOL     no node of the cluster leads
//	rest TRADER N       N orders of the trader's that rest
//	outdate TRADER      as many judged orders as make the engine forget the first of them
//	close               the engine stops for good
func (h *house) trouble(command string, o *words, lines []string) string {
	h.t.Helper()
	rest := func() []string {
		_, inner, _ := strings.Cut(lines[0], " ")
		return append([]string{inner}, lines[1:]...)
	}
	switch command {
	case "hanging":
		release := h.block()
		got := h.carryOut(rest())
		release()
		h.drain()
		return got
	case "full":
		release := h.block()
		calls := h.clog()
		got := h.carryOut(rest())
		release()
		for _, call := range calls {
			_, _ = call.Wait() // nothing of it matters
		}
		h.drain()
		return got
	case "trade":
		return entrance{h}.trade(o, lines[1:])
	case "replace":
		return entrance{h}.replace(o)
	case "login":
		return entrance{h}.enter(o)
	case "quarantine":
		h.troubles.quarantine.Store(o.list[0] == "true")
	case "broken":
		h.troubles.index.Store(o.list[0] == "true")
	case "leaderless":
		h.troubles.leaderless.Store(o.list[0] == "true")
	case "rest":
		n, _ := strconv.Atoi(o.list[1])
		h.enterMany(o.list[0], n, engine.GTC)
	case "outdate":
		h.enterMany(o.list[0], engine.Window+1, engine.FAK)
	case "close":
		if err := h.sequencer.Close(); err != nil {
			h.t.Error(err)
		}
	default:
		h.t.Fatalf("unknown command %q", command)
	}
	return ""
}

// entered is how many Commands have entered so far, answered or not. What is between the ring and
// the journal right now is left out.
func (h *house) entered() (n int) {
	h.t.Helper()
	var f engine.Frame
	for _, b := range h.journal.Frames() { // first: nothing goes back to the ring
		if err := engine.DecodeFrame(b, &f); err != nil {
			h.t.Fatal(err)
		}
		n += len(f.Commands)
	}
	return n + int(h.sequencer.Counters().Depth)
}

// awaitEntered waits until so many have.
func (h *house) awaitEntered(want int) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); h.entered() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("%d Commands have entered, want %d", h.entered(), want)
		}
	}
}

// drain waits until all that has entered is durable, which may be after its callers have left: a
// Command that enters later is answered later.
func (h *house) drain() {
	h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		_, err := h.sequencer.Submit(&engine.Command{Kind: engine.Link})
		if err == nil {
			return
		}
		late := errors.Is(err, sequencer.ErrBusy) || errors.Is(err, sequencer.ErrTimeout)
		if !late || time.Now().After(deadline) {
			h.t.Fatal(err)
		}
	}
}

// clog fills every place there is with Commands that do nothing, of a house that is blocked: each
// batch is with the journal, which waits, and the ring has no slot.
func (h *house) clog() (calls []*sequencer.Call) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		call, err := h.sequencer.Enter(&engine.Command{Kind: engine.Link})
		if err == nil {
			calls = append(calls, call)
			continue
		}
		waiting := len(h.journal.Frames()) - int(h.sequencer.Counters().Frames)
		if waiting == testFrames && h.sequencer.Counters().Depth == testRing {
			return calls
		}
		time.Sleep(time.Millisecond)
	}
	h.t.Fatal("there is always room")
	return nil
}

// enterMany places orders that nobody meets past the door.
func (h *house) enterMany(name string, n int, kind engine.OrderType) {
	h.t.Helper()
	wallet, _ := h.board.Directory.Wallet(address(name))
	const most = testRing / 2
	commands, calls := make([]engine.Command, 0, most), make([]*sequencer.Call, most)
	receipts, errs := make([]engine.Receipt, most), make([]error, most)
	for i := range n {
		c := engine.Command{Kind: engine.Place, Wallet: wallet, Owner: wallet, Market: 1,
			Side: engine.Buy, Type: kind, Price: 100, Size: 5 * engine.Unit, Cash: 5 * engine.Unit / 100}
		binary.BigEndian.PutUint64(c.ID[:], uint64(i+1))
		if commands = append(commands, c); len(commands) < most && i < n-1 {
			continue
		}
		if err := h.sequencer.EnterAll(commands, calls[:len(commands)]); err != nil {
			h.t.Fatal(err)
		}
		sequencer.WaitAll(calls[:len(commands)], receipts, errs)
		if slices.Contains(errs, sequencer.ErrTimeout) { // they are in, and may fill the ring
			h.drain()
			clear(errs)
		}
		commands = commands[:0]
	}
}

package matching

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"clobd/bench/process"
	"clobd/engine"
	"clobd/engine/pages"
)

// Turn is one replay of a mix: what a matcher prints as one line of JSON.
type Turn struct {
	CPU  int64 `json:"cpu_ns"` // of the thread that replays, for the operations under the clock
	Wall int64 `json:"wall_ns"`
	MixSum
}

// rerun replays one mix against a new matcher. Checking takes time, so only turns that are not
// timed check.
type rerun struct {
	mix   Mix
	ops   []MixOp
	check bool // fold Chain
	turn  Turn
}

// matchers are the ways to replay a mix in this program, by name.
func matchers() map[string]func(*rerun) {
	return map[string]func(*rerun){
		"bare": (*rerun).bare, "apply": (*rerun).apply, "textbook": (*rerun).textbook,
	}
}

// Serve is a matcher as a process of its own: for each line that comes in it replays the
// file's mix from empty books and prints a Turn. The first Turn holds the Chain, the others have
// been timed without it. The goroutine that calls it keeps its thread, on one CPU.
func Serve(name, file string, in io.Reader, out io.Writer) error {
	run, ok := matchers()[name]
	if !ok {
		return fmt.Errorf("no matcher is called %q", name)
	}
	m, ops, _, err := ReadMix(file)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // all turns are of one thread; the collector's workers are others
	process.Pin()
	lines, check := bufio.NewScanner(in), true
	for lines.Scan() {
		r := rerun{mix: m, ops: ops, check: check}
		run(&r)
		check = false
		runtime.GC() // the books of this turn are not the next one's burden
		if err := json.NewEncoder(out).Encode(&r.turn); err != nil {
			return fmt.Errorf("print turn: %w", err)
		}
	}
	return lines.Err()
}

// threadTime is the CPU time that this thread has used.
func threadTime() int64 {
	const clock = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	at := uintptr(unsafe.Pointer(&t))
	if _, _, no := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, at, 0); no != 0 {
		panic(fmt.Sprintf("BUG: no clock of this thread: %v", no))
	}
	return t.Nano()
}

// timed adds what f takes to the turn.
func (r *rerun) timed(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, cpu := time.Now(), threadTime()
	f()
	r.turn.CPU += threadTime() - cpu
	r.turn.Wall += int64(time.Since(start))
}

// gather puts what the orders so far have filled into huge pages, as a node does. Where the kernel
// has none, all matchers do without.
func (r *rerun) gather() { _, _ = pages.Gather(context.Background()) }

// add takes a fill in, with the maker's id if it is known.
func (r *rerun) add(id uint64, qty, price uint32) {
	if r.check {
		r.turn.Add(id, qty, price)
		return
	}
	r.turn.Fills++
	r.turn.Volume += uint64(qty) * uint64(price)
}

// bare replays against the engine's books alone.
func (r *rerun) bare() {
	x := newBare(r.mix.Books, r.mix.Ticks+1)
	b := &bareRun{rerun: r, x: x, handles: make([]uint32, r.ids()+1),
		fills: make([]bareFill, 0, 128)}
	run := b.run
	if r.check {
		b.ids = make([]uint64, r.ids()+1)
		run = b.tell
	}
	ids := make([]uint32, len(r.ops))
	for i := range ids {
		ids[i] = uint32(r.ops[i].ID)
	}
	n := r.mix.Prefill
	run(r.ops[:n], ids[:n])
	r.gather()
	r.timed(func() { run(r.ops[n:], ids[n:]) })
	r.turn.Resting = uint64(x.Resting())
}

// bareRun keeps the handle of each order, as a ring of Commands would carry handles.
type bareRun struct {
	*rerun
	x       *bare
	handles []uint32 // by id
	ids     []uint64 // by handle, to check
	fills   []bareFill
	places  [bareAhead]bareLevel
	cancels [bareAhead]bareCancel
}

// run replays operations, a few at a time. While it replays some, it prefetches the handles of the
// next ones, and then the orders behind those handles. If the books do not fit the caches, it also
// touches the levels that they meet. ids is a separate list, so that this reads nothing else early.
func (r *bareRun) run(ops []MixOp, ids []uint32) {
	const few = bareAhead
	fetchHandles(r.handles, ids[:min(len(ids), few)])
	for len(ops) > 0 {
		n := min(len(ops), few)
		r.x.Fetch(r.handles, ids[:n])
		fetchHandles(r.handles, ids[n:min(len(ids), 2*few)])
		if !r.x.IsNear() {
			r.touch(ops[:n])
		}
		r.step(ops[:n])
		ops, ids = ops[n:], ids[n:]
	}
}

// touch touches the levels and orders that operations will meet, except for cancels of orders that
// are not placed yet. The processor cannot predict whether the next operation is a cancel. So touch
// writes each operation into both lists without a branch, and advances only the right one.
func (r *bareRun) touch(ops []MixOp) {
	var places, cancels uint
	for i := range ops {
		o := &ops[i]
		h := r.handles[o.ID]
		r.places[places%bareAhead] = bareLevel{Book: o.Book, Index: o.Price}
		r.cancels[cancels%bareAhead] = bareCancel{Book: o.Book, Handle: h}
		place := uint(1)
		if o.Cancel {
			place = 0
		}
		places += place
		cancels += 1 - place
		if h == 0 {
			cancels -= 1 - place
		}
	}
	r.x.Touch(r.places[:places], r.cancels[:cancels])
}

// step replays a few operations. It shortens the slice instead of counting: the processor cannot
// predict whether the next operation is a cancel, and so learns it earlier. The slice's capacity is
// its length, so that the compiler keeps one number less.
func (r *bareRun) step(ops []MixOp) {
	x, handles, fills := r.x, r.handles, r.fills
	for len(ops) > 0 {
		o := &ops[0]
		ops = ops[1:len(ops):len(ops)]
		if o.Cancel {
			x.Cancel(o.Book, handles[o.ID])
			continue
		}
		handles[o.ID] = x.Place(o.Book, arrival{Index: o.Price, IOC: o.IOC,
			Side: engine.Side(o.Side), Size: engine.Size(o.Qty)}, &fills)
		if len(fills) > 0 {
			r.read(fills)
			fills = fills[:0]
		}
	}
	r.fills = fills
}

// tell replays one operation at a time and notes whose handle is whose.
func (r *bareRun) tell(ops []MixOp, ids []uint32) {
	for i := range ops {
		r.run(ops[i:i+1], ids[i:i+1])
		id := ops[i].ID
		r.ids[r.handles[id]] = id
	}
}

// read takes the fills of one order in.
func (r *bareRun) read(fills []bareFill) {
	volume := uint64(0)
	for i := range fills {
		f := &fills[i]
		if r.check {
			r.turn.fold(r.ids[f.Handle], uint32(f.Size))
		}
		volume += uint64(f.Size) * uint64(f.Index)
	}
	r.turn.Fills += uint64(len(fills))
	r.turn.Volume += volume
}

// ids is the highest id.
func (r *rerun) ids() (most uint64) {
	for i := range r.ops {
		most = max(most, r.ops[i].ID)
	}
	return most
}

// textbook replays against the textbook's books.
func (r *rerun) textbook() {
	books := make([]textbook, r.mix.Books)
	for i := range books {
		books[i].byID = map[uint64]*textOrder{}
	}
	filled := r.add
	run := func(ops []MixOp) {
		for i := range ops {
			o := &ops[i]
			if o.Cancel {
				books[o.Book].cancel(o.ID)
			} else {
				books[o.Book].place(o, filled)
			}
		}
	}
	run(r.ops[:r.mix.Prefill])
	r.gather()
	r.timed(func() { run(r.ops[r.mix.Prefill:]) })
	for i := range books {
		r.turn.Resting += uint64(len(books[i].byID))
	}
}

// Wallets that replay a mix: a taker never meets an order of its own.
const (
	mixMakers = 60
	mixTakers = 4
	mixBatch  = 256 // Commands that are made ahead of the clock, as a ring holds them
)

// apply replays against a whole Exchange: ids, ledger, fees, Events, digest.
func (r *rerun) apply() {
	a := &applyRun{rerun: r, x: engine.NewExchange(1), events: make([]engine.Event, 0, 1024)}
	for i := range a.next {
		a.next[i] = &a.commands[i]
	}
	fundMix(r.mix, func(c *engine.Command) { a.step(c) })
	a.run(r.ops[:r.mix.Prefill], func(f func()) { f() })
	r.gather()
	a.run(r.ops[r.mix.Prefill:], r.timed)
	r.turn.Volume /= uint64(engine.PriceOne) / uint64(r.mix.Ticks+1)
}

// applyRun has Commands at hand as the Sequencer has those of its ring.
type applyRun struct {
	*rerun
	x        *engine.Exchange
	seq      engine.Sequence
	events   []engine.Event
	commands [mixBatch]engine.Command
	next     [mixBatch]*engine.Command
}

// run replays operations.
func (r *applyRun) run(ops []MixOp, clock func(func())) {
	for len(ops) > 0 {
		n := min(len(ops), mixBatch)
		for i := range n {
			r.commands[i] = r.mix.command(&ops[i])
		}
		ops = ops[n:]
		clock(func() { r.batch(r.next[:n]) })
	}
}

// batch applies Commands, touched as the Sequencer does it.
func (r *applyRun) batch(commands []*engine.Command) {
	for i, c := range commands {
		if i%engine.TouchAhead == 0 {
			r.x.Touch(commands[i:])
		}
		r.read(r.step(c))
	}
}

func (r *applyRun) step(c *engine.Command) []engine.Event {
	r.seq++
	r.events = r.x.Apply(c, r.seq, 1, r.events[:0])
	return r.events
}

// fundMix lists the books and pays in what the wallets trade with.
func fundMix(m Mix, step func(*engine.Command)) {
	for i := range m.Books {
		l := &engine.Listing{Tick: engine.PriceOne / engine.Price(m.Ticks+1), Open: true,
			Fee: engine.Fee{Rate: 441, Exponent: 1}} // takers pay, as most public markets let them
		binary.BigEndian.PutUint64(l.Condition[:], uint64(i+1))
		binary.BigEndian.PutUint64(l.Tokens[0][:], uint64(2*i+1))
		binary.BigEndian.PutUint64(l.Tokens[1][:], uint64(2*i+2))
		step(&engine.Command{Kind: engine.List, Listing: l})
	}
	wallets := mixMakers + mixTakers
	size := min(engine.MaxAmount, engine.MaxSupply/(4*wallets*m.Books))
	for w := range wallets {
		a := engine.Address{byte(w + 1)}
		step(&engine.Command{Kind: engine.Deposit, Address: a, Cash: engine.MaxAmount})
		for i := range m.Books {
			for o := range engine.Outcome(2) {
				step(&engine.Command{Kind: engine.Deposit, Address: a, Outcome: o,
					Market: engine.MarketNo(i + 1), Size: engine.Size(size)})
			}
		}
	}
}

// command is an operation in the engine's words. A bid is a BUY of outcome 0 or a SELL of outcome 1
// at the complement, so that all settlements occur; a taker always sells, because a BUY that never
// rests is bounded by its budget and not by its size.
func (m Mix) command(o *MixOp) engine.Command {
	wallet := engine.WalletNo(1 + o.ID%mixMakers)
	c := engine.Command{Kind: engine.Cancel, Owner: wallet, ID: mixID(o.ID)}
	if o.Cancel {
		return c
	}
	c.Kind, c.Market, c.Seen = engine.Place, engine.MarketNo(o.Book+1), 1<<60
	price := engine.Price(o.Price) * (engine.PriceOne / engine.Price(m.Ticks+1))
	mirrored := o.ID>>8&1 == 1
	if o.IOC {
		wallet = engine.WalletNo(1 + mixMakers + o.ID%mixTakers)
		c.Type, mirrored = engine.FAK, o.Side == 0
	}
	c.Wallet, c.Owner, c.Side = wallet, wallet, engine.Side(o.Side)
	if mirrored {
		c.Side, c.Outcome, price = c.Side.Other(), 1, engine.PriceOne-price
	}
	c.Size = engine.Size(o.Qty) * engine.Unit
	c.Cash = engine.Cost(c.Size, price)
	return c
}

// mixID makes 32 bytes of an id, as scattered as a hash. The first eight are the id.
func mixID(id uint64) (h engine.OrderID) {
	binary.LittleEndian.PutUint64(h[:], id)
	for i := 1; i < 4; i++ {
		z := (id + uint64(i)) * 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		binary.LittleEndian.PutUint64(h[8*i:], z^z>>31)
	}
	return h
}

// read counts the Events of one Command. It uses a table instead of a branch for placed and
// cancelled orders, because the processor cannot predict which of the two comes. Volume is in units
// of price, to be divided once.
func (r *applyRun) read(events []engine.Event) {
	for i := range events {
		e := &events[i]
		r.turn.Resting += resting[e.Kind]
		if e.Kind == engine.Filled {
			r.filled(e)
		}
		if e.Kind == engine.Rejected {
			panic(fmt.Sprintf("BUG: rejected: %s", fmt.Sprint(e.Reject)))
		}
	}
}

// resting is by how much an Event changes the number of resting orders.
var resting = [256]uint64{engine.Placed: 1, engine.Cancelled: ^uint64(0)}

func (r *applyRun) filled(e *engine.Event) {
	price, mirrored := uint32(e.Price), uint32(engine.PriceOne-e.Price)
	if e.Outcome == 1 {
		price = mirrored
	}
	r.add(binary.LittleEndian.Uint64(e.Order[:]), uint32(e.Size/engine.Unit), price)
	if e.Remaining == 0 {
		r.turn.Resting--
	}
}

package cases

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"clobd/engine"
)

// Replay is the outcome of a flow, counted by operation.
type Replay struct {
	Tally
	Placed, Cancelled, Taken int
	Fills                    int // that the file states, of all takers
	Checks                   int // of the top levels
	Commands                 int
	// PerCommand is the time of one Apply, on average, when the same Commands are carried out once
	// more without looking at anything.
	PerCommand time.Duration
}

// Text says what was replayed, and how fast.
func (r *Replay) Text() string {
	return fmt.Sprintf("%d placed, %d cancelled, %d takers with %d fills, %d book checks; "+
		"Apply alone: %d ns for each of %d commands",
		r.Placed, r.Cancelled, r.Taken, r.Fills, r.Checks, r.PerCommand.Nanoseconds(), r.Commands)
}

// operation is one line of a flow: a header H, then P places a resting order, C cancels it, T takes
// from the other side at most at a limit, K states the top levels of both sides.
type operation struct {
	Op   string     `json:"op"`
	ID   string     `json:"id"`
	Side string     `json:"s"`
	P    int64      `json:"p"`
	Q    int64      `json:"q"`
	X    []exchange `json:"x"` // makers
	Row  int64      `json:"row"`
	B    [][2]int64 `json:"b"`
	A    [][2]int64 `json:"a"`

	Source   string `json:"source"`
	Tick     string `json:"tick"`
	Decimal  string `json:"decimal_price"`
	MaxPrice int64  `json:"max_p"`
	Price    string `json:"price_is"`
	Ops      int    `json:"ops"`
	SizeMul  int64  `json:"size_mul_hint"`
}

// exchange is one fill of a taker: [maker, size, price].
type exchange struct {
	maker       string
	size, price int64
}

// UnmarshalJSON reads the three.
func (x *exchange) UnmarshalJSON(b []byte) error {
	to := []any{&x.maker, &x.size, &x.price}
	n := len(to)
	if err := json.Unmarshal(b, &to); err != nil {
		return err
	}
	if len(to) != n {
		return fmt.Errorf("a fill of %d values, want [maker, size, price]", len(to))
	}
	return nil
}

// String is a fill in a report.
func (x exchange) String() string { return fmt.Sprintf("%s %d@%d", x.maker, x.size, x.price) }

// makers is the number of wallets that share the resting orders of a flow: each wallet may have
// only a limited number open.
const makers = 64

// flowTaker is the wallet of all takers: one that owns no resting order.
const flowTaker = "taker"

// flowRun is one run of a flow.
type flowRun struct {
	Replay
	venue  *venue
	scale  *scale
	ids    map[string]engine.OrderID // of the last order placed under a name
	names  map[engine.OrderID]string
	owners map[engine.OrderID]string // accounts
	levels [][2]int64                // scratch
}

// Flow replays an order flow, gzipped or not: JSON values, the first a header. It calls report with
// one line, after name, for each operation that disagrees. An error means that the file is
// malformed, or does not end where its header says: what was counted before it is returned with it.
func Flow(name string, r io.Reader, report func(line string)) (Replay, error) {
	run := &flowRun{ids: map[string]engine.OrderID{}, names: map[engine.OrderID]string{},
		owners: map[engine.OrderID]string{}}
	plain, err := inflate(r)
	if err != nil {
		return run.Replay, fmt.Errorf("%s: %w", name, err)
	}
	d := json.NewDecoder(plain)
	d.DisallowUnknownFields()
	var head operation
	if err := d.Decode(&head); err != nil {
		return run.Replay, fmt.Errorf("%s: header: %w", name, err)
	}
	if err := run.open(&head); err != nil {
		return run.Replay, fmt.Errorf("%s: header: %w", name, err)
	}
	n := 0
	for {
		var op operation
		if err := d.Decode(&op); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return run.Replay, fmt.Errorf("%s: operation %d: %w", name, n+1, err)
		}
		n++
		at := fmt.Sprintf("%s: operation %d (%s)", name, n, op.name())
		if err := run.count(at, run.step(&op), report); err != nil {
			return run.Replay, err
		}
		if run.venue.broken != nil {
			return run.Replay, fmt.Errorf("%s: nothing can follow operation %d", name, n)
		}
	}
	if head.Ops != 0 && head.Ops != n {
		return run.Replay, fmt.Errorf("%s: ends after %d operations, its header says %d",
			name, n, head.Ops)
	}
	if err := run.again(); err != nil {
		return run.Replay, fmt.Errorf("%s: %w", name, err)
	}
	return run.Replay, nil
}

// name is an operation in a report.
func (op *operation) name() string {
	switch op.Op {
	case "P":
		return fmt.Sprintf("place %s %s %d@%d", op.ID, op.Side, op.Q, op.P)
	case "C":
		return "cancel " + op.ID
	case "T":
		return fmt.Sprintf("take %s %d@%d", op.Side, op.Q, op.P)
	case "K":
		return fmt.Sprintf("book at row %d", op.Row)
	}
	return op.Op
}

// open reads the header, opens the market and fills the wallets.
func (r *flowRun) open(h *operation) (err error) {
	if h.Op != "H" {
		return fmt.Errorf("a flow begins with op H, this one with %q", h.Op)
	}
	if r.scale, err = newScale(&priceMap{Kind: "linear", Decimal: h.Decimal}, h.SizeMul); err != nil {
		return err
	}
	if r.venue, err = newVenue(engine.Fee{}); err != nil {
		return err
	}
	for i := range makers + 1 {
		account := flowTaker
		if i > 0 {
			account = maker(i - 1)
		}
		for a := range collateral + 1 {
			if err := r.venue.deposit(account, a, engine.MaxAmount); err != nil {
				return err
			}
		}
	}
	return nil
}

// maker is the account of the n-th resting order.
func maker(n int) string { return "maker " + strconv.Itoa(n%makers) }

// step carries out one operation and compares its outcome.
func (r *flowRun) step(op *operation) error {
	switch op.Op {
	case "P":
		return r.place(op)
	case "C":
		return r.cancel(op)
	case "T":
		return r.take(op)
	case "K":
		r.Checks++
		return cmp.Or(r.top(engine.Buy, op.B), r.top(engine.Sell, op.A))
	}
	return fmt.Errorf("unknown op %q", op.Op)
}

// limit reads side, price and size of an operation.
func (r *flowRun) limit(op *operation, account string) (offer, error) {
	side := engine.Buy
	switch op.Side {
	case "B":
	case "S":
		side = engine.Sell
	default:
		return offer{}, fmt.Errorf("unknown side %q", op.Side)
	}
	price, err := r.scale.price(op.P)
	if err != nil {
		// A plain error ends the replay: if this operation were left out, the later ones would meet
		// another book than the file's.
		return offer{}, errors.New(err.Error())
	}
	if op.Q < 1 {
		return offer{}, fmt.Errorf("size %d lies below 1", op.Q)
	}
	size, err := r.scale.size(op.Q)
	return limit(account, side, price, size), err
}

// place rests an order. It must meet nobody.
func (r *flowRun) place(op *operation) error {
	of, err := r.limit(op, maker(r.Placed))
	if err != nil {
		return err
	}
	r.Placed++
	id, last, err := r.venue.place(&of)
	if err != nil {
		return err
	}
	r.ids[op.ID], r.names[id], r.owners[id] = id, op.ID, of.account
	if last.Kind != engine.Placed || last.Remaining != of.size {
		return differ("order", "placed whole", text(last))
	}
	return nil
}

// cancel takes an order out in the name of its wallet.
func (r *flowRun) cancel(op *operation) error {
	r.Cancelled++
	id, ok := r.ids[op.ID]
	if !ok {
		return fmt.Errorf("order %q was never placed", op.ID)
	}
	last, err := r.venue.cancel(r.owners[id], id)
	if err == nil && last.Kind != engine.Cancelled {
		err = differ("order", "cancelled", refusal(last))
	}
	return err
}

// take sends a taker: a FAK, in the form that is bounded by shares.
func (r *flowRun) take(op *operation) error {
	of, err := r.limit(op, flowTaker)
	if err != nil {
		return err
	}
	if of.side == engine.Buy {
		of = of.complement()
	}
	of.kind = engine.FAK
	r.Taken++
	r.Fills += len(op.X)
	_, last, err := r.venue.place(&of)
	if err != nil {
		return err
	}
	got := []exchange{}
	left := op.Q
	for i := range r.venue.events {
		e := &r.venue.events[i]
		if e.Kind != engine.Filled {
			continue
		}
		_, at := inLadder(e.Side, e.Outcome, e.Price)
		price, _ := r.scale.source(at)
		size, _ := r.scale.units(e.Size)
		got = append(got, exchange{r.names[e.Order], size, price})
		left -= size
	}
	if !slices.Equal(op.X, got) {
		return differ("makers", op.X, got)
	}
	want := engine.Size(left) * r.scale.unit
	if len(got) > 0 && (last.Kind != engine.Completed || last.Remaining != want) {
		return differ("taker", fmt.Sprintf("completed with %v left", want), text(last))
	}
	if len(got) == 0 && last.Reject != engine.RejectFAK {
		return differ("taker", "rejected (fak_unfilled)", text(last))
	}
	return nil
}

// top compares the best levels of a side: as many as are stated.
func (r *flowRun) top(side engine.Side, want [][2]int64) error {
	levels := r.venue.ladder.sides[side]
	got := r.levels[:0]
	for i := range levels[:min(len(levels), len(want))] {
		price, _ := r.scale.source(levels[i].price)
		size, _ := r.scale.units(levels[i].size())
		got = append(got, [2]int64{price, size})
	}
	r.levels = got
	if !slices.Equal(want, got) {
		return differ([...]string{"bids", "asks"}[side], want, got)
	}
	return nil
}

// again carries out all Commands once more in a new Exchange, for the time of Apply alone, and
// compares the digests.
func (r *flowRun) again() error {
	x := engine.NewExchange(2)
	var events []engine.Event
	start := time.Now()
	for i := range r.venue.commands {
		events = x.Apply(&r.venue.commands[i], engine.Sequence(i+1), now, events[:0])
	}
	took := time.Since(start)
	r.Commands = len(r.venue.commands)
	r.PerCommand = took / time.Duration(r.Commands)
	if x.Digest() != r.venue.x.Digest() {
		return fmt.Errorf("the same %d commands end in Digest %016x, then in %016x",
			r.Commands, r.venue.x.Digest(), x.Digest())
	}
	return nil
}

package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"clobd/engine"
)

// digestOf is the hash of operations, field by field.
func digestOf(ops []Op) string {
	h := sha256.New()
	for i := range ops {
		op := &ops[i]
		b := [32]byte{2: byte(op.Side), 3: byte(op.Outcome), 1: byte(op.Read), 14: byte(op.All)}
		if op.Cancel {
			b[0] |= 1
		}
		if op.FAK {
			b[0] |= 2
		}
		binary.LittleEndian.PutUint32(b[4:], op.List)
		binary.LittleEndian.PutUint16(b[8:], uint16(op.Price))
		binary.LittleEndian.PutUint16(b[10:], op.Trader)
		binary.LittleEndian.PutUint16(b[12:], op.Book)
		binary.LittleEndian.PutUint32(b[16:], op.Target)
		binary.LittleEndian.PutUint64(b[24:], uint64(op.Size))
		h.Write(b[:])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// goldenOps are the digests of 2,000 and 20,000 operations of each workload from the seeds 1, 2 and
// 3. Those of canonical, canonical-fine and place are as old as these workloads: figures in the
// ledger were taken with them, so they must stay.
var goldenOps = map[string][3]string{
	"canonical":      {"4ea53ee56b8cd49d", "0f4bd22eb6cd5fc6", "36bc167fd1c0e007"},
	"canonical-fine": {"aa456a44ff35c600", "57f204f26591fe39", "3e5700c32a021377"},
	"place":          {"2fa738cbcd8e105a", "fcf28fcbbfd5047e", "6d52b5b1e63045c1"},
	"quiet":          {"30a80c087cba810c", "5414dffa60d2934e", "fefd1c341fae66f0"},
	"cancel-heavy":   {"3ce9e0627f251eb3", "af4b8fe7d452abb0", "40e2a1b2c0e2a485"},
	"sweep":          {"4d15df1fcc8fbece", "a4ca6ccdeae0ac72", "dff63bb07c607385"},
	"hot-market":     {"9f810d0ab3ba67a0", "d61bfb7caa98391c", "8b52b00edaa8dcf4"},
	"mint-merge":     {"7f6caa5f32f73f8c", "6327bd9eedb87770", "647966d5dfc5fcaa"},
	"read-mostly":    {"caf5d6b1b9e74e5a", "d1cff55a8121e37e", "605904f033d1ceb7"},
	"market-maker":   {"1001cb5aa36caf48", "163435b38363c974", "d9d54da2f87d5ea7"},
	"market-makers":  {"a3234b5bdb0a46c5", "f595ab3d89c0dfe0", "4a2083bae1d8a4e5"},
	"streams":        {"4ea53ee56b8cd49d", "0f4bd22eb6cd5fc6", "36bc167fd1c0e007"},
}

// TestOperationsAreTheSameEverywhere also passes when it is built for another processor, such as
// one that fuses multiplication and addition: GOARCH=arm64 CGO_ENABLED=0 go test -c, run by qemu.
func TestOperationsAreTheSameEverywhere(t *testing.T) {
	for _, w := range Known() {
		var got [3]string
		for seed := range got {
			ops, _ := draw(t, w, uint64(seed+1), 2000, 20_000)
			if len(ops) != 22_000 {
				t.Errorf("%s: %d operations", w.Name, len(ops))
			}
			got[seed] = digestOf(ops)
		}
		if want := goldenOps[w.Name]; got != want {
			t.Errorf("%q: {%q, %q, %q}, want %q", w.Name, got[0], got[1], got[2], want)
		}
	}
	// Long enough for the rare draws from the tails.
	w, err := Named("canonical")
	if err != nil {
		t.Fatal(err)
	}
	if ops, _ := draw(t, w, 42, 2000, 400_000); digestOf(ops) != "85dd67a0a1f187c9" {
		t.Errorf("400,000 operations from seed 42: %s", digestOf(ops))
	}
}

// workloadNamed is a mix of Known.
func workloadNamed(t *testing.T, name string) Workload {
	t.Helper()
	w, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// draw draws operations; sizes are how many come before the others, and how many these are.
func draw(t *testing.T, w Workload, seed uint64, sizes ...int) ([]Op, Expected) {
	t.Helper()
	ops, exp, err := w.Draw(t.Context(), seed, sizes[0], sizes[1])
	if err != nil {
		t.Fatal(err)
	}
	return ops, exp
}

// drawn applies what a workload draws to an Exchange, calls each with every operation and its
// Events, and checks the model at the end.
func drawn(t *testing.T, w Workload, n int, each func(op *Op, events []engine.Event)) Expected {
	t.Helper()
	ops, exp := draw(t, w, 5, w.Warmup(2000), n)
	x := engine.NewExchange(3)
	var tally Tally
	var events []engine.Event
	seq := engine.Sequence(0)
	apply := func(c engine.Command) []engine.Event {
		c.Seen = seq
		seq++
		events = x.Apply(&c, seq, 1, events[:0])
		tally.Add(events)
		return events
	}
	for _, c := range w.Setup() {
		apply(c)
	}
	tally = Tally{}
	for i := range ops {
		for _, c := range Commands(ops, i, i+1) {
			each(&ops[i], apply(c))
		}
		if ops[i].Read != 0 {
			each(&ops[i], nil)
		}
	}
	if err := tally.Check(exp); err != nil {
		t.Fatalf("%s: %v", w.Name, err)
	}
	return exp
}

// shares counts kinds of operations.
type shares struct{ places, cancels, reads, takers, fills int }

func (s *shares) add(op *Op, events []engine.Event) {
	switch {
	case op.Read != 0:
		s.reads++
	case op.Cancel:
		s.cancels++
	default:
		s.places++
		fills := 0
		for _, e := range events {
			if e.Kind == engine.Filled {
				fills++
			}
		}
		if s.fills += fills; fills > 0 {
			s.takers++
		}
	}
}

func TestQuietIsQuiet(t *testing.T) {
	var s shares
	exp := drawn(t, workloadNamed(t, "quiet"), 20_000, s.add)
	if exp.Live < 50 || exp.Live > 400 || exp.Missed > 0 || s.cancels < s.places*9/10 ||
		s.takers*20 > s.places {
		t.Errorf("%+v, %v", s, exp)
	}
}

// TestSweepEatsLevels looks at prices, too: several fills at one price would be one level.
func TestSweepEatsLevels(t *testing.T) {
	w := workloadNamed(t, "sweep")
	big, levels := [2]int{}, [2]int{}
	drawn(t, w, 20_000, func(op *Op, events []engine.Event) {
		if op.Cancel || op.Size <= engine.Size(w.Size[1])*engine.Unit {
			return
		}
		prices, kind := map[engine.Price]bool{}, 0
		if op.FAK {
			kind = 1
		}
		for _, e := range events {
			if e.Kind == engine.Filled {
				price := e.Price
				if e.Outcome == 1 {
					price = engine.PriceOne - price
				}
				prices[price] = true
			}
		}
		big[kind]++
		levels[kind] += len(prices)
	})
	for kind, name := range []string{"GTC", "FAK"} {
		if big[kind] < 500 || levels[kind] < 5*big[kind] {
			t.Errorf("%d %s ate %d levels", big[kind], name, levels[kind])
		}
	}
}

func TestMintMergeNeverTransfers(t *testing.T) {
	exp := drawn(t, workloadNamed(t, "mint-merge"), 20_000, func(op *Op, events []engine.Event) {
		for _, e := range events {
			if e.Kind == engine.Filled && (e.Settlement == engine.Transfer ||
				(e.Settlement == engine.Mint) != (op.Book == 0)) {
				t.Fatalf("settled as %d in book %d", e.Settlement, op.Book)
			}
		}
	})
	if exp.Mints < 1000 || exp.Merges < 1000 || exp.Mints+exp.Merges != exp.Fills {
		t.Error(exp)
	}
}

func TestReadMostlyReads(t *testing.T) {
	var s shares
	kinds := map[Read]int{}
	drawn(t, workloadNamed(t, "read-mostly"), 40_000, func(op *Op, events []engine.Event) {
		s.add(op, events)
		kinds[op.Read]++
	})
	if s.reads < 37_700 || s.reads > 38_300 || kinds[ReadBook] < 18_000 || kinds[ReadPrice] < 7000 ||
		kinds[ReadMidpoint] < 5000 || kinds[ReadOrders] < 5000 || s.fills == 0 {
		t.Errorf("%+v, by kind %v", s, kinds)
	}
}

// TestQuotesAreLists looks at what travels together: the quote of one maker in one book, which
// crosses nothing, or the cancels of one.
func TestQuotesAreLists(t *testing.T) {
	for _, name := range []string{"market-maker", "market-makers"} {
		w := workloadNamed(t, name)
		w.Books = min(w.Books, 40)
		var first Op
		long, list, lists, takers := 0, uint32(0), [2]int{}, map[uint16]bool{}
		exp := drawn(t, w, 40_000, func(op *Op, events []engine.Event) {
			switch {
			case op.List == 0:
				takers[op.Trader] = true
				if int(op.Trader) < w.Makers || !op.FAK {
					t.Fatalf("%s: alone: %+v", name, op)
				}
			case op.List != list:
				if list, long, first = op.List, 1, *op; op.Cancel {
					lists[1]++
				} else {
					lists[0]++
				}
			default:
				if long++; long > 15 || op.Trader != first.Trader || op.Cancel != first.Cancel ||
					op.Book != first.Book {
					t.Fatalf("%s: %d orders in one list: %+v and %+v", name, long, first, op)
				}
			}
			if op.List != 0 && (int(op.Trader) >= w.Makers || events[0].Kind == engine.Filled) {
				t.Fatalf("%s: a quote: %+v", name, op)
			}
		})
		if lists[0] < 1000 || lists[1] < 700 || len(takers) != Traders-w.Makers ||
			exp.Fills < 1000 || exp.Live > int64(w.Books*w.makersOf()*2*w.Rungs) {
			t.Errorf("%s: lists %v, %d takers, %v", name, lists, len(takers), exp)
		}
	}
}

// TestCrews shows that whoever trades in a book is funded there, and few others are.
func TestCrews(t *testing.T) {
	for _, w := range Known() {
		pairs := map[[2]uint16]bool{}
		ops, _ := draw(t, w, 3, 2000, 20_000)
		for i := range ops {
			pairs[[2]uint16{ops[i].Trader, ops[i].Book}] = true
			if !w.Trades(int(ops[i].Trader), int(ops[i].Book)) {
				t.Fatalf("%s: wallet %d has no money in book %d", w.Name, ops[i].Trader, ops[i].Book)
			}
		}
		funded := 0
		for wallet := range Traders {
			for book := range w.Books {
				if w.Trades(wallet, book) {
					funded++
				}
			}
		}
		if funded > max(w.Books*(crewSize+crewMakers), Traders*fewBooks) || funded < len(pairs) {
			t.Errorf("%s: %d pairs are funded, %d trade", w.Name, funded, len(pairs))
		}
	}
}

// TestFullBooksStayOpen draws far more new orders than a book or a wallet may have.
func TestFullBooksStayOpen(t *testing.T) {
	w := workloadNamed(t, "canonical")
	w.New, w.Cancel, w.Cross, w.Latest = 98, 1, 1, 0
	exp := drawn(t, w, 90_000, func(*Op, []engine.Event) {})
	if exp.Live < 60_000 || exp.Missed > 0 {
		t.Error(exp)
	}
}

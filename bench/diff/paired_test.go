package diff

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"clobd/bench"
)

// flipped is p by its definition: the share of all assignments of signs whose sum is at least as
// far from 0 as the sum of the values.
func flipped(values []float64) float64 {
	total := 0.
	for _, v := range values {
		total += v
	}
	far := 0
	for signs := range 1 << len(values) {
		sum := 0.
		for k, v := range values {
			if signs>>k&1 == 1 {
				v = -v
			}
			sum += v
		}
		if math.Abs(sum) >= math.Abs(total)-1e-9 {
			far++
		}
	}
	return float64(far) / float64(int(1)<<len(values))
}

// TestSignFlips holds p against a table that is counted by hand, and against its definition.
func TestSignFlips(t *testing.T) {
	for _, c := range []struct {
		logs []float64
		p    float64
	}{
		{[]float64{1}, 1},
		{[]float64{0, 0, 0}, 1},
		{[]float64{1, 2, 3}, 2. / 8},
		{[]float64{1, 2, -3}, 1},
		{[]float64{1, 2, 3, 4, 5}, 2. / 32},
		{[]float64{-1, 2, 3, 4, 5, 6}, 4. / 64},         // all, and all but 1, each way
		{[]float64{1, 1, 1, 1, 1, 1, 1, -1}, 18. / 256}, // at most one of eight is negative
		{[]float64{3, 1, 4, 1, 5, 9, 2, 6}, 2. / 256},
		{[]float64{-3, -1, -4, -1, -5, -9, -2, -6}, 2. / 256},
	} {
		if got := paired(c.logs).p; math.Abs(got-c.p) > 1e-12 || math.Abs(flipped(c.logs)-c.p) > 1e-12 {
			t.Errorf("%v: p %v, by definition %v; want %v", c.logs, got, flipped(c.logs), c.p)
		}
	}
	dice := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		logs := make([]float64, 1+dice.IntN(11))
		for i := range logs {
			logs[i] = math.Round(10*dice.NormFloat64()+3) / 100 // with ties and zeros
		}
		s := paired(logs)
		if want := flipped(logs); math.Abs(s.p-want) > 1e-12 {
			t.Fatalf("%v: p %v, by definition %v", logs, s.p, want)
		}
		if s.ratio < s.low || s.ratio > s.high {
			t.Fatalf("%v: ratio %v outside %v to %v", logs, s.ratio, s.low, s.high)
		}
		// The interval has the ratios that the test does not reject, and ends there.
		for _, end := range []float64{math.Log(s.low), math.Log(s.high)} {
			if math.IsInf(end, 0) {
				if len(logs) > 5 {
					t.Fatalf("%v has no interval", logs)
				}
				continue
			}
			in := math.Copysign(1e-6, math.Log(s.ratio)-end)
			if p := shifted(logs, end+in); s.high > s.low*1.001 && p <= Alpha {
				t.Fatalf("%v: rejects %v inside, p %v", logs, end+in, p)
			}
			if p := shifted(logs, end-in); s.high > s.low*1.001 && p > Alpha {
				t.Fatalf("%v: keeps %v outside, p %v", logs, end-in, p)
			}
		}
	}
}

// shifted is p of the values less by.
func shifted(values []float64, by float64) float64 {
	less := make([]float64, len(values))
	for i, v := range values {
		less[i] = v - by
	}
	return flipped(less)
}

// draw is two sides of n rounds: noise that both share, noise of each, and by how much B is above.
func draw(dice *rand.Rand, n int, above float64) (a, b []float64) {
	for range n {
		both := 50 * math.Exp(0.15*dice.NormFloat64())
		a = append(a, both*math.Exp(0.03*dice.NormFloat64()))
		b = append(b, both*math.Exp(0.03*dice.NormFloat64())*(1+above))
	}
	return a, b
}

// TestPower: rounds that vary by 15 % together and by 3 % each tell 10 % in 19 of 20 runs, which
// the unpaired test does not, and no difference is found in not more than 1 of 20.
func TestPower(t *testing.T) {
	const runs = 1000
	found := func(n int, above float64, pairs bool) (worse, any int) {
		dice := rand.New(rand.NewPCG(uint64(n), 42))
		g := gauges()[0]
		for range runs {
			a, b := draw(dice, n, above)
			out, _ := g.compare(turnsWith(a), turnsWith(b), pairs)
			if out.Verdict != Same {
				any++
			}
			if out.Verdict == Worse {
				worse++
			}
			if (out.Low != nil && (*out.Low > 0 || *out.High < 0)) != (pairs && out.Verdict != Same) {
				t.Fatalf("the verdict %s has the interval %s", out.Verdict, out.delta())
			}
		}
		return worse, any
	}
	for _, n := range []int{16, 24} {
		if worse, _ := found(n, 0.1, true); worse < runs*95/100 {
			t.Errorf("%d rounds: 10 %% more found in %d of %d", n, worse, runs)
		}
	}
	if _, any := found(16, 0, true); any > runs*5/100 {
		t.Errorf("a difference where there is none in %d of %d", any, runs)
	}
	if worse, _ := found(8, 0.1, false); worse > runs/2 {
		t.Errorf("without pairs 10 %% more found in %d of %d: the noise shows nothing", worse, runs)
	}
	dice := rand.New(rand.NewPCG(3, 3))
	for range 10 { // more rounds than exactPairs
		a, b := draw(dice, 30, 0.1)
		if out, _ := (&gauges()[0]).compare(turnsWith(a), turnsWith(b), true); out.Verdict != Worse ||
			out.P > 0.001 || *out.Low < 5 || *out.High > 15 {
			t.Errorf("30 rounds: %s, p %v", out.delta(), out.P)
		}
	}
}

// TestLevel: whatever the sizes of ten logarithms, one in twenty assignments of their signs is
// found at most. It is the rate of false alarms, exactly.
func TestLevel(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 5))
	logs, signed := make([]float64, 10), make([]float64, 10)
	for i := range logs {
		logs[i] = math.Exp(dice.NormFloat64())
	}
	found := 0
	for signs := range 1 << len(logs) {
		for k, l := range logs {
			signed[k] = l * float64(1-2*(signs>>k&1))
		}
		if paired(signed).p <= Alpha {
			found++
		}
	}
	if found > 1024/20 || found < 1024/25 {
		t.Errorf("%d of 1,024 are found", found)
	}
}

// beside are two reports of one run of clobench turns.
func beside(start int64, cpu, other []float64) (a, b *bench.Report) {
	a, b = run(start, cpu...), run(start, other...)
	for i, r := range []*bench.Report{a, b} {
		r.Conditions.Node = &bench.Node{}
		r.Conditions.Node.Version = []string{"one", "two"}[i]
	}
	a.Beside, b.Beside = "version two", "version one"
	return a, b
}

// TestPairsAndFallback: rounds that drift are told apart in pairs, and only if they are pairs.
func TestPairsAndFallback(t *testing.T) {
	drift := []float64{50, 50, 60, 60, 70, 70, 80, 80, 90, 90, 100, 100}
	slower := []float64{52.5, 52.5, 63.1, 63.1, 73.4, 73.4, 84, 84, 94.6, 94.6, 105, 105}
	a, b := beside(1, drift, slower)
	c, d := beside(2, drift, slower)
	list := func(r ...*bench.Report) []*bench.Report { return r }
	for _, v := range []struct {
		what          string
		a, b          []*bench.Report
		test, verdict string
		says          string
	}{
		{"one run", list(a), list(b), Paired, Worse, "B is worse: CPU µs/op +5.0% [+4.9%, +5.2%] (paired sign-flip " +
			"test, p=0.031, n=6 pairs of rounds)"},
		{"the other way round", list(b), list(a), Paired, Better, "B is better: CPU µs/op -4.8% ["},
		{"two runs, listed in another order", list(a, c), list(d, b), Paired, Worse, "p=0.000, n=12 pairs of rounds"},
		{"runs apart", list(a), list(d), Unpaired, Same, "n=12+12"},
		{"unequal numbers of reports", list(a, c), list(b), Unpaired, Same, "n=24+12"},
		{"itself", list(a), list(a), Unpaired, Same, "p=1.000"},
	} {
		out, err := Reports(v.a, v.b, false)
		if err != nil || out.Gauges[0].Test != v.test || out.Verdict != v.verdict ||
			!strings.Contains(out.Sentence(), v.says) {
			t.Errorf("%s: %s, %v", v.what, out.Sentence(), err)
		}
	}
	b.Conditions.Node.Version, a.Beside = "one", "version one" // two copies of one build
	if out, err := Reports(list(a), list(a), false); err != nil || out.Gauges[0].Test != Paired ||
		out.Verdict != Same || out.Gauges[0].P != 1 || !strings.Contains(out.Sentence(), "[+0.0%, +0.0%]") {
		t.Errorf("itself as its own neighbour: %+v, %v", out, err)
	}
	b.Turns[3].CPUMicros = nil // the other figures keep their pairs
	if out, err := Reports(list(a), list(b), false); err != nil || out.Gauges[0].Test != Unpaired ||
		out.Gauges[1].Test != Paired {
		t.Errorf("a turn without its CPU time: %+v, %v", out, err)
	}
	b.Turns = b.Turns[:5]
	if out, err := Reports(list(a), list(b), false); err != nil || out.Gauges[1].Test != Unpaired ||
		out.Gauges[1].B.Samples != 5 {
		t.Errorf("unequal counts: %+v, %v", out, err)
	}
	a.Turns, b.Turns = a.Turns[:5], b.Turns[:5]
	if out, err := Reports(list(a), list(b), false); err != nil || out.Gauges[1].Low != nil ||
		!strings.Contains(out.Gauges[1].Note, "less than 12 rounds") {
		t.Errorf("five rounds: %+v, %v", out, err)
	}
}

// TestFirstTurn: whose turn is first in a round, and dearer by 30 %, does not count.
func TestFirstTurn(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 7))
	var a, b []float64
	for i := range 24 {
		first := []float64{1.3, 1}
		if i%2 == 1 {
			first = []float64{1, 1.3}
		}
		a = append(a, 50*first[0]*math.Exp(0.02*dice.NormFloat64()))
		b = append(b, 55*first[1]*math.Exp(0.02*dice.NormFloat64()))
	}
	g := &gauges()[0]
	out, _ := g.compare(turnsWith(a), turnsWith(b), true)
	if out.Verdict != Worse || out.Pairs != 12 || *out.Low < 8 || *out.High > 12 {
		t.Errorf("%s of %d pairs", out.delta(), out.Pairs)
	}
	odd, _ := g.compare(turnsWith(a[:23]), turnsWith(b[:23]), true)
	if odd.Pairs != 11 {
		t.Errorf("23 rounds are %d pairs", odd.Pairs)
	}
}

// TestCorrected compares open loops, each of which is a sample.
func TestCorrected(t *testing.T) {
	side := func(p50 float64) (all []*bench.Report) {
		for i := range 4 {
			r := run(int64(i))
			r.Rate, r.AskedRate = 1000, 1000
			r.CorrectedMicros = &bench.Latency{P50: p50 + float64(i), P99: 900}
			all = append(all, r)
		}
		return all
	}
	a, b := side(100), side(200)
	out, err := Reports(a, b, false)
	if err != nil {
		t.Fatal(err)
	}
	last := out.Gauges[len(out.Gauges)-2:]
	if last[0].Name != "corrected p50 µs" || last[0].A.Median != 101.5 || last[0].B.Median != 201.5 ||
		last[0].Verdict != Worse || last[1].Name != "corrected p99 µs" || last[1].Verdict != Same {
		t.Errorf("%+v", last)
	}
	for _, r := range b {
		r.CorrectedMicros = nil
	}
	if out, err = Reports(a, b, false); err != nil || len(out.Gauges) != 3 {
		t.Errorf("a side without corrected latencies: %+v, %v", out, err)
	}
}

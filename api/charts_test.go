package api

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/journal/history"
)

// TestSpans: which window and which step a request gets, at 2023-11-14 22:13:20.
func TestSpans(t *testing.T) {
	n := newNode(t)
	const now = engine.Time(1_700_000_000_000)
	n.handler.o.Now = func() time.Time { return time.UnixMilli(int64(now)) }
	const day = 24 * time.Hour
	for _, c := range []struct {
		w    chartQuery
		from engine.Time
		to   engine.Time
		step time.Duration
	}{
		{chartQuery{Interval: "1h"}, now - 3_600_000, now, time.Minute},
		{chartQuery{Interval: "1d"}, now - 86_400_000, now, time.Minute},
		{chartQuery{Interval: "1w"}, now - 7*86_400_000, now, 30 * time.Minute},
		{chartQuery{Interval: "1w", Fidelity: new(int64(1))}, now - 7*86_400_000, now, time.Minute},
		{chartQuery{Interval: "1d", Fidelity: new(int64(2))}, now - 86_400_000, now, 5 * time.Minute},
		{chartQuery{Interval: "1d", Fidelity: new(int64(31))}, now - 86_400_000, now, 3 * time.Hour},
		{chartQuery{Interval: "1d", Fidelity: new(int64(9999))}, now - 86_400_000, now, day / 2},
		{chartQuery{Interval: "max"}, 0, now, day / 2},
		{chartQuery{Interval: "all", Fidelity: new(int64(1))}, 0, now, day / 2},
		{chartQuery{Start: new(int64(1_699_999_000))}, 1_699_999_000_000, now, time.Minute},
		{chartQuery{Start: new(int64(1_600_000_000)), End: new(int64(1_600_003_600))},
			1_600_000_000_000, 1_600_003_600_000, time.Minute},
		{chartQuery{Start: new(int64(0))}, 0, now, day / 2},
		{chartQuery{Start: new(int64(0)), End: new(int64(1 << 62))}, 0, now, day / 2},
		{chartQuery{Start: new(int64(1_700_000_001))}, 1_700_000_001_000, now, time.Minute},
		{chartQuery{Start: new(int64(1_700_000_002)), End: new(int64(1_700_000_009))},
			1_700_000_002_000, now, time.Minute},
	} {
		s, f := n.handler.span(&c.w)
		if f != nil || s != (span{c.from, c.to, c.step, 0}) {
			t.Errorf("%+v: %+v %v", c.w, s, f)
		}
	}
	for _, c := range []struct {
		w    chartQuery
		want *wire.Refusal
	}{
		{chartQuery{}, errSpan}, {chartQuery{Interval: "2h"}, errSpan}, {chartQuery{junk: true}, errSpan},
		{chartQuery{End: new(int64(5))}, errSpan}, {chartQuery{Start: new(int64(-1))}, errSpan},
		{chartQuery{Interval: "1h", Start: new(int64(0))}, errSpan},
		{chartQuery{Interval: "1h", End: new(int64(0))}, errSpan},
		{chartQuery{Start: new(int64(9)), End: new(int64(8))}, errSpan},
		{chartQuery{Start: new(int64(9)), End: new(int64(-8))}, errSpan},
		{chartQuery{Start: new(int64(0)), End: new(int64(math.MinInt64))}, errSpan},
		{chartQuery{Start: new(int64(0)), End: new(int64(math.MinInt64 / 999))}, errSpan},
		{chartQuery{Interval: "1h", Fidelity: new(int64(0))}, errFidelity},
	} {
		if _, f := n.handler.span(&c.w); f != c.want {
			t.Errorf("%+v: %+v", c.w, f)
		}
	}
}

// TestCharts: the charts of one answer share its points; the time before the first one costs none.
func TestCharts(t *testing.T) {
	n := newNode(t)
	n.run()
	n.do(engine.Command{Kind: engine.List, Listing: listing(1, 100)})
	alice := n.fund("alice", 1, 1000, 1000)
	n.do(place("b", alice, quote{1, 0, engine.Buy, 1000, 4000}),
		place("s", alice, quote{1, 0, engine.Sell, 1000, 6000}))
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		t.Fatal("the index lags")
	}
	m := n.board.Directory.Market(1)
	for _, c := range []struct {
		most int64
		want int // points from the first one to the end
	}{{maxPoints, 107}, {30, 22}} {
		s := span{to: n.now + 6_400_000, step: time.Minute, most: c.most}
		b, f := n.handler.appendChart(nil, m, 0, s)
		if f != nil {
			t.Fatal(string(f.Append(nil)))
		}
		var points []struct{ T int64 }
		n.must(json.Unmarshal(b, &points))
		if len(points) != c.want {
			t.Errorf("at most %d: %d points", c.most, len(points))
		}
	}
}

// TestNoLookAhead: a question about the past has one answer, whatever happened afterwards in the
// minute that it ends in; only who asks for now is told the price so far.
func TestNoLookAhead(t *testing.T) {
	n := newNode(t)
	n.run()
	n.do(engine.Command{Kind: engine.List, Listing: listing(1, 100)})
	alice := n.fund("alice", 1, 1000, 1000)
	const start = 1_700_000_040 // a whole minute
	clock := int64(start) * 1000
	h := n.again(func(o *Options) { o.Now = func() time.Time { return time.UnixMilli(clock) } })
	quoted := func(id string, side engine.Side, price engine.Price, second int64) {
		n.now = engine.Time(start+second) * 1000
		n.do(place(id, alice, quote{1, 0, side, 1000, price}))
		if !n.index.History.Await(n.head.Sequence, time.Minute) {
			t.Fatal("the index lags")
		}
	}
	answers := func(now int64, query, want string) {
		t.Helper()
		clock = (start+now)*1000 + 500
		ctx := ask("GET", "/prices-history?market=10&"+query)
		h.Public(ctx)
		if got := string(ctx.Response.Body()); got != `{"history":[`+want+`]}` {
			t.Errorf("at %d: %s, want %s", now, got, want)
		}
	}
	quoted("b", engine.Buy, 4000, 5)
	quoted("s", engine.Sell, 6000, 5)
	const window = "startTs=1700000040&endTs=1700000125&fidelity=1" // second 85
	answers(30, "startTs=1700000040", `{"t":1700000070,"p":0.5}`)
	answers(86, window, `{"t":1700000100,"p":0.5},{"t":1700000125,"p":0.5}`)
	quoted("t", engine.Sell, 5000, 90)
	answers(91, "startTs=1700000040", `{"t":1700000100,"p":0.5},{"t":1700000131,"p":0.45}`)
	answers(95, window, `{"t":1700000100,"p":0.5},{"t":1700000125,"p":0.5}`)
	answers(130, window, `{"t":1700000100,"p":0.5},{"t":1700000125,"p":0.5}`)
	answers(130, "startTs=1700000040&endTs=1700000125&fidelity=30", `{"t":1700000125,"p":0.5}`)
	answers(130, "startTs=1700000171", ``) // by a clock that is ahead of this one
}

// TestPoints: the midpoints of the two outcomes add up to one, to the last digit.
func TestPoints(t *testing.T) {
	points := []history.PricePoint{
		{Time: 60_000, Twice: 10_001}, {Time: 120_500, Twice: 1}, {Time: 180_000, Twice: 20_000},
	}
	for o, want := range map[engine.Outcome]string{
		0: `[{"t":60,"p":0.50005},{"t":120,"p":0.00005},{"t":180,"p":1}]`,
		1: `[{"t":60,"p":0.49995},{"t":120,"p":0.99995},{"t":180,"p":0}]`,
	} {
		if got := string(appendPoints(nil, points, o)); got != want {
			t.Errorf("outcome %d: %s", o, got)
		}
	}
}

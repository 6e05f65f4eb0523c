package api

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// span is a window of time and how far the points in it are apart.
type span struct {
	from, to engine.Time
	step     time.Duration
	most     int64 // points
}

// windows are the lengths of the named intervals, except max and all, which have none.
var windows = map[string]time.Duration{
	"1m": time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "1h": time.Hour,
	"6h": 6 * time.Hour, "1d": 24 * time.Hour, "1w": 7 * 24 * time.Hour,
}

// steps are the distances between points in the index. The last is aligned to noon and midnight.
var steps = [...]time.Duration{
	time.Minute, 5 * time.Minute, 30 * time.Minute, 3 * time.Hour, 12 * time.Hour,
}

// maxPoints bounds the points of one answer: thirty days of minutes fit. Longer charts are drawn in
// larger steps.
const maxPoints = 43_200

const maxCharts = 20

// chartQuery is the window that a request asks for, as written; nil where the request says nothing.
type chartQuery struct {
	Interval string `json:"interval"`
	Start    *int64 `json:"start_ts"` // unix seconds, as is End
	End      *int64 `json:"end_ts"`
	Fidelity *int64 `json:"fidelity"` // minutes
	junk     bool   // a number is none
}

// pricesHistory tells the midpoints of a token over time. The parameter market is the token.
func (h *Handler) pricesHistory(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	id := wire.Parameter(ctx, "market", "token_id", "tokenId")
	token, ok := engine.ParseToken(id)
	if !ok {
		return nil, errCharted
	}
	m, o, ok := h.o.Board.Directory.Token(token)
	if !ok {
		return nil, wire.ErrNoMarket
	}
	w := chartQuery{Interval: wire.Parameter(ctx, "interval")}
	number := func(names ...string) *int64 {
		text := wire.Parameter(ctx, names...)
		if text == "" {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		w.junk = w.junk || err != nil
		return &n
	}
	w.Start, w.End = number("startTs", "start_ts"), number("endTs", "end_ts")
	w.Fidelity = number("fidelity")
	s, refused := h.span(&w)
	if refused != nil {
		return nil, refused
	}
	s.most = maxPoints
	b := append(make([]byte, 0, 4096), `{"history":`...)
	b, refused = h.appendChart(b, m, o, s)
	return wire.CloseObject(b), refused
}

// batchHistory does the same for up to 20 tokens, by token id, without those that have no market.
func (h *Handler) batchHistory(ctx *fasthttp.RequestCtx) ([]byte, *wire.Refusal) {
	var body struct {
		chartQuery
		Markets []string `json:"markets"`
	}
	if json.Unmarshal(ctx.PostBody(), &body) != nil {
		return nil, errBatch
	}
	if len(body.Markets) == 0 {
		return nil, errNoCharts
	}
	if len(body.Markets) > maxCharts {
		return nil, errBatchSize
	}
	s, refused := h.span(&body.chartQuery)
	s.most = maxPoints / int64(len(body.Markets))
	b := append(make([]byte, 0, 16384), `{"history":{`...)
	var told []engine.Token
	for _, id := range body.Markets {
		token, ok := engine.ParseToken(id)
		switch {
		case refused != nil:
		case !ok:
			refused = errChartedAll
		case !slices.Contains(told, token): // one token may be written in several ways
			told = append(told, token)
			if m, o, known := h.o.Board.Directory.Token(token); known {
				b, refused = h.appendChart(wire.AppendTokenKey(b, token), m, o, s)
			}
		}
	}
	return append(b, '}', '}'), refused
}

// span decides the window. A named interval ends now, and so does a window without an end or with
// one in the future. A window that begins in the future is empty: the client's clock may be ahead.
func (h *Handler) span(w *chartQuery) (s span, refused *wire.Refusal) {
	s.to = h.now()
	if w.Fidelity != nil && *w.Fidelity < 1 {
		return s, errFidelity
	}
	length, named := windows[w.Interval]
	switch {
	case w.junk, w.Interval != "" && (w.Start != nil || w.End != nil):
		return s, errSpan
	case w.Interval == "max", w.Interval == "all":
		s.step = steps[len(steps)-1]
		return s, nil
	case named:
		s.from = s.to - engine.Time(length.Milliseconds())
	case w.Interval != "" || w.Start == nil || *w.Start < 0 || *w.Start > wire.MaxSeconds:
		return s, errSpan
	default:
		s.from = engine.Time(*w.Start) * 1000
		if w.End != nil && *w.End < *w.Start {
			return s, errSpan
		}
		if w.End != nil {
			s.to = min(s.to, engine.Time(min(*w.End, wire.MaxSeconds))*1000)
		}
	}
	s.step = steps[len(steps)-1]
	for _, step := range steps {
		if w.Fidelity == nil && s.count(step) <= finePoints ||
			w.Fidelity != nil && int64(step/time.Minute) >= *w.Fidelity {
			s.step = step
			break
		}
	}
	return s, nil
}

// finePoints bounds the points of a window whose step the request does not name: a day of minutes.
const finePoints = 1440

func (s *span) count(step time.Duration) int64 {
	return int64(s.to-s.from) / step.Milliseconds()
}

// appendChart appends the points of an outcome. If they are too many, the window first loses the
// time before the first known price, and then its steps become larger.
func (h *Handler) appendChart(
	b []byte, m *view.Market, o engine.Outcome, s span,
) ([]byte, *wire.Refusal) {
	if s.count(s.step) > s.most {
		first, known, err := h.o.History.PricedSince(m.No)
		if err != nil {
			return b, wire.Internal(h.o.Log, "read prices", m.Condition.Hex(), err)
		}
		if !known || first > s.to {
			first = s.to
		}
		s.from = max(s.from, first)
		for _, step := range steps {
			if s.step = max(s.step, step); s.count(s.step) <= s.most {
				break
			}
		}
	}
	points, err := h.charted(m.No, s)
	if err != nil {
		return b, wire.Internal(h.o.Log, "read prices", m.Condition.Hex(), err)
	}
	return appendPoints(b, points, o), nil
}

// asNow is the age up to which the end of a window counts as now: clocks of clients differ.
const asNow = engine.Time(2_000)

// charted reads the points of a window. The last point is the price at the end of the window; if
// the window ends now, that is the latest price of the running minute.
func (h *Handler) charted(no engine.MarketNo, s span) ([]history.PricePoint, error) {
	const minute = engine.Time(60_000)
	if s.to < s.from {
		return nil, nil
	}
	end, now := s.to, h.now()
	if end%engine.Time(s.step.Milliseconds()) != 0 && end/minute == now/minute && now-end < asNow {
		end = (end/minute + 1) * minute
	}
	points, err := h.o.History.Prices(no, s.from, end, s.step)
	if n := len(points); n > 0 && points[n-1].Time > s.to {
		points[n-1].Time = s.to
	}
	return points, err
}

func (h *Handler) now() engine.Time { return engine.Time(h.o.Now().UnixMilli()) }

// appendPoints appends points as JSON numbers: unix seconds, and the midpoint of the outcome.
func appendPoints(b []byte, points []history.PricePoint, o engine.Outcome) []byte {
	const both = 2 * int64(engine.PriceOne)
	b = append(slices.Grow(b, 32*len(points)), '[')
	for i := range points {
		twice := int64(points[i].Twice)
		if o == 1 {
			twice = both - twice
		}
		b = append(wire.AppendComma(b), `{"t":`...)
		b = strconv.AppendInt(b, int64(points[i].Time)/1000, 10)
		b = append(b, `,"p":`...)
		b = append(engine.AppendDecimal(b, twice*5, 5), '}')
	}
	return append(b, ']')
}

package page

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/ingress/answer"
)

// Options are what the page shows, and who may see it. All are required.
type Options struct {
	Metrics prometheus.Gatherer
	Ready   http.HandlerFunc // /readyz
	About   func() About
	Recent  *Recent
	// Bearer is the operator's Authorization. Refuse answers a request that needs it and has another.
	Bearer []byte
	Refuse http.Handler
}

// About is what stays the same while a node runs.
type About struct {
	Version    string   `json:"version"`
	Durability string   `json:"durability"`
	Chain      uint64   `json:"chain"`
	Listen     []string `json:"listen"` // addresses of the public listeners
	Admin      string   `json:"admin"`  // address of this page
	Data       string   `json:"data"`   // folder
	Go         string   `json:"go"`     // set by the page
}

// Panel is the operator's page of one node. Call Run once, and Close at the end.
type Panel struct {
	options Options
	gate    *gate
	sampler *sampler
	curves  *curves
}

// New makes the page. Its figures come once Run runs.
func New(o Options) *Panel {
	p := &Panel{options: o, gate: &gate{bearer: o.Bearer, refuse: o.Refuse, pass: rand.Text()},
		sampler: &sampler{metrics: o.Metrics, asked: make(chan struct{}, 1),
			taken: make(chan struct{})}}
	p.curves = &curves{sampler: p.sampler, open: map[*curveConn]bool{}}
	return p
}

// Run keeps the figures of the last minute until ctx is done.
func (p *Panel) Run(ctx context.Context) { p.sampler.run(ctx) }

// Close ends the sockets of the curves.
func (p *Panel) Close() { p.curves.close() }

//go:embed static
var static embed.FS

// strictly lets the page load and ask this listener, and nothing else.
const strictly = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Route adds the page, its parts, its JSON and its curves to a mux.
func (p *Panel) Route(mux *http.ServeMux) {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic("BUG: the page's files: " + err.Error())
	}
	shell := p.gate.lets(true, strictly, http.FileServerFS(files))
	for _, path := range []string{"/{$}", "/page.css", "/page.js", "/units.js", "/alerts.js",
		"/favicon.svg"} {
		mux.Handle(path, shell)
	}
	mux.Handle("/page.json", p.gate.lets(false, strictly, http.HandlerFunc(p.tell)))
	mux.Handle(curvesPath, p.gate.lets(false, curvesPolicy, p.curves))
}

// drawn are the figures that the page draws.
var drawn = [...]string{"clobd_sequencer_orders_total", "clobd_sequencer_fills_total",
	`clobd_http_request_seconds{route="post_order"}`, "clobd_journal_sync_seconds"}

// sheet is what the page is told, once a second.
type sheet struct {
	Now   int64           `json:"now"` // unix milliseconds
	Took  int64           `json:"at"`  // of the figures, unix milliseconds; 0: there are none yet
	About About           `json:"about"`
	Ready json.RawMessage `json:"readyz"`
	// Figures are, by the name of their metric, the value, and of a counter how much it grows each
	// second: in the last 10 s and in the last minute.
	Figures map[string][]float64 `json:"figures"`
	// Paces are, by the name of a histogram, median, 99th percentile and samples each second: in the
	// last 10 s and in the last minute; null if nothing came.
	Paces map[string][2]*[3]float64 `json:"paces"`
	// Trails are, for figures that the page draws, what they were in the last minute: how many seconds
	// ago, and how much a counter grew each second, or the 99th percentile of a histogram.
	Trails   map[string][][2]float64 `json:"trails"`
	Stages   []string                `json:"stages"`
	Slowest  []slowest               `json:"slowest"`
	Warnings []warning               `json:"warnings"`
	Warned   uint64                  `json:"warned"` // warnings since the start
}

// slowest is one of the slowest orders of the last minute. Times are microseconds.
type slowest struct {
	At       int64   `json:"at"` // unix milliseconds
	Total    int64   `json:"total"`
	Stages   []int64 `json:"stages"`
	Status   int     `json:"status"`
	Sequence uint64  `json:"sequence"`
}

// tell answers with the page's JSON: some 12 KB. Warnings full of characters that JSON escapes can
// make it some 250 KB.
func (p *Panel) tell(w http.ResponseWriter, r *http.Request) {
	s := sheet{Now: time.Now().UnixMilli(), About: p.options.About(), Ready: p.readiness(r),
		Figures: map[string][]float64{}, Paces: map[string][2]*[3]float64{},
		Stages: answer.StageNames[:], Slowest: []slowest{}}
	s.About.Go = runtime.Version()
	s.Warnings, s.Warned = p.options.Recent.last()
	for _, l := range p.options.Recent.Slowest.Last(time.Now()) {
		line := slowest{At: l.At.UnixMilli(), Total: l.Total.Microseconds(), Status: l.Status,
			Sequence: l.Sequence}
		for _, took := range l.Stages {
			line.Stages = append(line.Stages, took.Microseconds())
		}
		s.Slowest = append(s.Slowest, line)
	}
	if t := p.sampler.look(); t.now != nil {
		s.fill(&t)
		s.Trails = p.sampler.trails(drawn[:])
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(&s)
}

// fill adds the figures.
func (s *sheet) fill(t *trend) {
	s.Took = t.now.at.UnixMilli()
	for name, v := range t.now.figures {
		s.Figures[name] = []float64{v}
		if t.now.counts[name] {
			s.Figures[name] = []float64{v, t.now.rate(name, t.short), t.now.rate(name, t.long)}
		}
	}
	for name := range t.now.spreads {
		var both [2]*[3]float64
		for i, earlier := range []*gathered{t.short, t.long} {
			if p50, p99, rate, some := t.now.pace(name, earlier); some {
				both[i] = &[3]float64{p50, p99, rate}
			}
		}
		if both[1] != nil {
			s.Paces[name] = both
		}
	}
}

// readiness is what /readyz says, whatever that is.
func (p *Panel) readiness(r *http.Request) json.RawMessage {
	heard := overheard{header: http.Header{}}
	p.options.Ready(&heard, r)
	if !json.Valid(heard.body.Bytes()) {
		return json.RawMessage("null")
	}
	return heard.body.Bytes()
}

// overheard is a ResponseWriter that keeps an answer.
type overheard struct {
	header http.Header
	status int // 0 is 200
	body   bytes.Buffer
}

// Header returns the header.
func (l *overheard) Header() http.Header { return l.header }

// WriteHeader keeps the status.
func (l *overheard) WriteHeader(status int) { l.status = status }

// Write keeps a part of the body.
func (l *overheard) Write(b []byte) (int, error) { return l.body.Write(b) }

func refuse(w http.ResponseWriter, status int, text, hint string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": text, "hint": hint})
}

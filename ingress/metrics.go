package ingress

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// metrics are the door's counters. Their labels are route names and statuses, few of each; nothing
// that a stranger chooses becomes a label.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	busy     prometheus.Counter
	panics   prometheus.Counter
	limited  *prometheus.CounterVec
	sizes    prometheus.Histogram
	together prometheus.Histogram
	order    *routeMetrics // of POST /order
	list     *routeMetrics // of POST /orders
	pool     []prometheus.Collector
}

func newMetrics(p *pool) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "clobd_http_requests_total",
			Help: "Requests answered, by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "clobd_http_request_seconds",
			Help:    "Time from a request's last byte to its answer, by route.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 18),
		}, []string{"route"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clobd_limits_hit_total",
			Help: "Requests answered 429 because a window was full, by the window with the least left.",
		}, []string{"window"}),
		sizes: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "clobd_http_answer_bytes",
			Help:    "Length of the body of an answer, if it is known before it is sent.",
			Buckets: prometheus.ExponentialBuckets(64, 4, 10)}),
		together: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "clobd_verify_together",
			Help:    "Signatures of a list, or of single orders of a socket or a party, checked together.",
			Buckets: []float64{1, 2, 4, 8, 16}}),
		busy: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "clobd_http_busy_total",
			Help: "Writes refused because the ring or the verification queue was full.",
		}),
	}
	m.order, m.list = m.route("post_order"), m.route("post_orders")
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "clobd_http_panics_total",
		Help: "Requests that made their handler panic: a bug. The log has each by its id.",
	})
	gauge := func(name, help string, read func() float64) {
		m.pool = append(m.pool, prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "clobd_verify_" + name, Help: help}, read))
	}
	count := func(name, help string, read func() uint64) {
		m.pool = append(m.pool, prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "clobd_verify_" + name, Help: help},
			func() float64 { return float64(read()) }))
	}
	gauge("queue", "Orders and signatures that wait for a place.",
		func() float64 { return float64(p.queued()) })
	gauge("queue_limit", "Orders and signatures that may wait at the present pace; 64, if no more callers ask.",
		func() float64 { return float64(p.capacity()) })
	gauge("places", "Places there are now: one less while somebody reads.",
		func() float64 { return float64(p.seats()) })
	gauge("turn_seconds", "Moving average of the time from turn to turn, as of when some waited last.",
		func() float64 { return time.Duration(p.gap.Load()).Seconds() })
	count("total", "Orders and signatures that got a place.", p.ran.Load)
	count("waited_total", "Orders and signatures that had to wait for a place.", p.waited.Load)
	count("full_total", "Orders and signatures refused because the queue was full.", p.full.Load)
	count("expired_total", "Orders and signatures refused because they had waited too long.", p.expired.Load)
	return m
}

// routeMetrics are the counters of one route, looked up once.
type routeMetrics struct {
	name    string
	all     *metrics
	good    prometheus.Counter // status 200: nearly every request
	seconds prometheus.Observer
}

func (m *metrics) route(name string) *routeMetrics {
	return &routeMetrics{name: name, all: m, good: m.requests.WithLabelValues(name, "200"),
		seconds: m.seconds.WithLabelValues(name)}
}

func (r *routeMetrics) observe(ctx *fasthttp.RequestCtx) {
	took := time.Duration(0) // 0 for bytes that are no request
	if began := arrived(ctx); !began.IsZero() {
		took = time.Since(began)
	}
	if !ctx.Response.IsBodyStream() {
		r.all.sizes.Observe(float64(len(ctx.Response.Body())))
	}
	r.note(ctx.Response.StatusCode(), took)
}

// note counts an answer and the time that it took.
func (r *routeMetrics) note(status int, took time.Duration) {
	if status == fasthttp.StatusOK {
		r.good.Inc()
	} else {
		r.all.requests.WithLabelValues(r.name, strconv.Itoa(status)).Inc()
	}
	r.seconds.Observe(took.Seconds())
}

package answer

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// Stages observe how many seconds requests with a key spend in each stage of the door; nil: nobody.
type Stages struct {
	Parse, Verify, Authenticate prometheus.Observer // an order, its signature, the key's headers
	Answer                      prometheus.Observer // from Receipt to the answer's bytes
	Slowest                     *Slowest            // of single orders
}

// Watch is the clock of a request. One request in four is timed, so that the clock costs the others
// nothing, and each that wants to be answered with its stages.
type Watch bool

// WatchOf returns the clock of a request over HTTP.
func WatchOf(ctx *fasthttp.RequestCtx, debug bool) Watch {
	return WatchNth(ctx.ConnID()+ctx.ConnRequestNum()) || Watch(debug && wantsStages(ctx))
}

// WatchNth returns the clock of the n-th request on a connection.
func WatchNth(n uint64) Watch { return n%4 == 0 }

// Begin returns the time, or zero if the request is not timed.
func (w Watch) Begin() (now time.Time) {
	if w {
		now = time.Now()
	}
	return now
}

// End tells a stage how much time has passed since Begin, and returns that.
func (w Watch) End(stage prometheus.Observer, began time.Time) (took time.Duration) {
	if !w {
		return 0
	}
	if took = time.Since(began); stage != nil {
		stage.Observe(took.Seconds())
	}
	return took
}

// Tell tells a stage that a timed order took so long in it, and returns that, or 0 if w is not set.
func (w Watch) Tell(stage prometheus.Observer, took time.Duration) time.Duration {
	if !w {
		return 0
	}
	if stage != nil {
		stage.Observe(took.Seconds())
	}
	return took
}

// stagesHeader asks for the stages of an order, and answers with them.
const stagesHeader = "X-Debug-Stages"

// wantsStages reports whether a request asks for its stages.
func wantsStages(ctx *fasthttp.RequestCtx) bool {
	return string(ctx.Request.Header.Peek(stagesHeader)) == "1"
}

// MarkStages puts the names of the stages into a header, with how long each took in microseconds,
// as parse=9, verify=104, if the operator allows that, which is debug, and the request wants it.
func MarkStages(ctx *fasthttp.RequestCtx, took *Took, debug bool) {
	if !debug || !wantsStages(ctx) {
		return
	}
	var b []byte
	for i, name := range StageNames {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(append(b, name...), '='), took[i].Microseconds(), 10)
	}
	ctx.Response.Header.SetBytesV(stagesHeader, b)
}

// Tell keeps a timed order if it was slow. The answer to it is complete. began is when all of the
// request was there, zero if nobody knows: such an order is not kept.
func (s *Stages) Tell(ctx *fasthttp.RequestCtx, began time.Time, took *Took, sequence uint64) {
	if s.Slowest != nil && !began.IsZero() {
		now := time.Now()
		s.Slowest.Note(&Late{At: now, Total: now.Sub(began), Stages: *took,
			Status: ctx.Response.StatusCode(), Sequence: sequence})
	}
}

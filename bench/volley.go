package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"clobd/bench/lean"
	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// volley is a load of requests that one thread sends, in the making.
type volley struct {
	lean.Load
	routes map[aim]int32
}

// aim is what requests of one route have in common.
type aim struct {
	client       *trader.Client // nil: not authenticated
	method, path string
	want         lean.Want
}

// newVolley makes an empty one for so many connections to addr.
func newVolley(addr string, connections int) *volley {
	return &volley{lean.Load{Addr: addr, Lanes: connections}, map[aim]int32{}}
}

// add appends a request over a lane. ids are the orders that it places or cancels.
func (v *volley) add(lane int, a aim, body []byte, ids ...engine.OrderID) {
	n, known := v.routes[a]
	if !known {
		n = int32(len(v.Routes))
		v.routes[a] = n
		r := lean.Route{Method: a.method, Path: a.path, Want: a.want}
		if a.client != nil {
			r.Address, r.Trio = a.client.Address, a.client.Trio
		}
		v.Routes = append(v.Routes, r)
	}
	v.Requests = append(v.Requests, lean.Prepared{Route: n, Lane: int32(lane % v.Lanes), Body: body,
		IDs: ids})
}

// deal appends the requests of operations, by trader, so that a cancel follows its order. A lane is
// one connection for all of its traders. Neighbours that travel together are one request.
func (v *volley) deal(ops []workload.Op, requests []signed) {
	for i := 0; i < len(requests); {
		n := workload.Together(ops[i:])
		v.post(int(ops[i].Trader), requests[i:i+n])
		i += n
	}
}

// post appends requests of one trader: one alone, or orders or cancels that are one list.
func (v *volley) post(lane int, all []signed) {
	r := &all[0]
	a := aim{r.client, r.method, "/order", lean.WantOrders}
	switch r.method {
	case http.MethodGet:
		a.path, a.want = r.path, lean.WantRead
		if r.quote {
			a.want = lean.WantQuote
		}
		if !r.private {
			a.client = nil
		}
		v.add(lane, a, nil)
		return
	case http.MethodDelete:
		if r.path != "" { // of many orders
			v.add(lane, aim{r.client, r.method, r.path, lean.WantAny}, r.body)
			return
		}
		a.want = lean.WantCancels
	}
	if len(all) == 1 {
		v.add(lane, a, r.body, r.id)
		return
	}
	a.path = "/orders"
	body, ids := []byte{'['}, make([]engine.OrderID, len(all))
	for i := range all {
		if i > 0 {
			body = append(body, ',')
		}
		ids[i] = all[i].id
		if a.want == lean.WantCancels {
			body = append(append(append(body, '"'), ids[i].Hex()...), '"')
			continue
		}
		body = append(body, all[i].body...)
	}
	v.add(lane, a, append(body, ']'), ids...)
}

// dealLists appends orders as lists of 15, each of one trader. Orders that fill no list are left
// out.
func (v *volley) dealLists(ops []workload.Op, requests []signed) {
	var open [workload.Traders][]signed
	for i := range requests {
		of := ops[i].Trader
		if open[of] = append(open[of], requests[i]); len(open[of]) == workload.ListSize {
			v.post(int(of), open[of])
			open[of] = open[of][:0]
		}
	}
}

// reads makes a volley that reads a path over and over. If same is not nil, each answer must be it.
func reads(addr, path string, connections int, same []byte) *volley {
	v, a := newVolley(addr, connections), aim{nil, http.MethodGet, path, lean.WantAny}
	if same != nil {
		a.want = lean.WantSame
	}
	for lane := range connections {
		v.add(lane, a, nil)
	}
	v.Repeat, v.Routes[0].Same = true, same
	return v
}

// placed are the orders that were answered well. A FAK that found nothing is among them: it was
// taken, and its order is in the journal.
func (v *volley) placed(m *lean.Measured) (ids []engine.OrderID) {
	for i := range v.Requests {
		r := &v.Requests[i]
		if v.Routes[r.Route].Want == lean.WantOrders && m.Answered(i) {
			ids = append(ids, r.IDs...)
		}
	}
	return ids
}

// send sends it from this process, or from several others.
func (v *volley) send(ctx context.Context, self string, processes int) (*lean.Measured, error) {
	if processes < 2 {
		return v.Run(ctx)
	}
	apart, err := v.Dispatch(ctx, self, processes, false)
	if err != nil {
		return nil, err
	}
	return apart.Wait()
}

// fire sends a volley for the run's time and puts what came of it into the report. The hiccup meter
// and the CPU clock see the same window.
func (t *trial) fire(ctx context.Context, v *volley, cpu clock) error {
	v.Duration, v.Rate, v.Poisson, v.Seed = t.Duration, t.Rate, t.Poisson, t.Seed
	v.Progress = t.Progress
	runtime.GC() // what was drawn and signed left garbage: it is nobody's to collect while measured
	if _, err := t.watch.Lap(); err != nil {
		return err
	}
	before, cpuErr := cpu()
	m, err := v.send(ctx, t.Self, t.Processes)
	if err != nil {
		return err
	}
	after, err := cpu()
	cpuErr = errors.Join(cpuErr, err)
	if t.report.Conditions.Hiccup, err = t.watch.Lap(); err != nil {
		return err
	}
	r := t.report
	r.Connections = v.Lanes
	r.take(m)
	t.keep(v, m)
	if t.Rounds > 1 {
		v.rest(m)
	}
	if cpuErr == nil && m.Acked > 0 {
		r.CPUMicros = new(float64((after - before).Nanoseconds()) / 1e3 / float64(m.Acked))
	}
	return nil
}

// keep notes the orders that were answered well, and whose they are if their owners will be asked.
func (t *trial) keep(v *volley, m *lean.Measured) {
	t.placed = append(t.placed, v.placed(m)...)
	if t.Keys == nil {
		return
	}
	if t.placedBy == nil {
		t.placedBy = map[string][]engine.OrderID{}
	}
	for i := range v.Requests {
		r := &v.Requests[i]
		if to := &v.Routes[r.Route]; to.Want == lean.WantOrders && m.Answered(i) {
			t.placedBy[to.Address] = append(t.placedBy[to.Address], r.IDs...)
		}
	}
}

// rest leaves in the volley what was not answered yet.
func (v *volley) rest(m *lean.Measured) {
	var left []lean.Prepared
	for i := range v.Requests {
		if !m.Answered(i) {
			left = append(left, v.Requests[i])
		}
	}
	v.Requests = left
}

// take puts what came of a load into the report.
func (r *Report) take(m *lean.Measured) {
	if r.Errors = m.Failed; m.Failed > 0 {
		r.Failure = m.Failure
	}
	r.began, r.Unsent, r.requests = m.Began, m.Unsent, m.Late.TotalCount()
	r.Operations, r.Acknowledged, r.Refused, r.Busy = m.Acked, m.Acked, m.Refused, m.Busy
	service, corrected := Recorder{m.Service}, Recorder{m.Corrected}
	r.ServiceMicros, r.Histograms = service.Latency(), histograms(&service, &corrected)
	if m.Corrected.TotalCount() > 0 {
		r.CorrectedMicros = new(corrected.Latency())
	}
	// An open loop ends when all that was due in its time is answered or given up.
	r.bound(window{m.Took, m.Full || r.AskedRate > 0})
	r.needWork()
	r.Generator = &Generator{Processes: m.Processes, LateMicros: Recorder{m.Late}.Latency()}
	if m.Took > 0 {
		r.Rate = float64(m.Acked) / m.Took.Seconds()
		r.Generator.Thread = m.ThreadCPU.Seconds() / m.Took.Seconds() / float64(max(m.Processes, 1))
		r.Generator.Share = m.ProcessCPU.Seconds() / m.Took.Seconds() / float64(runtime.NumCPU())
	}
	if m.Acked > 0 {
		r.Generator.CPUMicros = inMicros(m.ProcessCPU) / float64(m.Acked)
	}
	for _, at := range m.Moments {
		r.Timeline = append(r.Timeline, Moment{Seconds: at.End.Seconds(), Done: at.Done,
			Failed: at.Failed, P50: inMicros(at.P50), P99: inMicros(at.P99)})
	}
}

func inMicros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// paced is the result of an open loop of a rate.
func paced(rate float64, duration time.Duration, m *lean.Measured) Paced {
	service, corrected := Recorder{m.Service}, Recorder{m.Corrected}
	r := &Report{AskedRate: rate}
	r.take(m)
	return Paced{Generator: r.Generator,
		Asked: rate, Achieved: float64(m.Good) / max(m.Took, duration).Seconds(),
		Sent: m.Sent, Failed: m.Failed, Unsent: m.Unsent, FirstFailure: m.Failure,
		CorrectedMicros: corrected.Latency(), ServiceMicros: service.Latency(),
		Histograms: histograms(&service, &corrected)}
}

// flood sends the orders from a process of its own, at a low priority, and returns when it has
// begun.
func (v *volley) flood(ctx context.Context, self string) (*lean.Apart, error) {
	apart, err := v.Dispatch(ctx, self, 1, true)
	if err != nil {
		return nil, fmt.Errorf("start the flood: %w", err)
	}
	return apart, nil
}

// flooded is the result of a flood. A flood that ended too early is an error.
func flooded(apart *lean.Apart) (*lean.Measured, error) {
	m, err := apart.Wait()
	switch {
	case err != nil:
		return nil, fmt.Errorf("flood: %w", err)
	case m.Failed > 0:
		return nil, fmt.Errorf("flood: %s", m.Failure)
	case !m.Full:
		return nil, fmt.Errorf("the flood ran dry after %.2f s", m.Took.Seconds())
	}
	return m, nil
}

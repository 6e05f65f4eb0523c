package lean

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Measured is what came of a load. Times in histograms are in ns.
type Measured struct {
	// Service is from the sending of a request to its answer. Corrected is from the instant at which
	// it was due, and of a request that was given up until the end; it is empty for a closed loop.
	// Late is the generator's own delay: from the instant
	// at which a request was due and its lane was free to its sending, and the time in which the
	// thread stood still before that (see standstill).
	Service, Corrected, Late *hdrhistogram.Histogram `json:"-"`
	// Shed is from the sending of a request to the refusal that Load.Sheds names.
	Shed *hdrhistogram.Histogram `json:"-"`

	// Sent are requests. Each of them was answered well (Good), was Busy, has Failed, or was in flight
	// when ctx ended. Busy are answers 503 in a closed loop: the request is sent again after a pause,
	// and counts anew. In an open loop with Sheds they are refusals: those requests are not sent
	// again. What was sent and has Failed is in the histograms, too.
	Sent, Good, Busy, Failed int64
	// Unsent are requests of an open loop that were given up, because they were late by the whole
	// duration, or because the load ended before them.
	Unsent int64
	// Acked are operations that were answered well, Refused are those among them that did nothing:
	// cancels of orders that were gone, orders that may not rest and found nothing, and reads of what
	// is not there.
	Acked, Refused int64
	// Sampled are answers that were parsed.
	Sampled int64

	Began time.Time // the instant of the start
	// Took is the time until the last answer. If all requests of an open loop were sent, it is at
	// least the instant at which the last was due; if Full, it is at least the duration.
	Took time.Duration
	// Full reports that the time was over before the requests were, and before any failure of a
	// closed loop. In an open loop all that was due was sent, too.
	Full bool
	// Failure is the first failure, "" without one.
	Failure string
	Moments []Moment

	// ThreadCPU is user plus system time of the threads that sent, ProcessCPU that of their
	// processes, both from the start to the last answer.
	ThreadCPU, ProcessCPU time.Duration
	Processes             int
	Nice                  int // the priority of the processes

	good []uint64 // a bit for each request
}

// newMeasured makes one of so many requests.
func newMeasured(requests int) *Measured {
	return &Measured{Service: newTimes(3), Corrected: newTimes(3), Late: newTimes(3),
		Shed: newTimes(3), good: make([]uint64, (requests+63)/64)}
}

// Answered reports whether request i of Load.Requests was answered well. One that was never due in
// the time was not.
func (m *Measured) Answered(i int) bool { return i/64 < len(m.good) && m.good[i/64]>>(i%64)&1 == 1 }

package lean

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"clobd/engine"
	"clobd/ingress/auth"
)

// Load says what is sent to one address, over how many lanes and when. A lane is one connection
// with at most one request in flight or, if it is a desk, with up to Flight.
//
// Without a Rate and without Due the loop is closed: each lane sends its next request when the last
// one is answered, and the first failure ends the load. Otherwise the loop is open: a request is
// due at an instant that was fixed before the start, and a lane that is still busy then sends late.
// A failure is counted, and the lane goes on over a new connection.
type Load struct {
	Addr  string // HOST:PORT; HOST is a name, or an IPv4 or IPv6 address
	Lanes int    // at least 1
	// Homes is how many addresses of the loopback network the connections come from in turn, because
	// a server bounds those of one address. It needs an Addr in 127.0.0.0/8. 0: what the system picks.
	Homes int
	// Flight makes each lane a desk: a WebSocket at Route.Path with up to so many requests in flight,
	// which logs in as the sender of its first request. Route.Method is that of the messages. The end
	// of a desk ends the load. A lane without requests is left without a connection. 0: HTTP.
	Flight int
	// Routes are what Requests refer to.
	Routes []Route
	// Requests stand in the order in which they are sent. Those of one lane keep their order.
	Requests []Prepared
	// Repeat sends the Requests over and over, until the time is over. In a closed loop each lane
	// repeats its own; in an open loop all are sent in turn.
	Repeat bool
	// Duration is how long requests are sent. With 0 all Requests are sent, each once. What is in
	// flight at the end is waited for.
	Duration time.Duration

	// Rate is how many requests a second are due in an open loop, over all lanes together. 0: closed.
	Rate float64
	// Poisson draws the instants of an open loop from Seed: the gaps between them are exponential.
	// Otherwise the gaps are equal.
	Poisson bool
	Seed    uint64
	// Burst is how many requests are due together in an open loop. 0 and 1: each by itself.
	Burst int
	// Due is when each of the Requests is due, from the start and in ascending order. It makes an open
	// loop of instants that the caller chose, and replaces Rate, Poisson, Burst and Repeat. What is
	// due at the Duration or later is not sent. The instants count from Start, if there is one, even
	// if it is over: a request may be late before the first is sent.
	Due []time.Duration

	// Start is when the first request may be sent, so that loads of several processes start
	// together. The zero time, and a time that is over: when all connections are open.
	Start time.Time
	// Patience is how long an answer is waited for, and an answer other than 503 in a closed loop,
	// before the request has failed. 0: a minute.
	Patience time.Duration

	// Sheds are the codes of a server that has more work than it can do. In an open loop an answer 503
	// with one of them is a refusal: Measured.Busy counts it and Measured.Shed has its time. Any other
	// is a failure.
	Sheds []string
	// Settle is the beginning of an open loop that is not measured: what is due before it is sent and
	// checked as all else is, over connections that are then used further, and stands in Measured only
	// as an answer (Answered), if it is shed as nothing, and as a failure.
	Settle time.Duration

	// Progress is called at the end of each Moment from a goroutine of its own. nil: nobody asks.
	Progress func(Progress)
	// Seen is called for each good answer, on the thread that sends: it must be quick. nil: nobody
	// looks. A load with Seen runs in this process only.
	Seen func(Seen)

	moment func(Moment) // instead of Progress, for who sends for another process
}

// Route is what requests of one kind, and of one sender, have in common.
type Route struct {
	Method string // GET, POST, DELETE
	Path   string // with the query, which a signature does not cover
	Want   Want
	Same   []byte // for WantSame: the body of each answer
	// Address is the sender's, as its header wants it. Empty: the requests are not authenticated.
	Address string
	Trio    auth.Trio // the sender's API key
}

// Want is what a good answer has, beside the status 200.
type Want uint8

// A good answer to a WantOrders says `"success":true` once for each order of the request. An order
// that may not rest and found nothing to match with was refused, which is no failure. A good answer
// to a WantCancels lists what was canceled; the other orders of the request were refused: they were
// gone. The status 404 is a good answer to a WantRead, which was refused: there is no midpoint, for
// instance, while a side of the book is empty. A good answer to a WantSame has the body Same. One
// in 64 good answers is parsed as JSON and held against the request.
const (
	WantAny Want = iota
	WantOrders
	WantCancels
	WantRead
	WantSame
	WantQuote
)

// Prepared is a request that was made before the clock runs. Its timestamp and its HMAC, which
// covers the timestamp, are computed right before the load starts, or, of a load of more than half
// a minute, when the request is sent.
type Prepared struct {
	Route int32 // the index in Load.Routes
	Lane  int32 // in [0, Load.Lanes)
	Body  []byte
	// IDs are the orders that it places or cancels, in the order of its body; empty for a read. The
	// request counts as so many operations, at least one.
	IDs []engine.OrderID
}

// operations is how many operations the request counts as.
func (p *Prepared) operations() int64 { return int64(max(len(p.IDs), 1)) }

// Progress is what has happened since the last call, and how much is left.
type Progress struct {
	Rate     float64       // operations a second that were answered well, since the last call
	P50, P99 time.Duration // since the last call: corrected in an open loop, else from send to answer
	Done     int64         // operations answered well, since the start
	Failed   int64         // requests, since the start
	Elapsed  time.Duration // since the start
	Left     time.Duration // of the time; 0 if the load has no Duration
}

// Seen is a good answer.
type Seen struct {
	Request int       // the index in Load.Requests; with Repeat in an open loop, how many came before
	Due     time.Time // in an open loop
	At      time.Time // of the answer
	Head    []byte    // status line and header fields; valid during the call
}

// validate returns all problems of the load at once, or nil.
func (l *Load) validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("load: "+format, args...))
		}
	}
	bad(l.Lanes < 1, "%d lanes", l.Lanes)
	bad(l.Homes < 0 || l.Homes > 256, "%d homes are not in [0, 256]", l.Homes)
	bad(l.Flight < 0, "%d requests in flight", l.Flight)
	bad(l.Flight > 0 && (l.Repeat || l.Sheds != nil), "a desk repeats nothing, and its refusals are failures")
	bad(len(l.Requests) == 0, "no requests")
	bad(l.Duration < 0, "the duration is negative")
	bad(l.Rate < 0, "the rate is negative")
	bad(l.Settle < 0 || l.Settle > 0 && !l.open(), "only an open loop settles")
	bad(l.Settle > 0 && l.Settle >= l.Duration, "it is over before it has settled")
	bad(l.Due != nil && len(l.Due) != len(l.Requests), "%d of %d requests are due", len(l.Due),
		len(l.Requests))
	bad(!slices.IsSorted(l.Due), "what is due first does not come first")
	bad(l.Repeat && l.Duration == 0, "requests that repeat need a duration")
	for i := range l.Requests {
		r := &l.Requests[i]
		if r.Lane < 0 || int(r.Lane) >= l.Lanes || r.Route < 0 || int(r.Route) >= len(l.Routes) {
			bad(true, "request %d has lane %d of %d and route %d of %d", i, r.Lane, l.Lanes, r.Route,
				len(l.Routes))
			break
		}
	}
	return errors.Join(problems...)
}

package socket

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

// Story is the work of one request, in steps. Over HTTP the goroutine of the connection takes one
// step after the other. On a socket, stories that arrived together are judged in parallel, enter in
// the order of arrival, and are answered when their Receipts have come.
type Story interface {
	// Judge checks the request. It computes, and waits for nothing.
	Judge()
	// Enter enters the Commands, unless a check has refused them.
	Enter()
	// Ready reports whether Await would return at once.
	Ready() bool
	// Await waits for the Receipts.
	Await()
	// Late reports whether Finish has to wait for anything but the Receipts.
	Late() bool
	// Finish answers the request.
	Finish()
}

// Exchange is a request on a socket, and later its answer.
type Exchange struct {
	// Ctx is the request in the form that it has over HTTP, and its answer.
	Ctx fasthttp.RequestCtx
	// Story is the work of the request. If Story is nil, Ctx has the answer already.
	Story Story
	// Signed says that Judge checks signatures of this request.
	Signed bool
	// Counted says that the request is no stray, because rate limits count requests like this one.
	Counted bool
	// Timed says that Door.Answering observes the answer.
	Timed bool

	Method string
	// MaxAge is how many milliseconds after its signature an order may still enter, or "".
	MaxAge string
	Began  time.Time

	id []byte // as JSON
}

// Door is what a socket needs from package ingress. Its functions belong to one socket. Only the
// reader calls them, except Revoked, Answered, Answering and Panicked, which any goroutine of the
// socket may call.
type Door struct {
	// Login checks the first message of a client and answers it. Any status but 200 ends the socket.
	Login func(x *Exchange)
	// Begin sets the Story of a request, or answers it.
	Begin func(x *Exchange)
	// Judge judges several Stories: side by side, or signatures of several together.
	Judge func([]*Exchange)
	// Entered is called when the judged requests have entered.
	Entered func()
	// Revoked reports whether the client's key may no longer be used.
	Revoked func() bool
	// Answered counts an answer.
	Answered func(x *Exchange)
	// Answering observes how many seconds the Finish of a timed request takes; nil: nobody does.
	Answering prometheus.Observer
	// Panicked counts and logs a panic.
	Panicked func(cause any)
}

package socket

import (
	"time"

	"github.com/valyala/fasthttp"
)

// Story is a request that enters Commands, in its steps. Over HTTP the goroutine of the connection
// takes one after the other. On a socket, stories that came together are judged side by side, enter
// in the order in which they came, and are answered when their Receipts have come.
type Story interface {
	// Judge computes, and waits for nothing.
	Judge()
	// Enter enters the Commands, unless something speaks against them.
	Enter()
	// Ready reports whether Await would return at once.
	Ready() bool
	// Await waits for the Receipts.
	Await()
	// Late reports whether Finish waits for anything else.
	Late() bool
	// Finish answers.
	Finish()
}

// Exchange is a request on its way to its answer.
type Exchange struct {
	// Ctx is the request as HTTP would have carried it. The answer goes there.
	Ctx fasthttp.RequestCtx
	// Story is what the request does; nil: Ctx has the answer.
	Story Story
	// Signed says that Judge checks signatures.
	Signed bool
	// Counted says that the request has counted in a window, or is one that windows count.
	Counted bool

	Method string
	// MaxAge is for how many milliseconds the request is wanted, or "".
	MaxAge string
	Began  time.Time

	id []byte // as JSON
}

// Door is what a socket asks of the door. Its functions belong to one socket. The reader alone
// calls them, but for Revoked, Answered and Panicked, which any goroutine of the socket may call.
type Door struct {
	// Login judges the first text of a client and answers it. Any status but 200 ends the socket.
	Login func(x *Exchange)
	// Begin sets the Story of a request, or answers it.
	Begin func(x *Exchange)
	// Judge judges Stories side by side.
	Judge func([]*Exchange)
	// Entered is called when what was judged has entered.
	Entered func()
	// Revoked reports whether the client's key may no longer be used.
	Revoked func() bool
	// Answered counts an answer.
	Answered func(x *Exchange)
	// Panicked counts and logs a panic.
	Panicked func(cause any)
}

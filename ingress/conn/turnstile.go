package conn

import (
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"clobd/api/wire"
)

// Options are the limits of a Turnstile. All fields must be set.
type Options struct {
	Most           int // connections served at once, by all listeners together
	MostPerAddress int // of these, of one address
	Proxies        Proxies
	Version        string // X-Node-Version of a refusal
	// Refused is told the status of each refusal.
	Refused func(status int)
	Log     *slog.Logger
}

// Turnstile counts the connections of all listeners, and those of each address. Any goroutine may
// use it.
type Turnstile struct {
	options Options
	// Timeouts hold for every connection. They may be changed before the first one.
	Timeouts Timeouts

	mutex   sync.Mutex
	open    int
	callers map[[20]byte]int
}

// NewTurnstile makes a Turnstile with the usual Timeouts.
func NewTurnstile(o Options) *Turnstile {
	return &Turnstile{options: o, callers: make(map[[20]byte]int), Timeouts: Timeouts{
		Request: RequestTimeout, Idle: IdleTimeout, Answer: AnswerTimeout, Refusal: RefusalTimeout}}
}

// The refusals of a connection that there is no room for.
var (
	refuseCrowd = wire.Refuse(429, "rate_limited", "too many connections from this address", "")
	refuseFull  = wire.Refuse(503, "busy",
		"too many connections, nothing was entered, send again", "")
)

// admit counts c, or turns it away and returns nil.
func (t *Turnstile) admit(c net.Conn) *Conn {
	var key *[20]byte // nil: counted by no address
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		// A trusted proxy stands for many callers; a connection inside the process for none.
		if from := PeerAddress(tcp); !t.options.Proxies.Trusts(from) {
			of := AddressKey(from)
			key = &of
		}
	}
	if refused := t.enter(key); refused != nil {
		t.turnAway(c, refused)
		return nil
	}
	return &Conn{Conn: c, Direct: key != nil, leave: func() { t.leave(key) },
		timeouts: &t.Timeouts, began: time.Now()}
}

// enter counts a connection and returns nil, or the refusal if there is no room.
func (t *Turnstile) enter(key *[20]byte) *wire.Refusal {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch {
	case key != nil && t.callers[*key] >= t.options.MostPerAddress:
		return refuseCrowd
	case t.open >= t.options.Most:
		return refuseFull
	}
	t.open++
	if key != nil {
		t.callers[*key]++
	}
	return nil
}

func (t *Turnstile) leave(key *[20]byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.open--
	if key == nil {
		return
	}
	if t.callers[*key]--; t.callers[*key] == 0 {
		delete(t.callers, *key)
	}
}

// Open returns how many connections there are.
func (t *Turnstile) Open() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.open
}

// turnAway answers a connection whose request nobody reads, and hangs up. A new socket has room for
// the answer; the deadline is for other kinds of connections.
func (t *Turnstile) turnAway(c net.Conn, r *wire.Refusal) {
	t.options.Refused(r.Status)
	body := r.Append(make([]byte, 0, 128))
	head := "HTTP/1.1 " + strconv.Itoa(r.Status) + " " + http.StatusText(r.Status) +
		"\r\nConnection: close\r\nRetry-After: " + wire.RetrySeconds +
		"\r\nX-Node-Version: " + t.options.Version + "\r\nContent-Type: " + wire.JSON +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	_ = c.SetWriteDeadline(time.Now().Add(t.Timeouts.Refusal))
	_, _ = c.Write(append([]byte(head), body...)) // a client that hung up needs no answer
	_ = c.Close()
}

package conn

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"clobd/api/wire"
)

// Options are the limits of a Turnstile. All fields but Headers and Secure must be set.
type Options struct {
	Most           int // connections served at once, by all listeners together
	MostPerAddress int // of these, of one address
	Sockets        int // open beside them
	// SocketsPerAddress is how many of these one address may have.
	SocketsPerAddress int
	Proxies           Proxies
	Version           string // X-Node-Version of a refusal
	Headers           string // more lines of its head; may be empty
	Secure            bool   // TCP speaks TLS: who is turned away there is told nothing
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
	hurry    atomic.Pointer[time.Time] // the end of all answers, once the node stops
	arrives  atomic.Pointer[Arrivals]

	mutex     sync.Mutex
	open      int
	peak      int              // the most connections since memory went back
	tidying   bool             // memory goes back soon
	strangers int              // of these, of addresses that are not known
	callers   map[[20]byte]int // connections of each address and network
	addresses int              // that have any
	conns     map[*Conn]struct{}
	sockets   sockets
	known     knownAddresses
	arrivals  arrivals // of connections
	told      arrivals // of answers to those that are turned away
}

const (
	// One part in this many of all connections is kept for addresses that have authenticated.
	strangersLeave = 4
	// An IPv6 network of 48 bits has as many connections as this many addresses.
	networkAddresses = 4
	mostTold         = 2000 // of one address in 10 s: more are turned away without an answer
	leastShare       = 16   // connections that an address may always have at the cost of others
	evictions        = 16   // at a time
	evictionLooks    = 2048 // connections that are looked at for them
	evictionFit      = 512  // or that might give way
	crowd            = 1000
	// The HTTP server keeps the goroutine of a connection for ten to twenty seconds.
	giveBackAfter = 22 * time.Second
)

// NewTurnstile makes a Turnstile with the usual Timeouts.
func NewTurnstile(o Options) *Turnstile {
	return &Turnstile{options: o, callers: make(map[[20]byte]int),
		conns: make(map[*Conn]struct{}), sockets: sockets{callers: make(map[[20]byte]int)},
		Timeouts: Timeouts{
			Request: RequestTimeout, Idle: IdleTimeout, Answer: AnswerTimeout, Refusal: RefusalTimeout}}
}

// The refusals of a connection that there is no room for.
var (
	refuseCrowd = wire.Refuse(429, "rate_limited", "too many connections from this address", "")
	refuseFull  = wire.Refuse(503, "busy",
		"too many connections, nothing was entered, send again", "")
)

// admit counts c, or turns it away and returns nil.
func (t *Turnstile) admit(nc net.Conn) *Conn {
	now := time.Now()
	c := &Conn{Conn: nc, turnstile: t, timeouts: &t.Timeouts, began: now}
	c.waits.Store(now.UnixNano())
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		// A trusted proxy stands for many callers; a connection inside the process for none.
		if from := PeerAddress(tcp); !t.options.Proxies.Trusts(from) {
			c.Direct, c.from, c.network = true, AddressKey(from), networkKey(from)
		}
	}
	refused, give := t.enter(c)
	if give != nil && t.evict(c, give) > 0 {
		refused = t.tryAgain(c)
	}
	if refused != nil {
		t.turnAway(c, refused)
		return nil
	}
	return c
}

// enter counts a connection and returns nil, or the refusal if there is no room, and which
// connections may give way, nil if none may: an address with more than its share gets no more at
// the cost of others, and one that comes too often must wait.
func (t *Turnstile) enter(c *Conn) (refused *wire.Refusal, give func(*Conn) bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if c.Direct && t.comesOften(c) {
		return refuseCrowd, nil
	}
	refused, give = t.room(c)
	share := t.options.Most - t.options.Most/strangersLeave
	share = max(share/max(t.addresses, 1), leastShare)
	if refused == refuseFull && t.load(c) >= share {
		return refused, nil
	}
	return refused, give
}

// tryAgain is enter for a connection that others have given way to.
func (t *Turnstile) tryAgain(c *Conn) *wire.Refusal {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	refused, _ := t.room(c)
	return refused
}

// comesOften counts a new connection, and reports whether the address of c, or its network, opens
// too many. An address may always open MostPerAddress connections at once. Callers hold the mutex.
func (t *Turnstile) comesOften(c *Conn) bool {
	most := t.arrives.Load()
	if most == nil {
		return false
	}
	often := most.Strangers
	if t.known.has(c.from) {
		often = most.Known
	}
	often = max(often, t.options.MostPerAddress)
	n := t.arrivals.count(c.from, c.began)
	return t.arrivals.count(c.network, c.began) > networkAddresses*often || n > often
}

// Arrivals are how many connections an address may open in 10 s: Strangers holds for an address
// from which nobody has authenticated lately, Known for the others.
type Arrivals struct{ Strangers, Known int }

// Limit bounds new connections from now on. Before the first call any number is taken.
func (t *Turnstile) Limit(a Arrivals) { t.arrives.Store(&a) }

// room is enter without a look at what else the address does. Callers hold the mutex.
func (t *Turnstile) room(c *Conn) (refused *wire.Refusal, give func(*Conn) bool) {
	c.known = !c.Direct || t.known.has(c.from)
	most := t.options.Most
	if !c.known {
		most -= most / strangersLeave
	}
	switch {
	case c.Direct && t.callers[c.from] >= t.options.MostPerAddress:
		return refuseCrowd, func(o *Conn) bool { return o.Direct && o.from == c.from }
	case c.Direct && t.callers[c.network] >= networkAddresses*t.options.MostPerAddress:
		return refuseCrowd, func(o *Conn) bool { return o.Direct && o.network == c.network }
	case !c.known && (t.strangers >= most || t.open >= t.options.Most && t.strangers > 0):
		return refuseFull, func(o *Conn) bool { return !o.known }
	case t.open >= t.options.Most:
		return refuseFull, func(*Conn) bool { return true }
	}
	t.count(c, 1)
	t.conns[c] = struct{}{}
	return nil, nil
}

// count adds n to the numbers of connections that c is one of.
func (t *Turnstile) count(c *Conn, n int) {
	t.open += n
	t.peak = max(t.peak, t.open)
	if !c.known {
		t.strangers += n
	}
	if !c.Direct {
		return
	}
	before := t.callers[c.from]
	for _, key := range [...][20]byte{c.from, c.network} {
		if t.callers[key] += n; t.callers[key] == 0 {
			delete(t.callers, key)
		}
	}
	if now := t.callers[c.from]; before == 0 {
		t.addresses++
	} else if now == 0 {
		t.addresses--
	}
}

// leave takes a connection out again.
func (t *Turnstile) leave(c *Conn) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if c.socket {
		t.sockets.count(c, -1)
		return
	}
	t.count(c, -1)
	delete(t.conns, c)
	if c.gone != nil {
		close(c.gone)
	}
	if t.peak >= crowd && t.open < t.peak/2 && !t.tidying {
		t.tidying = true
		time.AfterFunc(giveBackAfter, t.giveBack)
	}
}

// giveBack returns to the system what a crowd of connections has left: its stacks and buffers are
// garbage, and an idle node collects garbage every two minutes only.
func (t *Turnstile) giveBack() {
	runtime.GC() // the first collection empties pools, the second what they held
	debug.FreeOSMemory()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.peak, t.tidying = t.open, false
}

// Know notes that somebody has authenticated over c. New connections of the address find room where
// strangers do not.
func (t *Turnstile) Know(c *Conn) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.known.add(c.from, c.network)
	if c.known {
		return
	}
	if _, open := t.conns[c]; open {
		t.strangers--
		c.known = true
	}
}

// evict closes connections that may give way to c, a few at a time, and returns how many. Those of
// addresses with many connections go first, of these the idle ones, and the oldest of them. Where
// an address has far more connections than that of c, those give way, too, that wait for their
// client in the middle of a request. The search looks at some connections only: an attacker who
// fills the house has most of them.
func (t *Turnstile) evict(c *Conn, give func(*Conn) bool) int {
	var found []candidate
	t.mutex.Lock()
	much, looks, fit := muchMore(t.load(c)), evictionLooks, evictionFit
	for o := range t.conns {
		if looks--; looks < 0 || fit == 0 {
			break
		} else if !give(o) {
			continue
		}
		fit--
		load := t.load(o)
		if since := o.waits.Load(); since > 0 {
			found = append(found, candidate{o, o.known, load, &o.waits, since})
		} else if since := o.stalls.Load(); since > 0 && load > much {
			found = append(found, candidate{o, o.known, load, &o.stalls, since})
		}
	}
	t.mutex.Unlock()
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), cmp.Compare(b.load, a.load),
			cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.since, b.since))
	})
	closed := 0
	for _, o := range found {
		if closed > 0 && o.known && !found[0].known {
			break
		} else if closed < evictions && o.state.CompareAndSwap(o.since, evicted) {
			_ = o.Close()
			closed++
		}
	}
	return closed
}

// tells counts an answer to an address that is turned away, and returns how many it got lately.
func (t *Turnstile) tells(c *Conn) int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.told.count(c.from, c.began)
}

// load returns how many connections the address of c has, or its part of those of its network, if
// that is more. A proxy stands for many callers: each of its connections counts alone. Callers hold
// the mutex.
func (t *Turnstile) load(c *Conn) int {
	if !c.Direct {
		return 1
	}
	return max(t.callers[c.from], t.callers[c.network]/networkAddresses)
}

// muchMore is the load above which an address must give way to one with a load of n, even in the
// middle of a request. Addresses of similar loads leave each other alone.
func muchMore(n int) int { return 2*n + 16 }

// candidate is a connection that may give way, and since when it waits.
type candidate struct {
	*Conn
	known bool // somebody has authenticated from its address
	load  int
	state *atomic.Int64 // waits or stalls of Conn
	since int64
}

// class is 0 for a connection of a stranger, who gives way first.
func (o *candidate) class() int {
	if o.known {
		return 1
	}
	return 0
}

// rank is 0 for a connection that waits for its next request, and 1 in the middle of one.
func (o *candidate) rank() int {
	if o.state == &o.stalls {
		return 1
	}
	return 0
}

// Open returns how many connections there are.
func (t *Turnstile) Open() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.open
}

// Busy returns how many connections have a request on its way.
func (t *Turnstile) Busy() (n int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for c := range t.conns {
		if c.waits.Load() == 0 {
			n++
		}
	}
	return n
}

// Hurry gives all connections that wait for their client to read no more than d: for a stop.
func (t *Turnstile) Hurry(d time.Duration) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	end := time.Now().Add(d)
	t.hurry.Store(&end)
	for c := range t.conns {
		if c.writing.Load() {
			_ = c.Conn.SetWriteDeadline(end)
		}
	}
}

// turnAway answers a connection whose request nobody reads, and hangs up. In the middle of a
// handshake an answer would be read as a broken one, and an address that comes all the time gets
// none: answers to it would take longer than letting others in. A new socket has room for the
// answer; the deadline is for other kinds of connections.
func (t *Turnstile) turnAway(admitted *Conn, r *wire.Refusal) {
	t.options.Refused(r.Status)
	c := admitted.Conn
	_, tcp := c.RemoteAddr().(*net.TCPAddr)
	if tcp && t.options.Secure || admitted.Direct && t.tells(admitted) > mostTold {
		_ = c.Close()
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(t.Timeouts.Refusal))
	_, _ = c.Write(Answer(r, t.options.Version, "Connection: close\r\n"+t.options.Headers))
	_ = c.Close() // a client that hung up needs no answer
}

// Answer is a refusal that is sent without the HTTP server: all bytes of it, with further lines of
// the head.
func Answer(r *wire.Refusal, version, lines string) []byte {
	body := r.Append(make([]byte, 0, 128))
	head := "HTTP/1.1 " + strconv.Itoa(r.Status) + " " + http.StatusText(r.Status) +
		"\r\nRetry-After: " + wire.RetrySeconds + "\r\nX-Node-Version: " + version + "\r\n" + lines +
		"Content-Type: " + wire.JSON +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return append([]byte(head), body...)
}

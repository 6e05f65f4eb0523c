package page

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/arl/statsviz"

	"clobd/ingress/conn"
)

const (
	curvesPath    = "/curves/"
	curvesOpen    = 4               // sockets at once
	curvePatience = 5 * time.Second // for a socket that does not read
)

// curvesPolicy is strictly, but for the styles that the curves' own page sets as it draws.
const curvesPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; " +
	"frame-ancestors 'none'"

// curves serves live curves of the runtime and of the node. The library that draws them never
// closes a socket and never notices that a browser has left, so curves holds each connection.
type curves struct {
	sampler *sampler

	mutex  sync.Mutex
	drawer *statsviz.Server // nil until somebody opens the curves; a process has one at a time
	open   map[*curveConn]bool
	closed bool

	// The library's one goroutine reads all series once a second, and alone uses these.
	shown   trend
	shownAt time.Time
}

// ServeHTTP serves the page of the curves, and its socket if there is a place.
func (c *curves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	drawer, full := c.ready()
	switch isSocket := strings.HasPrefix(r.URL.Path, curvesPath+"ws"); {
	case drawer == nil || isSocket && full:
		refuse(w, http.StatusServiceUnavailable, "too many windows show the curves", "close one")
	case isSocket:
		drawer.Ws()(&holder{w, r.Context(), c}, r)
	case strings.HasSuffix(r.URL.Path, ".js"):
		mend(w, r, drawer.Index())
	default:
		drawer.Index()(w, r)
	}
}

// ready returns what draws the curves, nil after close, and whether all places for sockets are
// taken.
func (c *curves) ready() (drawer *statsviz.Server, full bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.drawer == nil && !c.closed {
		c.drawer = c.draw()
	}
	return c.drawer, c.closed || len(c.open) >= curvesOpen
}

// The library's page sorts plots by their tags and searches in the names of their metrics. The
// node's plots have neither: the page breaks where it sorts, and never finds them. They are given
// the tag misc, and are found by their titles.
const (
	tagless, tagged   = "#o.tags.includes(e)", `#o.tags?.includes(e)??e==="misc"`
	unfound, findable = "if(!this.#o.metrics)return!1;",
		"if(!this.#o.metrics)return this.#o.title.toLowerCase().includes(e.toLowerCase());"
)

// mend serves a script of the library without these faults.
func mend(w http.ResponseWriter, r *http.Request, next http.Handler) {
	whole := r.Clone(r.Context())
	whole.Header = http.Header{} // no range, nothing conditional
	heard := overheard{header: w.Header()}
	next.ServeHTTP(&heard, whole)
	w.Header().Del("Content-Length")
	if heard.status != 0 {
		w.WriteHeader(heard.status)
	}
	_, _ = strings.NewReplacer(tagless, tagged, unfound, findable).WriteString(w, heard.body.String())
}

// draw starts the library, which from then on reads the runtime's metrics once a second.
func (c *curves) draw() *statsviz.Server {
	options := []statsviz.Option{statsviz.Root(strings.TrimSuffix(curvesPath, "/"))}
	for _, p := range c.plots() {
		built, err := p.Build()
		if err != nil {
			panic("BUG: plot " + p.Name + ": " + err.Error())
		}
		options = append(options, statsviz.TimeseriesPlot(built))
	}
	drawer, err := statsviz.NewServer(options...)
	if err != nil {
		panic("BUG: curves: " + err.Error())
	}
	return drawer
}

// close ends all sockets, for good.
func (c *curves) close() {
	c.mutex.Lock()
	c.closed = true
	drawer, open := c.drawer, c.open
	c.open = map[*curveConn]bool{}
	c.mutex.Unlock()
	for held := range open {
		held.Conn.Close()
	}
	if drawer != nil {
		drawer.Close()
	}
}

// present is the trend that all series of one message are read from. It is empty while nobody
// sees the curves.
func (c *curves) present() *trend {
	if time.Since(c.shownAt) < freshness/2 {
		return &c.shown
	}
	c.mutex.Lock()
	watched := len(c.open) > 0
	c.mutex.Unlock()
	c.shown = trend{}
	if watched {
		c.shown = c.sampler.look()
	}
	c.shownAt = time.Now()
	return &c.shown
}

// holder hands a connection over to the library, and holds it.
type holder struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	curves *curves
}

// Hijack takes the connection from the HTTP server. Only a connection that gets a place among the
// curves keeps its place among those of the listener, so that few can be kept.
func (h *holder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	held := &curveConn{c, h.curves}
	h.curves.mutex.Lock()
	over := h.curves.closed || len(h.curves.open) >= curvesOpen
	if !over {
		h.curves.open[held] = true
	}
	h.curves.mutex.Unlock()
	if over {
		c.Close()
		return nil, nil, net.ErrClosed
	}
	conn.Keep(h.ctx)
	go held.await()
	return held, buffered, nil
}

// curveConn is the connection of a socket that shows curves.
type curveConn struct {
	net.Conn
	curves *curves
}

// await closes the connection when its browser says anything, because all that it ever says is that
// it leaves.
func (c *curveConn) await() {
	var farewell [1]byte
	_, _ = c.Conn.Read(farewell[:])
	c.Close()
}

// Write writes a message, and closes the connection if that fails or lasts too long.
func (c *curveConn) Write(b []byte) (int, error) {
	err := c.Conn.SetWriteDeadline(time.Now().Add(curvePatience))
	n := 0
	if err == nil {
		n, err = c.Conn.Write(b)
	}
	if err != nil {
		c.Close()
	}
	return n, err
}

// Close closes the connection and gives its place back.
func (c *curveConn) Close() error {
	c.curves.mutex.Lock()
	delete(c.curves.open, c)
	c.curves.mutex.Unlock()
	return c.Conn.Close()
}

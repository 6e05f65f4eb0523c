package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"clobd/ingress/auth"
)

// peerReady is where a baseline says that it is up, and how it runs.
const peerReady = "/ready"

// Peer is a baseline to be served: "naive" with its database in the folder Path, or "bare", which
// answers GET /book, /midpoint and /price, POST /order and /orders with the contents of the file
// Path.
type Peer struct {
	What    string
	Listen  string // HOST:PORT
	Path    string
	Version string // what this program was built from
}

// Serve serves the baseline until ctx is done.
func (p *Peer) Serve(ctx context.Context) error {
	ln, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if p.What == "bare" {
		return p.serveBare(ctx, ln)
	}
	n, err := NewNaive(p.Path, auth.Domains(chain)[0].Separator(), p.ready)
	if err != nil {
		return err
	}
	return serve(ctx, func() error { return n.Serve(ln) }, n.Close)
}

// ready answers how this process runs.
func (p *Peer) ready(ctx *fasthttp.RequestCtx) {
	if err := json.NewEncoder(ctx).Encode(thisProgram(p.Version)); err != nil {
		ctx.Error(err.Error(), http.StatusInternalServerError)
	}
}

// serveBare answers through the same router with the same header and nothing else.
func (p *Peer) serveBare(ctx context.Context, ln net.Listener) error {
	body, err := os.ReadFile(p.Path)
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	routes := router.New()
	answer := func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.Response.SetBodyRaw(body)
	}
	for _, path := range []string{"/book", "/midpoint", "/price"} {
		routes.GET(path, answer)
	}
	routes.POST("/order", answer)
	routes.POST("/orders", answer)
	routes.GET(peerReady, p.ready)
	s := &fasthttp.Server{Handler: routes.Handler, NoDefaultServerHeader: true}
	return serve(ctx, func() error { return s.Serve(ln) }, s.Shutdown)
}

// serve runs a server until ctx is done or it fails by itself.
func serve(ctx context.Context, run, stop func() error) error {
	served := make(chan error, 1)
	go func() { served <- run() }()
	select {
	case <-ctx.Done():
		return stop()
	case err := <-served:
		return err
	}
}

// conditions asks a baseline how it runs.
func (c *child) conditions(ctx context.Context) (*Program, error) {
	status, body, err := get(ctx, "http://"+c.addr+peerReady)
	if err != nil {
		return nil, fmt.Errorf("ask the baseline for its conditions: %w", err)
	}
	p := &Program{}
	if err := json.Unmarshal(body, p); err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("ask the baseline for its conditions: status %d: %s", status, body)
	}
	return p, nil
}

package ingress

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/ingress/operator"
)

// survive answers a request whose handler panicked, and closes its connection. The node goes on:
// handlers share nothing that they could leave torn, and the Sequencer stops the node itself if a
// panic met it with a part of its ring.
func (s *Server) survive(ctx *fasthttp.RequestCtx) {
	cause := recover()
	if cause == nil {
		return
	}
	id := s.Panicked(string(ctx.Method())+" "+string(ctx.Path()), cause)
	ctx.Response.Reset()
	refusePanic(wire.FamilyFor(ctx), id, !ctx.IsGet() && !ctx.IsHead()).Send(ctx)
	ctx.SetConnectionClose()
	s.panicked.observe(ctx)
}

// Panicked counts and logs a panic of the handler of a request. It must be called while the stack
// is still there. The id is for the answer.
func (s *Server) Panicked(request string, cause any) (id string) {
	id = newID()
	s.metrics.panics.Inc()
	stack := ""
	if s.stacks.Add(1) <= loggedStacks {
		stack = string(debug.Stack())
	}
	s.options.Log.Error("a handler panicked", "id", id,
		"request", request[:min(len(request), loggedBytes)], "cause", fmt.Sprint(cause), "stack", stack)
	return id
}

// Bounds of what panics write to the log: whoever finds a request that panics may repeat it.
const (
	loggedBytes  = 200 // of a request
	loggedStacks = 100
)

// refusePanic is the answer to a request whose handler panicked.
func refusePanic(f wire.Family, id string, write bool) *wire.Refusal {
	detail := "this is a bug of the node, whose log has it under " + id
	if write {
		detail += ": whether the request had an effect is unknown"
	}
	if f == wire.Wallets {
		return f.Refuse(http.StatusInternalServerError, "internal_error", detail, "")
	}
	return f.Refuse(http.StatusInternalServerError, "internal", "internal_error", detail)
}

// Surviving makes the handler of the operator's requests answer 500 after a panic.
func (s *Server) Surviving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil {
				id := s.Panicked(r.Method+" "+r.URL.Path, cause)
				operator.Refuse(w, refusePanic(wire.Operators, id, r.Method != http.MethodGet))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

package main

import (
	"net/http"
	"net/http/pprof"
	"strings"
)

// profileRoutes adds the profiles of the process, for whoever has the token.
func profileRoutes(mux *http.ServeMux, guarded func(http.HandlerFunc) http.HandlerFunc) {
	for name, profile := range map[string]http.HandlerFunc{"": pprof.Index,
		"cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol,
		"trace": pprof.Trace} {
		mux.HandleFunc("/debug/pprof/"+name, guarded(func(w http.ResponseWriter, r *http.Request) {
			answer := profileAnswer{ResponseWriter: w}
			profile(&answer, r)
			answer.end()
		}))
	}
}

// profileAnswer passes a profile on as it comes. A refusal, which is plain text, becomes JSON like
// every other refusal of the admin listener.
type profileAnswer struct {
	http.ResponseWriter
	refused int // the status of a refusal, else 0
	text    strings.Builder
}

// WriteHeader keeps the status of a refusal back.
func (a *profileAnswer) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		a.refused = status
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write keeps the text of a refusal back.
func (a *profileAnswer) Write(b []byte) (int, error) {
	if a.refused != 0 {
		return a.text.Write(b)
	}
	return a.ResponseWriter.Write(b)
}

func (a *profileAnswer) end() {
	if a.refused == 0 {
		return
	}
	h := a.Header()
	for _, name := range []string{"Content-Disposition", "X-Go-Pprof"} {
		h.Del(name)
	}
	tell(a.ResponseWriter, a.refused, problem{strings.TrimSpace(a.text.String()),
		"GET /debug/pprof/ names the profiles"})
}

package ingress

import (
	"net/http"
	"strings"
	"testing"

	"clobd/api/wire"
	"clobd/ingress/head"
)

// TestUnclearHeaders: a request of which a header is missing, empty or doubled opens nothing and
// changes nothing. The answer names the header, and nothing of a header that came once.
func TestUnclearHeaders(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	for _, family := range head.Families {
		w := rawRequest{method: "DELETE", path: "/cancel-all"}
		h.signed(&w, "alice", &words{[]string{"dialect=" + string(family)}})
		if got := h.send(w.String()); !strings.HasPrefix(got, "200\n") {
			t.Fatalf("%s: %s", family, got)
		}
		for i, line := range w.headers {
			name, value, _ := strings.Cut(line, ": ")
			if !strings.HasPrefix(name, string(family)) {
				continue
			}
			for _, c := range unclear(name, value) {
				changed := w
				changed.headers = append(append([]string{}, w.headers[:i]...), w.headers[i+1:]...)
				changed.headers = append(changed.headers, c.lines...)
				got := h.send(changed.String())
				want := `"detail":"` + c.fault + name + `; send ADDRESS`
				if !strings.HasPrefix(got, "401\n") || !strings.Contains(got, want) {
					t.Errorf("%q: %s, want %s", c.lines, got, want)
				}
			}
			wrong := w
			wrong.headers = append([]string{}, w.headers...)
			if wrong.headers[i] = name + ": " + value[:len(value)-1] + "z"; name == string(family)+"TIMESTAMP" {
				continue
			}
			got := h.send(wrong.String())
			if !strings.HasPrefix(got, "401\n") || strings.Contains(got, name) {
				t.Errorf("a wrong %s: %s", name, got)
			}
		}
	}
}

type unclearCase struct {
	lines []string
	fault string
}

// unclear are the ways in which a header may not be there once, with a value.
func unclear(name, value string) (cases []unclearCase) {
	good, dashed := name+": "+value, strings.ReplaceAll(name, "_", "-")+": "
	cases = append(cases, unclearCase{nil, "missing: "}, unclearCase{[]string{name + ": "}, "missing: "})
	for _, other := range []string{name + ": ", name + ": " + value, strings.ToLower(name) + ":",
		dashed, dashed + value, http.CanonicalHeaderKey(name) + ": x"} {
		cases = append(cases, unclearCase{[]string{other, good}, "twice: "},
			unclearCase{[]string{good, other}, "twice: "})
	}
	return cases
}

// TestUnclearForeign: a header that came twice in another family is refused too, and on each kind
// of route that reads headers.
func TestUnclearForeign(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	for _, route := range []string{"GET /data/orders", "POST /order", "POST /orders",
		"DELETE /order", "DELETE /orders", "DELETE /cancel-all", "POST /heartbeats", "POST /split",
		"GET /auth/api-keys", "DELETE /auth/api-key", "POST /auth/api-key",
		"GET /auth/derive-api-key", "GET /builder/trades", "DELETE /auth/builder-api-key"} {
		method, path, _ := strings.Cut(route, " ")
		for _, family := range head.Families {
			w := rawRequest{method: method, path: path}
			h.signed(&w, "alice", &words{[]string{"dialect=" + string(wire.POLY)}})
			name := string(family) + "BUILDER_API_KEY"
			w.headers = append(w.headers, name+":", name+": x")
			if got := h.send(w.String()); !strings.HasPrefix(got, "401\n") ||
				!strings.Contains(got, "twice: "+name+";") {
				t.Errorf("%s: %s", route, got)
			}
		}
	}
}

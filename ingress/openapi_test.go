package ingress

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/head"
	"clobd/scripts/openapi"
)

// promise is the document that clients read, which every answer of the door is held against.
var promise = sync.OnceValues(openapi.Load)

// conforms holds the response to a raw request against the document. What the stand-ins for the
// reads say is no answer of the node.
func (h *house) conforms(raw string, r *fasthttp.Response) {
	h.t.Helper()
	body := string(r.Body())
	if strings.HasPrefix(body, "public ") || strings.HasPrefix(body, "account ") {
		return
	}
	d, err := promise()
	if err != nil {
		h.t.Fatal(err)
	}
	head, _, _ := strings.Cut(raw, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	method, rest, _ := strings.Cut(lines[0], " ")
	target, _, _ := strings.Cut(rest, " ")
	dialect := ""
	if r.StatusCode() == fasthttp.StatusOK {
		dialect = dialectOf(lines[1:])
	}
	a := &openapi.Answer{
		Method: method, Target: target, Dialect: dialect, Status: r.StatusCode(),
		ContentType: string(r.Header.ContentType()), Body: r.Body(), Header: headerOf(r),
	}
	if err := d.Check(a); err != nil {
		h.t.Error(err)
	}
	h.record.Note(d, a)
}

// dialectOf is the first of the header families that any line is of, "" for none.
func dialectOf(lines []string) string {
	for _, family := range head.Families {
		if slices.ContainsFunc(lines, func(line string) bool {
			return len(line) > len(family) && head.FoldEqual([]byte(line[:len(family)]), string(family))
		}) {
			return string(family)
		}
	}
	return ""
}

// headerOf is the header of an answer as the document's checks want it.
func headerOf(r *fasthttp.Response) http.Header {
	header := http.Header{}
	for name, value := range r.Header.All() {
		header.Add(string(name), string(value))
	}
	return header
}

// TestDocumented: what the door serves is documented, and what is documented of it is served. What
// it only hands on is in the table of whom it is handed to.
func TestDocumented(t *testing.T) {
	d, err := promise()
	if err != nil {
		t.Fatal(err)
	}
	mine := d.Routes("service", "streams", "trading", "keys")
	handedOn := d.Routes("account", "markets")
	served := map[string]bool{}
	for method, paths := range newHouse(t, nil).server.routes.List() {
		if method == fasthttp.MethodHead || method == fasthttp.MethodOptions {
			continue
		}
		for _, path := range paths {
			served[openapi.Route(method, path)] = true
		}
	}
	for _, route := range mine {
		method, path, _ := strings.Cut(route, " ")
		if !served[route] || !served[method+" "+strings.TrimSuffix("/clob"+path, "/")] {
			t.Errorf("%s is documented and not served, or not under /clob", route)
		}
	}
	for route := range served {
		_, path, _ := strings.Cut(route, " ")
		known := strings.HasPrefix(path, "/clob") || strings.HasSuffix(path, "/{}") ||
			slices.Contains(mine, route) ||
			slices.ContainsFunc(handedOn, func(r string) bool { return strings.HasSuffix(r, " "+path) })
		if !known {
			t.Errorf("%s is served and not documented", route)
		}
	}
}

// TestDocumentedCodes: every word with which the engine can refuse what a client asks is there.
func TestDocumentedCodes(t *testing.T) {
	d, err := promise()
	if err != nil {
		t.Fatal(err)
	}
	// Those are for operators, and the door gives no key the number of another one.
	operators := []string{"listing_conflict", "link_conflict", "payout", "invalid_rules", "key_deleted"}
	for reject, rule := range engine.Rejects {
		if rule.HTTP != fasthttp.StatusOK && !slices.Contains(operators, rule.Code) &&
			!slices.Contains(d.Codes(), rule.Code) {
			t.Errorf("reject %d: %s is not documented", reject, rule.Code)
		}
	}
}

package api

import (
	"bufio"
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/scripts/openapi"
)

// promise is the document that clients read, which every answer is held against.
var promise = sync.OnceValues(openapi.Load)

// conforms holds the raw response to a request line against the document. What the door serves
// itself never comes here.
func (s *script) conforms(line, caller string, raw []byte) {
	s.t.Helper()
	d, err := promise()
	s.must(err)
	method, target, _ := strings.Cut(line, " ")
	if d.Tag(method, target) == "service" {
		return
	}
	var r fasthttp.Response
	r.SkipBody = method == "HEAD"
	s.must(r.Read(bufio.NewReader(bytes.NewReader(raw))))
	_, dialect, _ := strings.Cut(caller, " ")
	a := &openapi.Answer{
		Method: method, Target: target, Dialect: dialect, Status: r.StatusCode(),
		ContentType: string(r.Header.ContentType()), Body: r.Body(), Header: headerOf(&r),
	}
	if err := d.Check(a); err != nil {
		s.t.Error(err)
	}
	s.record.Note(d, a)
}

// headerOf is the header of an answer as the document's checks want it.
func headerOf(r *fasthttp.Response) http.Header {
	header := http.Header{}
	for name, value := range r.Header.All() {
		header.Add(string(name), string(value))
	}
	return header
}

// TestDocumented: what is served is documented, and what is documented of it is served.
func TestDocumented(t *testing.T) {
	d, err := promise()
	if err != nil {
		t.Fatal(err)
	}
	h := newNode(t).handler
	served := map[string]bool{}
	for _, table := range h.tables() {
		for _, r := range table.routes {
			served[openapi.Route("GET", r.Path)] = true
		}
	}
	for _, r := range h.posts() {
		served[openapi.Route("POST", r.Path)] = true
	}
	for _, route := range h.account.Private() {
		method, path, _ := strings.Cut(route, " ")
		served[openapi.Route(method, path)] = true
	}
	documented := d.Routes("account", "books", "markets", "catalog", "wallets", "description")
	for _, route := range documented {
		if !served[route] {
			t.Errorf("%s is documented and not served", route)
		}
	}
	for route := range served {
		if !slices.Contains(documented, route) {
			t.Errorf("%s is served and not documented", route)
		}
	}
}

// TestServesDocument: the node serves the documents that its tests use, and answers 304 to a client
// that has them already.
func TestServesDocument(t *testing.T) {
	s := newScript(t)
	for path, want := range map[string][]byte{"/openapi.json": description,
		"/clob/openapi.json": description, "/asyncapi.json": speech, "/clob/asyncapi.json": speech} {
		status, body := s.get(path)
		if status != 200 || !bytes.Equal(body, want) {
			t.Errorf("%s: status %d, %d bytes of %d", path, status, len(body), len(want))
		}
		first := ask("GET", path)
		s.handler.Public(first)
		again := ask("GET", path)
		again.Request.Header.SetBytesV("If-None-Match", first.Response.Header.Peek("ETag"))
		if s.handler.Public(again); again.Response.StatusCode() != fasthttp.StatusNotModified {
			t.Errorf("%s: whoever has it gets %d", path, again.Response.StatusCode())
		}
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"clobd/scripts/asyncapi"
	"clobd/scripts/openapi"
)

// witness is the proxy and what it has seen.
type witness struct {
	document *openapi.Document
	protocol *asyncapi.Protocol // nil: messages on sockets are not checked
	proxy    *httputil.ReverseProxy

	mutex   sync.Mutex
	seen    int      // answers
	heard   int      // messages on sockets, of both sides
	again   int      // how often a request was sent again
	reasons []string // kinds of what was not as promised, as they came
	times   map[string]int
	first   map[string]string // the first of a kind in full
}

func newWitness(d *openapi.Document, p *asyncapi.Protocol, node *url.URL) *witness {
	w := &witness{document: d, protocol: p, times: map[string]int{}, first: map[string]string{}}
	w.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(node); r.Out.Host = r.In.Host },
		Transport: &patient{to: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
			long: patience, between: w.between},
		ModifyResponse: w.look,
		// Clients hang up in the middle when they like; what that means is for their tests to say.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return w
}

// patient sends a request again if the node was busy, or if its index lagged behind the last write.
// It asks the node to wait for that write, which published clients do not do. How often it tries
// depends on the machine; nothing else may. The client gets the last answer. All earlier answers
// must be as documented, and a node that lags for ever is an error.
type patient struct {
	to      http.RoundTripper
	long    time.Duration                            // how long it tries
	between func(answer *http.Response, body []byte) // is told of each answer but the last
}

// How long a witness tries, and how long it rests between two tries.
const (
	patience = 3 * time.Minute
	breath   = 20 * time.Millisecond
)

// RoundTrip sends a request.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		_ = r.Body.Close() // it was read to its end
	}
	for end := time.Now().Add(p.long); ; time.Sleep(breath) {
		again := r.Clone(r.Context())
		if r.Body != nil {
			again.Body = io.NopCloser(bytes.NewReader(sent))
		}
		answer, err := p.to.RoundTrip(again)
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable &&
			answer.StatusCode != http.StatusGatewayTimeout {
			return answer, err
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		_ = answer.Body.Close() // it was read to its end
		answer.Body = io.NopCloser(bytes.NewReader(body))
		if !later(answer.StatusCode, string(body)) || time.Now().After(end) {
			return answer, nil
		}
		p.between(answer, body)
	}
}

// later says whether an answer asks for the same request again. An order that is known already is
// the same order when it is sent again.
func later(status int, body string) bool {
	lags := strings.Contains(body, "index_lagging")
	return lags || status == http.StatusServiceUnavailable &&
		(strings.Contains(body, `"code":"busy"`) || strings.Contains(body, `"code":"recheck"`))
}

// look reads an answer on its way and notes what is wrong with it. The client gets it as it is.
func (w *witness) look(r *http.Response) error {
	if r.StatusCode == http.StatusSwitchingProtocols {
		w.listen(r)
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	_ = r.Body.Close() // it was read to its end
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.hold(r, body)
	return nil
}

// between checks an answer after which the request is sent again.
func (w *witness) between(r *http.Response, body []byte) {
	w.hold(r, body)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.again++
}

// hold holds an answer against the document. A client that asks for gzip gets gzip, and the witness
// reads what the client will read.
func (w *witness) hold(r *http.Response, body []byte) {
	dialect := ""
	if r.StatusCode == http.StatusOK {
		dialect = dialectOf(r.Request.Header)
	}
	text, err := plain(r.Header, body)
	if err == nil {
		err = w.document.Check(&openapi.Answer{
			Method: r.Request.Method, Target: r.Request.URL.RequestURI(), Dialect: dialect,
			Status: r.StatusCode, ContentType: r.Header.Get("Content-Type"), Body: text,
			Header: r.Header,
		})
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.seen++
	if err == nil {
		return
	}
	kind := fmt.Sprint(w.document.Name(r.Request.Method, r.Request.URL.Path), " ", r.StatusCode)
	if inner := errors.Unwrap(err); inner != nil {
		kind += " " + strings.SplitN(inner.Error(), "\n", 2)[0]
	}
	w.note(kind, err)
}

// plain is the body of an answer without its content coding. An answer to HEAD has none.
func plain(header http.Header, body []byte) ([]byte, error) {
	if header.Get("Content-Encoding") != "gzip" || len(body) == 0 {
		return body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("unpack the answer: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpack the answer: %w", err)
	}
	return text, nil
}

// note keeps what is not as promised: the number of each kind, and the first of the kind in full.
func (w *witness) note(kind string, err error) {
	if w.times[kind]++; w.times[kind] == 1 {
		w.reasons = append(w.reasons, kind)
		w.first[kind] = err.Error()
	}
}

// report says what was seen. The error says how much of it was not as promised.
func (w *witness) report(out io.Writer) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	wrong := 0
	for _, kind := range w.reasons {
		wrong += w.times[kind]
		fmt.Fprintf(out, "NOT AS DOCUMENTED, %d times: %s\n", w.times[kind], w.first[kind])
	}
	fmt.Fprintf(out, "%d answers and %d messages held against the documents, %d not as they say; "+
		"asked again %d times\n", w.seen, w.heard, wrong, w.again)
	switch {
	case wrong > 0:
		return fmt.Errorf("%d answers or messages are not as documented", wrong)
	case w.seen == 0:
		return errors.New("no answer was seen")
	}
	return nil
}

// dialectOf is the first of the header families that any header is of, "" for none.
func dialectOf(header http.Header) string {
	for _, family := range []string{"SVC_", "POLY_", "KUEST_"} {
		named := func(name string) bool {
			name = strings.ReplaceAll(strings.ToUpper(name), "-", "_")
			return strings.HasPrefix(name, family)
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(header)), named) {
			return family
		}
	}
	return ""
}

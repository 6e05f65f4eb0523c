package main

import (
	"bytes"
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

	"clobd/scripts/openapi"
)

// witness is the proxy and what it has seen.
type witness struct {
	document *openapi.Document
	proxy    *httputil.ReverseProxy

	mutex   sync.Mutex
	seen    int
	reasons []string // kinds of what was not as promised, as they came
	times   map[string]int
	first   map[string]string // the first of a kind in full
}

func newWitness(d *openapi.Document, node *url.URL) *witness {
	w := &witness{document: d, times: map[string]int{}, first: map[string]string{}}
	w.proxy = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(node); r.Out.Host = r.In.Host },
		Transport:      &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
		ModifyResponse: w.look,
		// Clients hang up in the middle when they like; what that means is for their tests to say.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return w
}

// look reads an answer on its way and notes what is wrong with it. The client gets it as it is.
func (w *witness) look(r *http.Response) error {
	if r.StatusCode == http.StatusSwitchingProtocols {
		return nil // frames are no answers
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	_ = r.Body.Close() // it was read to its end
	r.Body = io.NopCloser(bytes.NewReader(body))
	dialect := ""
	if r.StatusCode == http.StatusOK {
		dialect = dialectOf(r.Request.Header)
	}
	err = w.document.Check(&openapi.Answer{
		Method: r.Request.Method, Target: r.Request.URL.RequestURI(), Dialect: dialect,
		Status: r.StatusCode, ContentType: r.Header.Get("Content-Type"), Body: body, Header: r.Header,
	})
	w.note(r, err)
	return nil
}

// note counts an answer. Of those that are wrong alike the first is kept.
func (w *witness) note(r *http.Response, err error) {
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
	fmt.Fprintf(out, "%d answers held against the document, %d not as it says\n", w.seen, wrong)
	switch {
	case wrong > 0:
		return fmt.Errorf("%d answers are not as documented", wrong)
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

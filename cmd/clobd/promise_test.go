package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"clobd/scripts/openapi"
)

// promise is the document that clients read, which every answer of the public listener is held
// against.
var promise = sync.OnceValues(openapi.Load)

// documented is a transport whose answers are as documented, or the test fails.
type documented struct{ t testing.TB }

// RoundTrip asks, and holds what comes against the document.
func (d documented) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	_ = answer.Body.Close() // it was read to its end
	answer.Body = io.NopCloser(bytes.NewReader(body))
	conform(d.t, &openapi.Answer{
		Method: r.Method, Target: r.URL.RequestURI(), Status: answer.StatusCode,
		ContentType: answer.Header.Get("Content-Type"), Body: body, Header: answer.Header,
	})
	return answer, nil
}

// conform fails the test if an answer is not as documented.
func conform(t testing.TB, a *openapi.Answer) {
	t.Helper()
	d, err := promise()
	if err == nil {
		err = d.Check(a)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestHeld: an answer that is not as documented fails the test that asked.
func TestHeld(t *testing.T) {
	var fails failures
	conform(&fails, &openapi.Answer{Method: "GET", Target: "/price", Status: 200,
		ContentType: "application/json", Body: []byte(`{"price":0.5}`)})
	if !strings.Contains(fails.said, "GET /price answers 200") {
		t.Errorf("it said %q", fails.said)
	}
}

// failures is a test that remembers why it failed.
type failures struct {
	testing.TB
	said string
}

func (f *failures) Helper() {}

func (f *failures) Error(all ...any) { f.said += fmt.Sprint(all...) }

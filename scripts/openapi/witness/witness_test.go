package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"clobd/scripts/openapi"
)

// TestWitness: answers pass as they are, and what is not as documented is told once, with how often
// it was seen.
func TestWitness(t *testing.T) {
	text, err := os.ReadFile("../../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := os.ReadFile("../../../api/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string]string{"/openapi.json": string(text), "/asyncapi.json": string(sockets),
			"/price": `{"price":"0.50"}`, "/midpoint": `{"mid":"0.5"}`, "/ok": `"OK"`}[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/ok" {
			w.Header().Set("X-Secret", "1")
		}
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && r.URL.RawQuery == "packed" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, body)
			_ = z.Close()
			return
		}
		_, _ = io.WriteString(w, body)
	}))
	defer node.Close()
	d, p, err := fetchBoth(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	target, _ := url.Parse(node.URL)
	w := newWitness(d, p, target)
	front := httptest.NewServer(w.proxy)
	defer front.Close()
	var out strings.Builder
	if err := w.report(&out); err == nil {
		t.Error("nothing was seen, and that passed")
	}
	ask := func(path, want string) {
		t.Helper()
		answer, err := http.Get(front.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if got, err := io.ReadAll(answer.Body); string(got) != want || err != nil {
			t.Errorf("%s: %s %v", path, got, err)
		}
	}
	ask("/midpoint?token_id=1", `{"mid":"0.5"}`)
	ask("/midpoint?packed", `{"mid":"0.5"}`) // Go's client asks for gzip, and unpacks
	if err := w.report(&out); err != nil {
		t.Error(err)
	}
	ask("/price?token_id=1", `{"price":"0.50"}`)
	ask("/price?token_id=2", `{"price":"0.50"}`)
	ask("/ok", `"OK"`)
	out.Reset()
	err = w.report(&out)
	if err == nil || !strings.Contains(err.Error(), "3 answers") {
		t.Error(err)
	}
	for _, want := range []string{"2 times: GET /price?token_id=1 answers 200", "X-Secret is not",
		"5 answers and 0 messages held against the documents, 3 not as they say"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}

// TestPatient: what the node asks for again is sent again as it was, and nothing else is.
func TestPatient(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		asked  int
	}{
		{503, `{"error":"x","code":"busy"}`, 3},
		{503, `{"error":"x","code":"index_lagging"}`, 3},
		{504, `{"error":"order timed out","code":"index_lagging"}`, 3},
		{503, `{"error":"x","code":"cancel_only"}`, 1},
		{504, `{"error":"x","code":"timeout"}`, 1},
		{400, `{"error":"x","code":"busy"}`, 1},
	} {
		asked := 0
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if text, err := io.ReadAll(r.Body); string(text) != "sent" || err != nil {
				t.Errorf("the node gets %q, %v", text, err)
			}
			if asked++; asked < 3 {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}
		}))
		between := 0
		client := http.Client{Transport: &patient{to: http.DefaultTransport, long: patience,
			between: func(answer *http.Response, body []byte) {
				if between++; answer.StatusCode != c.status || string(body) != c.body {
					t.Errorf("on the way: %d %s", answer.StatusCode, body)
				}
			}}}
		answer, err := client.Post(node.URL, "text/plain", strings.NewReader("sent"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || asked != c.asked || asked < 3 && string(body) != c.body {
			t.Errorf("%d %s: asked %d times, %s %v", c.status, c.body, asked, body, err)
		}
		if between != asked-1 {
			t.Errorf("%d %s: asked %d times, told of %d", c.status, c.body, asked, between)
		}
		node.Close()
	}
}

// TestBetween: answers that the client never gets are held against the document, and counted.
func TestBetween(t *testing.T) {
	d, err := openapi.Read("../../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string // what the node says before it knows the price
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := `{"price":"0.5"}`
		if len(bodies) > 0 {
			body, bodies = bodies[0], bodies[1:]
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, body)
	}))
	defer node.Close()
	target, _ := url.Parse(node.URL)
	w := newWitness(d, nil, target)
	front := httptest.NewServer(w.proxy)
	defer front.Close()
	const lags, bare = `{"error":"x","code":"index_lagging"}`, `{"code":"index_lagging"}`
	for _, c := range []struct {
		bodies []string
		want   string
		right  bool
	}{
		{[]string{lags, lags}, "3 answers and 0 messages held against the documents, 0 not as they say; " +
			"asked again 2 times", true},
		{[]string{lags, bare}, "6 answers and 0 messages held against the documents, 1 not as they say; " +
			"asked again 4 times", false},
	} {
		bodies = c.bodies
		answer, err := http.Get(front.URL + "/price?token_id=1&side=BUY")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(body) != `{"price":"0.5"}` || err != nil {
			t.Errorf("the client gets %s %v", body, err)
		}
		var out strings.Builder
		if err := w.report(&out); (err == nil) != c.right || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: %v, %s", c.bodies, err, out.String())
		}
	}
}

// TestPatienceEnds: a node that asks for it without end is asked again for so long only, and then
// the client gets what it said last.
func TestPatienceEnds(t *testing.T) {
	asked := 0
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, `{"error":"%d","code":"busy"}`, asked)
	}))
	defer node.Close()
	between := 0
	client := http.Client{Transport: &patient{to: http.DefaultTransport, long: 10 * breath,
		between: func(*http.Response, []byte) { between++ }}}
	answer, err := client.Get(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if want := fmt.Sprintf(`{"error":"%d","code":"busy"}`, asked); string(body) != want ||
		answer.StatusCode != http.StatusServiceUnavailable || between != asked-1 || err != nil {
		t.Errorf("asked %d times, told of %d: %d %s %v", asked, between, answer.StatusCode, body, err)
	}
}

// TestFetch: without the node's document there is no witness.
func TestFetch(t *testing.T) {
	node := httptest.NewServer(http.NotFoundHandler())
	if _, _, err := fetchBoth(node.URL); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	node.Close()
	if err := run("127.0.0.1:0", node.URL, io.Discard); err == nil {
		t.Error("it ran without a node")
	}
	if err := run("", "", io.Discard); err == nil || !strings.Contains(err.Error(), "want HOST") {
		t.Error(err)
	}
}

// TestDialectOf: the families are told apart however a proxy spells headers.
func TestDialectOf(t *testing.T) {
	for name, want := range map[string]string{"Poly_address": "POLY_", "KUEST-API-KEY": "KUEST_",
		"svc_address": "SVC_", "Polygon": "", "Accept": ""} {
		if got := dialectOf(http.Header{name: {"x"}}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

package main

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/ingress/auth"
)

// TestClusterWindows: an account has its limit once over all doors, whichever nodes they are at. A
// door that must turn the account away because of what it did elsewhere answers as the node whose
// own window is full. Cancels go on, and so do other accounts.
func TestClusterWindows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits")
	if err := os.WriteFile(file, []byte("limit order-burst 30/1h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFleetOf(t, 1, 3, "--limits", "on", "--limits-file", file)
	leader := f.agree(t)
	doors, at := []string{"g", "a", leader}, map[string]*actor{}
	if leader == "a" {
		doors[1] = "b"
	}
	for _, name := range doors { // one account
		at[name] = newTrader(t, "http://"+f.nodes[name].listen, f.tokens, rand.New(rand.NewPCG(7, 7)))
	}
	x := at["g"]
	f.nodes["a"].fund(t, auth.Checksum(x.Signer.Address), "1000000")
	f.agree(t)
	var first *intent
	for n := range 30 { // 10 at each
		y := at[doors[n%3]]
		i := y.draw(t)
		if status, text, err := y.post(i); status != http.StatusOK || err != nil {
			t.Fatalf("order %d at %s: %d %s %v", n, doors[n%3], status, text, err)
		}
		if first == nil {
			first = i
		}
	}
	said := map[string]string{}
	for _, name := range doors {
		said[name] = turnedAway(t, at[name], "/order", at[name].draw(t).body)
	}
	for _, name := range doors[:2] {
		if said[name] != said[leader] {
			t.Errorf("%s says\n%s\n%s, which leads:\n%s", name, said[name], leader, said[leader])
		}
		one, two := at[name].draw(t), at[name].draw(t)
		list := bytes.Join([][]byte{one.body, two.body}, []byte(","))
		if text := turnedAway(t, at[name], "/orders", append(append([]byte("["), list...), ']')); text !=
			said[leader] {
			t.Errorf("a list at %s: %s", name, text)
		}
		metric(t, f.nodes[name], `clobd_limits_hit_total{window="order-burst"} 2`)
	}
	metric(t, f.nodes[leader], `clobd_limits_hit_total{window="order-burst"} 1`)
	metric(t, f.nodes[leader], `clobd_cluster_limited_total 4`)
	for _, name := range doors {
		for _, other := range f.traders[name] {
			if status, text, err := other.post(other.draw(t)); status != http.StatusOK || err != nil {
				t.Errorf("another account at %s: %d %s %v", name, status, text, err)
			}
		}
		if status, text, err := at[name].cancel(first); status != http.StatusOK || err != nil {
			t.Errorf("a cancel at %s: %d %s %v", name, status, text, err)
		}
		status, text, err := at[name].exchange(http.MethodDelete, "/cancel-all", nil)
		if status != http.StatusOK || err != nil {
			t.Errorf("all cancels at %s: %d %s %v", name, status, text, err)
		}
	}
	if t.Failed() {
		t.Log(f.logs())
	}
}

// waits are the numbers of an answer with status 429 that differ by when it was asked for.
var waits = regexp.MustCompile(`(;t=|Reset: |Retry-After: |_seconds":)\d+|"orderID":"0x\w+"`)

// turnedAway sends orders that must be refused for their number, and returns the answer.
func turnedAway(t *testing.T, x *actor, path string, body []byte) string {
	t.Helper()
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	if err := x.Do(http.MethodPost, path, body, answer); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range []string{"Content-Type", "Retry-After", "RateLimit", "RateLimit-Policy",
		"Poly-RateLimit-Remaining", "Poly-RateLimit-Reset", "Poly-RateLimit-Tier"} {
		b.WriteString(name + ": " + string(answer.Header.Peek(name)) + "\n")
	}
	b.Write(answer.Body())
	text := waits.ReplaceAllString(b.String(), "$1")
	if answer.StatusCode() != http.StatusTooManyRequests || text == b.String() {
		t.Errorf("%d %s", answer.StatusCode(), b.String())
	}
	return text
}

// metric looks for a line among the metrics of a node.
func metric(t *testing.T, p *process, line string) {
	t.Helper()
	if _, text := get(t, p.admin, "/metrics"); !strings.Contains(text, "\n"+line+"\n") {
		t.Errorf("%s does not say %s", p.data, line)
	}
}

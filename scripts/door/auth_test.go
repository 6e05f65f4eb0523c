package door

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"clobd/ingress/auth"
)

// The prefixes of auth headers, the one that is read first first, and the headers of a signed
// request and of a request for a key.
var (
	prefixes = []string{"SVC_", "POLY_", "KUEST_"}
	signs    = []string{"ADDRESS", "API_KEY", "PASSPHRASE", "TIMESTAMP", "SIGNATURE"}
	derives  = []string{"ADDRESS", "TIMESTAMP", "SIGNATURE"}
)

// authRoutes are requests of each kind that needs a key. None changes anything for a stranger.
var authRoutes = []struct{ method, path, body string }{
	{"GET", "/data/orders", ""}, {"GET", "/clob/data/trades", ""}, {"GET", "/auth/api-keys", ""},
	{"POST", "/order", `{}`}, {"POST", "/orders", `[]`}, {"DELETE", "/order", `{}`},
	{"DELETE", "/orders", `[]`}, {"DELETE", "/cancel-all", ""}, {"POST", "/heartbeats", `{}`},
	{"POST", "/split", `{}`}, {"GET", "/auth/derive-api-key", ""},
}

// stranger is a client without an account. It has a key all the same, as any address may.
type stranger struct {
	signer *auth.Signer
	trio   auth.Trio
	clock  int64 // of the node, in unix seconds
}

// newStranger asks the node for its time and for a key.
func newStranger(t *testing.T) *stranger {
	t.Helper()
	signer, err := auth.NewSigner([32]byte{31: 0x17})
	if err != nil {
		t.Fatal(err)
	}
	s := &stranger{signer: signer}
	_, text := ask(t, "GET /time HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
	if s.clock, err = strconv.ParseInt(text, 10, 64); err != nil {
		t.Fatal(err)
	}
	h := s.headers(t, "GET", "/auth/derive-api-key", "")
	status, text := ask(t, request("GET", "/auth/derive-api-key", "", lines("SVC_", h)))
	var told struct{ APIKey, Secret, Passphrase string }
	if err := json.Unmarshal([]byte(text), &told); err != nil || status != 200 {
		t.Fatalf("a key for a stranger: %d %s", status, text)
	}
	s.trio = auth.Trio{Key: told.APIKey, Secret: told.Secret, Passphrase: told.Passphrase}
	return s
}

// headers are those that make a request valid, by their names without prefix.
func (s *stranger) headers(t *testing.T, method, path, body string) map[string]string {
	t.Helper()
	stamp := strconv.FormatInt(s.clock, 10)
	h := map[string]string{"ADDRESS": auth.Checksum(s.signer.Address), "TIMESTAMP": stamp}
	if strings.HasSuffix(path, "/derive-api-key") {
		signature, err := s.signer.SignAuth(*chain, stamp, 0)
		if err != nil {
			t.Fatal(err)
		}
		h["SIGNATURE"] = signature
		return h
	}
	r := auth.Request{Timestamp: stamp, Method: method, Path: strings.TrimPrefix(path, "/clob"),
		Body: []byte(body)}
	if err := s.trio.Sign(&r); err != nil {
		t.Fatal(err)
	}
	h["API_KEY"], h["PASSPHRASE"], h["SIGNATURE"] = r.Key, r.Passphrase, r.Signature
	return h
}

// needs are the headers that a path needs.
func needs(path string) []string {
	if strings.HasSuffix(path, "/derive-api-key") {
		return derives
	}
	return signs
}

// lines writes headers in one family.
func lines(prefix string, h map[string]string) (list []string) {
	for _, name := range signs {
		if value, ok := h[name]; ok {
			list = append(list, prefix+name+": "+value)
		}
	}
	return list
}

func request(method, path, body string, headers []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: node\r\nConnection: close\r\n", method, path)
	for _, line := range headers {
		b.WriteString(line + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String() + "\r\n" + body
}

// ask sends one request and returns the status and the body of its answer.
func ask(t *testing.T, raw string) (status int, body string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", *address, 5*time.Second)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second)) // a read without it fails in the end too
	_, _ = io.WriteString(c, raw)                       // the answer tells what came
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(text)
}

// authCase is a request with the words that its refusal must hold.
type authCase struct{ name, raw, words string }

// refusedAll sends the cases, some at a time. A node with limits may answer 429 to some.
func refusedAll(t *testing.T, cases []authCase) {
	t.Helper()
	var group sync.WaitGroup
	busy := make(chan struct{}, 16)
	for i := range cases {
		c := &cases[i]
		busy <- struct{}{}
		group.Go(func() {
			defer func() { <-busy }()
			status, body := ask(t, c.raw)
			switch {
			case status == http.StatusTooManyRequests && *limited:
			case status != http.StatusUnauthorized:
				t.Errorf("%s: %d %s, want 401", c.name, status, body)
			case !strings.Contains(body, c.words):
				t.Errorf("%s: %s, want %q", c.name, body, c.words)
			}
		})
	}
	group.Wait()
	t.Logf("%d cases", len(cases))
}

// TestAuthHeaders: each header of each family, on each route: left out, empty, twice in several
// spellings, misspelled, and with another family's prefix. A valid request is let in.
func TestAuthHeaders(t *testing.T) {
	s := newStranger(t)
	var cases []authCase
	for _, route := range authRoutes {
		h := s.headers(t, route.method, route.path, route.body)
		for _, prefix := range prefixes {
			good := lines(prefix, h)
			raw := request(route.method, route.path, route.body, good)
			if status, body := ask(t, raw); status == http.StatusUnauthorized || status == 0 {
				t.Errorf("%s %s with %s: %d %s", route.method, route.path, prefix, status, body)
			}
			for i, name := range needs(route.path) {
				i = slices.Index(good, prefix+name+": "+h[name])
				without := slices.Delete(slices.Clone(good), i, i+1)
				for _, v := range variants(prefix, name, h[name]) {
					list := append(slices.Clone(without), v.lines...)
					cases = append(cases, authCase{
						fmt.Sprintf("%s %s: %s of %s%s", route.method, route.path, v.name, prefix, name),
						request(route.method, route.path, route.body, list), v.words})
				}
			}
		}
	}
	if len(cases) < 192 {
		t.Fatalf("%d cases, want 192 at least", len(cases))
	}
	refusedAll(t, cases)
}

// variant is what stands in the place of one header.
type variant struct {
	name  string
	lines []string
	words string
}

func variants(prefix, name, value string) []variant {
	full := prefix + name
	good := full + ": " + value
	dashed, low := strings.ReplaceAll(full, "_", "-"), strings.ToLower(full)
	missing, twice := "missing: "+full+";", "twice: "+full+";"
	list := []variant{
		{"none", nil, missing},
		{"empty", []string{full + ":"}, missing},
		{"blank", []string{full + ":   "}, missing},
		{"misspelled", []string{full + "S: " + value}, missing},
		{"without prefix", []string{name + ": " + value}, missing},
		{"twice", []string{good, good}, twice},
		{"empty, then good", []string{full + ":", good}, twice},
		{"good, then empty", []string{good, full + ":"}, twice},
		{"in two cases", []string{low + ": " + value, good}, twice},
		{"with dashes too", []string{good, dashed + ": " + value}, twice},
		{"empty with dashes first", []string{dashed + ":", good}, twice},
		{"thrice", []string{full + ":", full + ":", good}, twice},
	}
	for i, other := range prefixes {
		words := missing
		if i < slices.Index(prefixes, prefix) {
			words = "missing: " + other // the request is read in the other family
		}
		if other != prefix {
			list = append(list, variant{"prefix " + other, []string{other + name + ": " + value}, words},
				variant{"beside two of " + other,
					[]string{good, other + name + ":", other + name + ": x"}, "twice: " + other + name})
		}
	}
	return list
}

// TestAuthValues: a request with one wrong value gets the same answer whichever value it is.
func TestAuthValues(t *testing.T) {
	s := newStranger(t)
	other, err := auth.NewSigner([32]byte{31: 0x18})
	if err != nil {
		t.Fatal(err)
	}
	var cases []authCase
	for _, route := range authRoutes {
		if slices.Equal(needs(route.path), derives) {
			continue
		}
		h := s.headers(t, route.method, route.path, route.body)
		for _, prefix := range prefixes {
			wrong := func(name, value string) {
				changed := map[string]string{name: value}
				for name, value := range h {
					if changed[name] == "" {
						changed[name] = value
					}
				}
				cases = append(cases, authCase{
					fmt.Sprintf("%s %s: %s%s %s", route.method, route.path, prefix, name, value),
					request(route.method, route.path, route.body, lines(prefix, changed)), ""})
			}
			wrong("ADDRESS", auth.Checksum(other.Address))
			wrong("ADDRESS", "0x")
			wrong("API_KEY", "00000000-0000-4000-8000-000000000000")
			wrong("PASSPHRASE", strings.Repeat("0", 64))
			wrong("PASSPHRASE", h["PASSPHRASE"][:63]+string(h["PASSPHRASE"][63]^1))
			wrong("TIMESTAMP", strconv.FormatInt(s.clock-1, 10))
			wrong("SIGNATURE", strings.Repeat("A", 43)+"=")
			wrong("SIGNATURE", s.headers(t, "PUT", route.path, route.body)["SIGNATURE"])
			wrong("SIGNATURE", s.headers(t, route.method, "/x", route.body)["SIGNATURE"])
			wrong("SIGNATURE", s.headers(t, route.method, route.path, "x")["SIGNATURE"])
		}
	}
	_, told := ask(t, cases[0].raw)
	for i := range cases {
		cases[i].words = told // all of it: nothing says which check failed
	}
	refusedAll(t, cases)
	if strings.Contains(told, "missing") || strings.Contains(told, "twice") {
		t.Errorf("a wrong value: %s", told)
	}
}

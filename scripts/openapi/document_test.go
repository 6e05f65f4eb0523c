package openapi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// document is the node's own.
func document(t *testing.T) *Document {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCheck: what the document promises passes, and nothing else does.
func TestCheck(t *testing.T) {
	d := document(t)
	id := "0x" + strings.Repeat("ab", 32)
	result := `"success":true,"errorMsg":"","orderID":"` + id +
		`","takingAmount":"","makingAmount":"","status":"live"`
	for _, c := range []struct {
		name, method, target, dialect string
		status                        int
		body, want                    string
	}{
		{"a price", "GET", "/price?token_id=1&side=BUY", "", 200, `{"price":"0.5"}`, ""},
		{"under the prefix", "GET", "/clob/price", "", 200, `{"price":"0.5"}`, ""},
		{"HEAD", "HEAD", "/price", "", 200, "", ""},
		{"OPTIONS", "OPTIONS", "/price", "", 204, "", ""},
		{"a price as a number", "GET", "/price", "", 200, `{"price":0.5}`, "string"},
		{"trailing zeros", "GET", "/price", "", 200, `{"price":"0.50"}`, "match"},
		{"an exponent", "GET", "/price", "", 200, `{"price":"5e-1"}`, "match"},
		{"another key", "GET", "/price", "", 200, `{"price":"0.5","x":1}`, "unsupported"},
		{"a key less", "GET", "/price", "", 200, `{}`, "missing"},
		{"no JSON", "GET", "/price", "", 200, `{`, "not JSON"},
		{"twice", "GET", "/price", "", 200, `{"price":"1"}{}`, "more than one"},
		{"another status", "GET", "/price", "", 418, `{}`, "status is not documented"},
		{"a refusal", "GET", "/price", "", 404, `{"error":"x","code":"not_found"}`, ""},
		{"an unknown code", "GET", "/price", "", 404, `{"error":"x","code":"oops"}`, "code"},
		{"an empty error", "GET", "/price", "", 404, `{"error":"","code":"not_found"}`, "length"},
		{"a path by its name", "GET", "/markets/live-activity/" + id, "", 200, `[]`, ""},
		{"nowhere", "GET", "/nowhere", "", 404, `{"error":"x","code":"not_found"}`, ""},
		{"nowhere in the catalog", "GET", "/gamma/nowhere", "", 404,
			`{"type":"not found error","error":"x"}`, ""},
		{"nowhere succeeds", "GET", "/nowhere", "", 200, `{}`, "not documented"},
		{"the wrong method", "PUT", "/price", "", 405,
			`{"error":"x","code":"method_not_allowed"}`, ""},
		{"an order for SVC_", "POST", "/order", "SVC_", 200, "{" + result + "}", ""},
		{"an order for POLY_", "POST", "/order", "POLY_", 200,
			"{" + result + `,"orderHash":"` + id + `"}`, ""},
		{"another dialect's", "POST", "/order", "SVC_", 200,
			"{" + result + `,"orderHash":"` + id + `"}`, "unsupported"},
		{"none for the dialect", "POST", "/order", "X_", 200, "{" + result + "}", "no member"},
		{"a success with an error", "GET", "/data/order/" + id, "SVC_", 200,
			`{"order":{},"error":""}`, "a key error"},
	} {
		a := &Answer{c.method, c.target, c.dialect, c.status, "application/json",
			[]byte(c.body), nil}
		err := d.Check(a)
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	plain := &Answer{"GET", "/", "", 200, "text/plain; charset=utf-8", []byte("OK"), nil}
	if err := d.Check(plain); err != nil {
		t.Error(err)
	}
	plain.ContentType = "text/html"
	if err := d.Check(plain); err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Errorf("got %v for another media type", err)
	}
}

// TestDocument: what no schema says about the document itself.
func TestDocument(t *testing.T) {
	d := document(t)
	seen := map[string]bool{}
	for i := range d.routes {
		r := &d.routes[i]
		name, o := r.name(), r.operation
		if o.Summary == "" || len(o.Tags) != 1 || d.doc.Tags.Get(o.Tags[0]) == nil {
			t.Errorf("%s: no summary, or not one known tag", name)
		}
		if seen[o.OperationID] {
			t.Errorf("%s: operationId %s twice", name, o.OperationID)
		}
		seen[o.OperationID] = true
		success := "200"
		if o.Tags[0] == "streams" {
			success = "101"
		}
		if o.Responses.Value(success) == nil || o.Responses.Value("429") == nil {
			t.Errorf("%s: no %s or no 429", name, success)
		}
		// Where a key may be left out, too: a wrong one is refused.
		keyed := o.Security == nil || slices.ContainsFunc(*o.Security, isKeyed)
		byAddress := o.Tags[0] == "wallets" // which an operator may shut, but no key opens
		if denied := o.Responses.Value("401") != nil; denied != keyed && !byAddress {
			t.Errorf("%s: takes a key %v, and 401 documented %v", name, keyed, denied)
		}
	}
	if len(seen) < 70 {
		t.Errorf("%d operations", len(seen))
	}
}

func isKeyed[M ~map[string][]string](m M) bool { return len(m) > 0 }

func TestRoutes(t *testing.T) {
	d := document(t)
	if got := d.Routes("service"); !slices.Equal(got, []string{
		"GET /", "GET /ok", "GET /time", "GET /version",
	}) {
		t.Errorf("got %q", got)
	}
	for path, want := range map[string]string{
		"/":                  "GET /",
		"/tick-size/{token}": "GET /tick-size/{}",
	} {
		if got := Route("GET", path); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRead: a document that is none is an error.
func TestRead(t *testing.T) {
	for _, text := range []string{"", "{", `{"openapi":"3.0.3"}`} {
		path := filepath.Join(t.TempDir(), "openapi.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	if _, err := Read("nowhere"); err == nil {
		t.Error("a document that is not there was read")
	}
}

// TestEverybodysReading: what several dialects answer alike is no contradiction for a reader that
// takes the document as it is, without x-dialects.
func TestEverybodysReading(t *testing.T) {
	d := document(t)
	const page = `{"data":[],"next_cursor":"LTE=","limit":100,"count":0}`
	for _, c := range [][3]string{
		{"GET", "/data/orders", page},
		{"GET", "/data/trades", page},
		{"POST", "/data/orders",
			`[{"order_id":"x","status":404,"errorMsg":"order not found"}]`},
		{"GET", "/auth/api-keys", `[]`},
		{"DELETE", "/auth/api-key", `{"revoked":true}`},
		{"DELETE", "/auth/api-key", `"OK"`},
		{"GET", "/auth/ban-status/closed-only", `{"closedOnly":true,"closed_only":true}`},
		{"DELETE", "/auth/readonly-api-key", `{"deleted":true}`},
	} {
		a := &Answer{Method: c[0], Target: c[1], Status: 200, ContentType: "application/json",
			Body: []byte(c[2])}
		if err := d.Check(a); err != nil {
			t.Error(err)
		}
	}
}

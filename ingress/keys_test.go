package ingress

import (
	"strings"
	"testing"
)

// TestSignedPath: a request below /clob may be signed over the path with the prefix or without it,
// and no other path will do.
func TestSignedPath(t *testing.T) {
	h := newHouse(t, nil)
	for _, c := range []struct {
		path, signed string
		good         bool
	}{
		{"/data/orders", "/data/orders", true},
		{"/clob/data/orders", "/clob/data/orders", true},
		{"/clob/data/orders", "/data/orders", true},
		{"/data/orders", "/clob/data/orders", false},
		{"/clob/data/orders", "/clob", false},
		{"/clob/data/orders", "data/orders", false},
		{"/clob/data/orders", "/clob/clob/data/orders", false},
		{"/clob/data/orders", "/CLOB/data/orders", false},
		{"/clob/data/orders", "/clob//data/orders", false},
		{"/data/orders", "/data/orders/", false},
		{"/data/orders", "/data/order", false},
		{"/data/orders?next=x", "/data/orders", true},
		{"/clob/data/orders?next=x", "/data/orders", true},
	} {
		got := h.run([]string{"get alice " + c.path + " signpath=" + c.signed})
		want := "401\n"
		if c.good {
			want = "200\n"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s signed as %s: %s", c.path, c.signed, got)
		}
	}
}

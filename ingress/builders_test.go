package ingress

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/auth"
)

// TestBuilderTrades: anybody may ask for a builder's trades by the code; a builder's key that names
// none is given its own, and must be a good one.
func TestBuilderTrades(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Public = func(ctx *fasthttp.RequestCtx) {
			fmt.Fprintf(ctx, "public %s", ctx.QueryArgs().Peek("builder_code"))
		}
	})
	alice := trader("alice").Address
	h.submit(engine.Command{Kind: engine.Deposit, Address: alice, Cash: engine.Unit,
		ID: engine.OrderID{1}})
	owner, _ := h.board.Directory.Wallet(alice)
	h.submit(engine.Command{Kind: engine.SetKey, Owner: owner, Class: engine.BuilderKey, Key: 0})
	ask := func(path string, number uint32, sign bool) string {
		w := rawRequest{method: "GET", path: path}
		if sign {
			trio := h.keyring.Trio(engine.BuilderKey, alice, number)
			r := auth.Request{Timestamp: strconv.FormatInt(h.now(), 10), Method: "GET",
				Path: "/builder/trades"}
			if err := trio.Sign(&r); err != nil {
				t.Fatal(err)
			}
			w.headers = []string{"POLY_BUILDER_API_KEY: " + r.Key,
				"POLY_BUILDER_PASSPHRASE: " + r.Passphrase, "POLY_BUILDER_TIMESTAMP: " + r.Timestamp,
				"POLY_BUILDER_SIGNATURE: " + r.Signature}
		}
		return h.send(w.String())
	}
	own := "0x" + strings.Repeat("00", 12) + alice.Hex()[2:]
	for _, c := range []struct {
		path   string
		number uint32
		sign   bool
		want   string
	}{
		{"/builder/trades?builder_code=0x01", 0, false, "200\npublic 0x01\n"},
		{"/builder/trades", 0, false, "200\npublic \n"},
		{"/builder/trades?next_cursor=MA==", 0, true, "200\npublic " + own + "\n"},
		{"/clob/builder/trades", 0, true, "200\npublic " + own + "\n"},
		{"/builder/trades?builder_code=0x01", 0, true, "200\npublic 0x01\n"},
	} {
		if got := ask(c.path, c.number, c.sign); !strings.HasSuffix(got, c.want[4:]) ||
			!strings.HasPrefix(got, "200") {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
	if got := ask("/builder/trades", 3, true); !strings.HasPrefix(got, "401") {
		t.Errorf("a key that is not on record: %s", got)
	}
}

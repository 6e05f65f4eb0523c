package wire

import (
	"encoding/json"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestFamilies: each family words the same error in its own way, and no text names another site.
func TestFamilies(t *testing.T) {
	for f, want := range map[Family]string{
		Trading:   `{"error":"not found","code":"not_found"}`,
		Described: `{"type":"not found error","error":"not found"}`,
		Wallets:   `{"error":"not_found: not found"}`,
		Operators: `{"error":"not found"}`,
	} {
		if got := string(f.Refuse(404, "not_found", "not found", "").body); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	got := string(Described.Refuse(400, "x", `say "q"`, "\n").body)
	want := `{"type":"bad request","error":"say \"q\"","detail":"\u000a"}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	got = string(Operators.Refuse(400, "", "a -> b", `send "q"`).Append(nil))
	if want = `{"error":"a -\u003e b","hint":"send \"q\""}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFurtherMembers: With changes a copy, and members stand in the order of the calls.
func TestFurtherMembers(t *testing.T) {
	shared := Refuse(503, "busy", "busy", "")
	r := shared.With(Member{Name: "n", Value: "1", JSON: true}).Because("wait\x7f")
	if got, want := string(r.Append(nil)), "{\"error\":\"busy\",\"code\":\"busy\","+
		"\"n\":1,\"detail\":\"wait\x7f\"}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var ctx fasthttp.RequestCtx
	shared.Send(&ctx)
	if got := string(ctx.Response.Body()); got != `{"error":"busy","code":"busy"}` ||
		string(ctx.Response.Header.Peek("Retry-After")) != RetrySeconds {
		t.Errorf("%s: %s", got, &ctx.Response.Header)
	}
}

// FuzzText: any text is JSON once appended, and reads back as encoding/json would have it.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "Yes", `a"b\c`, "\x00\x1f\x7f", "Café", "\xff\xc3", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var back, want string
		if err := json.Unmarshal(AppendText(nil, s), &back); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		b, _ := json.Marshal(s)
		_ = json.Unmarshal(b, &want)
		if back != want {
			t.Errorf("%q reads back as %q", s, back)
		}
	})
}

package pages

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// unpacked is the body of an answer, which must be in gzip.
func unpacked(t *testing.T, r *fasthttp.Response) string {
	t.Helper()
	if got := string(r.Header.Peek("Content-Encoding")); got != "gzip" {
		t.Fatalf("Content-Encoding %q", got)
	}
	z, err := gzip.NewReader(bytes.NewReader(r.Body()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWantsGzip: who takes gzip, by the rules of HTTP.
func TestWantsGzip(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "gzip, deflate, br": true,
		"deflate, br": false, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=0.001": true,
		"*": true, "*;q=0": false, "gzip;q=0, *": false, "br, *;q=0.5": true,
		"identity": false, "identity, gzip;q=0.5": false, "identity;q=0.5, gzip": true,
		"gzip;q=2": false, "gzip;q=x": false, "gzip;level=9;q=1": true, ",,gzip": true, "gzipped": false,
	} {
		var h fasthttp.RequestHeader
		h.Set("Accept-Encoding", accept)
		if wantsGzip(&h) != want {
			t.Errorf("%q: %v", accept, !want)
		}
	}
	var h fasthttp.RequestHeader
	h.Add("Accept-Encoding", "br")
	h.Add("Accept-Encoding", "gzip")
	if !wantsGzip(&h) {
		t.Error("the second line of two does not count")
	}
}

// TestGzip: a page goes out in the encoding that each client wants, each with a tag of its own that
// it knows again, and is compressed once. HEAD has the headers of GET.
func TestGzip(t *testing.T) {
	w := newWorld()
	w.body = strings.Repeat("a market, ", 10_000)
	w.makes("a")
	plain := w.ask("GET", "a")
	packed := w.ask("GET", "a", "Accept-Encoding", "gzip")
	if unpacked(t, packed) != w.body || string(plain.Body()) != w.body ||
		len(plain.Header.Peek("Content-Encoding")) > 0 || len(packed.Body()) > len(w.body)/10 {
		t.Fatal("other bytes")
	}
	again := w.ask("HEAD", "a", "Accept-Encoding", "gzip")
	if &again.Body()[0] != &packed.Body()[0] {
		t.Error("the page is compressed again")
	}
	for name, value := range packed.Header.All() {
		if got := again.Header.PeekBytes(name); !bytes.Equal(got, value) {
			t.Errorf("HEAD: %s: %s, want %s", name, got, value)
		}
	}
	ofPlain, ofPacked := string(plain.Header.Peek("ETag")), string(packed.Header.Peek("ETag"))
	if ofPlain == ofPacked {
		t.Errorf("one tag for two encodings: %s", ofPlain)
	}
	for _, c := range []struct{ accept, known, want string }{
		{"", ofPlain, ofPlain}, {"gzip", ofPacked, ofPacked}, {"gzip", ofPlain, ofPlain},
		{"", ofPacked, ""}, {"gzip", `"x"`, ""}, {"gzip", ofPlain + ", " + ofPacked, ofPacked},
		{"gzip;q=0", ofPacked, ""}, {"gzip", "*", ofPacked}, {"", "*", ofPlain},
	} {
		r := w.ask("GET", "a", "Accept-Encoding", c.accept, "If-None-Match", c.known)
		if same := r.StatusCode() == 304; same != (c.want != "") ||
			same && string(r.Header.Peek("ETag")) != c.want {
			t.Errorf("%q has %s: %d %s", c.accept, c.known, r.StatusCode(), r.Header.Peek("ETag"))
		}
		if got := string(r.Header.Peek("Vary")); got != "Accept-Encoding" {
			t.Errorf("Vary: %q", got)
		}
	}
	if w.made != 2 {
		t.Errorf("%d pages made", w.made)
	}
}

// TestSmall: an answer of a kilobyte is not compressed, and does not vary.
func TestSmall(t *testing.T) {
	w := newWorld()
	w.body = strings.Repeat("x", least)
	r := w.ask("GET", "a", "Accept-Encoding", "gzip")
	if string(r.Body()) != w.body || len(r.Header.Peek("Vary")) > 0 {
		t.Errorf("%s", &r.Header)
	}
}

// TestUnchanged: a page that is made again with the same bytes keeps its bytes, also in gzip.
func TestUnchanged(t *testing.T) {
	w := newWorld()
	w.body = strings.Repeat("a market, ", 1000)
	w.makes("a")
	plain := w.ask("GET", "a").Body()
	packed := w.ask("GET", "a", "Accept-Encoding", "gzip").Body()
	kept := w.cache.bytes
	for range 3 {
		w.version.Books++
		again := w.ask("GET", "a", "Accept-Encoding", "gzip").Body()
		if &again[0] != &packed[0] || &w.ask("GET", "a").Body()[0] != &plain[0] {
			t.Fatal("other bytes in memory")
		}
	}
	if w.made != 5 || w.cache.bytes != kept || kept < len(plain)+len(packed) {
		t.Errorf("made %d times, %d bytes kept, before %d", w.made, w.cache.bytes, kept)
	}
	w.body += "another"
	w.version.Books++
	if got := unpacked(t, w.ask("GET", "a", "Accept-Encoding", "gzip")); got != w.body {
		t.Error("the old bytes")
	}
}

// TestBudget: the work of compressing has a bound. Beyond it answers go out as they are, and a page
// that many read has a budget of its own.
func TestBudget(t *testing.T) {
	w := newWorld()
	body := strings.Repeat("one answer, ", 100_000)
	inGzip := func() bool {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.Set("Accept-Encoding", "gzip")
		ctx.SetBodyString(body)
		w.cache.Compress(&ctx)
		if string(ctx.Response.Header.Peek("Vary")) != "Accept-Encoding" {
			t.Error("no Vary")
		}
		if len(ctx.Response.Header.Peek("Content-Encoding")) == 0 {
			return string(ctx.Response.Body()) != body
		}
		return unpacked(t, &ctx.Response) == body
	}
	compressed := 0
	for inGzip() {
		if compressed++; compressed > 100 {
			t.Fatal("no bound")
		}
	}
	if compressed != singleRate/len(body) {
		t.Errorf("%d answers of %d bytes", compressed, len(body))
	}
	w.body = body
	if r := w.ask("GET", "a", "Accept-Encoding", "gzip"); string(r.Body()) != body {
		t.Error("a page that nobody keeps has no bound")
	}
	for range 2 {
		if got := unpacked(t, w.ask("GET", "a", "Accept-Encoding", "gzip")); got != body {
			t.Error("another page")
		}
	}
	if w.clock = w.clock.Add(time.Second / 2); !inGzip() {
		t.Error("the budget does not fill again")
	}
}

// TestCompress: only answers that succeed are compressed, and none twice.
func TestCompress(t *testing.T) {
	w := newWorld()
	body := strings.Repeat("x", 5000)
	for name, change := range map[string]func(*fasthttp.RequestCtx){
		"a refusal": func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(404) },
		"a stream": func(ctx *fasthttp.RequestCtx) {
			ctx.Response.SetBodyStream(strings.NewReader(body), len(body))
		},
		"a page": func(ctx *fasthttp.RequestCtx) { ctx.Response.Header.Set("ETag", `"x"`) },
	} {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.Set("Accept-Encoding", "gzip")
		ctx.SetBodyString(body)
		change(&ctx)
		w.cache.Compress(&ctx)
		if got := string(ctx.Response.Body()); got != body {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
}

// BenchmarkCompress is what a page of a megabyte costs once.
func BenchmarkCompress(b *testing.B) {
	var text bytes.Buffer
	for i := range 4000 {
		fmt.Fprintf(&text, `{"condition_id":"0x%064x","question":"Will number %d come?",`+
			`"price":0.%d,"description":"%d days from now","closed":false},`, i*i*7919, i, i, i%97)
	}
	b.SetBytes(int64(text.Len()))
	b.Run("standard library", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		for b.Loop() {
			z.Reset(io.Discard)
			_, _ = z.Write(text.Bytes())
			_ = z.Close()
		}
	})
	b.Run("press", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		var p press
		for b.Loop() {
			p.compress(text.Bytes(), true)
		}
		b.ReportMetric(float64(len(p.compress(text.Bytes(), true)))/float64(text.Len()), "ratio")
	})
}

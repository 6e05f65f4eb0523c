package console

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/api/pages"
	"clobd/api/wire"
)

var told = Facts{Version: `a "version"`, Demo: true, Chain: 80002, Exchanges: []Domain{
	{Name: "One", Version: "2", Contract: "0x01", Markets: "normal"},
	{Name: "Two", Version: "2", Contract: "0x02", Markets: "neg-risk"},
}}

// get asks a route, with header fields in pairs of name and value.
func get(r *wire.Route, header ...string) *fasthttp.Response {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI(r.Path)
	for i := 0; i < len(header); i += 2 {
		ctx.Request.Header.Set(header[i], header[i+1])
	}
	r.Handler(&ctx)
	return &ctx.Response
}

// TestPages: each file has its type, its policy and a tag by which a browser has it again, in gzip
// too, and what a page must know of the node is JSON.
func TestPages(t *testing.T) {
	c := New(&told, pages.New())
	list, shells := append(c.Pages(), c.Routes()...), 0
	for i := range list {
		r := &list[i]
		first := get(r)
		kind := string(first.Header.ContentType())
		if first.StatusCode() != 200 || len(first.Body()) == 0 {
			t.Errorf("%s: %d, %d bytes", r.Path, first.StatusCode(), len(first.Body()))
		}
		if strings.HasPrefix(kind, "text/html") {
			shells++
		}
		if want := types[r.Path[max(0, strings.LastIndexByte(r.Path, '.')):]]; want != "" && kind != want {
			t.Errorf("%s is %s", r.Path, kind)
		}
		tag := string(first.Header.Peek("ETag"))
		if got := get(r, "If-None-Match", tag); got.StatusCode() != 304 || len(got.Body()) > 0 {
			t.Errorf("%s: who has it gets %d", r.Path, got.StatusCode())
		}
		packed := get(r, "Accept-Encoding", "gzip")
		if text := unpack(t, packed); !bytes.Equal(text, first.Body()) {
			t.Errorf("%s: other bytes in gzip", r.Path)
		}
		if policy := string(first.Header.Peek("Content-Security-Policy")); !strings.HasPrefix(
			policy, "default-src 'self';") && r.Path != "/console/node.json" {
			t.Errorf("%s: policy %q", r.Path, policy)
		}
	}
	if shells != 2 { // at /console, and by its name
		t.Errorf("%d pages", shells)
	}
	var node map[string]any
	if err := json.Unmarshal(get(&c.Routes()[0]).Body(), &node); err != nil {
		t.Fatal(err)
	}
	if node["demo"] != true || node["version"] != told.Version || len(node["exchanges"].([]any)) != 2 {
		t.Errorf("told %v", node)
	}
}

// unpack is the body of an answer, which may be in gzip.
func unpack(t *testing.T, r *fasthttp.Response) []byte {
	t.Helper()
	if len(r.Header.Peek("Content-Encoding")) == 0 {
		return r.Body()
	}
	z, err := gzip.NewReader(bytes.NewReader(r.Body()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unsafe is what makes code of text, or loads from elsewhere. Names in XML are no addresses.
var unsafe = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|` +
	`new Function|srcdoc|style="|<script>|\bon\w+="|https?://`)

// TestSafe: nothing in the pages makes markup or code of text, or names another host; and each file
// that a page names is there.
func TestSafe(t *testing.T) {
	const names = "http://www.w3.org/2000/svg"
	named := regexp.MustCompile(`"(?:/console/|\./)([\w.]+)"`)
	files := map[string]string{}
	for _, f := range New(&told, pages.New()).list {
		text, err := static.ReadFile("static/" + f.name)
		if err != nil {
			t.Fatal(err)
		}
		files[f.name] = string(text)
	}
	for name, text := range files {
		for _, found := range unsafe.FindAllString(strings.ReplaceAll(text, names, ""), -1) {
			t.Errorf("%s has %s", name, found)
		}
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			if _, is := files[found[1]]; !is && found[1] != "node.json" {
				t.Errorf("%s names %s, which is not there", name, found[1])
			}
		}
	}
	if len(files) < 10 {
		t.Errorf("%d files", len(files))
	}
}

package openapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestHeader: documented headers have documented values, those that must be there are there, and no
// other ones are.
func TestHeader(t *testing.T) {
	d := document(t)
	refusal := []byte(`{"error":"x","code":"rate_limited","retry_after_seconds":1}`)
	for _, c := range []struct{ name, value, more, want string }{
		{"Retry-After", "1", "", ""},
		{"Retry-After", "soon", "", "Retry-After"},
		{"Retry-After", "1", "Access-Control-Allow-Origin", ""},
		{"Retry-After", "1", "X-Node-Secret", "header X-Node-Secret is not documented"},
		{"Date", "x", "", "header Retry-After is missing"},
	} {
		header := http.Header{c.name: {c.value}}
		if c.more != "" {
			header[c.more] = []string{"1"}
		}
		err := d.Check(&Answer{Method: "GET", Target: "/book", Status: 429,
			ContentType: "application/json", Body: refusal, Header: header})
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestUnkept: what nobody has seen is told, and so is an exception that is none.
func TestUnkept(t *testing.T) {
	d := document(t)
	promises := append(d.Promises("service"), "code not_found")
	if len(promises) < 20 || !slices.Contains(promises, "GET /time 200") {
		t.Fatalf("promises %q", promises)
	}
	r := new(Record)
	for _, promise := range promises {
		if route, status, _ := strings.Cut(promise, " 4"); status == "" {
			method, path, _ := strings.Cut(strings.TrimSuffix(route, " 200"), " ")
			r.Note(d, &Answer{Method: method, Target: path, Status: 200})
		}
	}
	r.Note(d, &Answer{Method: "HEAD", Target: "/time", Status: 404,
		Body: []byte(`{"error":"x","code":"not_found"}`)})
	const here = "scripts/openapi.TestUnkept"
	list := []Exception{
		{"* 400", here, "x"}, {"* 408", here, "x"}, {"* 413", here, "x"}, {"* 429", here, "x"},
		{"* 431", here, "x"}, {"* 500", here, "x"}, {"* 503", here, "x"},
	}
	if got := r.Unkept(promises, list); len(got) != 0 {
		t.Errorf("all is kept: %q", got)
	}
	list[0].Test = "scripts/openapi.TestNothing"
	list = append(list[:6], Exception{"GET /time 200", here, "it was seen"},
		Exception{"code oops", here, "nobody promises it"})
	got := strings.Join(r.Unkept(promises, list), "\n")
	for _, want := range []string{"GET /time 503: promised", "GET /ok 503: promised",
		"GET /time 200: an exception that is none", "code oops: an exception that is none",
		"* 400: there is no test scripts/openapi.TestNothing"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.Contains(got, "GET /time 200: promised") || strings.Contains(got, "not_found") {
		t.Errorf("it was seen: %s", got)
	}
	(*Record)(nil).Note(d, &Answer{})
}

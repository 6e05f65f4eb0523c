package door

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// allowance is how many requests of a kind one address may send in ten seconds.
type allowance struct {
	method, path string
	body         string
	most         int
}

// allowances are the published limits of routes that need no key.
func allowances(token string) []allowance {
	query, list := "?token_id="+token, `[{"token_id":"`+token+`"}]`
	return []allowance{
		{"GET", "/", "", 50},
		{"GET", "/book" + query, "", 200},
		{"GET", "/price" + query + "&side=BUY", "", 200},
		{"GET", "/midpoint" + query, "", 200},
		{"GET", "/prices-history?interval=1h&market=" + token, "", 100},
		{"GET", "/trades", "", 150},
		{"GET", "/events?limit=1", "", 500},
		{"GET", "/markets?limit=1", "", 300},
		{"GET", "/tags?limit=1", "", 200},
		{"GET", "/public-search?limit_per_type=1&q=door", "", 350},
		{"POST", "/books", list, 80},
		{"POST", "/prices", `[{"token_id":"` + token + `","side":"BUY"}]`, 80},
	}
}

// period is the length of the window of each row.
const period = 10 * time.Second

// TestLimits sends more than each row allows, from an address that claims to be another one each
// time. No more pass than stated, and at most 2 % fewer. The rows come one after the other, and a
// row again from another address, so that a slow machine sends all within a window; of one that is
// slower still, more pass by as many windows as it takes.
func TestLimits(t *testing.T) {
	v := besiege(t)
	for i, r := range allowances(v.token) {
		t.Run(fmt.Sprintf("%s %.20s", r.method, r.path), func(t *testing.T) {
			passed, took := 0, period
			for try := 0; try < 3 && took >= period; try++ {
				passed, took = r.exceed(t, v.address, fmt.Sprintf("127.0.%d.%d", 30+try, 1+i))
			}
			windows := 1 + int(took/period)
			if passed > windows*r.most || passed < r.most-max(1, r.most/50) {
				t.Errorf("%d passed in %v, want %d in each of %d windows", passed, took, r.most, windows)
			}
		})
	}
}

// exceed sends half as much again as the row allows, and returns how much passed and how long it
// took.
func (r allowance) exceed(t *testing.T, to, home string) (passed int, took time.Duration) {
	t.Helper()
	host := &fasthttp.HostClient{Addr: to, ReadTimeout: answerTime, Dial: from(home)}
	defer host.CloseIdleConnections()
	begun := time.Now()
	for n := range r.most * 3 / 2 {
		status, wait := r.send(t, host, n)
		switch {
		case status == http.StatusOK, status == http.StatusNotFound: // empty
			passed++
		case status != http.StatusTooManyRequests:
			t.Fatalf("request %d: status %d", n, status)
		case wait == "":
			t.Fatal("a refusal does not say when to come again")
		}
	}
	return passed, time.Since(begun)
}

// send sends a request and returns its status, and when to come again.
func (r allowance) send(t *testing.T, host *fasthttp.HostClient, n int) (status int, wait string) {
	t.Helper()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.1.%d.%d", n>>8, n&255))
	req.Header.SetMethod(r.method)
	req.SetRequestURI("http://" + host.Addr + r.path)
	if r.body != "" {
		req.Header.SetContentType("application/json")
		req.SetBodyString(r.body)
	}
	if err := host.Do(req, resp); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode(), string(resp.Header.Peek("Retry-After"))
}

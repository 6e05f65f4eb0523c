package ingress

import (
	"strings"
	"testing"

	"clobd/api/wire"
)

// TestTrailingSlash: every route takes one slash at its end, and the HMAC may be of either path.
func TestTrailingSlash(t *testing.T) {
	h := newHouse(t, nil)
	for path, want := range map[string]string{
		"/book/":          "public GET /book",
		"/book/?a=/":      "public GET /book",
		"/clob/markets/":  "public GET /clob/markets",
		"/markets/71/":    "public GET /markets/71",
		"/time/":          "1800000000",
		"/clob/":          "OK",
		"/clob/version/":  `{"version":2}`,
		"/":               "OK",
		"/book//":         "public GET /book/", // which is no route
		"/markets/%37%31": "public GET /markets/71",
	} {
		got := h.send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n")
		if !strings.HasPrefix(got, "200\n") || !strings.HasSuffix(got, "\n"+want+"\n") {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	h.run([]string{"fund alice 1000"})
	for _, line := range []string{
		"order alice buy A 10 @ 0.40 salt=1 path=/order/",
		"order alice buy A 10 @ 0.39 salt=2 path=/order/ signpath=/order",
		"order alice buy A 10 @ 0.38 salt=3 path=/clob/order/",
		"order alice buy A 10 @ 0.37 salt=4 path=/clob/order/ signpath=/order",
		"call alice GET /data/orders/", "call alice GET /clob/data/orders/ signpath=/data/orders",
	} {
		if got := h.run([]string{line}); !strings.HasPrefix(got, "200\n") {
			t.Errorf("%s: %s", line, got)
		}
	}
	for _, line := range []string{"order alice buy A 10 @ 0.36 salt=5 path=/order//",
		"order alice buy A 10 @ 0.36 salt=5 path=/order signpath=/order/",
		"order alice buy A 10 @ 0.36 salt=5 path=/order/ signpath=/orders"} {
		if got := h.run([]string{line}); strings.Contains(got, "orderID") {
			t.Errorf("%s is taken", line)
		}
	}
}

// TestUnknownQuery: a parameter that no route of the door knows is named in a header, by answers
// and by refusals. Routes that others serve name their own.
func TestUnknownQuery(t *testing.T) {
	h := newHouse(t, nil)
	for request, want := range map[string]string{
		"GET /time":            "",
		"GET /time?tz=1":       "tz",
		"GET /clob/ok?a=1&b=2": "a, b",
		"GET /auth/validate-readonly-api-key?address=1&kee=": "kee",
		"GET /auth/validate-readonly-api-key?address=1&key=": "",
		"POST /order?dry_run=true":                           "dry_run",
		"DELETE /cancel-all?market=1":                        "market",
		"GET /auth/api-keys?metadata=true&includeRevoked=1":  "",
		"DELETE /auth/api-key?apiKey=x&api_key=y":            "api_key",
		"GET /book?dry_run=true":                             "", // the stand-in names none
	} {
		a := browse(h, request+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		if got := a.Header.Get(wire.UnknownQuery); got != want {
			t.Errorf("%s: %d, %q is unknown, want %q", request, a.StatusCode, got, want)
		}
	}
}

package ingress

import (
	"strings"
	"testing"
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

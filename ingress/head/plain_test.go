package head

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestPlain: the end of a request is told if every reader finds it at the same place.
func TestPlain(t *testing.T) {
	const good = "POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
	for text, want := range map[string]int{
		good:                           len(good) + 2,
		good + "{}":                    len(good) + 2,
		good + "{}POST":                len(good) + 2,
		good[:len(good)-1]:             0,
		"POST /order HTTP/1.1\r\n\r\n": 0, // no length
		"POST /order HTTP/1.1\r\nContent-Length: 0\r\n\r\n":                           0, // no host
		"POST /order HTTP/1.1\r\nHost: \r\nContent-Length: 0\r\n\r\n":                 0,
		"POST /order HTTP/1.1\r\nHost: a\r\nhost: a\r\nContent-Length: 0\r\n\r\n":     0,
		strings.Replace(good, "1.1\r\n", "1.1\n", 1):                                  0,
		strings.Replace(good, "1.1", "1.0", 1):                                        0,
		strings.Replace(good, " HTTP", "  HTTP", 1):                                   0,
		strings.Replace(good, "order", "ord\rer", 1):                                  0,
		strings.Replace(good, "Host: a", "Host : a", 1):                               0,
		strings.Replace(good, "Host: a", "Host: a\r\n b", 1):                          0,
		strings.Replace(good, "Host: a", "Host: a\nb: c", 1):                          0,
		strings.Replace(good, "Host: a", "Host: a\x00", 1):                            0,
		strings.Replace(good, "Host: a", "Host: a\r\na\tb", 1):                        0,
		strings.Replace(good, "Host: a", "Host: a\r\nOrigin: http://a", 1):            0,
		strings.Replace(good, "Host: a", "Host: a\r\nexpect: 100-continue", 1):        0,
		strings.Replace(good, "Host: a", "Host: a\r\nConnection: close", 1):           0,
		strings.Replace(good, "Host: a", "Host: a\r\nConnection: Keep-alive", 1):      len(good) + 26,
		strings.Replace(good, "Host: a", "Host: a\r\nTransfer_Encoding: chunked", 1):  0,
		strings.Replace(good, "Host: a", "Host: a\r\ntransfer-encoding: identity", 1): 0,
		strings.Replace(good, "Host: a", "Host: a\r\nContent-Encoding: gzip", 1):      0,
		strings.Replace(good, "Host: a", "Host: a\r\nContent-Length: 2", 1):           0,
		strings.Replace(good, "Host: a", "Host: a\r\nContent_Length: 2", 1):           0,
		strings.Replace(good, ": 2", ": +2", 1):                                       0,
		strings.Replace(good, ": 2", ": -2", 1):                                       0,
		strings.Replace(good, ": 2", ": 99999", 1):                                    0,
		strings.Replace(good, ": 2", ": 2, 2", 1):                                     0,
		strings.Replace(good, ": 2", ": ", 1):                                         0,
		strings.Replace(good, ": 2", ": \v2", 1):                                      0,
		strings.Replace(good, ": 2", ": 2\f", 1):                                      0,
		strings.Replace(good, ": 2", ": \u00a02", 1):                                  0,
	} {
		if got, plain := Plain([]byte(text)); plain != (want > 0) || plain && got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, plain, want)
		}
	}
}

// FuzzPlain: the HTTP server finds the end of a plain request where Plain does, and Judge serves
// the request.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{
		"POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
		"POST /orders HTTP/1.1\r\nhost: b\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n[1]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		length, plain := Plain(b)
		if !plain || length > len(b) || !bytes.HasPrefix(b, []byte("POST /order")) {
			return
		}
		r := bufio.NewReaderSize(bytes.NewReader(b), max(len(b), 16))
		var request fasthttp.Request
		if err := request.Header.Read(r); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if refused := Judge(&request.Header); refused != nil {
			t.Fatalf("%q: %s", b, refused.Text)
		}
		at := len(b) - r.Buffered() + request.Header.ContentLength()
		if at != length || request.Header.ConnectionClose() {
			t.Fatalf("%q: %d, by the HTTP server %d", b, length, at)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	text := []byte(benchmarkHead)
	b.ReportAllocs()
	for b.Loop() {
		if _, plain := Plain(text); !plain {
			b.Fatal("not plain")
		}
	}
}

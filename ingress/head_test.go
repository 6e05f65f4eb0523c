package ingress

import (
	"bufio"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestLineWatch: a request line without CR is seen wherever the reads cut it, and nothing else is.
func TestLineWatch(t *testing.T) {
	for text, want := range map[string]bool{
		"GET /ok HTTP/1.1\nHost: a\n\n":                      true,
		"GET /ok HTTP/1.1\r\nHost: a\r\n\r\n":                false,
		"POST / HTTP/1.1\r\nA: b\r\n\r\n{}GET / HTTP/1.0\n":  true,
		"POST / HTTP/1.1\r\nA: HTTP/1.1 \r\n\r\n{\n}\n":      false,
		"GET / HTTP/1.HTTP/1.1\n":                            true,
		"GET / HTTP/1.\n":                                    false,
		"\r\n\r\nGET / HTTP/1.1\r\n\r\n":                     false,
		"\nGET / HTTP/1.1\r\n\r\n":                           true,
		"\r\n\nGET / HTTP/1.1\r\n\r\n":                       true,
		"POST / HTTP/1.1\r\n\r\n\n{\n}\n":                    false,
		"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET ": false,
	} {
		for size := 1; size <= len(text); size++ {
			w := lineWatch{begins: true}
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				w.read([]byte(rest[:n]))
				rest = rest[n:]
			}
			if w.bare != want {
				t.Errorf("%q in pieces of %d: %v", text, size, w.bare)
			}
		}
	}
}

// TestLineWatchTurns: a line is the beginning of a request if the connection has waited for it, not
// if it came behind a request that was being answered.
func TestLineWatchTurns(t *testing.T) {
	const request = "GET / HTTP/1.1\r\n\r\n"
	for _, c := range []struct {
		behind, next string // what came with the first request, and after its answer
		want         bool
	}{
		{"", request, false}, {"", "\r\n" + request, false}, {"", "\n" + request, true},
		{"GET / HTTP/1.1\r", "\n\r\n", false}, {"POST / HTTP/1.1\r\n\r\n", "\n{}", false},
	} {
		w := lineWatch{begins: true}
		w.turned()
		w.read([]byte(request + c.behind))
		w.answered()
		if c.behind == "" {
			w.read([]byte(c.next))
			w.turned()
		} else {
			w.turned()
			w.read([]byte(c.next))
		}
		if w.bare != c.want {
			t.Errorf("%q, then %q: %v", c.behind, c.next, w.bare)
		}
	}
}

func BenchmarkJudgeHead(b *testing.B) {
	var h fasthttp.RequestHeader
	head := "POST /order HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: client\r\n" +
		"POLY_ADDRESS: 0x5Ffd6b6d6d1C5b0A0a8c3B3f8C5d5a5B5c5d5E5f\r\nPOLY_SIGNATURE: " +
		"xXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXxXx=\r\nPOLY_TIMESTAMP: 1700000000\r\n" +
		"POLY_API_KEY: 7d9b6f1c-9d6e-4c2a-8a8e-0d6f8f4f6e5a\r\nPOLY_PASSPHRASE: " +
		"5f4dcc3b5aa765d61d8327deb882cf995f4dcc3b5aa765d61d8327deb882cf99\r\n" +
		"Content-Type: application/json\r\nContent-Length: 700\r\n\r\n"
	if err := h.Read(bufio.NewReader(strings.NewReader(head))); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if judgeHead(&h) != nil {
			b.Fatal("refused")
		}
	}
}

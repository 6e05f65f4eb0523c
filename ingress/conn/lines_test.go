package conn

import "testing"

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
			w := NewLineWatch()
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				w.Read([]byte(rest[:n]))
				rest = rest[n:]
			}
			if w.Bare != want {
				t.Errorf("%q in pieces of %d: %v", text, size, w.Bare)
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
		w := NewLineWatch()
		w.Begun()
		w.Read([]byte(request + c.behind))
		w.Answered()
		if c.behind == "" {
			w.Read([]byte(c.next))
			w.Begun()
		} else {
			w.Begun()
			w.Read([]byte(c.next))
		}
		if w.Bare != c.want {
			t.Errorf("%q, then %q: %v", c.behind, c.next, w.Bare)
		}
	}
}

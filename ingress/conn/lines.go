package conn

import "bytes"

// LineWatch looks for a request line, or an empty line before a request, that ends with LF alone:
// the HTTP server accepts both and tells nobody. It reads all bytes of a connection. No valid body
// holds such a request line. Where a request begins is known if it was not sent behind another one.
type LineWatch struct {
	Bare   bool    // there was such a line
	begins bool    // the next byte begins a request, or an empty line before it
	waits  bool    // nothing was read since the last answer
	tail   [8]byte // the last bytes of earlier reads, one less than the end of a line
	n      int
}

// NewLineWatch makes a LineWatch for a new connection.
func NewLineWatch() LineWatch { return LineWatch{begins: true} }

// Answered begins to wait for the next request.
func (w *LineWatch) Answered() { w.begins, w.waits = true, true }

// Begun is told that a request has begun. If nothing was read since the last answer, the beginning
// was read before, and what is read next is somewhere inside.
func (w *LineWatch) Begun() {
	if w.waits {
		w.begins, w.waits = false, false
	}
}

// Begins reports whether the next byte is known to begin a request. After a pipelined request it is
// not known.
func (w *LineWatch) Begins() bool { return w.begins }

// Waits reports whether all that came before was answered, and nothing has come since.
func (w *LineWatch) Waits() bool { return w.waits }

// Read looks at the bytes that came.
func (w *LineWatch) Read(b []byte) {
	if len(b) == 0 {
		return
	}
	if w.waits = false; w.begins {
		w.start(b)
	}
	var joint [2 * len(w.tail)]byte
	n := copy(joint[:], w.tail[:w.n])
	n += copy(joint[n:], b[:min(len(b), len(w.tail))])
	w.Bare = w.Bare || endsBare(joint[:n]) || endsBare(b)
	if len(b) < len(w.tail) {
		w.n = copy(w.tail[:], joint[max(0, n-len(w.tail)):n])
	} else {
		w.n = copy(w.tail[:], b[len(b)-len(w.tail):])
	}
}

// start looks at the empty lines before a request.
func (w *LineWatch) start(b []byte) {
	var last byte
	if w.n > 0 {
		last = w.tail[w.n-1]
	}
	for _, c := range b {
		if c != '\r' && c != '\n' {
			w.begins = false
			return
		}
		w.Bare = w.Bare || c == '\n' && last != '\r'
		last = c
	}
}

// endsBare reports whether b holds the end of a request line without CR.
func endsBare(b []byte) bool {
	for {
		at := bytes.Index(b, version)
		if at < 0 {
			return false
		}
		if b = b[at+len(version):]; len(b) > 1 && b[1] == '\n' {
			return true
		}
	}
}

var version = []byte("HTTP/1.")

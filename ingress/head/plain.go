package head

import (
	"bytes"
	"strconv"

	"golang.org/x/net/http/httpguts"

	"clobd/api/wire"
)

// Plain returns how long the request is that b begins, with its body, if its end can be told
// without the HTTP server: b holds all of the head, no two readers could understand the head in two
// ways, and it asks for nothing that changes the answer. Judge serves each plain head.
func Plain(b []byte) (length int, plain bool) {
	end := bytes.Index(b, emptyLine)
	if end < 0 {
		return 0, false
	}
	head := b[:end+len(crlf)]
	at := bytes.IndexByte(head, '\n') + 1
	if !bytes.HasSuffix(head[:at], protocol) || bytes.Count(head[:at], space) != 2 ||
		bytes.IndexByte(head, 0) >= 0 {
		return 0, false
	}
	lines, body, host := 1, -1, false
	for line := range bytes.Lines(head[at:]) {
		lines++
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || !bytes.HasSuffix(line, crlf) ||
			!httpguts.ValidHeaderFieldName(wire.Text(line[:colon])) {
			return 0, false
		}
		switch name, value := line[:colon], line[colon+1:]; len(name) {
		case len("HOST"):
			if FoldEqual(name, "HOST") {
				if host || len(bytes.Trim(value, blank)) == 0 {
					return 0, false
				}
				host = true
			}
		case len("CONTENT_LENGTH"):
			if !FoldEqual(name, "CONTENT_LENGTH") {
				continue
			}
			n, err := strconv.ParseUint(wire.Text(bytes.Trim(value, blank)), 10, 31)
			if err != nil || body >= 0 || bytes.IndexByte(name, '_') >= 0 {
				return 0, false
			}
			body = int(n)
		case len("CONNECTION"):
			if FoldEqual(name, "CONNECTION") && !bytes.EqualFold(bytes.Trim(value, blank), keepAlive) {
				return 0, false
			}
		case len("ORIGIN"): // as long as EXPECT
			if FoldEqual(name, "ORIGIN") || FoldEqual(name, "EXPECT") {
				return 0, false
			}
		case len("CONTENT_ENCODING"):
			if FoldEqual(name, "CONTENT_ENCODING") {
				return 0, false
			}
		case len("TRANSFER_ENCODING"):
			if FoldEqual(name, "TRANSFER_ENCODING") {
				return 0, false
			}
		}
	}
	// A CR that ends no line ends one for some readers.
	plain = host && 0 <= body && body <= BodyBytes && bytes.Count(head, crlf[:1]) == lines
	return end + len(emptyLine) + body, plain
}

const blank = " \t\r\n" // around a value; the end of its line is a part of it here

var (
	emptyLine = []byte("\r\n\r\n")
	protocol  = []byte(" HTTP/1.1\r\n")
	space     = []byte(" ")
	keepAlive = []byte("keep-alive")
)

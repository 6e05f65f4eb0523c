package head

import (
	"bytes"
	"strconv"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"clobd/api/wire"
)

// The refusals of a request whose body is too long, or whose head two readers could understand in
// two ways. The connection is closed after each: a proxy may see the next request elsewhere.
var (
	Malformed = wire.Refuse(400, "bad_request", "malformed HTTP request", "")
	Large     = wire.Refuse(413, "too_large", "request body too large",
		"a body may have "+strconv.Itoa(BodyBytes)+" bytes, one of /orders "+strconv.Itoa(ListBytes))

	refuseProtocol    = Malformed.Because("this node speaks HTTP/1.1 and HTTP/1.0")
	refuseExpectation = Malformed.Because("Expect may be 100-continue only")
)

// The lengths of a body that Most allows, in bytes.
const (
	BodyBytes = 64 << 10
	ListBytes = 256 << 10 // of POST /orders and DELETE /orders
)

// Judge returns why a request must not be served, or nil. The HTTP server accepts more than the
// standard allows: folded headers, lines that end with LF alone, names with spaces, any version and
// any expectation. A proxy that reads such a head differently would pass on a request that it never
// saw.
func Judge(h *fasthttp.RequestHeader) *wire.Refusal {
	if !bytes.HasPrefix(h.Protocol(), version1) {
		return refuseProtocol
	}
	length, encoding := false, false
	for line := range bytes.Lines(h.RawHeaders()) {
		if len(line) == 2 && line[0] == '\r' {
			continue // the empty line at the end
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || !bytes.HasSuffix(line, crlf) ||
			!httpguts.ValidHeaderFieldName(wire.Text(line[:colon])) {
			return Malformed
		}
		switch name := line[:colon]; len(name) {
		case len("EXPECT"):
			value := bytes.TrimSpace(line[colon+1:])
			if FoldEqual(name, "EXPECT") && !bytes.EqualFold(value, continues) {
				return refuseExpectation
			}
		case len("CONNECTION"):
			if FoldEqual(name, "CONNECTION") && listsClose(line[colon+1:]) {
				h.SetConnectionClose() // the HTTP server looks for close as the only word
			}
		case len("CONTENT_LENGTH"):
			if !FoldEqual(name, "CONTENT_LENGTH") {
				continue
			}
			length = true
			if h.ContentLength() == 0 && len(bytes.Trim(line[colon+1:], " \t0\r\n")) > 0 {
				return Large // Received took the length away
			}
		case len("CONTENT_ENCODING"):
			if FoldEqual(name, "CONTENT_ENCODING") {
				if refused := judgeCoding(h, line[colon+1:]); refused != nil {
					return refused
				}
			}
		case len("TRANSFER_ENCODING"):
			encoding = encoding || FoldEqual(name, "TRANSFER_ENCODING")
		}
	}
	// A head that tells its length in both ways has two ends. An encoding that is not chunked has
	// none: the HTTP server would take the body for the next request.
	if encoding && (length || h.ContentLength() != Chunked) {
		return Malformed
	}
	return nil
}

// Chunked is the length of a request with chunks.
const Chunked = -1

var (
	version1  = []byte("HTTP/1.")
	crlf      = []byte("\r\n")
	continues = []byte("100-continue")
	closes    = []byte("close")

	expectHeader = []byte("Expect")
)

// listsClose reports whether the value of Connection, a list of words, holds close.
func listsClose(value []byte) bool {
	for word := range bytes.SplitSeq(value, []byte{','}) {
		if bytes.EqualFold(bytes.TrimSpace(word), closes) {
			return true
		}
	}
	return false
}

// Most returns how long the body of a request may be.
func Most(h *fasthttp.RequestHeader) int {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	if string(path) == "/orders" || string(path) == "/clob/orders" {
		return ListBytes
	}
	return BodyBytes
}

// Received keeps the HTTP server from waiting for a body that is too long, or that its client
// holds back until an unknown expectation is met: it takes the length away, and Judge refuses
// the request. The HTTP server knows 100-continue in lower case only.
func Received(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	most := Most(h)
	if h.ContentLength() > most {
		h.SetContentLength(0)
	}
	if value := h.PeekBytes(expectHeader); len(value) > 0 {
		if bytes.EqualFold(value, continues) {
			h.SetCanonical(expectHeader, continues)
		} else {
			h.SetContentLength(0)
		}
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: most}
}

// FoldEqual compares a header name with its form in upper case.
func FoldEqual(name []byte, upper string) bool {
	if len(name) != len(upper) {
		return false
	}
	for i, b := range name {
		switch {
		case 'a' <= b && b <= 'z':
			b -= 'a' - 'A'
		case b == '-':
			b = '_'
		}
		if b != upper[i] {
			return false
		}
	}
	return true
}

// refusePacked are the refusals of a body in gzip or another coding, by family. A signature is over
// the bytes that a client has written, and a few of them could unpack to gigabytes.
var refusePacked = func() (of [wire.Families]*wire.Refusal) {
	const status, code = fasthttp.StatusUnsupportedMediaType, "unsupported_encoding"
	const text = "the body of a request must not be compressed"
	for f := range wire.Families {
		of[f] = f.Refuse(status, code, text, "send the body without the header Content-Encoding")
	}
	of[wire.Wallets] = wire.Wallets.Refuse(status, code, text, "") // whose bodies hold only the error
	return of
}()

var asWritten = []byte("identity")

// judgeCoding returns why a body in this coding must not be read, or nil.
func judgeCoding(h *fasthttp.RequestHeader, coding []byte) *wire.Refusal {
	coding = bytes.TrimSpace(coding)
	if len(coding) == 0 || bytes.EqualFold(coding, asWritten) {
		return nil
	}
	if n := h.ContentLength(); n <= 0 && n != Chunked {
		return nil // there is no body
	}
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	return refusePacked[wire.FamilyOf(path)]
}

package ingress

import (
	"bytes"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"clobd/api/wire"
)

// The refusals of a request whose head two readers could understand in two ways. The connection is
// closed after each, because a proxy may see the next request elsewhere.
var (
	refuseProtocol    = refuseMalformed.Because("this node speaks HTTP/1.1 and HTTP/1.0")
	refuseExpectation = refuseMalformed.Because("Expect may be 100-continue only")
)

// judgeHead returns why a request must not be served, or nil. The HTTP server accepts more than the
// standard allows: folded headers, lines that end with LF alone, names with spaces, any version and
// any expectation. A proxy that reads such a head differently would pass on a request that it never
// saw.
func judgeHead(h *fasthttp.RequestHeader) *wire.Refusal {
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
			return refuseMalformed
		}
		switch name := line[:colon]; len(name) {
		case len("EXPECT"):
			value := bytes.TrimSpace(line[colon+1:])
			if foldEqual(name, "EXPECT") && !bytes.EqualFold(value, continues) {
				return refuseExpectation
			}
		case len("CONNECTION"):
			if foldEqual(name, "CONNECTION") && listsClose(line[colon+1:]) {
				h.SetConnectionClose() // the HTTP server looks for close as the only word
			}
		case len("CONTENT_LENGTH"):
			if !foldEqual(name, "CONTENT_LENGTH") {
				continue
			}
			length = true
			if h.ContentLength() == 0 && len(bytes.Trim(line[colon+1:], " \t0\r\n")) > 0 {
				return refuseLarge // headReceived took the length away
			}
		case len("CONTENT_ENCODING"):
			if foldEqual(name, "CONTENT_ENCODING") {
				if refused := judgeCoding(h, line[colon+1:]); refused != nil {
					return refused
				}
			}
		case len("TRANSFER_ENCODING"):
			encoding = encoding || foldEqual(name, "TRANSFER_ENCODING")
		}
	}
	// A head that tells its length in both ways has two ends. An encoding that is not chunked has
	// none: the HTTP server would take the body for the next request.
	if encoding && (length || h.ContentLength() != chunked) {
		return refuseMalformed
	}
	return nil
}

// chunked is the length of a request with chunks.
const chunked = -1

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

// mostBytes returns how long the body of a request may be.
func mostBytes(h *fasthttp.RequestHeader) int {
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	if string(path) == "/orders" || string(path) == "/clob/orders" {
		return listBytes
	}
	return bodyBytes
}

// headReceived keeps the HTTP server from waiting for a body that is too long, or that its client
// holds back until an unknown expectation is met: it takes the length away, and judgeHead refuses
// the request. The HTTP server knows 100-continue in lower case only.
func headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	most := mostBytes(h)
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

// expect answers a request that asks whether its body is welcome. A head that is
// refused, also for the length of its body, is refused before the client sends more.
func (s *Server) expect(ctx *fasthttp.RequestCtx) (status int) {
	refused := judgeHead(&ctx.Request.Header)
	if refused == nil {
		return fasthttp.StatusContinue
	}
	send(ctx, refused)
	s.stamp(ctx)
	s.unreadable.observe(ctx)
	return refused.Status
}

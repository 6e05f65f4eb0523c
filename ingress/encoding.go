package ingress

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

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
	if n := h.ContentLength(); n <= 0 && n != chunked {
		return nil // there is no body
	}
	path, _, _ := bytes.Cut(h.RequestURI(), []byte{'?'})
	return refusePacked[wire.FamilyOf(path)]
}

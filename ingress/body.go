package ingress

import (
	"errors"
	"io"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/ingress/conn"
	"clobd/ingress/head"
)

// Bodies in memory. A body takes room as its bytes come, not as it announces them. The HTTP server
// reads the first bytes of each without being asked; only what goes on counts here.
const (
	firstBytes   = conn.BufferBytes // what the HTTP server reads first, at most
	bodyBudget   = 64 << 20         // of all callers
	bodyBudgetOf = 8 << 20          // of one address: 32 lists at a time
)

var (
	refuseBodies = wire.Refuse(503, "overloaded", "too many request bodies on their way", "")
	refuseBodyOf = wire.Refuse(429, "rate_limited", "too many request bodies from this address", "")
)

// The errors of a body that there is no room for.
var (
	errBodies = errors.New("no room for more bodies")
	errBody   = errors.New("no room for more bodies of this address")
)

// readBody reads the rest of a request's body. The connection of a refused one must be closed: its
// next request begins at an unknown place. The caller gives back the held bytes to s.bodies.
func (s *Server) readBody(ctx *fasthttp.RequestCtx) (held int, err error) {
	r := &ctx.Request
	if length := r.Header.ContentLength(); length >= 0 && length <= firstBytes {
		return 0, r.CloseBodyStream() // all of it is there
	}
	most := head.Most(&r.Header)
	from := s.ClientAddress(ctx)
	c, ok := ctx.Conn().(*orderConn)
	known := ok && c.Known()
	room := conn.NewBuffer()
	for {
		if len(room.Free()) == 0 {
			n := len(room.Bytes())
			if ok, crowded := s.bodies.Take(from, n, known); !ok {
				if crowded {
					return held, errBodies
				}
				return held, errBody
			}
			held += n
			room = room.Double()
		}
		n, err := r.BodyStream().Read(room.Free())
		room.Fill(n)
		body := room.Bytes()
		switch {
		case len(body) > most:
			return held, fasthttp.ErrBodyTooLarge
		case err == io.EOF:
			if length := r.Header.ContentLength(); length > len(body) ||
				length == head.Chunked && ok && c.ended { // the HTTP server waits for no last chunk
				return held, io.ErrUnexpectedEOF
			}
			if r.SetBodyRaw(body); ok {
				c.room = room // until the request is answered
			}
			return held, nil
		case err != nil:
			return held, err
		}
	}
}

// refuseKeys refuses a body. If a key of it stands twice, or is one too many, the answer names the
// key: the body may be right in all else that malformed would say.
func refuseKeys(fault *scan.Fault, malformed *wire.Refusal) *wire.Refusal {
	if fault.Why == scan.Malformed {
		return malformed
	}
	return wire.Refuse(malformed.Status, malformed.Code, malformed.Text, fault.Error())
}

// judgeUnread refuses the body of a write that reads none: the client signed it for some purpose.
func judgeUnread(ctx *fasthttp.RequestCtx) *wire.Refusal {
	if fault := scan.Keys(string(ctx.Request.Body())); fault != nil {
		return refuseKeys(fault, refuseBody)
	}
	return nil
}

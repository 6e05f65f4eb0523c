package socket

import (
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/api/wire/scan"
)

// maxID bounds the id of a request, in bytes of its JSON.
const maxID = 66

// The members of a request that this package reads. It ignores all others.
const (
	givenID = 1 << iota
	givenMethod
	givenParams
	givenAge
)

// read reads a message of a client: {"id":…,"method":…,"params":…,"max_age_ms":…}. A message
// without a method is a login in the form of the user channel; any other message needs an id. read
// returns false for everything else.
func (x *Exchange) read(text []byte) bool {
	var room [8]scan.Member
	members, ok := scan.Object(text, room[:0])
	var params []byte
	given := 0
	for _, m := range members {
		name, good := 0, true
		switch string(m.Key) {
		case "id":
			if name, good = givenID, isID(m.Value); good && given&givenID == 0 {
				x.id = append(x.id[:0], m.Value...)
			}
		case "method":
			name = givenMethod
			x.Method, good = scan.Text(m.Value)
		case "params":
			name, params = givenParams, m.Value
		case "max_age_ms":
			name = givenAge
			x.MaxAge, good = scan.Text(m.Value)
		}
		if ok = ok && good && given&name == 0; !ok {
			return false
		}
		given |= name
	}
	switch {
	case !ok:
		return false
	case given&givenMethod == 0:
		x.Method, params = methodLogin, text
	case given&givenID == 0:
		return false
	case scan.Absent(params):
		params = nil
	}
	x.Ctx.Request.SetBodyRaw(params)
	return true
}

// methodLogin is the method of the first message.
const methodLogin = "login"

// isID reports whether a JSON value is a string or an integer, and short enough for an answer.
func isID(b []byte) bool {
	if len(b) > maxID {
		return false
	}
	if b[0] == '"' {
		return true
	}
	_, err := strconv.ParseInt(string(b), 10, 64)
	return err == nil
}

// extras are the HTTP headers that an answer on a socket carries as members.
var extras = [...]struct {
	header, member string
	text           bool // the value is a string, else JSON
}{
	{"X-Sequence", "seq", false}, {"X-Idempotent-Replay", "replay", false}, {"X-Fee", "fee", true},
	{"X-Canceled", "displaced", true}, {"RateLimit", "rate_limit", true},
}

// appendFrame appends the answer, with the id of the request, as a message of one frame. If its
// text is longer than a piece, the message has several frames.
func (x *Exchange) appendFrame(out []byte) []byte {
	if x.Method == "PING" {
		return live.AppendFrame(out, []byte("PONG"))
	}
	r := &x.Ctx.Response
	var room [128]byte
	head := append(append(room[:0], `{"id":`...), x.id...)
	head = strconv.AppendInt(append(head, `,"status":`...), int64(r.StatusCode()), 10)
	if r.StatusCode() < fasthttp.StatusBadRequest {
		head = append(head, `,"result":`...)
	} else {
		head = append(head, `,"error":`...)
	}
	var more [256]byte
	tail := more[:0]
	for name, v := range r.Header.All() {
		for i := range extras {
			if e := &extras[i]; string(name) == e.header {
				tail = append(append(append(tail, `,"`...), e.member...), `":`...)
				if e.text {
					tail = wire.AppendString(tail, string(v))
				} else {
					tail = append(tail, v...)
				}
			}
		}
	}
	tail = append(tail, '}')
	if body := r.Body(); len(head)+len(body)+len(tail) > piece {
		return live.AppendFragments(out, slices.Concat(head, body, tail), piece)
	}
	return live.AppendFrame(out, head, r.Body(), tail)
}

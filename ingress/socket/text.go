package socket

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/api/wire/scan"
)

// maxID bounds the id of a request, in bytes of its JSON.
const maxID = 66

// read reads a text of a client: {"id":…,"method":…,"params":…,"max_age_ms":…}. A text without a
// method is a login that is written as on the user channel. It returns false for all else.
func (x *Exchange) read(text []byte) bool {
	var room [8]scan.Member
	members, ok := scan.Object(text, room[:0])
	if !ok {
		return false
	}
	params, named := []byte(nil), false
	for i, m := range members {
		for _, other := range members[:i] {
			if string(other.Key) == string(m.Key) {
				return false
			}
		}
		switch string(m.Key) {
		case "id":
			if !isID(m.Value) {
				return false
			}
			x.id = append(x.id[:0], m.Value...)
		case "method":
			x.Method, ok = scan.Text(m.Value)
			if named = true; !ok {
				return false
			}
		case "params":
			params = m.Value
		case "max_age_ms":
			if x.MaxAge, ok = scan.Text(m.Value); !ok {
				return false
			}
		}
	}
	if !named {
		x.Method, params = "login", text
	} else if scan.Absent(params) {
		params = nil
	}
	x.Ctx.Request.SetBodyRaw(params)
	return true
}

// isID reports whether JSON is a string or an integer that an answer may repeat.
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

// extras are the headers of HTTP that an answer carries as members.
var extras = [...]struct {
	header, member string
	text           bool // the value is a text, else JSON
}{
	{"X-Sequence", "seq", false}, {"X-Idempotent-Replay", "replay", false}, {"X-Fee", "fee", true},
	{"X-Canceled", "displaced", true}, {"RateLimit", "rate_limit", true},
}

// appendFrame appends the answer as a frame.
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
		for _, e := range extras {
			if string(name) != e.header {
				continue
			}
			tail = append(append(append(tail, `,"`...), e.member...), `":`...)
			if e.text {
				tail = wire.AppendString(tail, string(v))
			} else {
				tail = append(tail, v...)
			}
		}
	}
	return live.AppendFrame(out, head, r.Body(), append(tail, '}'))
}

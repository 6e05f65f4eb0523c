package lean

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"clobd/engine"
)

// Bounds of an answer. What is beyond them is no answer of a node.
const (
	longestHead = 64 << 10
	longestBody = 64 << 20
)

// reply is one answer. Its slices are parts of what was read.
type reply struct {
	status     int
	head, body []byte
	closes     bool // the server closes the connection after it
}

var (
	headEnd  = []byte("\r\n\r\n")
	httpWord = []byte("HTTP/1.1 ")
)

// scan reads an answer from the start of b. whole is false if more of it is to come. An error says
// what is no answer that this client takes.
func scan(b []byte) (r reply, whole bool, err error) {
	if n := min(len(b), len(httpWord)); !bytes.Equal(b[:n], httpWord[:n]) {
		return r, false, fmt.Errorf("no HTTP answer: %.60q", b)
	}
	end := bytes.Index(b, headEnd)
	if end < 0 {
		if len(b) > longestHead {
			return r, false, errors.New("the head of an answer is longer than 64 KiB")
		}
		return r, false, nil
	}
	r.head = b[:end+2]
	size, err := r.fields()
	if err != nil {
		return r, false, err
	}
	from := end + len(headEnd)
	if len(b) < from+size {
		return r, false, nil
	}
	r.body = b[from : from+size]
	if len(b) > from+size {
		return r, false, fmt.Errorf("%d bytes more than one answer", len(b)-from-size)
	}
	return r, true, nil
}

// fields reads the status line and the fields that matter, and returns the length of the body.
func (r *reply) fields() (size int, err error) {
	size = -1
	line, rest := cutLine(r.head)
	if len(line) < len(httpWord)+3 {
		return 0, fmt.Errorf("no status: %.60q", line)
	}
	if r.status, err = digits(line[len(httpWord):][:3]); err != nil || r.status < 200 {
		return 0, fmt.Errorf("no final status: %.60q", line)
	}
	for len(rest) > 0 {
		line, rest = cutLine(rest)
		switch {
		case len(line) == 0 || line[0]|0x20 != 'c' && line[0]|0x20 != 't':
		case named(line, "content-length"):
			if size, err = digits(value(line)); err != nil || size > longestBody {
				return 0, fmt.Errorf("a length that is none, or above 64 MiB: %.60q", line)
			}
		case named(line, "connection"):
			r.closes = bytes.EqualFold(value(line), []byte("close"))
		case named(line, "transfer-encoding"):
			return 0, fmt.Errorf("a body without a length: %.60q", line)
		}
	}
	if size < 0 {
		if r.status != http.StatusNoContent {
			return 0, errors.New("an answer without a length")
		}
		size = 0
	}
	return size, nil
}

// cutLine cuts a line that ends with CRLF off the start of b.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 {
		return b, nil
	}
	return b[:i-1], b[i+1:]
}

// named reports whether a line is the field name, which is lower case.
func named(line []byte, name string) bool {
	if len(line) <= len(name) || line[len(name)] != ':' {
		return false
	}
	for i := range len(name) {
		if line[i] != name[i] && line[i]|0x20 != name[i] {
			return false
		}
	}
	return true
}

// value is the value of a field.
func value(line []byte) []byte {
	return bytes.TrimSpace(line[bytes.IndexByte(line, ':')+1:])
}

// digits reads a decimal of 1 to 9 digits.
func digits(b []byte) (n int, err error) {
	if len(b) == 0 || len(b) > 9 {
		return 0, errors.New("no number")
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errors.New("no number")
		}
		n = 10*n + int(c-'0')
	}
	return n, nil
}

// The texts that answers are scanned for.
var (
	saysSuccess  = []byte(`"success":true`)
	saysUnfilled = []byte(`_unfilled"`) // the end of the codes fak_unfilled and fok_unfilled
	saysCanceled = []byte(`"canceled":[`)
	saysID       = []byte(`"0x`)
)

// judge says whether a reply is a good one to p, and how many operations were refused.
func (r *reply) judge(w *Route, p *Prepared) (refused int64, good bool) {
	ok := r.status == http.StatusOK
	switch w.Want {
	case WantOrders:
		success := bytes.Count(r.body, saysSuccess)
		if ok && success == len(p.IDs) {
			return 0, true
		}
		// An order alone is refused with the status 400, one of a list within the list.
		refused = int64(bytes.Count(r.body, saysUnfilled))
		alone := r.status == http.StatusBadRequest && len(p.IDs) == 1
		return refused, (ok || alone) && refused+int64(success) == int64(len(p.IDs))
	case WantCancels:
		_, list, found := bytes.Cut(r.body, saysCanceled)
		end := bytes.IndexByte(list, ']')
		if !ok || !found || end < 0 {
			return 0, false
		}
		refused = int64(len(p.IDs) - bytes.Count(list[:end], saysID))
		return refused, refused >= 0
	case WantRead:
		if r.status == http.StatusNotFound {
			return 1, true
		}
	case WantSame:
		return 0, ok && bytes.Equal(r.body, w.Same)
	case WantQuote:
		if r.status == http.StatusNotFound {
			return 1, true
		}
	}
	return 0, ok
}

// inspect parses a good reply as JSON and holds it against the request.
func (r *reply) inspect(w *Route, p *Prepared) error {
	if w.Want == WantCancels {
		var told struct {
			Canceled    []string          `json:"canceled"`
			NotCanceled map[string]string `json:"not_canceled"`
		}
		if err := json.Unmarshal(r.body, &told); err != nil {
			return err
		}
		for _, id := range p.IDs {
			_, not := told.NotCanceled[id.Hex()]
			if not == slices.Contains(told.Canceled, id.Hex()) {
				return fmt.Errorf("%s is not once in it", id.Hex())
			}
		}
		return nil
	}
	if w.Want != WantOrders || r.status != http.StatusOK {
		if !json.Valid(r.body) {
			return errors.New("no JSON")
		}
		return nil
	}
	return inspectOrders(r.body, p.IDs)
}

// placing is the part of an order's result that is looked at.
type placing struct {
	Success bool   `json:"success"`
	OrderID string `json:"orderID"`
}

// inspectOrders holds the answer to an order, or to a list, against their ids.
func inspectOrders(body []byte, ids []engine.OrderID) error {
	told := make([]placing, 1)
	var into any = &told[0]
	if body[0] == '[' {
		into = &told
	}
	if err := json.Unmarshal(body, into); err != nil {
		return err
	}
	if len(told) != len(ids) {
		return fmt.Errorf("%d results for %d orders", len(told), len(ids))
	}
	for i := range told {
		if told[i].Success && told[i].OrderID != ids[i].Hex() {
			return fmt.Errorf("order %d is %s and not %s", i, told[i].OrderID, ids[i].Hex())
		}
	}
	return nil
}

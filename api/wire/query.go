package wire

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

// Query reads the parameters of one request and keeps the first refusal, in the words of a family:
// Described or Wallets. An empty value counts as none. A Query belongs to one request.
type Query struct {
	args   *fasthttp.Args
	family Family
	// Refused is the first refusal, nil if there is none.
	Refused *Refusal
}

// ReadQuery begins to read the query of a request.
func ReadQuery(ctx *fasthttp.RequestCtx, family Family) Query {
	return Query{args: ctx.QueryArgs(), family: family}
}

// Only refuses parameters that have none of these names.
func (q *Query) Only(names ...string) {
	for key := range q.args.All() {
		if !slices.Contains(names, string(key)) {
			q.refuse("unknown_field", printable(string(key)), "")
			return
		}
	}
}

func printable(name string) string {
	const longest = 64
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return '?'
		}
		return r
	}, name[:min(len(name), longest)])
	if name == "" {
		return "?"
	}
	return name
}

func (q *Query) refuse(code, text, detail string) {
	if q.Refused == nil {
		q.Refused = q.family.Refuse(fasthttp.StatusBadRequest, code, text, detail)
	}
}

// Missing refuses the request because a parameter is not there.
func (q *Query) Missing(name string) {
	text := name
	if q.family == Described {
		text += " is required"
	}
	q.refuse("missing_field", text, "")
}

// Invalid refuses the value of a parameter. expected says what the value should be; the Wallets
// family leaves that out.
func (q *Query) Invalid(name, expected string) {
	if q.family == Described {
		q.refuse("invalid_field", name+" is invalid", name+" is "+expected)
		return
	}
	q.refuse("invalid_field", name, "")
}

// Text is a parameter under the first of its names that the query has, "" if none. It is good until
// the handler returns.
func (q *Query) Text(names ...string) string { return first(q.args, names) }

// List returns the values under all of the names: separated by commas, or each on its own. More
// than most values are invalid.
func (q *Query) List(most int, names ...string) (values []string) {
	for _, name := range names {
		for _, v := range q.args.PeekMulti(name) {
			for part := range strings.SplitSeq(Text(v), ",") {
				if part = strings.TrimSpace(part); part != "" {
					values = append(values, part)
				}
			}
		}
		if len(values) > most {
			q.Invalid(name, "at most "+strconv.Itoa(most)+" values")
			return nil
		}
	}
	return values
}

// Count reads a whole number in [0, most]; without one it is otherwise.
func (q *Query) Count(name string, otherwise, most int) int {
	s := q.Text(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n > uint64(most) {
		q.Invalid(name, "")
		return otherwise
	}
	return int(n)
}

// AtLeast reads a whole number of at least least; a number above most counts as most. Without the
// parameter the answer is otherwise.
func (q *Query) AtLeast(name string, otherwise, least, most int) int {
	s := q.Text(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64) // a number out of range reads as the nearest in range
	if err != nil && !errors.Is(err, strconv.ErrRange) || n < int64(least) {
		q.Invalid(name, "a whole number, at least "+strconv.Itoa(least))
		return otherwise
	}
	return int(min(n, int64(most)))
}

// Truth reads true or false; given is false if the parameter is not there or invalid.
func (q *Query) Truth(name string) (yes, given bool) {
	s := q.Text(name)
	if s == "" {
		return false, false
	}
	switch s {
	case "true", "True", "TRUE", "1":
		return true, true
	case "false", "False", "FALSE", "0":
		return false, true
	}
	q.Invalid(name, "true or false")
	return false, false
}

// MaxSeconds bounds unix seconds in a query, so that milliseconds do not overflow.
const MaxSeconds = 1 << 40

// IsNumber reports whether s is made of digits.
func IsNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Parameter is a parameter under the first of its names that the query has, "" if none.
func Parameter(ctx *fasthttp.RequestCtx, names ...string) string {
	return first(ctx.QueryArgs(), names)
}

func first(args *fasthttp.Args, names []string) string {
	for _, name := range names {
		if v := args.Peek(name); len(v) > 0 {
			return Text(v)
		}
	}
	return ""
}

// InPath is the part of the path for which the route has a name, without escapes.
func InPath(ctx *fasthttp.RequestCtx, name string) string {
	s, _ := ctx.UserValue(name).(string)
	return Unescape(s)
}

// TrimSlash removes the slash at the end of a path. All routes take one, but for those that are
// nothing else: / and /clob/.
func TrimSlash(uri *fasthttp.URI) {
	path := uri.PathOriginal()
	if last := len(path) - 1; last > 0 && path[last] == '/' && string(path) != "/clob/" {
		uri.SetPathBytes(path[:last])
	}
}

// Unescape resolves the escapes of a part of a path, %30 and the like. A part with a wrong escape
// stays as it is, and names nothing.
func Unescape(part string) string {
	if strings.IndexByte(part, '%') < 0 {
		return part
	}
	if plain, err := url.PathUnescape(part); err == nil {
		return plain
	}
	return part
}

var ampersand, equals = []byte("&"), []byte("=")

// Peek is the value of the first parameter of a name that is not empty, empty if there is none. The
// bytes are good as long as the request. A query without escapes, as most clients send, is read in
// place, without a list of all parameters.
func Peek(ctx *fasthttp.RequestCtx, name string) []byte {
	query := ctx.URI().QueryString()
	if bytes.IndexByte(query, '%') >= 0 || bytes.IndexByte(query, '+') >= 0 {
		return ctx.QueryArgs().Peek(name)
	}
	for len(query) > 0 {
		var parameter []byte
		parameter, query, _ = bytes.Cut(query, ampersand)
		if key, value, _ := bytes.Cut(parameter, equals); string(key) == name {
			return value
		}
	}
	return nil
}

// QueryToken is the token id of the query, "" if there is none. Some clients write tokenId.
func QueryToken(ctx *fasthttp.RequestCtx) string {
	if id := Peek(ctx, "token_id"); len(id) > 0 {
		return Text(id)
	}
	return Text(Peek(ctx, "tokenId"))
}

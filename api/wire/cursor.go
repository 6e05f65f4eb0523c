package wire

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

// PageLimit bounds the items of a page, unless the route has its own bound.
const PageLimit = 100

// The cursors that end a list.
const (
	EndCursor   = "LTE=" // -1: most clients read pages until EndCursor
	EmptyCursor = ""     // for SVC_ clients, in a list of orders
)

// Cursor is where a page begins: behind so many items of the list, or behind its end. A cursor that
// also names the ordinal of the first item is exact: ordinals never change, so its pages do not
// shift when items come or go.
type Cursor struct {
	Offset uint64
	From   uint64 // the ordinal; 0: Offset alone counts
	Past   bool   // behind the end
}

// ReadCursor reads the parameter next_cursor: base64 of an offset, or of an offset, a colon and an
// ordinal. Without the parameter the cursor is the start of the list; an empty next_cursor, or -1,
// is behind the end. ok is false for anything else.
func ReadCursor(ctx *fasthttp.RequestCtx) (c Cursor, ok bool) {
	args := ctx.QueryArgs()
	switch s := Text(args.Peek("next_cursor")); {
	case s == EndCursor, s == "" && args.Has("next_cursor"):
		return Cursor{Past: true}, true
	case s == "":
		return Cursor{}, true
	default:
		numbers, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return Cursor{}, false
		}
		offset, ordinal, exact := strings.Cut(Text(numbers), ":")
		if c.Offset, err = strconv.ParseUint(offset, 10, 64); err != nil || !exact {
			return c, err == nil
		}
		c.From, err = strconv.ParseUint(ordinal, 10, 64)
		return c, err == nil && c.From != 0
	}
}

// Next is where the following page begins. The zero Next is the end of the list: no ordinal is 0.
type Next struct {
	Offset, From uint64
	Exact        bool // tell the ordinal as well
}

// Next is where the page behind one of count items begins, whose first item has the ordinal from.
func (c *Cursor) Next(from uint64, count int, exact bool) Next {
	return Next{c.Offset + uint64(count), from, exact}
}

func (n *Next) append(b []byte, end string) []byte {
	if n.From == 0 {
		return append(b, end...)
	}
	var room [41]byte
	text := strconv.AppendUint(room[:0], n.Offset, 10)
	if n.Exact {
		text = strconv.AppendUint(append(text, ':'), n.From, 10)
	}
	return base64.StdEncoding.AppendEncode(b, text)
}

// BeginPage begins a page: {"data":[
func BeginPage(b []byte) []byte { return append(b, `{"data":[`...) }

// PageSize is how many items a page may hold and how many it holds.
type PageSize struct{ Limit, Count int }

// EndPage ends a page of a list that goes on at next, or that ends, with the cursor end.
func EndPage(b []byte, next Next, end string, p PageSize) []byte {
	b = append(b, `],"next_cursor":"`...)
	b = append(next.append(b, end), `","limit":`...)
	b = strconv.AppendInt(b, int64(p.Limit), 10)
	b = append(b, `,"count":`...)
	return append(strconv.AppendInt(b, int64(p.Count), 10), '}')
}

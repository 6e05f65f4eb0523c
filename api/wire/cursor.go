package wire

import (
	"encoding/base64"
	"strconv"

	"github.com/valyala/fasthttp"
)

// PageLimit bounds the items of a page, unless the route has its own bound.
const PageLimit = 100

// The cursors that end a list.
const (
	EndCursor   = "LTE=" // -1: most clients read pages until EndCursor
	EmptyCursor = ""     // for SVC_ clients, in a list of orders
)

// Cursor is where a page begins: at an ordinal of the list, or behind its end. Ordinals never
// change, so pages do not shift when items come or go.
type Cursor struct {
	From uint64 // 0: the start
	Past bool   // behind the end
}

// ReadCursor reads the parameter next_cursor: base64 of a decimal ordinal. Without the parameter
// the cursor is the start of the list; an empty next_cursor, or -1, is behind the end. ok is false
// for anything else.
func ReadCursor(ctx *fasthttp.RequestCtx) (c Cursor, ok bool) {
	args := ctx.QueryArgs()
	switch s := Text(args.Peek("next_cursor")); {
	case s == EndCursor, s == "" && args.Has("next_cursor"):
		return Cursor{Past: true}, true
	case s == "":
		return Cursor{}, true
	default:
		number, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return Cursor{}, false
		}
		c.From, err = strconv.ParseUint(Text(number), 10, 64)
		return c, err == nil
	}
}

func appendCursor(b []byte, next uint64, end string) []byte {
	if next == 0 {
		return append(b, end...)
	}
	var room [20]byte
	return base64.StdEncoding.AppendEncode(b, strconv.AppendUint(room[:0], next, 10))
}

// BeginPage begins a page: {"data":[
func BeginPage(b []byte) []byte { return append(b, `{"data":[`...) }

// PageSize is how many items a page may hold and how many it holds.
type PageSize struct{ Limit, Count int }

// EndPage ends a page of a list that goes on at next; 0 ends the list with the cursor end.
func EndPage(b []byte, next uint64, end string, p PageSize) []byte {
	b = append(b, `],"next_cursor":"`...)
	b = append(appendCursor(b, next, end), `","limit":`...)
	b = strconv.AppendInt(b, int64(p.Limit), 10)
	b = append(b, `,"count":`...)
	return append(strconv.AppendInt(b, int64(p.Count), 10), '}')
}

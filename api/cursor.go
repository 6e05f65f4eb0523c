package api

import (
	"encoding/base64"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// pageLimit is how many items a page holds at most.
const pageLimit = 100

// The cursors that end a list. Most clients go on until they meet the first; clients of the seed
// shape know the second as the end of a list of orders.
const (
	endCursor   = "LTE=" // -1
	emptyCursor = ""
)

// cursor is where a page begins: at an ordinal of the list, or behind its end. The ordinals of a
// list never change, so that pages do not shift when something is added or leaves.
type cursor struct {
	from uint64 // 0: the start
	past bool
}

// named is a parameter of the query under the first of its names that is there.
func named(ctx *fasthttp.RequestCtx, names ...string) string {
	args := ctx.QueryArgs()
	for _, name := range names {
		if v := args.Peek(name); len(v) > 0 {
			return wire.Text(v)
		}
	}
	return ""
}

// parseCursor reads the next_cursor of the query: base64 of a decimal ordinal. Without one a list
// begins; an empty one, or -1, is behind the end. It says false if it is anything else.
func parseCursor(ctx *fasthttp.RequestCtx) (c cursor, ok bool) {
	args := ctx.QueryArgs()
	switch s := wire.Text(args.Peek("next_cursor")); {
	case s == endCursor, s == "" && args.Has("next_cursor"):
		return cursor{past: true}, true
	case s == "":
		return cursor{}, true
	default:
		number, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return cursor{}, false
		}
		c.from, err = strconv.ParseUint(wire.Text(number), 10, 64)
		return c, err == nil
	}
}

// appendCursor appends the cursor of an ordinal; 0 is behind the end, where end is written.
func appendCursor(b []byte, next uint64, end string) []byte {
	if next == 0 {
		return append(b, end...)
	}
	var room [20]byte
	return base64.StdEncoding.AppendEncode(b, strconv.AppendUint(room[:0], next, 10))
}

// beginPage begins a page: {"data":[
func beginPage(b []byte) []byte { return append(b, `{"data":[`...) }

// page is how many items a page may hold and does.
type page struct{ limit, count int }

// endPage ends a page of a list that goes on at next.
func endPage(b []byte, next uint64, end string, p page) []byte {
	b = append(b, `],"next_cursor":"`...)
	b = append(appendCursor(b, next, end), `","limit":`...)
	b = strconv.AppendInt(b, int64(p.limit), 10)
	b = append(b, `,"count":`...)
	return append(strconv.AppendInt(b, int64(p.count), 10), '}')
}

// emptyPage is the last page of a list that holds nothing.
var emptyPage = endPage(beginPage(nil), 0, endCursor, page{pageLimit, 0})

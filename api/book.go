package api

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// book answers GET /book. The bytes are those that the Snapshot keeps: built at most once, shared
// by all who ask, never copied here.
func (h *Handler) book(ctx *fasthttp.RequestCtx) {
	s, o, refused := h.snapshot(ctx)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	wire.AnswerRaw(ctx, s.Text(o, renderBook))
}

// maxBooksBytes bounds the answer to POST /books: as much as 500 books have that are full at every
// cent, and far more than most have.
const maxBooksBytes = 4 << 20

// What stands around the books of an answer.
var (
	openArray  = []byte("[")
	comma      = []byte(",")
	closeArray = []byte("]")
)

// books answers POST /books: the books of all tokens asked for that have one, in that order, each
// once. They go out as the Snapshots keep them: while a client is slow to read, the node holds
// what other answers share, and no copy.
func (h *Handler) books(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
	seen := make(map[engine.Token]struct{}, len(asked))
	parts, size := append(make(net.Buffers, 0, 2+2*len(asked)), openArray), 2
	for i := range asked {
		token := asked[i].token
		s, o, known := h.o.Board.Book(token)
		if _, twice := seen[token]; twice || !known {
			continue
		}
		seen[token] = struct{}{}
		if len(parts) > 1 {
			parts, size = append(parts, comma), size+1
		}
		book := s.Text(o, renderBook)
		if size += len(book); size > maxBooksBytes {
			errTooLong.Send(ctx)
			return
		}
		parts = append(parts, book)
	}
	parts = append(parts, closeArray)
	ctx.SetContentType(wire.JSON)
	ctx.Response.SetBodyStream(&parts, size)
}

// snapshot finds the book of the token that the query names, or says why there is none.
func (h *Handler) snapshot(
	ctx *fasthttp.RequestCtx,
) (*view.Snapshot, engine.Outcome, *wire.Refusal) {
	token, ok := engine.ParseToken(wire.QueryToken(ctx))
	if !ok {
		return nil, 0, wire.ErrToken
	}
	s, o, ok := h.o.Board.Book(token)
	if !ok {
		return nil, 0, errNoBook
	}
	return s, o, nil
}

// priceLevel is one price of a book.
type priceLevel struct {
	price engine.Price
	size  engine.Size
}

// Sizes to begin with: most levels are shorter than the first, the rest of a book than the second.
const (
	levelBytes = 40
	frameBytes = 512
)

// hashBytes is the length of a book's hash as text.
const hashBytes = 2 * sha1.Size

// renderBook is the book of outcome o as JSON: ten keys in an order that clients rely on when they
// compute the hash again, with the best price last on both sides.
func renderBook(s *view.Snapshot, o engine.Outcome) []byte {
	bids, asks := s.Depth(o, engine.Buy), s.Depth(o, engine.Sell)
	levels := make([]priceLevel, 0, max(bids, asks))
	b := make([]byte, 0, frameBytes+levelBytes*(bids+asks))
	b = append(b, `{"market":"`...)
	b = engine.AppendHex(b, s.Market.Condition[:])
	b = append(b, `","asset_id":"`...)
	b = s.Market.Tokens[o].AppendDecimal(b)
	b = append(b, `","timestamp":"`...)
	b = strconv.AppendInt(b, int64(s.Time), 10)
	b = append(b, `","hash":"`...)
	at := len(b)
	b = append(b, `","bids":`...)
	levels = bestFirst(levels, s, o, engine.Buy)
	b = appendReversed(b, levels)
	b = append(b, `,"asks":`...)
	levels = bestFirst(levels, s, o, engine.Sell)
	b = appendReversed(b, levels)
	b = append(b, `,"min_order_size":"`...)
	b = engine.AppendDecimal(b, int64(s.Market.MinSize), 6)
	b = append(b, `","tick_size":"`...)
	b = engine.AppendDecimal(b, int64(s.Market.Tick), 4)
	b = append(b, `","neg_risk":`...)
	b = strconv.AppendBool(b, s.Market.NegRisk)
	b = append(b, `,"last_trade_price":"`...)
	if p, _, traded := s.Last(o); traded {
		b = engine.AppendDecimal(b, int64(p), 4)
	}
	b = append(b, '"', '}')
	hash := bookHash(b)
	final := make([]byte, 0, len(b)+hashBytes)
	final = append(final, b[:at]...)
	final = append(final, hash[:]...)
	return append(final, b[at:]...)
}

// bestFirst fills levels with one side of the book, in the order of a Snapshot.
func bestFirst(
	levels []priceLevel, s *view.Snapshot, o engine.Outcome, side engine.Side,
) []priceLevel {
	levels = levels[:0]
	s.Levels(o, side, func(p engine.Price, size engine.Size) bool {
		levels = append(levels, priceLevel{p, size})
		return true
	})
	return levels
}

// appendReversed appends levels as an array, the last one first.
func appendReversed(b []byte, levels []priceLevel) []byte {
	b = append(b, '[')
	for i := len(levels) - 1; i >= 0; i-- {
		b = append(b, `{"price":"`...)
		b = engine.AppendDecimal(b, int64(levels[i].price), 4)
		b = append(b, `","size":"`...)
		b = engine.AppendDecimal(b, int64(levels[i].size), 6)
		b = append(b, '"', '}')
		if i > 0 {
			b = append(b, ',')
		}
	}
	return append(b, ']')
}

// bookHash is the hash of a book: SHA-1, in hex, of its compact JSON in which the hash is "". It
// tells versions of a book apart and secures nothing; public clients compute the same.
func bookHash(compact []byte) (text [hashBytes]byte) {
	sum := sha1.Sum(compact)
	hex.Encode(text[:], sum[:])
	return text
}

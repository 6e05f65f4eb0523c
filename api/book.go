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

// book answers GET /book with the bytes that the Snapshot keeps. They are built at most once,
// shared by all requests and never copied here.
func (h *Handler) book(ctx *fasthttp.RequestCtx) {
	shown := h.o.Board.Shown()
	s, o, refused := h.snapshot(ctx)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	// Nothing between the Snapshot and a newer Shown changed the book.
	wire.MarkSequence(ctx, max(shown, s.Sequence))
	wire.AnswerRaw(ctx, Book(s, o))
}

// Book returns the answer of GET /book about an outcome of the Snapshot's market. The bytes are
// shared and must not be changed.
func Book(s *view.Snapshot, o engine.Outcome) []byte { return s.Text(o, renderBook) }

// maxBooksBytes bounds the answer to POST /books. 500 books with orders at every cent fit.
const maxBooksBytes = 4 << 20

// rereads is how often books are read until no frame was shown in between: only then do all of them
// show one Sequence. The last time, X-Sequence is that of the oldest: some books may be newer.
const rereads = 4

var openArray, comma, closeArray = []byte("["), []byte(","), []byte("]")

// books answers POST /books with the books of all tokens that have one, in the order asked for,
// each once. The answer refers to the bytes of the Snapshots: a slow reader costs the node no copy.
func (h *Handler) books(ctx *fasthttp.RequestCtx, asked []tokenQuery) {
	parts := make(net.Buffers, 0, 2+2*len(asked))
	size := 0
	for range rereads {
		shown, newest := h.o.Board.Shown(), engine.Sequence(0)
		parts, size = append(parts[:0], openArray), 2
		h.eachBook(asked, func(_ engine.Token, s *view.Snapshot, o engine.Outcome) bool {
			if len(parts) > 1 {
				parts, size = append(parts, comma), size+1
			}
			newest = max(newest, s.Sequence)
			book := Book(s, o)
			parts, size = append(parts, book), size+len(book)
			return size <= maxBooksBytes
		})
		wire.MarkSequence(ctx, shown)
		if newest <= shown {
			break
		}
	}
	if size > maxBooksBytes {
		errTooLong.Send(ctx)
		return
	}
	parts = append(parts, closeArray)
	ctx.SetContentType(wire.JSON)
	ctx.Response.SetBodyStream(&parts, size)
}

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

type priceLevel struct {
	price engine.Price
	size  engine.Size
}

const (
	levelBytes = 40  // most levels are shorter
	frameBytes = 512 // the rest of a book is shorter
)

// hashBytes is the length of a book's hash as text.
const hashBytes = 2 * sha1.Size

// renderBook is the book of outcome o as JSON.
func renderBook(s *view.Snapshot, o engine.Outcome) []byte {
	bids, asks := s.Depth(o, engine.Buy), s.Depth(o, engine.Sell)
	h := Hasher{make([]priceLevel, 0, max(bids, asks)),
		make([]byte, 0, frameBytes+levelBytes*(bids+asks))}
	h.Hash(s, o)
	return h.text
}

// Hasher computes the hashes of books, with memory that it uses again. Its zero value is ready.
type Hasher struct {
	levels []priceLevel
	text   []byte
}

// Hash returns the hash of the book of outcome o, in hex. It makes the book as JSON in h.text: ten
// keys in an order that clients rely on when they compute the hash again, with the best price last
// on both sides.
func (h *Hasher) Hash(s *view.Snapshot, o engine.Outcome) [hashBytes]byte {
	b := append(h.text[:0], `{"market":"`...)
	b = engine.AppendHex(b, s.Market.Condition[:])
	b = append(b, `","asset_id":"`...)
	b = s.Market.Tokens[o].AppendDecimal(b)
	b = append(b, `","timestamp":"`...)
	b = strconv.AppendInt(b, int64(s.Time), 10)
	b = append(b, `","hash":"`...)
	at := len(b)
	b = append(append(b, noHash[:]...), `","bids":`...)
	b = h.appendReversed(b, s, o, engine.Buy)
	b = append(b, `,"asks":`...)
	b = h.appendReversed(b, s, o, engine.Sell)
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
	hash := bookHash(b[:at], b[at+hashBytes:])
	copy(b[at:], hash[:])
	h.text = b
	return hash
}

var noHash [hashBytes]byte // holds a hash's place

// appendReversed appends the levels of a side as an array, the best one last.
func (h *Hasher) appendReversed(
	b []byte, s *view.Snapshot, o engine.Outcome, side engine.Side,
) []byte {
	h.levels = h.levels[:0]
	s.Levels(o, side, func(p engine.Price, size engine.Size) bool {
		h.levels = append(h.levels, priceLevel{p, size})
		return true
	})
	b = append(b, '[')
	for i := len(h.levels) - 1; i >= 0; i-- {
		b = append(b, `{"price":"`...)
		b = engine.AppendDecimal(b, int64(h.levels[i].price), 4)
		b = append(b, `","size":"`...)
		b = engine.AppendDecimal(b, int64(h.levels[i].size), 6)
		b = append(b, '"', '}')
		if i > 0 {
			b = append(b, ',')
		}
	}
	return append(b, ']')
}

// bookHash returns the SHA-1, in hex, of a book's compact JSON with an empty hash, given in parts.
// Public clients compute the same to tell versions of a book apart; it secures nothing.
func bookHash(compact ...[]byte) (text [hashBytes]byte) {
	h := sha1.New()
	for _, part := range compact {
		h.Write(part)
	}
	var sum [sha1.Size]byte
	hex.Encode(text[:], h.Sum(sum[:0]))
	return text
}

package api

import (
	"unicode/utf8"
	"unsafe"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// JSON is appended by hand: the shapes are few and fixed, the order of the keys is part of some of
// them, and nothing is looked up by reflection while somebody waits for a price.

const jsonType = "application/json"

// answer sends body with status 200. It is copied, so body may live on the stack.
func answer(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.SetContentType(jsonType)
	ctx.Response.SetBody(body)
}

// appendComma appends a comma, unless an object, an array or the text has just begun.
func appendComma(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	if last := b[len(b)-1]; last != '{' && last != '[' {
		b = append(b, ',')
	}
	return b
}

// appendKey appends a key of an object, and a comma if it is not the first.
func appendKey(b []byte, key string) []byte {
	b = append(appendComma(b), '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

// appendField appends a key and a text.
func appendField(b []byte, key, value string) []byte {
	return appendText(appendKey(b, key), value)
}

// appendDecimalField appends a key and, as a text, v / 10^digits.
func appendDecimalField(b []byte, key string, v int64, digits int) []byte {
	b = append(appendKey(b, key), '"')
	return append(engine.AppendDecimal(b, v, digits), '"')
}

// tokenBytes is room for a token id, a price and what stands around them.
const tokenBytes = 112

// appendTokenKey appends a token id as a key.
func appendTokenKey(b []byte, t engine.Token) []byte {
	b = append(appendComma(b), '"')
	return append(t.AppendDecimal(b), '"', ':')
}

// appendTokenField appends a key and a token id.
func appendTokenField(b []byte, key string, t engine.Token) []byte {
	b = append(appendKey(b, key), '"')
	return append(t.AppendDecimal(b), '"')
}

// appendHexField appends a key and, as a text, 0x and the hexadecimal digits of v.
func appendHexField(b []byte, key string, v []byte) []byte {
	b = append(appendKey(b, key), '"')
	return append(engine.AppendHex(b, v), '"')
}

func closeObject(b []byte) []byte { return append(b, '}') }

// appendText appends s as a JSON text. What no text may hold is escaped; bytes that are no UTF-8
// become U+FFFD.
func appendText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		i++
	}
	return append(b, '"')
}

// appendUUID appends 16 bytes as a quoted UUID.
func appendUUID(b []byte, id [16]byte) []byte {
	return append(engine.AppendUUID(append(b, '"'), id), '"')
}

// sideText is a side as the wire names it.
func sideText(s engine.Side) string {
	if s == engine.Buy {
		return "BUY"
	}
	return "SELL"
}

// text is b without a copy: good as long as b is, which for parts of a request is until the handler
// returns. It keeps token ids, 78 bytes long, off the heap.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

package wire

import (
	"unicode/utf8"
	"unsafe"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// JSON is the content type of every answer.
const JSON = "application/json"

// Answer sends a copy of body, so body may live on the stack. It leaves the status alone.
func Answer(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.SetContentType(JSON)
	ctx.Response.SetBody(body)
}

// AnswerRaw sends body without a copy: nobody may change body afterwards.
func AnswerRaw(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.SetContentType(JSON)
	ctx.Response.SetBodyRaw(body)
}

// AppendComma appends a comma, unless an object, an array or the text has just begun.
func AppendComma(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	if last := b[len(b)-1]; last != '{' && last != '[' {
		b = append(b, ',')
	}
	return b
}

// AppendKey appends a key of an object, and a comma if it is not the first.
func AppendKey(b []byte, key string) []byte {
	b = append(AppendComma(b), '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

// AppendField appends a key and a text.
func AppendField(b []byte, key, value string) []byte {
	return AppendText(AppendKey(b, key), value)
}

// AppendDecimalField appends a key and, as a text, v / 10^digits.
func AppendDecimalField(b []byte, key string, v int64, digits int) []byte {
	b = append(AppendKey(b, key), '"')
	return append(engine.AppendDecimal(b, v, digits), '"')
}

// AppendNumber appends a key and v / 10^digits as a JSON number.
func AppendNumber(b []byte, key string, v int64, digits int) []byte {
	return engine.AppendDecimal(AppendKey(b, key), v, digits)
}

// AppendTokenKey appends a token id as a key.
func AppendTokenKey(b []byte, t engine.Token) []byte {
	b = append(AppendComma(b), '"')
	return append(t.AppendDecimal(b), '"', ':')
}

// AppendTokenField appends a key and a token id.
func AppendTokenField(b []byte, key string, t engine.Token) []byte {
	b = append(AppendKey(b, key), '"')
	return append(t.AppendDecimal(b), '"')
}

// AppendHexField appends a key and, as a text, 0x and the hexadecimal digits of v.
func AppendHexField(b []byte, key string, v []byte) []byte {
	b = append(AppendKey(b, key), '"')
	return append(engine.AppendHex(b, v), '"')
}

// CloseObject appends the brace that ends an object.
func CloseObject(b []byte) []byte { return append(b, '}') }

// AppendText appends s as a JSON text. DEL is escaped beside whatever JSON forbids; each byte that
// is no UTF-8 becomes U+FFFD. Answers that only read are written with AppendText.
func AppendText(b []byte, s string) []byte { return appendQuoted(b, s, 0x7f) }

// AppendString is AppendText without the escape of DEL. Refusals and the answers about orders are
// written with AppendString.
func AppendString(b []byte, s string) []byte { return appendQuoted(b, s, 0) }

// appendQuoted appends s as a JSON text in which one more character is escaped.
func appendQuoted(b []byte, s string, escaped byte) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c == escaped:
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

// AppendUUID appends 16 bytes as a quoted UUID.
func AppendUUID(b []byte, id [16]byte) []byte {
	return append(engine.AppendUUID(append(b, '"'), id), '"')
}

// SideText is a side as the wire names it.
func SideText(s engine.Side) string {
	if s == engine.Buy {
		return "BUY"
	}
	return "SELL"
}

// Text is b without a copy. The text of a part of a request is good until the handler returns.
func Text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

package ingress

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/auth"
)

// dialectSVC is the header family whose answers have the six documented keys and no more.
const dialectSVC = "SVC_"

// busySeconds is the Retry-After of an answer that means: nothing happened, send again.
const busySeconds = "1"

// answer sends a finished JSON body, which is kept.
func answer(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
}

// fail sends an error: text is what people and older programs read, code the stable word.
func fail(ctx *fasthttp.RequestCtx, status int, code, text string) {
	failWith(ctx, refusal{status, code, text})
}

// detail is a further member of an error body: value is finished JSON.
type detail struct{ name, value string }

// text is a detail whose value is a string.
func text(name, value string) detail { return detail{name, string(appendString(nil, value))} }

// failWith is fail with further members.
func failWith(ctx *fasthttp.RequestCtx, r refusal, more ...detail) {
	answer(ctx, r.status, appendFailure(make([]byte, 0, 256), &r, more...))
}

// appendFailure appends the body of an error.
func appendFailure(dst []byte, r *refusal, more ...detail) []byte {
	dst = appendString(append(dst, `{"error":`...), r.text)
	dst = appendString(append(dst, `,"code":`...), r.code)
	for _, d := range more {
		dst = append(append(append(dst, `,"`...), d.name...), `":`...)
		dst = append(dst, d.value...)
	}
	return append(dst, '}')
}

// failLater is fail for what may be sent again as it is: nothing was entered.
func failLater(ctx *fasthttp.RequestCtx, code, words string) {
	ctx.Response.Header.Set("Retry-After", busySeconds)
	fail(ctx, 503, code, words)
}

// result is what an order answer is made of.
type result struct {
	receipt engine.Receipt
	side    engine.Side
	dialect string
	// bare leaves the hashes out even where the dialect has them: the caller asked to be answered
	// without waiting for an execution.
	bare   bool
	replay bool
}

// replyReceipt answers a judged order: a result if it was accepted, an error if not.
func (s *Server) replyReceipt(ctx *fasthttp.RequestCtx, r *result) {
	if r.receipt.Reject != engine.Accepted {
		rule := &engine.Rejects[r.receipt.Reject]
		fail(ctx, rule.HTTP, rule.Code, r.receipt.Text())
		return
	}
	if r.replay {
		ctx.Response.Header.Set("X-Idempotent-Replay", "true")
	}
	answer(ctx, 200, appendResult(make([]byte, 0, 512), r, s.options.JournalID))
}

// appendResult appends the order result. The first six keys are every dialect's. Trade ids and
// their ledger receipts always come together: a client that sees ids without hashes waits for them.
func appendResult(dst []byte, r *result, journal uint64) []byte {
	p := &r.receipt
	dst = append(dst, `{"success":true,"errorMsg":"","orderID":"`...)
	dst = engine.AppendHex(dst, p.Order[:])
	dst = append(dst, `","takingAmount":"`...)
	dst = appendAmount(dst, p.Taking)
	dst = append(dst, `","makingAmount":"`...)
	dst = appendAmount(dst, p.Making)
	dst = append(dst, `","status":"`...)
	dst = append(append(dst, statusWord(p.Status)...), '"')
	if r.dialect == dialectSVC {
		return append(dst, '}')
	}
	dst = append(dst, `,"orderHash":"`...)
	dst = append(engine.AppendHex(dst, p.Order[:]), '"')
	if p.Trades == 0 || r.bare {
		return append(dst, '}')
	}
	dst = append(dst, `,"transactionsHashes":[`...)
	for i := range p.Trades {
		hash := engine.TxHash(journal, p.Sequence, i)
		dst = append(engine.AppendHex(append(dst, '"'), hash[:]), `",`...)
	}
	dst = append(dst[:len(dst)-1], `],"tradeIDs":[`...)
	for i := range p.Trades {
		dst = append(dst, '"')
		dst = appendUUID(dst, engine.TradeID(journal, p.Sequence, i))
		dst = append(dst, `",`...)
	}
	return append(dst[:len(dst)-1], `]}`...)
}

// appendAmount appends base units as whole units, nothing for nothing.
func appendAmount(dst []byte, v int64) []byte {
	if v == 0 {
		return dst
	}
	return engine.AppendDecimal(dst, v, 6)
}

// statusWord is an order's status on the wire. A replayed order may be canceled by now.
func statusWord(s engine.Status) string {
	switch s {
	case engine.Live:
		return "live"
	case engine.Matched:
		return "matched"
	case engine.Canceled:
		return "canceled"
	}
	panic("BUG: accepted order without a status: " + strconv.Itoa(int(s)))
}

// appendUUID appends 16 bytes in the form of a UUID.
func appendUUID(dst []byte, id [16]byte) []byte {
	from := 0
	for i, to := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[from:to])
		from = to
	}
	return dst
}

// appendTrio appends the answer of a key derivation.
func appendTrio(dst []byte, t auth.Trio) []byte {
	dst = appendString(append(dst, `{"apiKey":`...), t.Key)
	dst = appendString(append(dst, `,"secret":`...), t.Secret)
	dst = appendString(append(dst, `,"passphrase":`...), t.Passphrase)
	return append(dst, '}')
}

// appendString appends s as a JSON string. Broken UTF-8 becomes the replacement character.
func appendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return append(dst, '"')
}

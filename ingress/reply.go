package ingress

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/auth"
)

// dialectSVC is the header family whose answers have the six documented keys and no more.
const dialectSVC = "SVC_"

// dialectPOLY is the one whose answers about keys have a shape of their own.
const dialectPOLY = "POLY_"

// busySeconds is the Retry-After of an answer that means: nothing happened, send again.
const busySeconds = "1"

// answer sends a finished JSON body, which is kept.
func answer(ctx *fasthttp.RequestCtx, status int, body []byte) {
	ctx.Response.Header.SetContentType("application/json")
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
}

// refusal is an answer that is no result: text is what people and older programs read, code the
// stable word. More, if any, are further members of the body.
type refusal struct {
	status     int
	code, text string
	more       []detail
}

// detail is a further member of an error body: value is finished JSON.
type detail struct{ name, value string }

// text is a detail whose value is a string.
func text(name, value string) detail { return detail{name, string(appendString(nil, value))} }

// refuse makes a refusal with what to change, in plain words.
func refuse(status int, code, words, detail string) refusal {
	return *refusal{status, code, words, nil}.because(detail)
}

// because is the refusal with what to change, in plain words.
func (r refusal) because(detail string) *refusal {
	r.more = append(r.more[:len(r.more):len(r.more)], text("detail", detail))
	return &r
}

// send answers with the refusal. 503 means that the same bytes may be sent again, and when.
func (r *refusal) send(ctx *fasthttp.RequestCtx) {
	if r.status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set("Retry-After", busySeconds)
	}
	answer(ctx, r.status, appendFailure(make([]byte, 0, 256), r))
}

// fail is send for a refusal without further members.
func fail(ctx *fasthttp.RequestCtx, status int, code, text string) {
	(&refusal{status, code, text, nil}).send(ctx)
}

// appendFailure appends the body of an error.
func appendFailure(dst []byte, r *refusal) []byte {
	dst = appendString(append(dst, `{"error":`...), r.text)
	dst = appendString(append(dst, `,"code":`...), r.code)
	for _, d := range r.more {
		dst = append(append(append(dst, `,"`...), d.name...), `":`...)
		dst = append(dst, d.value...)
	}
	return append(dst, '}')
}

// refuseReceipt is the answer to a Command that the engine refused.
func refuseReceipt(r *engine.Receipt) *refusal {
	rule := &engine.Rejects[r.Reject]
	no := &refusal{rule.HTTP, rule.Code, r.Text(), nil}
	switch {
	case no.status == fasthttp.StatusServiceUnavailable:
		no.more = []detail{{"retry_after_seconds", busySeconds}}
	case r.Reject == engine.RejectKeys:
		return no.because("DELETE one of them, on the path on which such a key is made")
	case r.Reject == engine.RejectKeyRecords:
		return no.because("POST the nonce of a deleted trading key again, or derive keys by GET, " +
			"which records nothing")
	}
	return no
}

// result is what an order answer is made of.
type result struct {
	receipt engine.Receipt
	dialect string
	// bare leaves the hashes out even where the dialect has them: the caller asked to be answered
	// without waiting for an execution.
	bare   bool
	replay bool
}

var replayHeader = []byte("X-Idempotent-Replay")

// markReplay says that an answer is that of an earlier request.
func markReplay(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(replayHeader, []byte("true"))
}

// replyOrder answers a judged order: a result if it was accepted, an error if not.
func (s *Server) replyOrder(ctx *fasthttp.RequestCtx, p *placement) {
	r := &p.out
	if r.replay {
		markReplay(ctx)
	}
	if r.receipt.Reject != engine.Accepted {
		s.refuseOrder(p).send(ctx)
		return
	}
	answer(ctx, 200, appendResult(make([]byte, 0, 512), r, s.options.JournalID))
}

// appendResult appends the order result. The first six keys are every dialect's. Trade ids and
// their ledger receipts always come together: a client that sees ids without hashes waits for them.
// Without a trade there is an empty list of receipts, because one client's type has it always.
func appendResult(dst []byte, r *result, journal uint64) []byte {
	p := &r.receipt
	dst = append(dst, `{"success":true,"errorMsg":"","orderID":"`...)
	dst = engine.AppendHex(dst, p.Order[:])
	dst = append(dst, `","takingAmount":"`...)
	dst = appendAmount(dst, p.Taking)
	dst = append(dst, `","makingAmount":"`...)
	dst = appendAmount(dst, p.Making)
	dst = append(dst, `","status":"`...)
	dst = append(append(dst, r.status()...), '"')
	if r.dialect == dialectSVC {
		return append(dst, '}')
	}
	dst = append(dst, `,"orderHash":"`...)
	dst = append(engine.AppendHex(dst, p.Order[:]), '"')
	if p.Status == engine.Canceled {
		dst = append(dst, `,"orderStatus":"canceled"`...)
	}
	switch {
	case r.bare:
		return append(dst, '}')
	case p.Trades == 0:
		return append(dst, `,"transactionsHashes":[]}`...)
	}
	dst = append(dst, `,"transactionsHashes":[`...)
	for i := range p.Trades {
		hash := engine.TxHash(journal, p.Sequence, i)
		dst = append(engine.AppendHex(append(dst, '"'), hash[:]), `",`...)
	}
	dst = append(dst[:len(dst)-1], `],"tradeIDs":[`...)
	for i := range p.Trades {
		dst = append(dst, '"')
		dst = engine.AppendUUID(dst, engine.TradeID(journal, p.Sequence, i))
		dst = append(dst, `",`...)
	}
	return append(dst[:len(dst)-1], `]}`...)
}

// appendRefused appends the result of an order of a bundle that was refused: no key of it says
// error. id is the order's if it may be live all the same, else nil. The stable word and what to
// change are members of their own, because clients compare the whole errorMsg; where there are six
// keys and no more the latter stands in brackets behind the words.
func appendRefused(dst []byte, r *refusal, id *engine.OrderID, dialect string) []byte {
	words, advice := r.text, r.advice()
	if dialect == dialectSVC && advice != "" {
		words += " (" + advice + ")"
	}
	dst = appendString(append(dst, `{"success":false,"errorMsg":`...), words)
	written, hash := `""`, `null`
	if id != nil {
		written = `"` + id.Hex() + `"`
		hash = written
	}
	dst = append(append(dst, `,"orderID":`...), written...)
	dst = append(dst, `,"takingAmount":"","makingAmount":"","status":""`...)
	if dialect != dialectSVC {
		dst = append(append(dst, `,"orderHash":`...), hash...)
		dst = appendString(append(dst, `,"code":`...), r.code)
		if advice != "" {
			dst = appendString(append(dst, `,"detail":`...), advice)
		}
	}
	return append(dst, '}')
}

// advice is what there is to say of a bad order beside the words: what is wrong with a signature,
// and what to change.
func (r *refusal) advice() string {
	if r.status >= fasthttp.StatusInternalServerError {
		return ""
	}
	var b strings.Builder
	for i, d := range r.more {
		if i > 0 {
			b.WriteString(", ")
		}
		if d.name != "detail" {
			b.WriteString(d.name + ": ")
		}
		said := d.value
		if said[0] == '"' {
			_ = json.Unmarshal([]byte(d.value), &said) // text wrote it
		}
		b.WriteString(said)
	}
	return b.String()
}

// appendAmount appends base units as whole units, nothing for nothing.
func appendAmount(dst []byte, v int64) []byte {
	if v == 0 {
		return dst
	}
	return engine.AppendDecimal(dst, v, 6)
}

// status is an order's status on the wire, in one of the words that clients know of an order that
// was placed: there is none for canceled, which one that met another of its own wallet on arrival
// is, and one that was sent again may be by now. It counts by what was filled before, and what it
// is says orderStatus.
func (r *result) status() string {
	p := &r.receipt
	switch {
	case p.Status == engine.Live:
		return "live"
	case p.Status == engine.Matched, p.Status == engine.Canceled && p.Taking > 0:
		return "matched"
	case p.Status == engine.Canceled:
		return "unmatched"
	}
	panic("BUG: accepted order without a status: " + strconv.Itoa(int(p.Status)))
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

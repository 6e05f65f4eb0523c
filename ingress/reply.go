package ingress

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/auth"
)

// orderID is the member of a refusal that names an order which may be live.
func orderID(id *engine.OrderID) wire.Member {
	return wire.Member{Name: "orderID", Value: id.Hex()}
}

// refuseReceipt is the answer to a Command that the engine refused.
func refuseReceipt(r *engine.Receipt) *wire.Refusal {
	rule := &engine.Rejects[r.Reject]
	refused := &wire.Refusal{Status: rule.HTTP, Code: rule.Code, Text: r.Text()}
	switch {
	case refused.Status == fasthttp.StatusServiceUnavailable:
		return refused.With(retryAfter(wire.RetrySeconds))
	case r.Reject == engine.RejectKeys:
		return refused.Because("DELETE one of them, on the path on which such a key is made")
	case r.Reject == engine.RejectKeyRecords:
		return refused.Because("POST the nonce of a deleted trading key again, or derive keys by " +
			"GET, which records nothing")
	}
	return refused
}

// retryAfter is the member of a refusal that says after how many seconds to send again.
func retryAfter(seconds string) wire.Member {
	return wire.Member{Name: "retry_after_seconds", Value: seconds, JSON: true}
}

// result is what an order answer is made of.
type result struct {
	receipt engine.Receipt
	dialect wire.Dialect
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
	if r.dialect == wire.SVC {
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
func appendRefused(dst []byte, r *wire.Refusal, id *engine.OrderID, dialect wire.Dialect) []byte {
	words, advice := r.Text, advice(r)
	if dialect == wire.SVC && advice != "" {
		words += " (" + advice + ")"
	}
	dst = wire.AppendString(append(dst, `{"success":false,"errorMsg":`...), words)
	written, hash := `""`, `null`
	if id != nil {
		written = `"` + id.Hex() + `"`
		hash = written
	}
	dst = append(append(dst, `,"orderID":`...), written...)
	dst = append(dst, `,"takingAmount":"","makingAmount":"","status":""`...)
	if dialect != wire.SVC {
		dst = append(append(dst, `,"orderHash":`...), hash...)
		dst = wire.AppendString(append(dst, `,"code":`...), r.Code)
		if advice != "" {
			dst = wire.AppendString(append(dst, `,"detail":`...), advice)
		}
	}
	return append(dst, '}')
}

// advice is what there is to say of a bad order beside the words: what is wrong with a signature,
// and what to change.
func advice(r *wire.Refusal) string {
	if r.Status >= fasthttp.StatusInternalServerError {
		return ""
	}
	var b strings.Builder
	for i, m := range r.More {
		if i > 0 {
			b.WriteString(", ")
		}
		if m.Name != "detail" {
			b.WriteString(m.Name + ": ")
		}
		b.WriteString(m.Value)
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
	dst = wire.AppendString(append(dst, `{"apiKey":`...), t.Key)
	dst = wire.AppendString(append(dst, `,"secret":`...), t.Secret)
	dst = wire.AppendString(append(dst, `,"passphrase":`...), t.Passphrase)
	return append(dst, '}')
}

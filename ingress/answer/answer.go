package answer

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// OrderID returns the id of an order as a member of a refusal.
func OrderID(id *engine.OrderID) wire.Member {
	return wire.Member{Name: "orderID", Value: id.Hex()}
}

// Refuse returns a refusal with the reason of a Receipt.
func Refuse(r *engine.Receipt) *wire.Refusal {
	rule := &engine.Rejects[r.Reject]
	refused := &wire.Refusal{Status: rule.HTTP, Code: rule.Code, Text: r.Text()}
	switch {
	case refused.Status == fasthttp.StatusServiceUnavailable:
		if r.Reject == engine.RejectCancelOnly {
			return refused.With(RetryAfter(CancelOnlySeconds))
		}
		return refused.With(RetryAfter(wire.RetrySeconds))
	case r.Reject == engine.RejectKeys:
		return refused.Because("DELETE one of them, on the path on which such a key is made")
	case r.Reject == engine.RejectKeyRecords:
		return refused.Because("POST the nonce of a deleted trading key again, or derive keys by " +
			"GET, which records nothing")
	}
	return refused
}

// CancelOnlySeconds is when, in seconds, to send again while only cancels are taken: an operator,
// or a full disk, takes longer than the next frame.
const CancelOnlySeconds = "30"

// RetryAfter returns a member that says after how many seconds to send again.
func RetryAfter(seconds string) wire.Member {
	return wire.Member{Name: wire.RetryMember, Value: seconds, JSON: true}
}

// Result is what the answer to an order is made of.
type Result struct {
	Receipt engine.Receipt
	Dialect wire.Dialect
	// Bare leaves out the hashes of transactions, even where the dialect has them, because the caller
	// has set deferExec.
	Bare   bool
	Replay bool // the order was taken before
	// Displaced are orders of the same wallet that were canceled in favor of the new one. Among the
	// results of a list, the first has those of all.
	Displaced []engine.OrderID
}

var replayHeader = []byte("X-Idempotent-Replay")

// MarkReplay says in a header that the order or transfer was taken before.
func MarkReplay(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetCanonical(replayHeader, []byte("true"))
}

var feeHeader = []byte("X-Fee")

// MarkFees puts into a header what orders paid as takers on top, in collateral, one fee per result.
// Without a trade there is no header. SVC results have no member for fees.
func MarkFees(ctx *fasthttp.RequestCtx, results ...*Result) {
	var room [64]byte
	fees, traded := room[:0], false
	for i, r := range results {
		if i > 0 {
			fees = append(fees, ", "...)
		}
		fees = engine.AppendDecimal(fees, int64(r.Receipt.Fee), 6)
		traded = traded || r.Receipt.Trades > 0
	}
	if traded {
		ctx.Response.Header.SetCanonical(feeHeader, fees)
	}
}

var canceledHeader = []byte("X-Canceled")

// maxNamed bounds the ids in X-Canceled.
const maxNamed = 20

// MarkDisplaced puts into a header the ids of the caller's resting orders that were canceled in
// favor of the order that he has placed.
func MarkDisplaced(ctx *fasthttp.RequestCtx, ids []engine.OrderID) {
	if len(ids) == 0 {
		return
	}
	text := make([]byte, 0, 68*maxNamed+8)
	for i := range ids[:min(len(ids), maxNamed)] {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = engine.AppendHex(text, ids[i][:])
	}
	if more := len(ids) - maxNamed; more > 0 {
		text = strconv.AppendInt(append(text, ", +"...), int64(more), 10)
	}
	ctx.Response.Header.SetCanonical(canceledHeader, text)
}

// Append appends the result of an accepted order. Every dialect has the first six keys. Trade ids
// come with hashes of transactions, because a client that sees only the ids waits for the hashes.
// An empty list of hashes is written as well, because the type of one client requires the list.
func Append(dst []byte, r *Result, journal uint64) []byte {
	p := &r.Receipt
	dst = append(dst, `{"success":true,"errorMsg":"","orderID":"`...)
	dst = engine.AppendHex(dst, p.Order[:])
	dst = append(dst, `","takingAmount":"`...)
	dst = appendAmount(dst, p.Taking)
	dst = append(dst, `","makingAmount":"`...)
	dst = appendAmount(dst, p.Making)
	dst = append(dst, `","status":"`...)
	dst = append(append(dst, r.status()...), '"')
	if r.Dialect == wire.SVC {
		return append(dst, '}')
	}
	dst = append(dst, `,"orderHash":"`...)
	dst = append(engine.AppendHex(dst, p.Order[:]), '"')
	if p.Status == engine.Canceled {
		dst = append(dst, `,"orderStatus":"canceled"`...)
		if p.Reason != 0 {
			dst = append(dst, `,"cancel_reason":"`...)
			dst = append(append(dst, wire.CancelReason(p.Reason)...), '"')
		}
	}
	if len(r.Displaced) > 0 {
		dst = append(dst, `,"canceled":[`...)
		for i := range r.Displaced {
			dst = append(engine.AppendHex(append(wire.AppendComma(dst), '"'), r.Displaced[i][:]), '"')
		}
		dst = append(dst, ']')
	}
	if p.Trades > 0 {
		dst = append(engine.AppendDecimal(append(dst, `,"fee":"`...), int64(p.Fee), 6), '"')
	}
	switch {
	case r.Bare:
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

// AppendRefused appends the result of a refused order of a list. id is the order's id if the order
// may be live, else nil. The code and the advice are members of their own, because clients compare
// the whole errorMsg. SVC results have only six keys: there the advice follows the text in
// brackets.
func AppendRefused(dst []byte, r *wire.Refusal, id *engine.OrderID, dialect wire.Dialect) []byte {
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

// advice joins the members that a refusal has beside its text and code.
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

// appendAmount appends an amount of base units in whole units. It appends nothing for 0.
func appendAmount(dst []byte, v int64) []byte {
	if v == 0 {
		return dst
	}
	return engine.AppendDecimal(dst, v, 6)
}

// status returns the status of an accepted order, in a word that clients know. For a canceled order
// the word says whether a part of it was filled.
func (r *Result) status() string {
	p := &r.Receipt
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

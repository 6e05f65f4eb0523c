package wire

import (
	"strconv"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
)

// Family is how a group of routes words its refusals. Clients of each group expect another body:
//
//	Trading    {"error": text, "code": word, …}             orders, account, market data
//	Described  {"type": kind, "error": text, …}             catalog
//	Wallets    {"error": "word: text", …}                   positions, holders, activity
//	Operators  {"error": text, "hint": detail}              the admin listener
//
// Clients compare the text, so no byte of it ever changes. Further help for people goes into
// "detail".
type Family uint8

// The families. Families is their number.
const (
	Trading Family = iota
	Described
	Wallets
	Operators
	Families
)

// RetrySeconds is the Retry-After of a refusal with status 503: the request changed nothing, so the
// client may send the same bytes again after this time.
const RetrySeconds = "1"

// RetryMember is the member of a body that says the same, or how much longer to wait.
const RetryMember = "retry_after_seconds"

// Refusal is an answer that carries an error. Refuse makes one with its body, to be shared by all
// requests. Methods return changed copies, so any number of goroutines may use one Refusal.
type Refusal struct {
	Status int    // of HTTP, 400 or above
	Code   string // a stable word for programs
	Text   string // for people, and for the older programs that compare it
	More   []Member
	Family Family
	Mark   func(*fasthttp.RequestCtx) // sets further headers; may be nil

	body []byte // nil: Send makes one
}

// Member is a further member of a refusal's body.
type Member struct {
	Name, Value string
	JSON        bool // Value is finished JSON; otherwise Value is the text to be quoted
}

// Refuse makes a refusal of the Trading family.
func Refuse(status int, code, text, detail string) *Refusal {
	return Trading.Refuse(status, code, text, detail)
}

// Refuse makes a refusal in the family's shape. detail says in plain words what was expected; it
// may be empty.
func (f Family) Refuse(status int, code, text, detail string) *Refusal {
	r := &Refusal{Status: status, Code: code, Text: text, Family: f}
	if detail != "" {
		r = r.Because(detail)
	}
	r.body = r.Append(nil)
	return r
}

// With is the refusal with a further member.
func (r *Refusal) With(m Member) *Refusal {
	more := append(r.More[:len(r.More):len(r.More)], m)
	return &Refusal{r.Status, r.Code, r.Text, more, r.Family, r.Mark, nil}
}

// Because is the refusal with what to change, in plain words, as its "detail".
func (r *Refusal) Because(detail string) *Refusal {
	return r.With(Member{Name: "detail", Value: detail})
}

// In is the refusal in another family's shape: what the door refuses may be a request of any
// family. Bodies of Wallets hold only the error, those of Described no member but the detail.
func (r *Refusal) In(f Family) *Refusal {
	if r.Family == f {
		return r
	}
	detail := ""
	for _, m := range r.More {
		if m.Name == "detail" {
			detail = m.Value
		}
	}
	if f == Wallets && detail != "" {
		return f.Refuse(r.Status, r.Code, r.Text+", "+detail, "")
	}
	return f.Refuse(r.Status, r.Code, r.Text, detail)
}

// Send answers with the refusal.
func (r *Refusal) Send(ctx *fasthttp.RequestCtx) {
	body := r.body
	if body == nil {
		body = r.Append(make([]byte, 0, 256))
	}
	ctx.SetStatusCode(r.Status)
	if r.Status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, r.retrySeconds())
	}
	if r.Mark != nil {
		r.Mark(ctx)
	}
	AnswerRaw(ctx, body)
}

// retrySeconds is the Retry-After: what the body says, too.
func (r *Refusal) retrySeconds() string {
	for _, m := range r.More {
		if m.Name == RetryMember {
			return m.Value
		}
	}
	return RetrySeconds
}

// Append appends the body.
func (r *Refusal) Append(b []byte) []byte {
	b = append(b, '{')
	switch r.Family {
	case Described:
		kind := "bad request"
		switch {
		case r.Status == fasthttp.StatusNotFound:
			kind = "not found error"
		case r.Status == fasthttp.StatusTooManyRequests:
			kind = "rate limit error"
		case r.Status >= fasthttp.StatusInternalServerError:
			kind = "internal error"
		}
		b = AppendString(AppendKey(b, "type"), kind)
		b = AppendString(AppendKey(b, "error"), r.Text)
	case Wallets:
		b = AppendString(AppendKey(b, "error"), r.Code+": "+r.Text)
	case Operators:
		b = appendEscaped(AppendKey(b, "error"), r.Text)
	default:
		b = AppendString(AppendKey(b, "error"), r.Text)
		b = AppendString(AppendKey(b, "code"), r.Code)
	}
	for _, m := range r.More {
		switch {
		case r.Family == Operators:
			b = appendEscaped(AppendKey(b, "hint"), m.Value)
		case m.JSON:
			b = append(AppendKey(b, m.Name), m.Value...)
		default:
			b = AppendString(AppendKey(b, m.Name), m.Value)
		}
	}
	return CloseObject(b)
}

// appendEscaped appends s as encoding/json does, with < and > escaped.
func appendEscaped(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a string without JSON: " + err.Error())
	}
	return append(b, quoted...)
}

// AppendEntry appends the refusal of one entry of an answer that succeeds as a whole. Such an
// answer never has a key "error".
func (r *Refusal) AppendEntry(b []byte) []byte {
	b = strconv.AppendInt(AppendKey(b, "status"), int64(r.Status), 10)
	return AppendField(b, "errorMsg", r.Text)
}

// Respond answers with body, which nobody may change afterwards, or with refused unless it is nil.
func Respond(ctx *fasthttp.RequestCtx, body []byte, refused *Refusal) {
	if refused != nil {
		refused.Send(ctx)
		return
	}
	AnswerRaw(ctx, body)
}

// Answering is the handler that responds with what answer returns.
func Answering(answer func(*fasthttp.RequestCtx) ([]byte, *Refusal)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		body, refused := answer(ctx)
		Respond(ctx, body, refused)
	}
}

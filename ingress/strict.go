package ingress

import (
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
)

// refuseKeys refuses a body. If a key of it stands twice, or is one too many, the answer names the
// key: the body may be right in all else that malformed would say.
func refuseKeys(fault *scan.Fault, malformed *wire.Refusal) *wire.Refusal {
	if fault.Why == scan.Malformed {
		return malformed
	}
	return wire.Refuse(malformed.Status, malformed.Code, malformed.Text, fault.Error())
}

// judgeUnread refuses the body of a write that reads no member of it: the client signed it, and
// meant something.
func judgeUnread(ctx *fasthttp.RequestCtx) *wire.Refusal {
	if fault := scan.Keys(string(ctx.Request.Body())); fault != nil {
		return refuseKeys(fault, refuseBody)
	}
	return nil
}

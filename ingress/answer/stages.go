package answer

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// stagesHeader asks for the stages of an order, and answers with them.
const stagesHeader = "X-Debug-Stages"

// WantsStages reports whether a request asks for its stages.
func WantsStages(ctx *fasthttp.RequestCtx) bool {
	return string(ctx.Request.Header.Peek(stagesHeader)) == "1"
}

// MarkStages puts the names of stages into a header, with how long each took in microseconds:
// parse=9, verify=104.
func MarkStages(ctx *fasthttp.RequestCtx, names []string, took []time.Duration) {
	var b []byte
	for i, name := range names {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(append(b, name...), '='), took[i].Microseconds(), 10)
	}
	ctx.Response.Header.SetBytesV(stagesHeader, b)
}

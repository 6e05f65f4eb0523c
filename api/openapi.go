package api

import (
	_ "embed"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// description is the OpenAPI document of the whole node, of what the door serves as well: clients
// see one interface. The tests of both hold every answer against it.
//
//go:embed openapi.json
var description []byte

// describeRoutes answers GET /openapi.json.
func (h *Handler) describeRoutes(ctx *fasthttp.RequestCtx) { wire.AnswerRaw(ctx, description) }

package wire

import (
	"bytes"
	"log/slog"

	"github.com/valyala/fasthttp"
)

// The refusals of several rooms.
var (
	ErrToken = Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid token id",
		"token_id must be the id of an outcome token: a decimal number below 2^256")
	ErrCondition = Refuse(fasthttp.StatusBadRequest, "bad_payload", "Invalid market",
		"a condition id is 0x and 64 hex digits")
	ErrNoMarket = Refuse(fasthttp.StatusNotFound, "not_found", "market not found",
		"no market that is listed here has that id: a market goes by its condition id, 0x and 64 hex "+
			"digits, a token by one of the market's clobTokenIds")
	ErrInternal = Refuse(fasthttp.StatusInternalServerError, "internal", "internal_error",
		"the node failed to read its own records: its log says which")
)

// Internal logs why a request failed and returns a refusal that does not tell the cause.
func Internal(log *slog.Logger, what, id string, err error) *Refusal {
	log.Error(what, "id", id, "err", err)
	return ErrInternal
}

// families are the families of paths that lead nowhere, by how the path begins.
var families = [...]struct {
	segment string
	family  Family
}{
	{"/markets/live-activity", Trading}, // a method of the order book's clients
	{"/events", Described}, {"/series", Described}, {"/tags", Described},
	{"/public-search", Described}, {"/markets", Described}, {"/gamma", Described},
	{"/positions", Wallets}, {"/closed-positions", Wallets}, {"/holders", Wallets},
	{"/value", Wallets}, {"/traded", Wallets}, {"/activity", Wallets}, {"/trades", Wallets},
	{"/data-api", Wallets}, {"/oi", Wallets}, {"/live-volume", Wallets},
	{"/public-profile", Wallets}, {"/v1/market-positions", Wallets}, {"/v1/leaderboard", Wallets},
	{"/v1/builders", Wallets}, {"/v1/positions", Wallets}, {"/v1/activity", Wallets},
	{"/sports", Described}, {"/teams", Described}, {"/comments", Described},
	{"/market-clarifications", Described}, {"/status", Described},
}

// The refusals of an unknown path and of a wrong method, by family.
var errNotFound, errMethod = func() (n, m [Operators]*Refusal) {
	const routes, methods = "GET /openapi.json names all routes",
		"the header Allow names the methods of this path"
	for f := range Operators {
		n[f] = f.Refuse(fasthttp.StatusNotFound, "not_found", "not found", routes)
		m[f] = f.Refuse(fasthttp.StatusMethodNotAllowed, "method_not_allowed", "method not allowed",
			methods)
	}
	// Bodies of this family hold only the error.
	n[Wallets] = Wallets.Refuse(fasthttp.StatusNotFound, "not_found", "not found, "+routes, "")
	m[Wallets] = Wallets.Refuse(fasthttp.StatusMethodNotAllowed, "method_not_allowed",
		"method not allowed, "+methods, "")
	return n, m
}()

// FamilyOf is the family that words the refusals of a path.
func FamilyOf(path []byte) Family {
	for i := range families {
		rest, is := bytes.CutPrefix(path, []byte(families[i].segment))
		if is && (len(rest) == 0 || rest[0] == '/') {
			return families[i].family
		}
	}
	return Trading
}

// FamilyFor is the family that words the refusals of a request.
func FamilyFor(ctx *fasthttp.RequestCtx) Family {
	path := ctx.Path()
	if string(bytes.TrimSuffix(path, []byte{'/'})) == "/markets" && ctx.QueryArgs().Has("next_cursor") {
		return Trading // the order book's list shares the catalog's path
	}
	return FamilyOf(path)
}

// NotFound answers a request whose path leads nowhere.
func NotFound(ctx *fasthttp.RequestCtx) { NoRoute(ctx).Send(ctx) }

// NoRoute is the refusal of a request whose path leads nowhere.
func NoRoute(ctx *fasthttp.RequestCtx) *Refusal { return errNotFound[FamilyOf(ctx.Path())] }

// WrongMethod answers a request whose path has no such method. The caller has set the header Allow.
func WrongMethod(ctx *fasthttp.RequestCtx) { errMethod[FamilyOf(ctx.Path())].Send(ctx) }

// Route is a public path, as the router writes it, and the handler of GET there.
type Route struct {
	Path    string
	Handler fasthttp.RequestHandler
}

// The answers about what this exchange does not have: rewards, rebates, notifications, comments.
var (
	EmptyList   = []byte("[]")
	EmptyObject = []byte("{}")
	EmptyPage   = EndPage(BeginPage(nil), Next{}, EndCursor, PageSize{PageLimit, 0})
)

// Always answers with one body, whatever the query holds.
func Always(body []byte) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) { AnswerRaw(ctx, body) }
}

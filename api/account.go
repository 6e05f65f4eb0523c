package api

import (
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// awaitIndex is how long an account read waits for the index to see the account's last write.
const awaitIndex = 250 * time.Millisecond

// The dialect whose clients take the seed shape alone, and the one whose statuses are in capitals.
const (
	dialectService    = "SVC_"
	dialectPolymarket = "POLY_"
)

// caller is who an account request comes from.
type caller struct {
	address engine.Address
	dialect string
	no      engine.WalletNo   // 0: nothing was ever paid to it, nor linked
	wallets []engine.WalletNo // linked to it, in the order in which they were
}

// accountHandler answers one account path.
type accountHandler func(ctx *fasthttp.RequestCtx, c *caller)

// privateRoute is what one account path answers, by method.
type privateRoute struct {
	get, post, del accountHandler
	// indexed routes read the index: they wait until it holds the caller's latest write.
	indexed bool
}

// accountOrder is what the one account path that ends in an id holds before it.
const accountOrder = "/data/order/"

// privateRoutes is the table of the account routes, each also under /clob.
func (h *Handler) privateRoutes() map[string]privateRoute {
	return map[string]privateRoute{
		accountOrder:                {get: h.order, indexed: true},
		"/data/orders":              {get: h.orders, post: h.lookups, indexed: true},
		"/data/trades":              {get: h.trades, indexed: true},
		"/data/volumes":             {post: h.volumes, indexed: true},
		"/balance-allowance":        {get: h.balance, indexed: true},
		"/balance-allowance/update": {get: h.balance, indexed: true},

		"/order-scoring":             {get: h.scoring},
		"/orders-scoring":            {post: h.scorings},
		"/notifications":             {get: alwaysTo(emptyList), del: h.dropped},
		"/data/pre-migration-orders": {get: alwaysTo(emptyPage)},
		"/rewards/user":              {get: alwaysTo(emptyPage)},
		"/rewards/user/total":        {get: alwaysTo(emptyList)},
		"/rewards/user/percentages":  {get: alwaysTo(emptyObject)},
		"/rewards/user/markets":      {get: alwaysTo(emptyPage)},
	}
}

// Account answers a request of the owner of an API key, whose request the caller has authenticated.
// dialect is the prefix of its headers: SVC_, POLY_ or KUEST_.
func (h *Handler) Account(ctx *fasthttp.RequestCtx, owner engine.Address, dialect string) {
	path := strings.TrimPrefix(wire.Text(ctx.URI().PathOriginal()), "/clob")
	if strings.HasPrefix(path, accountOrder) {
		path = accountOrder
	}
	route, known := h.private[path]
	if !known {
		notFound(ctx)
		return
	}
	serve := route.method(ctx)
	if serve == nil {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, route.allow())
		wrongMethod(ctx)
		return
	}
	c := h.caller(owner, dialect)
	if route.indexed && !h.await(c) {
		errLagging.Send(ctx)
		return
	}
	serve(ctx, c)
}

// method is what answers the request's method, nil if nothing does.
func (r *privateRoute) method(ctx *fasthttp.RequestCtx) accountHandler {
	switch {
	case ctx.IsGet() || ctx.IsHead():
		return r.get
	case ctx.IsPost():
		return r.post
	case ctx.IsDelete():
		return r.del
	}
	return nil
}

// allow names the methods that are answered.
func (r *privateRoute) allow() string {
	var names []string
	if r.get != nil {
		names = append(names, "GET", "HEAD")
	}
	if r.post != nil {
		names = append(names, "POST")
	}
	if r.del != nil {
		names = append(names, "DELETE")
	}
	return strings.Join(names, ", ")
}

// caller finds out what an owner has.
func (h *Handler) caller(owner engine.Address, dialect string) *caller {
	d := h.o.Board.Directory
	c := &caller{address: owner, dialect: dialect}
	if no, known := d.Wallet(owner); known {
		c.no, c.wallets = no, d.Owned(no, nil)
	}
	return c
}

// owns says whether a wallet is linked to the caller.
func (c *caller) owns(no engine.WalletNo) bool { return slices.Contains(c.wallets, no) }

// await waits until the index holds every write that the caller was told of, be it through the
// owner or through one of the wallets, and says whether it does.
func (h *Handler) await(c *caller) bool {
	d := h.o.Board.Directory
	last := d.LastNamed(c.no)
	for _, w := range c.wallets {
		last = max(last, d.LastNamed(w))
	}
	return h.o.History.Await(last, h.patience)
}

package ingress

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/ingress/answer"
	"clobd/ingress/auth"
	"clobd/ingress/form"
	"clobd/ingress/head"
	"clobd/ingress/limits"
	"clobd/ingress/socket"
)

// tradePath is the path of the socket for orders. The signature of a login covers it.
const tradePath = "/ws/trade"

// action says which HTTP request a method of a socket corresponds to. The method does the same as
// that request, and rate limits count it as that request.
type action struct {
	method, path string
	most         int // limit of the body, in bytes
	open         opener
	scope        *limits.Scope // the rate limits that count the method; nil: none do
	counters     *routeMetrics
}

// actions returns the methods of a socket, by name.
func (s *Server) actions() map[string]*action {
	all := map[string]*action{
		"order.place":       {method: "POST", path: head.OrderPath, open: s.orders.place},
		"order.place_many":  {method: "POST", path: "/orders", open: s.orders.placeAll, most: head.ListBytes},
		"order.replace":     {method: "POST", path: head.OrderPath, open: s.orders.replace},
		"order.cancel":      {method: "DELETE", path: head.OrderPath, open: s.cancels.cancelOne},
		"order.cancel_many": {method: "DELETE", path: "/orders", open: s.cancels.cancelMany, most: head.ListBytes},
		"order.cancel_all":  {method: "DELETE", path: "/cancel-all", open: s.cancels.sweepSome},
		"order.get":         {method: "GET", path: "/data/order/0x", open: s.showOrder}, // the path of any id
		"ping":              {},                                                         // no limit counts it
	}
	for name, d := range all {
		if d.most == 0 {
			d.most = head.BodyBytes
		}
		if d.method != "" {
			d.scope = limits.AddressScope(d.method, d.path, false)
		}
		d.counters = s.metrics.route("ws_" + strings.TrimPrefix(name, "order."))
	}
	return all
}

// desk serves the trader who is logged in on one socket.
type desk struct {
	*Server
	conn   *orderConn
	caller identity
	seat   seat
	begun  uint64 // requests; begin's
	key    beatKey
	beats  bool // the socket counts as a heartbeat of its key
}

// trade serves GET /ws/trade.
func (s *sockets) trade(ctx *fasthttp.RequestCtx) {
	c := ctx.Conn().(*orderConn)
	c.client = s.ClientAddress(ctx)
	d := &desk{Server: s.Server, conn: c, seat: newSeat(s.pool)}
	s.open(ctx, func(socket *live.Socket) {
		defer d.hangUp()
		s.room.Serve(socket, d.door())
	})
}

func (d *desk) door() socket.Door {
	return socket.Door{Login: d.login, Begin: d.begin, Judge: d.judge, Entered: d.seat.leave,
		Revoked: d.revoked, Answered: d.answered, Answering: d.options.Stages.Answer,
		Panicked: func(cause any) { d.Panicked("a socket's request", cause) }}
}

var (
	refuseMethodName = wire.Refuse(400, "unknown_method", "unknown method", "there are "+
		"order.place, order.place_many, order.replace, order.cancel, order.cancel_many, "+
		"order.cancel_all, order.get and ping")
	refuseGrace = wire.Refuse(400, "bad_request", "invalid grace_ms",
		"grace_ms must be from 1000 to 60000, and cancel_on_disconnect true")
	refuseKind   = wire.Refuse(400, "bad_request", "invalid type", "this channel is trade")
	refuseReader = wire.Refuse(401, "unauthorized", refuseKey.Text,
		"a key that only reads places no orders")
)

// begin begins the story of a request, or answers it.
func (d *desk) begin(x *socket.Exchange) {
	ctx := &x.Ctx
	do := d.trading[x.Method]
	switch {
	case do == nil:
		refuseMethodName.Send(ctx)
		return
	case !d.ready.Load():
		refuseEarly.Send(ctx)
		return
	case d.draining.Load():
		refuseLeaving.Send(ctx)
		return
	case len(ctx.Request.Body()) > do.most:
		head.Large.Send(ctx)
		return
	case d.revoked():
		refuseKey.Send(ctx)
		return
	case do.scope == nil:
		d.pong(ctx)
		return
	}
	x.Counted = true
	ctx.Init2(d.conn, nil, false)
	ctx.Request.Header.SetMethod(do.method)
	ctx.Request.SetRequestURI(do.path)
	caller, timed := &d.caller, answer.WatchNth(d.begun)
	if d.begun++; x.MaxAge != "" {
		own := d.caller
		own.maxAge, caller = x.MaxAge, &own
	}
	if d.attach(); d.windows == nil || do.scope.Cancels || d.admitAddress(ctx, do.scope) {
		x.Story = do.open(ctx, caller)
	}
	x.Timed = bool(timed) && x.Story != nil
	switch at := journeyOf(x.Story); {
	case at != nil:
		x.Signed = true
		*at = journey{now: &d.seat, watch: timed, began: x.Began}
	case x.Story == nil && ctx.UserValue(rested) != nil:
		x.Story = reading{func() { d.rests.Rest(d.conn.client, nil) }}
	}
}

// rested marks a refused request whose answer must be delayed. On a socket the delay holds up only
// this answer, not the requests after it.
const rested = "rested"

// judge checks a batch in the socket's seat, and in free seats. Single orders are checked together.
func (d *desk) judge(batch []*socket.Exchange) {
	lone := len(batch) == 1 && ofOne(batch[0].Story)
	if err := d.seat.take(d.orders.payer(&d.caller), lone); err != nil {
		for _, x := range batch {
			if x.Signed {
				d.refusePool(err).Send(&x.Ctx)
				x.Story = nil
			}
		}
	}
	var singles bundle
	for _, x := range batch {
		if t, single := x.Story.(*placing); single && len(batch) > 1 {
			t.p.seat, t.p.watch = t.now, t.watch
			singles = append(singles, t.p)
		} else if x.Story != nil {
			x.Story.Judge()
		}
	}
	d.orders.judgeAll(singles)
}

func (d *desk) revoked() bool {
	return d.options.Board.Directory.Revoked(d.caller.Address, d.caller.Nonce)
}

func (d *desk) answered(x *socket.Exchange) {
	if do := d.trading[x.Method]; do != nil {
		do.counters.note(x.Ctx.Response.StatusCode(), time.Since(x.Began))
	}
}

// login checks and answers a login. If the login asks for it, the node cancels the orders of the
// key after the key's sockets have ended.
func (d *desk) login(x *socket.Exchange) {
	c, wish, refused := readLogin(x.Ctx.Request.Body())
	if refused == nil {
		refused = d.admitLogin(&c)
	}
	if refused == nil {
		refused = d.arm(wish)
	}
	if refused != nil {
		refused.Send(&x.Ctx)
		return
	}
	grace := d.Server.beats.grace(d.key)
	body := append([]byte(`{"address":"`), auth.Checksum(d.caller.Address)...)
	body = wire.AppendField(append(body, '"'), "apiKey", d.caller.key)
	body = strconv.AppendBool(wire.AppendKey(body, "cancel_on_disconnect"), grace > 0)
	if grace > 0 {
		body = strconv.AppendInt(wire.AppendKey(body, "grace_ms"), grace.Milliseconds(), 10)
	}
	wire.MarkSequence(&x.Ctx, d.options.Board.Shown())
	wire.AnswerRaw(&x.Ctx, append(body, '}'))
}

// admitLogin finds out who logs in, and refuses keys that cannot place orders.
func (d *desk) admitLogin(c *wire.Credentials) *wire.Refusal {
	who, err := d.sockets.logIn(d.conn.client, c, tradePath)
	var wait waitError
	switch {
	case errors.As(err, &wait):
		return refuseLimited.With(answer.RetryAfter(
			strconv.FormatInt(limits.Seconds(time.Duration(wait)), 10))).Because(failedKeys)
	case errors.Is(err, errWindow):
		return refuseCaller(auth.ErrWindow, d.options.Now())
	case err != nil:
		return wire.Refuse(401, "unauthorized", refuseKey.Text, adviceSocket)
	case who.Class != engine.TradingKey:
		return refuseReader
	}
	d.caller = identity{Identity: auth.Identity{Address: who.Address, Nonce: who.Number},
		key: strings.ToLower(c.Key), dialect: who.Dialect}
	return nil
}

const adviceSocket = "send apiKey, passphrase, timestamp and signature of a key that is not revoked; " +
	"signature is the HMAC-SHA256 by its secret of timestamp, GET and " + tradePath

// arming is the wish of a login for cancel-on-disconnect.
type arming struct {
	given, on bool          // whether cancel_on_disconnect was sent, and its value
	grace     time.Duration // from the end of the key's sockets until its orders are canceled
}

const (
	leastGrace = time.Second
	mostGrace  = time.Minute
)

// readLogin reads the credentials and the arming of a login. They stand in the params of login, or
// in a message of the form that the user channel takes.
func readLogin(body []byte) (c wire.Credentials, a arming, refused *wire.Refusal) {
	var on, grace scan.Field
	var said [8]scan.Field
	own := map[string]scan.Slot{}
	for i, names := range [...]string{"apiKey apikey api_key key", "secret", "passphrase", "address",
		"timestamp", "signature", "dialect", "type"} {
		for _, name := range strings.Fields(names) {
			own[name] = scan.Slot{Into: &said[i], Kinds: scan.AString | scan.ANumber}
		}
	}
	at := map[string]scan.Slot{
		"cancel_on_disconnect": {Into: &on, Kinds: scan.ABool},
		"grace_ms":             {Into: &grace, Kinds: scan.ANumber},
		"auth":                 {Members: form.Shape(own)},
	}
	for name, slot := range own {
		at[name] = slot
	}
	if fault := form.Members(body, at); fault != nil {
		return c, a, refuseKeys(fault, refuseBody.Because(adviceSocket))
	}
	c = wire.Credentials{Key: said[0].Text, Secret: said[1].Text, Passphrase: said[2].Text,
		Address: said[3].Text, Timestamp: said[4].Text, Signature: said[5].Text,
		Dialect: said[6].Text}
	a = arming{given: on.Given(), on: on.Text == "true", grace: beatTimeout}
	if grace.Given() {
		ms, ok := form.Amount(grace.Text)
		a.grace = time.Duration(min(ms, 1e9)) * time.Millisecond
		if !ok || !a.on || a.grace < leastGrace || a.grace > mostGrace {
			return c, a, refuseGrace
		}
	}
	if kind := said[7].Text; kind != "" && !strings.EqualFold(kind, "trade") {
		return c, a, refuseKind
	}
	return c, a, nil
}

// arm makes the socket count as a heartbeat of its key, and arms or disarms the key if asked to.
func (d *desk) arm(wish arming) *wire.Refusal {
	owner, known := d.options.Board.Directory.Wallet(d.caller.Address)
	switch {
	case known && wish.given:
		d.key = beatKey{owner, d.caller.Nonce}
		refused := d.Server.beats.adopt(d.key, wish)
		d.beats = refused == nil
		return refused
	case wish.on:
		return refuseStranger
	}
	d.attach()
	return nil
}

// attach makes the socket count as a heartbeat of its key, once the caller has an account.
func (d *desk) attach() {
	if d.beats {
		return
	}
	if owner, known := d.options.Board.Directory.Wallet(d.caller.Address); known {
		d.key, d.beats = beatKey{owner, d.caller.Nonce}, true
		d.Server.beats.attach(d.key)
	}
}

// hangUp ends the heartbeat of the socket.
func (d *desk) hangUp() {
	if d.beats {
		d.Server.beats.detach(d.key, d.options.Now())
	}
}

// reading is the story of a request that changes nothing. On a socket the answer follows when the
// requests before it have their Receipts.
type reading struct{ answer func() }

func (reading) Judge()      {}
func (reading) Enter()      {}
func (reading) Ready() bool { return false }
func (reading) Await()      {}
func (reading) Late() bool  { return true }

// Finish answers the request.
func (r reading) Finish() { r.answer() }

// showOrder begins the story of order.get.
func (s *Server) showOrder(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	written, fault := form.CancelID(ctx.Request.Body())
	id, ok := engine.ParseOrderID(written)
	switch {
	case fault != nil:
		refuseKeys(fault, refuseCancel).Send(ctx)
		return nil
	case !ok:
		refuseOrderID.Send(ctx)
		return nil
	}
	ctx.Request.SetRequestURI("/data/order/" + id.Hex())
	ctx.Request.ResetBody()
	return reading{func() {
		s.pool.reading(time.Now())
		s.options.Account(ctx, caller.Address, caller.dialect)
	}}
}

// pong answers the method ping.
func (s *Server) pong(ctx *fasthttp.RequestCtx) {
	body := strconv.AppendInt([]byte(`{"server_ts_ms":`), s.options.Now().UnixMilli(), 10)
	wire.AnswerRaw(ctx, append(body, '}'))
}

// sweepSome begins the story of order.cancel_all. The params may name a market or token; otherwise
// the story cancels all orders of the caller.
func (s *cancels) sweepSome(ctx *fasthttp.RequestCtx, caller *identity) socket.Story {
	var room [4]scan.Member
	body := ctx.Request.Body()
	if members, ok := scan.Object(body, room[:0]); len(body) == 0 || ok && len(members) == 0 {
		return s.sweepAll(ctx, caller)
	}
	return s.sweepMarket(ctx, caller)
}

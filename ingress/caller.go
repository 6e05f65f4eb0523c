package ingress

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/ingress/auth"
	"clobd/ingress/cors"
	"clobd/ingress/head"
	"clobd/ingress/limits"
)

// sendable are the headers that a web page may send.
var sendable = func() []byte {
	var names []string
	for _, family := range head.Families {
		for _, name := range head.Names {
			names = append(names, string(family)+name)
		}
	}
	return cors.Sendable(names)
}()

// identity is who an authenticated request comes from. Its texts are good as long as the request.
type identity struct {
	auth.Identity
	key       string // uuid of the API key
	dialect   wire.Dialect
	maxAge    string // how many milliseconds after its signature an order is still wanted, or ""
	signature string // of the request, as written
}

// authenticate checks the five headers of a request over its exact bytes, or answers 401.
func (s *door) authenticate(ctx *fasthttp.RequestCtx) (identity, bool) {
	c := head.ReadCredentials(&ctx.Request.Header)
	if c.Doubled != "" {
		s.refuseClaim(ctx, nil, auth.ErrMissing, refuseUnclear(&c, auth.ErrMissing, needL2, time.Time{}))
		return identity{}, false
	}
	claim, ok := s.claim(ctx, c.Key)
	if !ok {
		return identity{}, false
	}
	r := auth.Request{
		Address: c.Address, Key: c.Key, Passphrase: c.Passphrase,
		Timestamp: c.Timestamp, Signature: c.Signature,
	}
	describe(ctx, &r)
	now := s.options.Now()
	id, err := s.options.Keyring.Authenticate(&r, now)
	if err == nil && s.options.Board.Directory.Revoked(id.Address, id.Nonce) {
		err = auth.ErrKey
	}
	if err != nil {
		s.refuseClaim(ctx, &claim, err, refuseUnclear(&c, err, needL2, now))
		return identity{}, false
	}
	s.proved(&claim)
	if c, ok := ctx.Conn().(*orderConn); ok {
		c.Know()
	}
	return identity{Identity: id, key: strings.ToLower(c.Key), dialect: c.Dialect, maxAge: c.MaxAge,
		signature: c.Signature}, true
}

// signedRequest answers a write of an authenticated caller, or returns the refusal.
type signedRequest func(ctx *fasthttp.RequestCtx, caller identity) *wire.Refusal

// signed makes the handler of a write that counts as one in the windows of scope.
func (s *door) signed(scope *limits.Scope, answer signedRequest) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		caller, ok := s.authenticate(ctx)
		if !ok || !s.admitAccount(ctx, &caller, limits.Demand{Scope: scope, N: 1}) {
			return
		}
		if refused := answer(ctx, caller); refused != nil {
			refused.Send(ctx)
		}
	}
}

// describe fills in the parts of a request that its headers sign.
func describe(ctx *fasthttp.RequestCtx, r *auth.Request) {
	raw := wire.Text(ctx.URI().PathOriginal())
	r.Method, r.Path, r.RawPath = wire.Text(ctx.Method()), strings.TrimPrefix(raw, "/clob"), raw
	if path, _, _ := bytes.Cut(ctx.RequestURI(), []byte{'?'}); len(path) == len(raw)+1 {
		r.RawPath += "/" // which TrimSlash has removed
	}
	r.Body = ctx.Request.Body()
}

// What a request must carry.
const (
	adviceL2 = "send ADDRESS, API_KEY, PASSPHRASE, TIMESTAMP and SIGNATURE of a key that is not " +
		"revoked, each once and with one prefix; SIGNATURE is the HMAC-SHA256 by its secret of timestamp, " +
		"method, path without query, and body as sent"
	adviceL1 = "send ADDRESS, TIMESTAMP, NONCE and SIGNATURE, each once and with one prefix; SIGNATURE " +
		"is the address's own of ClobAuth for this node's chain"
)

// The refusals of a failed authentication. All causes of one kind have one text.
var (
	refuseKey    = wire.Refuse(401, "unauthorized", "Unauthorized/Invalid api key", adviceL2)
	refuseDerive = wire.Refuse(401, "invalid_l1", "Invalid L1 Request headers", adviceL1)
	refuseNonce  = wire.Refuse(400, "invalid_nonce", "invalid nonce",
		"NONCE must be an unsigned integer below 2^32")
)

// refuseCaller answers a failed authentication. A caller with a wrong clock is told the time.
func refuseCaller(err error, now time.Time) *wire.Refusal {
	refused := refuseKey
	if errors.Is(err, auth.ErrL1) {
		refused = refuseDerive
	}
	switch {
	case errors.Is(err, auth.ErrNonce):
		return refuseNonce
	case errors.Is(err, auth.ErrWindow):
		at := strconv.FormatInt(now.Unix(), 10)
		return wire.Refuse(401, "timestamp_out_of_window", refused.Text, "").
			With(wire.Member{Name: "server_time", Value: at, JSON: true}).
			Because("set the clock by server_time: TIMESTAMP may be 60 s older and 30 s newer")
	}
	return refused
}

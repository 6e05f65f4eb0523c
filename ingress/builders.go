package ingress

import (
	"encoding/hex"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/auth"
)

// builderCode is the code that a builder's orders carry, for those who ask with a builder's key:
// twelve bytes of zeros and the address whose key it is, as addresses are written in 32 bytes.
func builderCode(a engine.Address) string {
	var code [32]byte
	copy(code[32-len(a):], a[:])
	return "0x" + hex.EncodeToString(code[:])
}

// builderTrades is GET /builder/trades, which anybody may ask for any code. Where a builder's key
// asks and no code is named, its own is meant.
func (s *keys) builderTrades(ctx *fasthttp.RequestCtx) {
	c := readCredentials(&ctx.Request.Header)
	if c.builder.Key != "" {
		id, err := s.authenticateBuilder(ctx, &c)
		if err != nil {
			refuseCaller(err, s.options.Now()).Send(ctx)
			return
		}
		if len(ctx.QueryArgs().Peek("builder_code")) == 0 {
			ctx.QueryArgs().Set("builder_code", builderCode(id.Address))
		}
	}
	s.options.Public(ctx)
}

// authenticateBuilder checks the headers of a builder's key, which must be on record.
func (s *door) authenticateBuilder(ctx *fasthttp.RequestCtx, c *credentials) (
	id auth.Identity, err error) {
	r, d := c.builder, s.options.Board.Directory
	s.describe(ctx, &r)
	if id, err = s.options.Keyring.AuthenticateBuilder(&r, s.options.Now()); err != nil {
		return id, err
	}
	owner, _ := d.Wallet(id.Address)
	k, known := d.Key(owner, engine.BuilderKey, id.Nonce)
	switch {
	case !known || k.Revoked:
		return id, auth.ErrKey
	case c.doubled:
		return id, auth.ErrMissing
	}
	return id, nil
}

package ingress

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/ingress/conn"
	"clobd/ingress/head"
)

// keys serves what derives API keys, and what is on record of them.
type keys struct {
	*door
	faucet   *faucet
	beats    *heartbeats
	deriving atomic.Int32   // key derivations in the pool
	adding   [16]sync.Mutex // held by who numbers a key, by owner
}

// deriveKey is POST /auth/api-key and GET /auth/derive-api-key: for a signature, an address gets
// its key. POST records the key of an account and restores a revoked key; GET stores nothing.
func (s *keys) deriveKey(ctx *fasthttp.RequestCtx) {
	c := head.ReadCredentials(&ctx.Request.Header)
	r := auth.L1Request{
		Address: c.Address, Signature: c.Signature, Timestamp: c.Timestamp, Nonce: c.Nonce,
		Chain: string(ctx.Request.Header.Peek("X-Chain-Id")),
	}
	var address engine.Address
	var nonce uint32
	err := error(auth.ErrL1Missing)
	now := s.options.Now()
	claim, ok := s.claim(ctx, c.Address)
	if !ok {
		return
	}
	if c.Doubled == "" {
		full := s.verifyDerivation(s.ClientAddress(ctx), func() {
			address, nonce, err = auth.VerifyL1(&r, s.options.Chains, now)
		})
		if full != nil {
			s.refusePool(full).Send(ctx)
			return
		}
	}
	if err != nil {
		s.refuseClaim(ctx, &claim, err, refuseUnclear(&c, err, needL1, now))
		return
	}
	s.proved(&claim)
	if refused := judgeUnread(ctx); refused != nil && ctx.IsPost() {
		refused.Send(ctx)
		return
	}
	s.faucet.give(address, s.ClientAddress(ctx))
	s.faucet.claim(address)
	if ctx.IsPost() {
		owner, _ := s.options.Board.Directory.Wallet(address)
		refused := s.record(address, engine.TradingKey, nonce)
		if refused != nil && s.revoked(owner, engine.TradingKey, nonce) {
			refused.Send(ctx) // the key would open nothing
			return
		}
	}
	wire.AnswerRaw(ctx, appendTrio(nil, "apiKey", s.options.Keyring.Derive(address, nonce)))
}

// derivationShare is the part of the pool's queue that all derivations together may hold, because
// they come from strangers.
const derivationShare = 8

// verifyDerivation is pool.do with the share of a network address: nobody knows yet whether the
// wallet that the request claims is the caller's.
func (s *keys) verifyDerivation(from netip.Addr, work func()) error {
	defer s.deriving.Add(-1)
	if int(s.deriving.Add(1)) > max(s.pool.capacity(), s.pool.few, derivationShare)/derivationShare {
		return errPoolFull
	}
	var payer engine.Address
	network := conn.AddressKey(from)
	copy(payer[copy(payer[:], "net:"):], network[:16])
	return s.pool.do(payer, work)
}

// appendTrio appends a trio as an object with three members. name is the name of the first.
func appendTrio(dst []byte, name string, t auth.Trio) []byte {
	dst = wire.AppendString(wire.AppendKey(append(dst, '{'), name), t.Key)
	dst = wire.AppendString(append(dst, `,"secret":`...), t.Secret)
	dst = wire.AppendString(append(dst, `,"passphrase":`...), t.Passphrase)
	return append(dst, '}')
}

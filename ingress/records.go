package ingress

import (
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/ingress/form"
	"clobd/ingress/head"
	"clobd/ingress/limits"
)

// Keys are derived and never stored. The record says which keys an owner has, and which he gave up.

var (
	refuseNoKey = wire.Refuse(404, "not_found", "api key not found",
		"name one of your own keys that are listed")
	refuseNoName = wire.Refuse(400, "bad_payload", "address and key are required",
		"both belong into the query: whose key it is said to be, and the key")
)

// record puts a key on record, or restores it. A stranger's key is not recorded: it opens nothing.
func (s *keys) record(a engine.Address, class engine.KeyClass, number uint32) *wire.Refusal {
	d := s.options.Board.Directory
	owner, known := d.Wallet(a)
	if !known {
		return nil
	}
	if k, recorded := d.Key(owner, class, number); recorded && !k.Revoked {
		return nil
	}
	return s.refuseEntered(s.submit(
		&engine.Command{Kind: engine.SetKey, Owner: owner, Class: class, Key: number}))
}

// revoke makes a key open nothing any more. It disarms a trading key too, which can send no more
// heartbeats. The key's orders belong to the account and stay.
func (s *keys) revoke(owner engine.WalletNo, class engine.KeyClass, number uint32) *wire.Refusal {
	if s.revoked(owner, class, number) {
		return nil
	}
	c := engine.Command{Kind: engine.SetKey, Owner: owner, Class: class, Key: number, Revoke: true}
	if class != engine.TradingKey {
		return s.refuseEntered(s.submit(&c))
	}
	k := beatKey{owner, number}
	calls, err := s.enterAll([]engine.Command{c, disarm(k)})
	if err != nil {
		return s.refuseSubmit(err, nil)
	}
	s.beats.finish(k, true)
	receipts, errs := make([]engine.Receipt, 2), make([]error, 2)
	sequencer.WaitAll(calls, receipts, errs)
	return s.refuseEntered(receipts[0], errs[0])
}

func (s *keys) revoked(owner engine.WalletNo, class engine.KeyClass, number uint32) bool {
	k, _ := s.options.Board.Directory.Key(owner, class, number)
	return k.Revoked
}

type keyHolder struct {
	identity
	owner engine.WalletNo // 0 for a stranger
}

type keyRequest func(ctx *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal)

// reads makes the handler of a request that changes nothing: it needs a key.
func (s *keys) reads(answer keyRequest) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if caller, ok := s.authenticate(ctx); ok {
			s.answer(ctx, caller, answer)
		}
	}
}

// writes makes the handler of a request that changes the record: it needs a key and an account.
func (s *keys) writes(answer keyRequest) fasthttp.RequestHandler {
	return s.signed(limits.KeyScope, func(ctx *fasthttp.RequestCtx, caller identity) *wire.Refusal {
		if _, known := s.options.Board.Directory.Wallet(caller.Address); !known {
			return refuseStranger
		}
		if refused := judgeUnread(ctx); refused != nil {
			return refused
		}
		s.answer(ctx, caller, answer)
		return nil
	})
}

func (s *keys) answer(ctx *fasthttp.RequestCtx, caller identity, answer keyRequest) {
	h := keyHolder{identity: caller}
	h.owner, _ = s.options.Board.Directory.Wallet(h.Address)
	body, refused := answer(ctx, &h)
	wire.Respond(ctx, body, refused)
}

func (h *keyHolder) inDialect(poly, others string) []byte {
	if h.dialect == wire.POLY {
		return []byte(poly)
	}
	return []byte(others)
}

// keys are the holder's keys of one class on record, oldest first, and the trading key that he asks
// with, which may not be on record.
func (s *keys) keys(h *keyHolder, class engine.KeyClass) []view.Key {
	keys := s.options.Board.Directory.Keys(h.owner, class, nil)
	asking := func(k view.Key) bool { return k.Number == h.Nonce }
	if class != engine.TradingKey || slices.ContainsFunc(keys, asking) {
		return keys
	}
	return append(keys, view.Key{Number: h.Nonce})
}

// listKeys is GET /auth/api-keys: the good keys, or with metadata=true what is known of each key,
// revoked keys too unless includeRevoked=false.
func (s *keys) listKeys(ctx *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	query := ctx.QueryArgs()
	known := h.dialect != wire.POLY && query.GetBool("metadata")
	revoked := known && (!query.Has("includeRevoked") || query.GetBool("includeRevoked"))
	dst := []byte{'['}
	for _, k := range s.keys(h, engine.TradingKey) {
		if k.Revoked && !revoked {
			continue
		}
		dst = wire.AppendComma(dst)
		id := s.options.Keyring.KeyID(h.Address, k.Number)
		if known {
			dst = appendKey(dst, id, &k)
		} else {
			dst = wire.AppendString(dst, id)
		}
	}
	dst = append(dst, ']')
	if h.dialect == wire.POLY {
		dst = append(append([]byte(`{"apiKeys":`), dst...), '}')
	}
	return dst, nil
}

func appendKey(dst []byte, id string, k *view.Key) []byte {
	status := "active"
	if k.Revoked {
		status = "revoked"
	}
	dst = wire.AppendString(append(dst, `{"apiKey":`...), id)
	dst = strconv.AppendUint(append(dst, `,"nonce":`...), uint64(k.Number), 10)
	dst = wire.AppendString(append(dst, `,"status":`...), status)
	dst = appendTime(append(dst, `,"createdAt":`...), k.Created)
	if k.Revoked {
		return append(appendTime(append(dst, `,"revokedAt":`...), k.Changed), '}')
	}
	return append(dst, `,"revokedAt":null}`...)
}

// appendTime appends a date and time, or null for none.
func appendTime(dst []byte, t engine.Time) []byte {
	if t == 0 {
		return append(dst, "null"...)
	}
	dst = time.UnixMilli(int64(t)).UTC().AppendFormat(append(dst, '"'), "2006-01-02T15:04:05.000Z")
	return append(dst, '"')
}

// deleteKey is DELETE /auth/api-key: of the key that asks, or of the key that apiKey names.
func (s *keys) deleteKey(ctx *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	number, known := h.Nonce, true
	if named := string(ctx.QueryArgs().Peek("apiKey")); named != "" {
		number, known = s.findKey(h, engine.TradingKey, named)
	}
	if !known {
		return nil, refuseNoKey
	}
	return h.inDialect(`"OK"`, `{"revoked":true}`), s.revoke(h.owner, engine.TradingKey, number)
}

func (s *keys) findKey(h *keyHolder, class engine.KeyClass, text string) (uint32, bool) {
	for _, k := range s.keys(h, class) {
		if s.options.Keyring.Is(class, h.Address, k.Number, text) {
			return k.Number, true
		}
	}
	return 0, false
}

// closedOnly is GET /auth/ban-status/closed-only: whether a wallet of the caller may only cancel.
func (s *keys) closedOnly(_ *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	d := s.options.Board.Directory
	is := strconv.FormatBool(slices.ContainsFunc(d.Owned(h.owner, []engine.WalletNo{h.owner}),
		func(w engine.WalletNo) bool { return d.WalletMode(w) == engine.CancelOnly }))
	if h.dialect == wire.SVC {
		return []byte(`{"closedOnly":` + is + `}`), nil
	}
	return h.inDialect(`{"closed_only":`+is+`}`, `{"closedOnly":`+is+`,"closed_only":`+is+`}`), nil
}

// addKey puts this member's next key of a class on record. A revoked key keeps its number.
func (s *keys) addKey(h *keyHolder, class engine.KeyClass) (uint32, *wire.Refusal) {
	turn := &s.adding[uint32(h.owner)%uint32(len(s.adding))]
	turn.Lock()
	defer turn.Unlock()
	number := s.options.Member<<16 + uint32(len(s.options.Board.Directory.Keys(h.owner, class, nil)))
	return number, s.record(h.Address, class, number)
}

// addReadOnly is POST /auth/readonly-api-key.
func (s *keys) addReadOnly(_ *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	number, refused := s.addKey(h, engine.ReadOnlyKey)
	key := s.options.Keyring.ID(engine.ReadOnlyKey, h.Address, number)
	return append(wire.AppendString([]byte(`{"apiKey":`), key), '}'), refused
}

// listReadOnly is GET /auth/readonly-api-keys: the good keys.
func (s *keys) listReadOnly(_ *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	dst := []byte{'['}
	for _, k := range s.keys(h, engine.ReadOnlyKey) {
		if !k.Revoked {
			key := s.options.Keyring.ID(k.Class, h.Address, k.Number)
			dst = wire.AppendString(wire.AppendComma(dst), key)
		}
	}
	return append(dst, ']'), nil
}

// deleteReadOnly is DELETE /auth/readonly-api-key.
func (s *keys) deleteReadOnly(ctx *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	var key scan.Field
	at := map[string]scan.Slot{"key": {Into: &key, Kinds: scan.AString}}
	if fault := form.Members(ctx.Request.Body(), at); fault != nil {
		return nil, refuseKeys(fault, refuseBody.Because(`the body must be like {"key":"…"}`))
	}
	number, known := s.findKey(h, engine.ReadOnlyKey, key.Text)
	if !known {
		return nil, refuseNoKey
	}
	return h.inDialect(`true`, `{"deleted":true}`), s.revoke(h.owner, engine.ReadOnlyKey, number)
}

// validateReadOnly is GET /auth/validate-readonly-api-key, for whoever was given a key.
func (s *keys) validateReadOnly(ctx *fasthttp.RequestCtx) {
	query := ctx.QueryArgs()
	address, key := string(query.Peek("address")), string(query.Peek("key"))
	if address == "" || key == "" {
		refuseNoName.Send(ctx)
		return
	}
	claim, ok := s.claim(ctx, key)
	if !ok {
		return
	}
	if _, ok = s.reader(address, key); !ok && s.windows != nil {
		s.windows.Failed(&claim)
	}
	wire.AnswerRaw(ctx, []byte(`{"valid":`+strconv.FormatBool(ok)+`}`))
}

// reader returns the address that a good read-only key opens.
func (s *keys) reader(address, key string) (engine.Address, bool) {
	a, _, ok := s.readOnly(address, key)
	return a, ok
}

// readOnly finds the number of a read-only key that is not revoked.
func (s *keys) readOnly(address, key string) (a engine.Address, number uint32, ok bool) {
	if a, ok = auth.ParseAddress(address); !ok {
		return a, 0, false
	}
	d := s.options.Board.Directory
	owner, _ := d.Wallet(a)
	for _, k := range d.Keys(owner, engine.ReadOnlyKey, nil) {
		if !k.Revoked && s.options.Keyring.Is(k.Class, a, k.Number, key) {
			return a, k.Number, true
		}
	}
	return a, 0, false
}

// addBuilder is POST /auth/builder-api-key.
func (s *keys) addBuilder(_ *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	number, refused := s.addKey(h, engine.BuilderKey)
	return appendTrio(nil, "key", s.options.Keyring.Trio(engine.BuilderKey, h.Address, number)), refused
}

// listBuilder is GET /auth/builder-api-key.
func (s *keys) listBuilder(_ *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	dst := []byte{'['}
	for _, k := range s.keys(h, engine.BuilderKey) {
		id := s.options.Keyring.ID(k.Class, h.Address, k.Number)
		dst = wire.AppendString(append(wire.AppendComma(dst), `{"key":`...), id)
		dst = appendTime(append(dst, `,"createdAt":`...), k.Created)
		if k.Revoked {
			dst = appendTime(append(dst, `,"revokedAt":`...), k.Changed)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}

// deleteBuilder is DELETE /auth/builder-api-key: of the builder key that asks. A trading key names
// no builder key: then all builder keys of the caller go.
func (s *keys) deleteBuilder(ctx *fasthttp.RequestCtx) {
	c := head.ReadCredentials(&ctx.Request.Header)
	if c.Builder.Key == "" || c.Key != "" {
		s.writes(s.deleteBuilders)(ctx)
		return
	}
	id, ok := s.authenticateBuilder(ctx, &c)
	if !ok {
		return
	}
	caller := identity{Identity: id, dialect: c.Dialect}
	if refused := judgeUnread(ctx); refused != nil {
		refused.Send(ctx)
	} else if s.admitAccount(ctx, &caller, limits.Demand{Scope: limits.KeyScope, N: 1}) {
		s.answer(ctx, caller, func(_ *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
			refused := s.revoke(h.owner, engine.BuilderKey, id.Nonce)
			return h.inDialect(`"OK"`, `{"revoked":true}`), refused
		})
	}
}

func (s *keys) deleteBuilders(_ *fasthttp.RequestCtx, h *keyHolder) ([]byte, *wire.Refusal) {
	for _, k := range s.keys(h, engine.BuilderKey) {
		if refused := s.revoke(h.owner, engine.BuilderKey, k.Number); refused != nil {
			return nil, refused
		}
	}
	return h.inDialect(`"OK"`, `{"revoked":true}`), nil
}

// authenticateBuilder checks the headers of a builder's key, which must be on record, or refuses
// the request.
func (s *keys) authenticateBuilder(ctx *fasthttp.RequestCtx, c *head.Credentials) (
	auth.Identity, bool) {
	claim, ok := s.claim(ctx, c.Builder.Key)
	if !ok {
		return auth.Identity{}, false
	}
	id, err := s.checkBuilder(ctx, c)
	if err != nil {
		s.refuseClaim(ctx, &claim, err, refuseUnclear(c, err, needBuilder, s.options.Now()))
		return id, false
	}
	s.proved(&claim)
	return id, true
}

func (s *keys) checkBuilder(ctx *fasthttp.RequestCtx, c *head.Credentials) (
	id auth.Identity, err error) {
	if c.Doubled != "" {
		return id, auth.ErrMissing
	}
	b, d := &c.Builder, s.options.Board.Directory
	r := auth.Request{Class: engine.BuilderKey, Key: b.Key, Passphrase: b.Passphrase,
		Timestamp: b.Timestamp, Signature: b.Signature}
	describe(ctx, &r)
	id, err = s.options.Keyring.Authenticate(&r, s.options.Now())
	if err != nil {
		return id, err
	}
	owner, _ := d.Wallet(id.Address)
	k, known := d.Key(owner, engine.BuilderKey, id.Nonce)
	if !known || k.Revoked {
		return id, auth.ErrKey
	}
	return id, nil
}

// builderTrades is GET /builder/trades, which anybody may ask for any code. A builder's key that
// names no code means its own.
func (s *keys) builderTrades(ctx *fasthttp.RequestCtx) {
	c := head.ReadCredentials(&ctx.Request.Header)
	if c.Builder.Key != "" || c.Doubled != "" {
		id, ok := s.authenticateBuilder(ctx, &c)
		if !ok {
			return
		}
		if len(ctx.QueryArgs().Peek("builder_code")) == 0 {
			ctx.QueryArgs().Set("builder_code", builderCode(id.Address))
		}
	}
	s.options.Public(ctx)
}

// builderCode is the code that the orders of a builder carry: its address, in 32 bytes.
func builderCode(a engine.Address) string {
	var code [32]byte
	copy(code[32-len(a):], a[:])
	return "0x" + hex.EncodeToString(code[:])
}

package ingress

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/auth"
)

// Keys are derived and never stored. What is on record is that an owner has them, so that they can
// be listed, and that he does not want them any more.

var (
	refuseNoKey = wire.Refuse(404, "not_found", "api key not found",
		"name one of your own keys that are listed")
	refuseNoName = wire.Refuse(400, "bad_payload", "address and key are required",
		"both belong into the query: whose key it is said to be, and the key")
)

// record puts a key on record, or restores it. A stranger's is not recorded: it has nothing that it
// could open.
func (s *keys) record(a engine.Address, class engine.KeyClass, number uint32) *wire.Refusal {
	d := s.options.Board.Directory
	owner, known := d.Wallet(a)
	if !known {
		return nil
	}
	if k, recorded := d.Key(owner, class, number); recorded && !k.Revoked {
		return nil
	}
	return s.setKey(&engine.Command{Kind: engine.SetKey, Owner: owner, Class: class, Key: number})
}

// revoke makes a key open nothing any more. One that sends heartbeats can send no more of them and
// is disarmed with it: its orders belong to the account and stay.
func (s *keys) revoke(owner engine.WalletNo, class engine.KeyClass, number uint32) *wire.Refusal {
	if s.revoked(owner, class, number) {
		return nil
	}
	c := engine.Command{Kind: engine.SetKey, Owner: owner, Class: class, Key: number, Revoke: true}
	if class != engine.TradingKey {
		return s.setKey(&c)
	}
	k := beatKey{owner, number}
	calls := make([]*sequencer.Call, 2)
	if err := s.enterAll([]engine.Command{c, disarm(k)}, calls); err != nil {
		return s.refuseSubmit(err, nil)
	}
	s.beats.finish(k, true)
	receipts, errs := make([]engine.Receipt, 2), make([]error, 2)
	sequencer.WaitAll(calls, receipts, errs)
	return s.keySet(&receipts[0], errs[0])
}

// revoked says whether a key was given up.
func (s *keys) revoked(owner engine.WalletNo, class engine.KeyClass, number uint32) bool {
	k, _ := s.options.Board.Directory.Key(owner, class, number)
	return k.Revoked
}

func (s *keys) setKey(c *engine.Command) *wire.Refusal {
	receipt, err := s.submit(c)
	return s.keySet(&receipt, err)
}

// keySet is what to answer when a SetKey ended like this: nil if it was taken.
func (s *keys) keySet(receipt *engine.Receipt, err error) *wire.Refusal {
	switch {
	case err != nil:
		return s.refuseSubmit(err, nil)
	case receipt.Reject != engine.Accepted:
		return refuseReceipt(receipt)
	}
	return nil
}

// keyHolder is who asks for his keys. Owner is 0 for a stranger.
type keyHolder struct {
	identity
	owner engine.WalletNo
}

// holder authenticates a request about keys; one that writes has a window and needs an account.
func (s *keys) holder(ctx *fasthttp.RequestCtx, writes bool) (h keyHolder, ok bool) {
	if h.identity, ok = s.authenticate(ctx); !ok {
		return h, false
	}
	h.owner, _ = s.options.Board.Directory.Wallet(h.Address)
	if !writes {
		return h, true
	}
	if !s.admit(ctx, &h.identity, demand{keyScope, 1}) {
		return h, false
	}
	if h.owner == 0 {
		refuseStranger.Send(ctx)
		return h, false
	}
	return h, true
}

// keys are the holder's keys of one class on record, oldest first, and the one that he asks with:
// it is good even if it was only ever derived.
func (s *keys) keys(h *keyHolder, class engine.KeyClass) []view.Key {
	keys := s.options.Board.Directory.Keys(h.owner, class, nil)
	if class != engine.TradingKey {
		return keys
	}
	for i := range keys {
		if keys[i].Number == h.Nonce {
			return keys
		}
	}
	return append(keys, view.Key{Number: h.Nonce})
}

// listKeys is GET /auth/api-keys: those that are good, or with metadata=true what is known of each,
// also of the revoked ones unless includeRevoked=false.
func (s *keys) listKeys(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, false)
	if !ok {
		return
	}
	query := ctx.QueryArgs()
	known := h.dialect != wire.POLY && query.GetBool("metadata")
	revoked := known && (!query.Has("includeRevoked") || query.GetBool("includeRevoked"))
	dst := []byte{'['}
	for _, k := range s.keys(&h, engine.TradingKey) {
		if k.Revoked && !revoked {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
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
	wire.AnswerRaw(ctx, dst)
}

// appendKey appends what is known of a key.
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

// deleteKey is DELETE /auth/api-key: of the key that asks, or of the one that apiKey names. The
// orders that came with it stay: they belong to the account.
func (s *keys) deleteKey(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	number, known := h.Nonce, true
	if named := string(ctx.QueryArgs().Peek("apiKey")); named != "" {
		number, known = s.findKey(&h, engine.TradingKey, named)
	}
	refused := refuseNoKey
	if known {
		refused = s.revoke(h.owner, engine.TradingKey, number)
	}
	switch {
	case refused != nil:
		refused.Send(ctx)
	case h.dialect == wire.POLY:
		wire.AnswerRaw(ctx, []byte(`"OK"`))
	default:
		wire.AnswerRaw(ctx, []byte(`{"revoked":true}`))
	}
}

// findKey is the number of one of the holder's keys by its text.
func (s *keys) findKey(h *keyHolder, class engine.KeyClass, text string) (uint32, bool) {
	for _, k := range s.keys(h, class) {
		if s.isKey(h.Address, &k, text) {
			return k.Number, true
		}
	}
	return 0, false
}

// isKey says whether text is the key that k is the record of.
func (s *keys) isKey(a engine.Address, k *view.Key, text string) bool {
	switch k.Class {
	case engine.ReadOnlyKey:
		return s.options.Keyring.IsReadOnly(a, k.Number, text)
	case engine.BuilderKey:
		return strings.EqualFold(s.options.Keyring.BuilderID(a, k.Number), text)
	}
	return strings.EqualFold(s.options.Keyring.KeyID(a, k.Number), text)
}

// closedOnly is GET /auth/ban-status/closed-only: whether a wallet of the caller may only cancel.
func (s *keys) closedOnly(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, false)
	if !ok {
		return
	}
	closed := false
	d := s.options.Board.Directory
	for _, wallet := range d.Owned(h.owner, []engine.WalletNo{h.owner}) {
		closed = closed || d.WalletMode(wallet) == engine.CancelOnly
	}
	is := strconv.FormatBool(closed)
	switch h.dialect {
	case wire.POLY:
		wire.AnswerRaw(ctx, []byte(`{"closed_only":`+is+`}`))
	case wire.SVC:
		wire.AnswerRaw(ctx, []byte(`{"closedOnly":`+is+`}`))
	default:
		wire.AnswerRaw(ctx, []byte(`{"closedOnly":`+is+`,"closed_only":`+is+`}`))
	}
}

// addKey puts the next key of a class on record. Numbers are not used again: a key that was given
// up does not come back.
func (s *keys) addKey(h *keyHolder, class engine.KeyClass) (uint32, *wire.Refusal) {
	turn := &s.adding[uint32(h.owner)%uint32(len(s.adding))]
	turn.Lock() // two at once would find the same number
	defer turn.Unlock()
	number := uint32(len(s.options.Board.Directory.Keys(h.owner, class, nil)))
	return number, s.record(h.Address, class, number)
}

// addReadOnly is POST /auth/readonly-api-key.
func (s *keys) addReadOnly(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	number, refused := s.addKey(&h, engine.ReadOnlyKey)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	key := s.options.Keyring.ReadOnly(h.Address, number)
	wire.AnswerRaw(ctx, append(wire.AppendString([]byte(`{"apiKey":`), key), '}'))
}

// listReadOnly is GET /auth/readonly-api-keys: those that are good.
func (s *keys) listReadOnly(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, false)
	if !ok {
		return
	}
	dst := []byte{'['}
	for _, k := range s.keys(&h, engine.ReadOnlyKey) {
		if k.Revoked {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, s.options.Keyring.ReadOnly(h.Address, k.Number))
	}
	wire.AnswerRaw(ctx, append(dst, ']'))
}

// deleteReadOnly is DELETE /auth/readonly-api-key.
func (s *keys) deleteReadOnly(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	var key field
	at := map[string]place{"key": {into: &key, kinds: aString}}
	if !readMembers(ctx.Request.Body(), at) {
		refuseBody.Because(`the body must be like {"key":"…"}`).Send(ctx)
		return
	}
	number, known := s.findKey(&h, engine.ReadOnlyKey, key.text)
	refused := refuseNoKey
	if known {
		refused = s.revoke(h.owner, engine.ReadOnlyKey, number)
	}
	switch {
	case refused != nil:
		refused.Send(ctx)
	case h.dialect == wire.POLY:
		wire.AnswerRaw(ctx, []byte(`true`))
	default:
		wire.AnswerRaw(ctx, []byte(`{"deleted":true}`))
	}
}

// validateReadOnly is GET /auth/validate-readonly-api-key, for whoever was given a key.
func (s *keys) validateReadOnly(ctx *fasthttp.RequestCtx) {
	query := ctx.QueryArgs()
	address, key := string(query.Peek("address")), string(query.Peek("key"))
	if address == "" || key == "" {
		refuseNoName.Send(ctx)
		return
	}
	_, ok := s.reader(address, key)
	wire.AnswerRaw(ctx, []byte(`{"valid":`+strconv.FormatBool(ok)+`}`))
}

// reader is the address that a read-only key opens.
func (s *keys) reader(address, key string) (engine.Address, bool) {
	a, ok := auth.ParseAddress(address)
	if !ok {
		return a, false
	}
	d := s.options.Board.Directory
	owner, _ := d.Wallet(a)
	for _, k := range d.Keys(owner, engine.ReadOnlyKey, nil) {
		if !k.Revoked && s.isKey(a, &k, key) {
			return a, true
		}
	}
	return a, false
}

// addBuilder is POST /auth/builder-api-key.
func (s *keys) addBuilder(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	number, refused := s.addKey(&h, engine.BuilderKey)
	if refused != nil {
		refused.Send(ctx)
		return
	}
	t := s.options.Keyring.Builder(h.Address, number)
	dst := wire.AppendString([]byte(`{"key":`), t.Key)
	dst = wire.AppendString(append(dst, `,"secret":`...), t.Secret)
	dst = wire.AppendString(append(dst, `,"passphrase":`...), t.Passphrase)
	wire.AnswerRaw(ctx, append(dst, '}'))
}

// listBuilder is GET /auth/builder-api-key.
func (s *keys) listBuilder(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, false)
	if !ok {
		return
	}
	dst := []byte{'['}
	for i, k := range s.keys(&h, engine.BuilderKey) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(append(dst, `{"key":`...), s.options.Keyring.BuilderID(h.Address, k.Number))
		dst = appendTime(append(dst, `,"createdAt":`...), k.Created)
		if k.Revoked {
			dst = appendTime(append(dst, `,"revokedAt":`...), k.Changed)
		}
		dst = append(dst, '}')
	}
	wire.AnswerRaw(ctx, append(dst, ']'))
}

// deleteBuilder is DELETE /auth/builder-api-key: of the key that asks, if a builder key does, or
// else of all builder keys of the caller, because his request names none.
func (s *keys) deleteBuilder(ctx *fasthttp.RequestCtx) {
	owner, numbers, ok := s.builders(ctx)
	if !ok {
		return
	}
	for _, number := range numbers {
		if refused := s.revoke(owner, engine.BuilderKey, number); refused != nil {
			refused.Send(ctx)
			return
		}
	}
	if readCredentials(&ctx.Request.Header).dialect == wire.POLY {
		wire.AnswerRaw(ctx, []byte(`"OK"`))
		return
	}
	wire.AnswerRaw(ctx, []byte(`{"revoked":true}`))
}

// builders are the builder keys that a DELETE means.
func (s *keys) builders(ctx *fasthttp.RequestCtx) (
	owner engine.WalletNo, numbers []uint32, ok bool,
) {
	c := readCredentials(&ctx.Request.Header)
	if c.builder.Key == "" || c.key != "" {
		h, ok := s.holder(ctx, true)
		for _, k := range s.options.Board.Directory.Keys(h.owner, engine.BuilderKey, nil) {
			if !k.Revoked {
				numbers = append(numbers, k.Number)
			}
		}
		return h.owner, numbers, ok
	}
	id, err := s.authenticateBuilder(ctx, &c)
	if err != nil {
		refuseCaller(err, s.options.Now()).Send(ctx)
		return 0, nil, false
	}
	owner, _ = s.options.Board.Directory.Wallet(id.Address)
	return owner, []uint32{id.Nonce}, s.admit(ctx, &identity{Identity: id}, demand{keyScope, 1})
}

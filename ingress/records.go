package ingress

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/auth"
)

// Keys are derived and never stored. What is on record is that an owner has them, so that they can
// be listed, and that he does not want them any more.

var (
	refuseNoKey = refuse(404, "not_found", "api key not found",
		"name one of your own keys that are listed")
	refuseNoName = refuse(400, "bad_payload", "address and key are required",
		"both belong into the query: whose key it is said to be, and the key")
)

// record puts a key on record, or restores it. A stranger's is not recorded: it has nothing that it
// could open.
func (s *Server) record(a engine.Address, class engine.KeyClass, number uint32) *refusal {
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
func (s *Server) revoke(owner engine.WalletNo, class engine.KeyClass, number uint32) *refusal {
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
	s.beats.done(k, true)
	receipts, errs := make([]engine.Receipt, 2), make([]error, 2)
	sequencer.WaitAll(calls, receipts, errs)
	return s.keySet(&receipts[0], errs[0])
}

// revoked says whether a key was given up.
func (s *Server) revoked(owner engine.WalletNo, class engine.KeyClass, number uint32) bool {
	k, _ := s.options.Board.Directory.Key(owner, class, number)
	return k.Revoked
}

func (s *Server) setKey(c *engine.Command) *refusal {
	receipt, err := s.submit(c)
	return s.keySet(&receipt, err)
}

// keySet is what to answer when a SetKey ended like this: nil if it was taken.
func (s *Server) keySet(receipt *engine.Receipt, err error) *refusal {
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
func (s *Server) holder(ctx *fasthttp.RequestCtx, writes bool) (h keyHolder, ok bool) {
	if h.identity, ok = s.authenticate(ctx); !ok {
		return h, false
	}
	h.owner, _ = s.options.Board.Directory.Wallet(h.Address)
	if !writes {
		return h, true
	}
	if !s.admitAccount(ctx, h.Address, demand{keyScope, 1}) {
		return h, false
	}
	if h.owner == 0 {
		refuseStranger.send(ctx)
		return h, false
	}
	return h, true
}

// keys are the holder's keys of one class on record, oldest first, and the one that he asks with:
// it is good even if it was only ever derived.
func (s *Server) keys(h *keyHolder, class engine.KeyClass) []view.Key {
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
func (s *Server) listKeys(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, false)
	if !ok {
		return
	}
	query := ctx.QueryArgs()
	known := h.dialect != dialectPOLY && query.GetBool("metadata")
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
			dst = appendString(dst, id)
		}
	}
	dst = append(dst, ']')
	if h.dialect == dialectPOLY {
		dst = append(append([]byte(`{"apiKeys":`), dst...), '}')
	}
	answer(ctx, 200, dst)
}

// appendKey appends what is known of a key.
func appendKey(dst []byte, id string, k *view.Key) []byte {
	status := "active"
	if k.Revoked {
		status = "revoked"
	}
	dst = appendString(append(dst, `{"apiKey":`...), id)
	dst = strconv.AppendUint(append(dst, `,"nonce":`...), uint64(k.Number), 10)
	dst = appendString(append(dst, `,"status":`...), status)
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
func (s *Server) deleteKey(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	number, known := h.Nonce, true
	if named := string(ctx.QueryArgs().Peek("apiKey")); named != "" {
		number, known = s.findKey(&h, engine.TradingKey, named)
	}
	no := &refuseNoKey
	if known {
		no = s.revoke(h.owner, engine.TradingKey, number)
	}
	switch {
	case no != nil:
		no.send(ctx)
	case h.dialect == dialectPOLY:
		answer(ctx, 200, []byte(`"OK"`))
	default:
		answer(ctx, 200, []byte(`{"revoked":true}`))
	}
}

// findKey is the number of one of the holder's keys by its text.
func (s *Server) findKey(h *keyHolder, class engine.KeyClass, text string) (uint32, bool) {
	for _, k := range s.keys(h, class) {
		if s.isKey(h.Address, &k, text) {
			return k.Number, true
		}
	}
	return 0, false
}

// isKey says whether text is the key that k is the record of.
func (s *Server) isKey(a engine.Address, k *view.Key, text string) bool {
	switch k.Class {
	case engine.ReadOnlyKey:
		return s.options.Keyring.IsReadOnly(a, k.Number, text)
	case engine.BuilderKey:
		return strings.EqualFold(s.options.Keyring.BuilderID(a, k.Number), text)
	}
	return strings.EqualFold(s.options.Keyring.KeyID(a, k.Number), text)
}

// closedOnly is GET /auth/ban-status/closed-only: whether a wallet of the caller may only cancel.
func (s *Server) closedOnly(ctx *fasthttp.RequestCtx) {
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
	case dialectPOLY:
		answer(ctx, 200, []byte(`{"closed_only":`+is+`}`))
	case dialectSVC:
		answer(ctx, 200, []byte(`{"closedOnly":`+is+`}`))
	default:
		answer(ctx, 200, []byte(`{"closedOnly":`+is+`,"closed_only":`+is+`}`))
	}
}

// addKey puts the next key of a class on record. Numbers are not used again: a key that was given
// up does not come back.
func (s *Server) addKey(h *keyHolder, class engine.KeyClass) (uint32, *refusal) {
	turn := &s.adding[uint32(h.owner)%uint32(len(s.adding))]
	turn.Lock() // two at once would find the same number
	defer turn.Unlock()
	number := uint32(len(s.options.Board.Directory.Keys(h.owner, class, nil)))
	return number, s.record(h.Address, class, number)
}

// addReadOnly is POST /auth/readonly-api-key.
func (s *Server) addReadOnly(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	number, no := s.addKey(&h, engine.ReadOnlyKey)
	if no != nil {
		no.send(ctx)
		return
	}
	key := s.options.Keyring.ReadOnly(h.Address, number)
	answer(ctx, 200, append(appendString([]byte(`{"apiKey":`), key), '}'))
}

// listReadOnly is GET /auth/readonly-api-keys: those that are good.
func (s *Server) listReadOnly(ctx *fasthttp.RequestCtx) {
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
		dst = appendString(dst, s.options.Keyring.ReadOnly(h.Address, k.Number))
	}
	answer(ctx, 200, append(dst, ']'))
}

// deleteReadOnly is DELETE /auth/readonly-api-key.
func (s *Server) deleteReadOnly(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	var key field
	at := map[string]place{"key": {into: &key, kinds: aString}}
	if !readMembers(ctx.Request.Body(), at) {
		refuseBody.because(`the body must be like {"key":"…"}`).send(ctx)
		return
	}
	number, known := s.findKey(&h, engine.ReadOnlyKey, key.text)
	no := &refuseNoKey
	if known {
		no = s.revoke(h.owner, engine.ReadOnlyKey, number)
	}
	switch {
	case no != nil:
		no.send(ctx)
	case h.dialect == dialectPOLY:
		answer(ctx, 200, []byte(`true`))
	default:
		answer(ctx, 200, []byte(`{"deleted":true}`))
	}
}

// validateReadOnly is GET /auth/validate-readonly-api-key, for whoever was given a key.
func (s *Server) validateReadOnly(ctx *fasthttp.RequestCtx) {
	query := ctx.QueryArgs()
	address, key := string(query.Peek("address")), string(query.Peek("key"))
	if address == "" || key == "" {
		refuseNoName.send(ctx)
		return
	}
	_, ok := s.reader(address, key)
	answer(ctx, 200, []byte(`{"valid":`+strconv.FormatBool(ok)+`}`))
}

// reader is the address that a read-only key opens.
func (s *Server) reader(address, key string) (engine.Address, bool) {
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
func (s *Server) addBuilder(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, true)
	if !ok {
		return
	}
	number, no := s.addKey(&h, engine.BuilderKey)
	if no != nil {
		no.send(ctx)
		return
	}
	t := s.options.Keyring.Builder(h.Address, number)
	dst := appendString([]byte(`{"key":`), t.Key)
	dst = appendString(append(dst, `,"secret":`...), t.Secret)
	dst = appendString(append(dst, `,"passphrase":`...), t.Passphrase)
	answer(ctx, 200, append(dst, '}'))
}

// listBuilder is GET /auth/builder-api-key.
func (s *Server) listBuilder(ctx *fasthttp.RequestCtx) {
	h, ok := s.holder(ctx, false)
	if !ok {
		return
	}
	dst := []byte{'['}
	for i, k := range s.keys(&h, engine.BuilderKey) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"key":`...), s.options.Keyring.BuilderID(h.Address, k.Number))
		dst = appendTime(append(dst, `,"createdAt":`...), k.Created)
		if k.Revoked {
			dst = appendTime(append(dst, `,"revokedAt":`...), k.Changed)
		}
		dst = append(dst, '}')
	}
	answer(ctx, 200, append(dst, ']'))
}

// deleteBuilder is DELETE /auth/builder-api-key: of the key that asks, if a builder key does, or
// else of all builder keys of the caller, because his request names none.
func (s *Server) deleteBuilder(ctx *fasthttp.RequestCtx) {
	owner, numbers, ok := s.builders(ctx)
	if !ok {
		return
	}
	for _, number := range numbers {
		if no := s.revoke(owner, engine.BuilderKey, number); no != nil {
			no.send(ctx)
			return
		}
	}
	if readCredentials(&ctx.Request.Header).dialect == dialectPOLY {
		answer(ctx, 200, []byte(`"OK"`))
		return
	}
	answer(ctx, 200, []byte(`{"revoked":true}`))
}

// builders are the builder keys that a DELETE means.
func (s *Server) builders(ctx *fasthttp.RequestCtx) (
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
		failRefusal(ctx, err, s.options.Now())
		return 0, nil, false
	}
	owner, _ = s.options.Board.Directory.Wallet(id.Address)
	return owner, []uint32{id.Nonce}, s.admitAccount(ctx, id.Address, demand{keyScope, 1})
}

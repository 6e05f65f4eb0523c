package ingress

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// A key that has begun to send heartbeats promises one every ten seconds. The buffer is for the way
// here.
const (
	beatTimeout = 10*time.Second + 5*time.Second
	beatLook    = 500 * time.Millisecond // between two looks at who is silent
)

var refuseStranger = wire.Refuse(400, "no_account",
	"the address has no account: nothing was ever paid into it", "have the operator pay something in")

// beatKey is an API key that sends heartbeats.
type beatKey struct {
	owner engine.WalletNo
	key   uint32
}

// chain is what is known of one such key's heartbeats.
type chain struct {
	id      string // that the next one must carry; "" at first after a restart: then any will do
	last    time.Time
	timeout time.Duration
	firing  bool // its orders are being canceled
}

// heartbeats are those of all keys. That a key is watched is journaled; its beats only move what is
// here.
//
//	first beat ─► Arm, durable ─► id ─► beat with id ─► next id ─► … silence ─► CancelAll, disarm
//
// Each beat must carry the id that the one before it was answered with: two programs that share a
// key without knowing of each other find out.
type heartbeats struct {
	*cancels
	mutex  sync.Mutex
	chains map[beatKey]*chain
}

// beatResult is what became of one.
type beatResult uint8

const (
	beatTaken beatResult = iota
	beatFirst            // nobody watches this key yet
	beatWrong            // another id was expected
	beatLate             // its orders are being canceled
)

// beat judges a beat and returns the id to go on with: the next one, or the one that was expected.
// An empty id starts over: a program that was started anew does not know the last one.
func (h *heartbeats) beat(k beatKey, id string, now time.Time) (string, beatResult) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	c := h.chains[k]
	switch {
	case c == nil && id == "":
		return "", beatFirst
	case c == nil:
		return "", beatWrong
	case c.firing:
		return "", beatLate
	case id != "" && c.id != "" && id != c.id:
		return c.id, beatWrong
	}
	c.id, c.last = newID(), now
	return c.id, beatTaken
}

// start begins a chain, or goes on with one that another beat has begun meanwhile.
func (h *heartbeats) start(k beatKey, timeout time.Duration, now time.Time) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	c := h.chains[k]
	if c == nil {
		c = &chain{newID(), now, timeout, false}
		h.chains[k] = c
	}
	c.last = now
	return c.id
}

// resume begins the chains of the keys that were watched before a restart: they get one full grace.
func (h *heartbeats) resume(each func(func(engine.WalletNo, uint32, engine.Time)), now time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	each(func(owner engine.WalletNo, key uint32, timeout engine.Time) {
		h.chains[beatKey{owner, key}] = &chain{"", now, time.Duration(timeout) * time.Millisecond, false}
	})
}

// silent are the keys that have been silent for too long. Each must be given to finish.
func (h *heartbeats) silent(now time.Time) (keys []beatKey) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for k, c := range h.chains {
		if !c.firing && now.Sub(c.last) >= c.timeout {
			c.firing = true
			keys = append(keys, k)
		}
	}
	return keys
}

// finish ends the chain of a key that is silent or was revoked. If the orders of a silent key were
// not all canceled, the next look tries again.
func (h *heartbeats) finish(k beatKey, ended bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if ended {
		delete(h.chains, k)
	} else if c := h.chains[k]; c != nil { // it may have been revoked meanwhile
		c.firing = false
	}
}

// newID is a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return string(engine.AppendUUID(nil, b))
}

// heartbeat is POST /v1/heartbeats; legacy is POST /heartbeats, which says more in its answer.
func (s *heartbeats) heartbeat(legacy bool) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		caller, ok := s.authenticate(ctx)
		if !ok || !s.admit(ctx, &caller, demand{beatScope, 1}) {
			return
		}
		var given field
		at := map[string]place{"heartbeat_id": {into: &given, kinds: aString}}
		if body := ctx.Request.Body(); len(body) > 0 && !readMembers(body, at) {
			refuseBody.Because(`the body must be like {"heartbeat_id":"the last one, or empty"}`).
				Send(ctx)
			return
		}
		owner, known := s.options.Board.Directory.Wallet(caller.Address)
		if !known {
			refuseStranger.Send(ctx)
			return
		}
		id, refused := s.carry(beatKey{owner, caller.Nonce}, given.text)
		if refused != nil {
			refused.Send(ctx)
			return
		}
		body := []byte(`{`)
		if legacy {
			body = append(body, `"status":"ok",`...)
		}
		wire.AnswerRaw(ctx, append(wire.AppendString(append(body, `"heartbeat_id":`...), id), '}'))
	}
}

// carry takes one heartbeat and returns the id of the next one.
func (s *heartbeats) carry(k beatKey, given string) (string, *wire.Refusal) {
	id, what := s.beat(k, given, s.options.Now())
	switch what {
	case beatTaken:
		return id, nil
	case beatLate:
		return "", refuseBusy
	case beatWrong:
		const words = "Invalid Heartbeat ID"
		return "", wire.Refuse(400, "bad_heartbeat", words, "").
			With(wire.Member{Name: "error_msg", Value: words}).
			With(wire.Member{Name: "heartbeat_id", Value: id}).
			Because("go on with heartbeat_id, unless another program uses the key; an empty one " +
				"starts over")
	}
	receipt, err := s.submit(&engine.Command{Kind: engine.Arm, Owner: k.owner, Key: k.key,
		Expiry: engine.Time(beatTimeout.Milliseconds())})
	switch {
	case err != nil:
		return "", s.refuseSubmit(err, nil)
	case receipt.Reject != engine.Accepted:
		return "", refuseReceipt(&receipt)
	}
	return s.start(k, beatTimeout, s.options.Now()), nil
}

// watch looks for silent keys until Close.
func (s *heartbeats) watch(stop <-chan struct{}) {
	look := time.NewTicker(beatLook)
	defer look.Stop()
	for {
		select {
		case <-stop:
			return
		case <-look.C:
			s.silence()
		}
	}
}

// silence cancels the orders of the keys that are silent. What cannot be entered now is tried again
// at the next look.
func (s *heartbeats) silence() {
	keys := s.silent(s.options.Now())
	if len(keys) == 0 {
		return
	}
	ended, err := s.cancelKeys(keys)
	for i, k := range keys {
		s.finish(k, i < ended)
	}
	if ended > 0 {
		s.options.Log.Info("keys are silent: their orders are canceled", "keys", ended,
			"first owner", keys[0].owner, "first key", keys[0].key)
	}
	if err != nil {
		s.options.Log.Error("cancel the orders of silent keys", "left", len(keys)-ended,
			"first owner", keys[ended].owner, "first key", keys[ended].key, "error", err)
	}
}

// farewells bounds the Commands that say farewell to silent keys and enter as one bundle, but for
// those of a single key, of which there are as many as its owner has wallets.
const farewells = 256

// cancelKeys cancels all orders that came with each of the keys, in every wallet of its owner, and
// stops to watch it. It returns for how many it has, from the first one on, and why not for all.
func (s *heartbeats) cancelKeys(keys []beatKey) (ended int, err error) {
	var commands []engine.Command
	for i, k := range keys {
		commands = append(commands, s.farewell(k)...)
		if len(commands) < farewells && i+1 < len(keys) {
			continue
		}
		for len(commands) > 0 { // the last one disarms
			part := commands[:min(sweepBundle, len(commands))]
			commands = commands[len(part):]
			if _, err := s.sweepPart(part, nil); err != nil {
				return ended, err
			}
		}
		ended = i + 1
	}
	return ended, nil
}

// farewell are the Commands for one silent key: it is disarmed after its orders are canceled.
func (s *heartbeats) farewell(k beatKey) []engine.Command {
	return append(s.everyWallet(&engine.Command{
		Kind: engine.CancelAll, Owner: k.owner, Key: k.key, Only: engine.OnlyKey,
		Reason: engine.Timeout,
	}), disarm(k))
}

// disarm is the Command after which a key is watched no more.
func disarm(k beatKey) engine.Command {
	return engine.Command{Kind: engine.Arm, Owner: k.owner, Key: k.key}
}

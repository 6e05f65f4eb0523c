package ingress

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/ingress/form"
)

const (
	beatTimeout = 15 * time.Second       // clients promise a beat every 10 s; 5 s are for the network
	beatLook    = 500 * time.Millisecond // between two looks at who is silent
)

var refuseStranger = wire.Refuse(400, "no_account",
	"the address has no account: nothing was ever paid into it", "have the operator pay something in")

// beatKey is an API key that sends heartbeats.
type beatKey struct {
	owner engine.WalletNo
	key   uint32
}

// chain is the state of one such key.
type chain struct {
	id      string // that the next beat must carry; "" after a restart: any will do
	last    time.Time
	timeout time.Duration
	firing  bool      // its orders are being canceled
	told    time.Time // when the node that watches was told of it
}

// heartbeats watches the heartbeats of all keys. The journal knows which keys are watched, not
// their beats. An open socket for orders counts as a heartbeat all the time.
//
//	first beat ─► Arm, durable ─► id ─► beat with id ─► next id ─► … silence ─► CancelAll, disarm
//
// Each beat must carry the id that answered the beat before, so that two programs which share a key
// notice each other.
type heartbeats struct {
	*cancels
	mutex    sync.Mutex
	chains   map[beatKey]*chain
	open     map[beatKey]int // open sockets for orders, by key
	watching bool            // this node of a cluster watches all keys; of look alone
}

// beat judges a beat and returns the id to go on with, "" without a refusal if nobody watches this
// key yet. A program that was started anew sends an empty id.
func (h *heartbeats) beat(k beatKey, id string, now time.Time) (string, *wire.Refusal) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	c := h.chains[k]
	switch {
	case c == nil && id == "":
		return "", nil
	case c == nil:
		return "", refuseBeat("")
	case c.firing:
		return "", refuseBusy
	case id != "" && c.id != "" && id != c.id:
		return "", refuseBeat(c.id)
	}
	c.id, c.last = newID(), now
	return c.id, nil
}

func refuseBeat(expected string) *wire.Refusal {
	const words = "Invalid Heartbeat ID"
	return wire.Refuse(400, "bad_heartbeat", words, "").
		With(wire.Member{Name: "error_msg", Value: words}).
		With(wire.Member{Name: "heartbeat_id", Value: expected}).
		Because("go on with heartbeat_id, unless another program uses the key; an empty one " +
			"starts over")
}

// attach counts a new socket of a key. detach must follow.
func (h *heartbeats) attach(k beatKey) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.open[k]++
}

// detach counts a socket of a key that has ended. With the last one the key's silence begins.
func (h *heartbeats) detach(k beatKey, now time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.open[k]--; h.open[k] == 0 {
		delete(h.open, k)
	}
	if c := h.chains[k]; c != nil {
		c.last = now
	}
}

// adopt counts a new socket of a key, and arms the key with the grace that the socket asks for, or
// disarms it. The socket counts as a heartbeat at once, so the key is not silent while the Command
// is on its way. Unless adopt refuses, detach must follow.
func (h *heartbeats) adopt(k beatKey, wish arming) (refused *wire.Refusal) {
	h.mutex.Lock()
	c := h.chains[k]
	if c != nil && c.firing {
		h.mutex.Unlock()
		return refuseBusy
	}
	same := wish.on && c != nil && c.timeout == wish.grace || !wish.on && c == nil
	h.open[k]++
	h.mutex.Unlock()
	if same {
		return nil
	}
	arm := disarm(k)
	if wish.on {
		arm.Expiry = engine.Time(wish.grace.Milliseconds())
	}
	refused = h.refuseEntered(h.submit(&arm))
	switch {
	case refused != nil:
		h.detach(k, h.options.Now())
	case wish.on:
		h.start(k, wish.grace, h.options.Now())
	default:
		h.finish(k, true)
	}
	return refused
}

// grace returns how long an armed key may be silent, 0 if the key is not armed.
func (h *heartbeats) grace(k beatKey) time.Duration {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if c := h.chains[k]; c != nil {
		return c.timeout
	}
	return 0
}

// start begins a chain, or continues one that another beat has begun meanwhile.
func (h *heartbeats) start(k beatKey, timeout time.Duration, now time.Time) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	c := h.chains[k]
	if c == nil {
		c = &chain{id: newID()}
		h.chains[k] = c
	}
	c.last, c.timeout = now, timeout
	return c.id
}

// resume begins the chains of keys watched before a restart, each with a full timeout.
func (h *heartbeats) resume(each func(func(engine.WalletNo, uint32, engine.Time)), now time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	each(func(owner engine.WalletNo, key uint32, timeout engine.Time) {
		grace := time.Duration(timeout) * time.Millisecond
		h.chains[beatKey{owner, key}] = &chain{last: now, timeout: grace}
	})
}

// silent returns the keys that have been silent for too long. Each must be given to finish.
func (h *heartbeats) silent(now time.Time) (keys []beatKey) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for k, c := range h.chains {
		if !c.firing && h.open[k] == 0 && now.Sub(c.last) >= c.timeout {
			c.firing = true
			keys = append(keys, k)
		}
	}
	return keys
}

// finish ends the chain of a silent or revoked key. If not all orders of a silent key were
// canceled, the next look tries again.
func (h *heartbeats) finish(k beatKey, ended bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if ended {
		delete(h.chains, k)
	} else if c := h.chains[k]; c != nil { // a revoked key is gone
		c.firing = false
	}
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return string(engine.AppendUUID(nil, b))
}

// heartbeat is POST /v1/heartbeats and POST /heartbeats. It answers with the id for the next
// heartbeat; only the answer on the second path has a status.
func (s *heartbeats) heartbeat(ctx *fasthttp.RequestCtx, caller identity) *wire.Refusal {
	var given scan.Field
	at := map[string]scan.Slot{"heartbeat_id": {Into: &given, Kinds: scan.AString}}
	if body := ctx.Request.Body(); len(body) > 0 {
		if fault := form.Members(body, at); fault != nil {
			return refuseKeys(fault, refuseBody.Because(
				`the body must be like {"heartbeat_id":"the last one, or empty"}`))
		}
	}
	owner, known := s.options.Board.Directory.Wallet(caller.Address)
	if !known {
		return refuseStranger
	}
	id, refused := s.carry(beatKey{owner, caller.Nonce}, given.Text)
	if refused == nil {
		body := []byte(`{"heartbeat_id":`)
		if !strings.HasSuffix(string(ctx.Path()), "/v1/heartbeats") {
			body = []byte(`{"status":"ok","heartbeat_id":`)
		}
		wire.AnswerRaw(ctx, append(wire.AppendString(body, id), '}'))
	}
	return refused
}

// carry judges one heartbeat, arms the key at its first, and returns the id for the next.
func (s *heartbeats) carry(k beatKey, given string) (string, *wire.Refusal) {
	id, refused := s.beat(k, given, s.options.Now())
	if id != "" || refused != nil {
		return id, refused
	}
	refused = s.refuseEntered(s.submit(&engine.Command{Kind: engine.Arm, Owner: k.owner, Key: k.key,
		Expiry: engine.Time(beatTimeout.Milliseconds())}))
	if refused != nil {
		return "", refused
	}
	return s.start(k, beatTimeout, s.options.Now()), nil
}

func (s *heartbeats) watch(stop <-chan struct{}) {
	look := time.NewTicker(beatLook)
	defer look.Stop()
	for {
		select {
		case <-stop:
			return
		case <-look.C:
			s.look(s.options.Now())
		}
	}
}

// look cancels the orders of silent keys, or tells the node that does whom this one hears.
func (s *heartbeats) look(now time.Time) {
	before := s.watching
	if s.watching = s.options.Watches == nil || s.options.Watches(); s.watching {
		s.adjust(!before, now)
		s.silence()
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for k, c := range s.chains {
		if s.open[k] == 0 && now.Sub(c.last) > c.timeout {
			delete(s.chains, k) // the node that watches sees to it
		} else if (s.open[k] > 0 || c.last.After(c.told)) && s.options.Heard(k.owner, k.key) {
			c.told = now
		}
	}
}

// adjust makes the chains those of all armed keys, anew if this node has just begun to watch them.
func (s *heartbeats) adjust(anew bool, now time.Time) {
	if s.options.Watches == nil {
		return // there is no other node
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.chains
	s.chains = make(map[beatKey]*chain)
	s.options.Board.Directory.Armed(func(o engine.WalletNo, key uint32, timeout engine.Time) {
		k := beatKey{o, key}
		c := before[k]
		if c == nil || anew {
			c = &chain{last: now}
		}
		c.timeout = time.Duration(timeout) * time.Millisecond
		s.chains[k] = c
	})
}

// Heard tells that another node has heard from a key.
func (s *Server) Heard(owner engine.WalletNo, key uint32) {
	s.beats.attach(beatKey{owner, key})
	s.beats.detach(beatKey{owner, key}, s.options.Now())
}

// silence cancels the orders of silent keys. The next look repeats what could not enter.
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

// farewells bounds the Commands for silent keys that enter as one bundle, unless one key needs
// more: one for each wallet of its owner.
const farewells = 256

// cancelKeys cancels all orders that came with the keys, in every wallet of their owners, and
// disarms the keys. It returns how many keys it has finished, from the first on, and why not all.
func (s *heartbeats) cancelKeys(keys []beatKey) (ended int, err error) {
	var commands []engine.Command
	for i, k := range keys {
		commands = append(commands, s.everyWallet(&engine.Command{
			Kind: engine.CancelAll, Owner: k.owner, Key: k.key, Only: engine.OnlyKey,
			Reason: engine.Timeout,
		})...)
		commands = append(commands, disarm(k))
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

func disarm(k beatKey) engine.Command {
	return engine.Command{Kind: engine.Arm, Owner: k.owner, Key: k.key}
}

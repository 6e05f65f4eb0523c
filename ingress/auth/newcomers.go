package auth

import (
	"encoding/binary"
	"sync"

	"clobd/engine"
	"clobd/ingress/auth/curve"
)

// newcomerSlots is how many signers that are not hot yet are remembered: traces of 1,024 signers
// are 4.8 MiB, and no stranger makes more of them.
const newcomerSlots = 1 << 10

// newcomer is a signer of whom one order was recovered. Nobody waits for the lock.
type newcomer struct {
	sync.RWMutex
	address engine.Address
	key     [65]byte
	trace   *curve.Trace // nil in a slot that nobody has used
}

// newcomer returns the slot of a signer.
func (h *hotSigners) newcomer(a *engine.Address) *newcomer {
	return &h.newcomers[binary.LittleEndian.Uint64(a[4:])%newcomerSlots]
}

// guess says that a signer made the signature in a hasher. It is checked in the cheapest way there
// is. A wrong guess refuses nothing: then the library recovers the key.
type guess struct {
	hot    *hotSigners
	signer *engine.Address
	who    *hotSigner // if the signer is hot
	met    *newcomer  // else, if there is a trace of it; locked until settle
}

// guess begins a check of the signature in scratch. It is false if nobody made the signature.
// Otherwise the caller calls signed, for one or several digests, and then settle.
func (h *hotSigners) guess(signer *engine.Address, scratch *hasher) (g guess, ok bool) {
	g = guess{hot: h, signer: signer, who: h.find(signer)}
	if g.who != nil {
		return g, true
	}
	met := h.newcomer(signer)
	if met.TryRLock() {
		if met.trace != nil && met.address == *signer {
			g.met = met
			return g, true
		}
		met.RUnlock()
	}
	if scratch.trace == nil {
		scratch.trace = new(curve.Trace)
	}
	return g, h.checker.Read(scratch.trace, &scratch.rs)
}

// signed reports whether the signer signed the digest in scratch. A recovery of ours may only
// confirm who the order says it is from: a mistake of its arithmetic cannot make that address.
func (g *guess) signed(scratch *hasher) bool {
	checker := g.hot.checker
	switch {
	case g.who != nil:
		return checker.Signed(g.who.key, &scratch.digest, &scratch.rs)
	case g.met != nil:
		return checker.Follows(g.met.trace, &scratch.digest, &scratch.rs)
	}
	return checker.Key(scratch.trace, &scratch.digest, &scratch.room) &&
		scratch.account(scratch.room[:]) == *g.signer
}

// settle ends a check: it notes who signed, if the signer did.
func (g *guess) settle(signed bool, scratch *hasher) {
	if g.met != nil {
		scratch.room = g.met.key
		g.met.RUnlock()
	}
	switch {
	case !signed:
		return
	case g.who != nil:
		g.who.use()
		return
	case g.met == nil:
		g.remember(scratch)
	}
	g.hot.counted(*g.signer, scratch.room[:])
}

// remember puts the trace of scratch into the signer's slot, and gives scratch the one there.
func (g *guess) remember(scratch *hasher) {
	slot := g.hot.newcomer(g.signer)
	if slot.TryLock() {
		slot.address, slot.key = *g.signer, scratch.room
		slot.trace, scratch.trace = scratch.trace, slot.trace
		slot.Unlock()
	}
}

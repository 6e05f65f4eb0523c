package limits

import (
	"hash/maphash"
	"net/netip"
	"time"

	"clobd/engine"
	"clobd/ingress/conn"
)

// Claim is a request that says which key it comes with, before anybody has checked it.
//
// A stranger may know the key's public parts, and may share the owner's address. So failures count
// for the address and the key together, and an address with a key that has succeeded from there is
// held to its own failures only. What strangers do at the same address locks no owner out who has
// been there before, and what they do elsewhere locks nobody out.
type Claim struct {
	from   [20]byte
	pair   [20]byte
	cancel bool
	proven bool // the key has succeeded from the address

	account engine.Address // of an order
}

// Claim asks whether a claim of key may be checked, or how long that has to wait. Cancels have a
// budget beside that of all others.
func (w *Windows) Claim(from netip.Addr, key string, cancel bool) (Claim, time.Duration) {
	c := Claim{from: conn.AddressKey(from), cancel: cancel}
	c.pair = w.pair(c.from, "key", key)
	wait, proven := w.look(w.ofPair(&w.pairs, &c))
	if proven {
		c.proven = true
		return c, wait
	}
	here, _ := w.look(w.ofAddress(c.from, c.row()))
	alone, _ := w.look(w.ofPair(&w.strangers, &c))
	return c, max(here, alone)
}

// Proved remembers that a claim, or an order's signature, was true.
func (w *Windows) Proved(c *Claim) {
	if c.proven {
		return
	}
	q := w.ofPair(&w.pairs, c)
	s := q.shard(w.seed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.caller(q.key)
	s.evict()
}

// Failed counts a claim that was false.
func (w *Windows) Failed(c *Claim) {
	if c.proven {
		w.note(w.ofPair(&w.pairs, c))
		return
	}
	w.note(w.ofPair(&w.strangers, c))
	w.note(w.ofAddress(c.from, c.row()))
}

// Order asks whether the signature of an order may be checked, or how long that has to wait. The
// failures of an account count for it wherever it is. They count at its address, too, where many
// accounts may fail together; those that have placed orders from there before are not asked that.
func (w *Windows) Order(from netip.Addr, a engine.Address) (Claim, time.Duration) {
	c := Claim{from: conn.AddressKey(from), account: a}
	c.pair = w.pair(c.from, "order", string(a[:]))
	wait, _ := w.look(w.ofAccount(a))
	if _, c.proven = w.look(w.ofPair(&w.pairs, &c)); c.proven {
		return c, wait
	}
	here, _ := w.look(w.ofAddress(c.from, failedOrders))
	return c, max(wait, here)
}

// FailedOrder counts an order whose signature was wrong.
func (w *Windows) FailedOrder(c *Claim) {
	w.note(w.ofAccount(c.account))
	if !c.proven {
		w.note(w.ofAddress(c.from, failedOrders))
	}
}

// TurnedAway counts a request that a full window of the address has refused. It reports whether
// there were so many of them that the next refusal should come slowly: to refuse takes some
// microseconds, and whoever asks again at once would take them all the time.
func (w *Windows) TurnedAway(from netip.Addr) (often bool) {
	q := w.ofAddress(conn.AddressKey(from), turnedAway)
	wait, _ := w.look(q)
	if wait == 0 {
		w.note(q)
	}
	return wait > 0
}

// Handshake counts a TLS handshake of an address, and reports whether it may begin.
func (w *Windows) Handshake(from netip.Addr) bool {
	q := w.ofAddress(conn.AddressKey(from), handshakes)
	wait, _ := w.look(q)
	if wait == 0 {
		w.note(q)
	}
	return wait == 0
}

func (c *Claim) row() uint8 {
	if c.cancel {
		return failedCancels
	}
	return failedClaims
}

// pair returns what an address and a key count as. The seed is secret, so nobody finds two that
// count as one.
func (w *Windows) pair(from [20]byte, kind, key string) (pair [20]byte) {
	var h maphash.Hash
	h.SetSeed(w.seed)
	_, _ = h.Write(from[:])
	_, _ = h.WriteString(kind)
	_, _ = h.WriteString(key)
	for i := range 2 {
		sum := h.Sum64()
		for j := range 8 {
			pair[8*i+j] = byte(sum >> (8 * j))
		}
		_ = h.WriteByte('+')
	}
	return pair
}

func (w *Windows) ofPair(in *throng, c *Claim) question {
	return question{in, c.pair, w.policy.Load().pair[:], onlyRows[0], 1, w.time()}
}

func (w *Windows) ofAddress(from [20]byte, row uint8) question {
	return question{&w.addresses, from, w.policy.Load().address, onlyRows[row], 1, w.time()}
}

func (w *Windows) ofAccount(a engine.Address) question {
	return question{&w.accounts, a, w.policy.Load().tier(a).account[:], onlyRows[badSignatures],
		1, w.time()}
}

// onlyRows are scopes of one row each.
var onlyRows = [...][]uint8{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}

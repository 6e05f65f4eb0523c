package limits

import (
	"encoding/binary"
	"time"

	"clobd/engine"
)

// Counts reports whether a Command that another node's door has let in counts in the windows of its
// Owner. What nobody asked for does not count: sweeps of silent keys, their arming, gifts, links.
// Who gives up a key is never held up.
func Counts(c *engine.Command) bool { return scopeOf(c) != nil }

func scopeOf(c *engine.Command) *Scope {
	switch c.Kind {
	case engine.Place:
		return OrderScope
	case engine.Cancel:
		return CancelScope
	case engine.CancelAll:
		if c.Reason == engine.ByOwner {
			return SweepScope
		}
	case engine.SplitTokens, engine.MergeTokens, engine.RedeemTokens:
		return TransferScope
	case engine.SetKey:
		if !c.Revoke {
			return KeyScope
		}
	}
	return nil
}

// Forwarded counts the Commands of one request of an account that the door of another node has let
// in, as Account and Cancel count the account's requests here. It counts what the Commands show, so
// there is nothing to believe. gateway is the id of a node that may lie, 0 for one that does not:
// cancels of a gateway count apart from all others. So a gateway that makes up cancels of an
// account holds up nobody's cancels but its own.
func (w *Windows) Forwarded(a engine.Address, all []engine.Command, gateway uint64) Verdict {
	var n [len(forwarded)]uint32
	for i := range all {
		c := &all[i]
		scope := scopeOf(c)
		for j := range forwarded {
			if scope == forwarded[j] {
				n[j]++
			}
		}
		if _, is := c.Replaced(); is {
			n[0]++ // it counts as a cancel, too
		}
	}
	n[2] = min(n[2], 1) // a sweep of many wallets
	key := a
	if gateway != 0 {
		key = w.pair(a, "cancels", string(binary.LittleEndian.AppendUint64(nil, gateway)))
	}
	v, t := Verdict{}, w.time()
	for j, scope := range forwarded {
		switch {
		case n[j] == 0 || v.Wait > 0:
		case scope == SweepScope:
			if v = w.keyed(a, key, Demand{CancelScope, n[j]}, t); v.Wait > 0 {
				if last := w.keyed(a, key, Demand{scope, n[j]}, t); last.Wait < v.Wait {
					v = last
				}
			}
		case scope.Cancels:
			v = w.keyed(a, key, Demand{scope, n[j]}, t)
		default:
			v = w.account(a, Demand{scope, n[j]}, t)
			if v.Wait > 0 && scope == OrderScope && n[0] > 0 { // of replacements
				cancels := w.asked(a, key, Demand{CancelScope, n[0]}, t)
				w.refund(&cancels)
			}
		}
	}
	return v
}

// forwarded are the scopes in the order in which Forwarded asks for room.
var forwarded = [...]*Scope{CancelScope, OrderScope, SweepScope, TransferScope, KeyScope}

// Full is the Verdict of a request whose account has used up a window, by its number, elsewhere.
func Full(window uint8, wait time.Duration) Verdict {
	v := Verdict{Wait: wait, More: wait, Name: "unknown"}
	if int(window) < len(accountTable) {
		v.Name = accountTable[window].name
	}
	return v
}

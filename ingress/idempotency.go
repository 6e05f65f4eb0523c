package ingress

import (
	"crypto/sha256"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/auth"
)

const (
	idempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255
)

var (
	refuseIdempotencyKey = wire.Refuse(400, "bad_payload", "invalid Idempotency-Key",
		"it is 1 to 255 visible ASCII characters, given once")
	refuseOtherRequest = wire.Refuse(422, "idempotency_key",
		"the Idempotency-Key was used for another request",
		"nothing was done: give each new request a key of its own")
)

// transferID is the id of a transfer. With an Idempotency-Key, the account and the key make it, so
// that a retry may have a new timestamp, and two requests of the same bytes may both be meant.
// Without one, the digest of the request does.
func transferID(ctx *fasthttp.RequestCtx, caller *identity) (
	id engine.OrderID, keyed bool, refused *wire.Refusal,
) {
	keys := ctx.Request.Header.PeekAll(idempotencyHeader)
	if len(keys) == 0 {
		digest, ok := auth.Digest(caller.signature)
		if !ok {
			panic("BUG: authenticated by no digest: " + caller.signature)
		}
		return digest, false, nil
	}
	key := keys[0]
	if len(keys) > 1 || len(key) == 0 || len(key) > maxIdempotencyKey {
		return id, true, refuseIdempotencyKey
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return id, true, refuseIdempotencyKey
		}
	}
	return sha256.Sum256(append(append([]byte(idempotencyHeader+"\n"), caller.Address[:]...), key...)),
		true, nil
}

// once enters a request with an Idempotency-Key. If the request was carried out before, however
// long ago, the Receipt is RejectDuplicate with First and Args[0] of then.
//
// The index knows all requests but the latest, the engine knows the latest. Seen tells the engine
// where the search of the index ended; the engine sends the Command back if requests lie between.
func (s *tokens) once(c *engine.Command) (r engine.Receipt, refused *wire.Refusal) {
	for range 1 + rechecks {
		at, known, seen, err := s.options.Request(c.ID)
		if err != nil {
			return r, s.refuseIndex(err)
		}
		if known {
			r = engine.Receipt{Reject: engine.RejectDuplicate, First: at}
			return r, s.matches(c, &r)
		}
		if c.Seen = seen; seen == 0 { // for the engine that is a request without a key
			s.options.Await(1, recheckWait)
			continue
		}
		if r, err = s.submit(c); err != nil {
			return r, s.refuseSubmit(err, nil)
		}
		switch r.Reject {
		case engine.RejectRecheck:
			s.options.Await(r.First, recheckWait)
		case engine.RejectDuplicate:
			return r, s.matches(c, &r)
		default:
			return r, nil
		}
	}
	return r, refuseRecheck
}

// matches refuses c unless c asks for what the request that has its id did at r.First, and sets
// Args[0] of r to the amount that the request moved.
func (s *tokens) matches(c *engine.Command, r *engine.Receipt) *wire.Refusal {
	if !s.options.Await(r.First, recheckWait) {
		return refuseRecheck
	}
	e, known, err := s.options.Moved(c.Wallet, r.First)
	switch {
	case err != nil:
		return s.refuseIndex(err)
	case !known || e.Kind != movedBy(c.Kind) || e.Market != c.Market,
		c.Kind != engine.RedeemTokens && e.Size != c.Size:
		return refuseOtherRequest
	}
	r.Args[0] = int64(e.Size)
	return nil
}

// movedBy is the Event that answers a Command which moves tokens.
func movedBy(k engine.Kind) engine.EventKind {
	switch k {
	case engine.SplitTokens:
		return engine.Split
	case engine.MergeTokens:
		return engine.Merged
	default:
		return engine.Redeemed
	}
}

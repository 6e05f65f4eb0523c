package form

import (
	"math"
	"testing"
	"time"

	"clobd/engine"
	"clobd/ingress/auth"
)

// TestTerms: the edges of what a request's numbers mean.
func TestTerms(t *testing.T) {
	now := time.UnixMilli(1_760_000_000_000)
	for v, want := range map[uint64]engine.Time{0: 0, 1: 1000, 999_999_999_999: 999_999_999_999_000,
		1_000_000_000_000: 1_000_000_000_000, 1_760_000_000_000: 1_760_000_000_000} {
		if got := (&Request{Expiration: v}).Expiry(); got != want {
			t.Errorf("expiration %d is %d, want %d", v, got, want)
		}
	}
	last := uint64(now.Add(maxLifetime).UnixMilli())
	for v, want := range map[uint64]bool{0: false, 1_760_000_001: false, last: false, last + 1: true} {
		if got := (&Request{Expiration: v}).Far(now); got != want {
			t.Errorf("expiration %d is far: %v", v, got)
		}
	}
	for _, c := range []struct {
		signed auth.Word
		age    uint64
		want   engine.Time
	}{
		{auth.WordOf(0), 0, 1}, {auth.WordOf(1000), 5, 1005},
		{auth.WordOf(LastInstant), LastInstant, LastInstant}, {auth.Word{0: 1}, 0, LastInstant},
	} {
		if got := (&Request{Signed: auth.Order{Timestamp: c.signed}}).Deadline(c.age); got != c.want {
			t.Errorf("signed at %x, %d ms: %d, want %d", c.signed, c.age, got, c.want)
		}
	}
	for v, want := range map[uint64]bool{0: false, 1: true, engine.MaxAmount: true,
		engine.MaxAmount + 1: false} {
		a := Request{Signed: auth.Order{MakerAmount: v, TakerAmount: 1}}
		b := Request{Signed: auth.Order{MakerAmount: 1, TakerAmount: v}}
		if a.AmountsFit() != want || b.AmountsFit() != want {
			t.Errorf("%d fits: %v", v, !want)
		}
	}
	for rate, want := range map[auth.Word]uint16{auth.WordOf(0): 1, auth.WordOf(100): 101,
		auth.WordOf(math.MaxUint16 - 1): math.MaxUint16, auth.WordOf(1 << 40): math.MaxUint16,
		{0: 1}: math.MaxUint16} {
		if got := (&Request{Signed: auth.Order{FeeRate: rate}}).FeeBound(); got != want {
			t.Errorf("rate %x: %d, want %d", rate, got, want)
		}
	}
}

package form

import (
	"math"
	"time"

	"clobd/engine"
)

// maxLifetime is how far an expiration may lie ahead. Whoever names a later one has the wrong unit.
const maxLifetime = 10 * 366 * 24 * time.Hour

// LastInstant bounds the instants that a request may name, in unix milliseconds.
const LastInstant = 1 << 62

// Expiry returns the expiration in unix milliseconds, 0 for none. The request has unix seconds, or
// milliseconds from 10^12 on.
func (r *Request) Expiry() engine.Time {
	v := r.Expiration
	if v < 1e12 {
		v *= 1000
	}
	return engine.Time(v)
}

// Far reports whether the expiration is more than ten years after now.
func (r *Request) Far(now time.Time) bool {
	return r.Expiration != 0 && int64(r.Expiry()) > now.Add(maxLifetime).UnixMilli()
}

// Deadline returns the last instant at which the order is wanted: age milliseconds, at most
// LastInstant, after it was signed. It is at least 1.
func (r *Request) Deadline(age uint64) engine.Time {
	signed, ok := r.Signed.Timestamp.Uint64()
	if !ok || signed > LastInstant {
		signed = LastInstant // the order will never be too old
	}
	return engine.Time(max(min(signed+age, LastInstant), 1))
}

// AmountsFit reports whether an engine can hold both amounts.
func (r *Request) AmountsFit() bool {
	fits := func(v uint64) bool { return v >= 1 && v <= engine.MaxAmount }
	return fits(r.Signed.MakerAmount) && fits(r.Signed.TakerAmount)
}

// FeeBound returns 1 + the fee rate that was signed as the highest, in basis points.
func (r *Request) FeeBound() uint16 {
	const most = math.MaxUint16 - 1
	v, ok := r.Signed.FeeRate.Uint64()
	if !ok {
		v = most
	}
	return uint16(1 + min(v, most))
}

// Package curve is the arithmetic of secp256k1: it makes signatures, recovers the key behind one,
// and checks signatures of keys that it was given beforehand. Numbers go in, a verdict comes out;
// the package knows nothing of addresses, hashes or orders.
//
//	private key, digest ─────► Sign ─────► r, s, v
//	private key ─────────────► Public ─┐
//	digest and r, s, v ──────► Recover ┴─► public key ─► NewKey: 2,368 multiples of it
//	                                                        │
//	digest and r, s, v ────────────► Checker.Signed, Checker.CheckAll: would Recover find it?
//
//	r, s, v and digest ──────► Checker.Read, Key ─► public key and a Trace: 64 multiples of R
//	                                                        │
//	digest and r, s, v ────────────────────────► Checker.Follows: would Recover find that key?
//
// Recover and Sign are libsecp256k1 where cgo is on, and pure Go, about four times as slow, where
// it is not. A check adds up to 63 prepared points and never doubles one. It has two bodies:
//
//	           one signature                        a list, each sharing both inversions
//	Go         point by point         1             a tree of pairs, one inversion a level  0.64
//	lanes      eight points at once   0.35          eight signatures at once                0.17
//
// The lanes are those of AVX-512, by package lanes, where the processor has them; the numbers are
// times. A check in Go takes a third of the time of a recovery, one by a Trace half of it. What
// lanes or pairs cannot add up, two points with the same x, goes to the body of one signature in
// Go.
//
//	element   modulo p, the prime of the field       scalar   modulo n, the order of the curve
//	point     x, y                                   sum      x/zz, y/zzz: no division until the end
//	comb      d·2^(w·i)·P for every digit d of w bits, so that k·P is one addition a digit
//	inverter  1/x by division steps, 62 at a time
//
// Contract: a digest has 32 bytes; a signature has 65: r and s big endian, then v, 0 or 1. Callers
// check r, s and private keys with InRange. Package auth also refuses an s that IsHigh. Any number
// of goroutines may call everything. Checking and recovering take variable time: their input is
// public.
//
// Read key.go (the idea), list.go, trace.go, split.go, comb.go, point.go, field.go, scalar.go,
// invert.go, then recover_cgo.go, recover_nocgo.go and recover_pure.go. DESIGN.md of package auth
// has widths, figures and what was refused.
package curve

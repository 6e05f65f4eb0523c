// Package lanes does eight things at once: it adds up points of secp256k1 and hashes messages in
// eight lanes of a processor's AVX-512 registers. It is C behind cgo, because Go has no such
// instructions. Callers have a body in Go for everything that is here, and ask Have first.
//
//	                 lane  0     1     2     3     4     5     6     7
//	Add      one sum       every eighth term ──► eight sums ──► joined to one
//	AddAll   eight sums    sum 0 sum 1 sum 2 sum 3 sum 4 sum 5 sum 6 sum 7
//	Keccak   eight hashes  one message in each lane
//
// A sum is k·G + l·Q. G and Q have combs: tables of their multiples, laid out as package curve
// makes them. Each digit of k and l is one term.
//
// # Contract
//
// Add and AddAll are exact or say that they do not know: where a point meets itself or its opposite
// on the way, where a lane has too few terms, or where the sum is infinity, ZZ is 0 modulo the
// prime. Then the caller adds up with its own body. Nobody gets a verdict from here.
//
// No function keeps what it is given, allocates, or calls Go back; any number of goroutines may
// call any. Nothing here takes constant time: do not give it secrets.
//
// # Limits
//
// Each number has bounds, which lanes.c states and proves. The build tag lanescheck compiles a
// check of each bound at each step, and lanesplain the lanes in plain C, for tests on processors
// that have none.
//
// Reading order: lanes_cgo.go, lanes.h, lanes.c (the field, then load, add and join, then the two
// sums), keccak.c. lanes_none.go is for all other builds.
package lanes

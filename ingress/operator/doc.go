// Package operator is what operators may do: pay in and out, link, collect, and control markets and
// wallets.
//
//	admin listener ──► token, no Origin ──► members ──► Command ──► Enter ──► answer
//	                        └─ 401, 403, 429
//
// # Contract
//
// Every request carries the bearer token, also one from this machine. Wrong tokens count by
// address; the right one is always taken. Each request is one Command. A request with a ref is
// carried out once, ever: sent again, it is answered as repeated.
//
// # Reading order
//
// operator.go (the token, money), control.go (markets, modes).
package operator

// Package operator serves the requests of operators: pay in and out, link, collect fees, and
// control markets and wallets.
//
//	admin listener ──► token, no Origin ──► members ──► Command ──► Enter ──► answer
//	                        └─ 401, 403, 429
//
// # Contract
//
// Every request carries the bearer token, even one from this machine. Wrong tokens are counted by
// address; the right token is always accepted. Each request is one Command. A request with a ref is
// carried out only once, ever: if it is sent again, the answer says that it is repeated.
//
// # Reading order
//
// operator.go (the token, money), control.go (markets, modes).
package operator

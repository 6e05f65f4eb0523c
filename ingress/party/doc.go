// Package party lets orders share a seat, and a list use several. The signatures of orders that are
// checked together cost less than one check after another.
//
//	A's turn ─► reads its order ─► Bring ─► B's turn ─► … ─► the last one checks them all
//	  └► refused, not all there, or hung up: Miss                          │
//	              each enters its own order, and ends with Leave ◄─────────┘
//
// # Contract
//
// A member is a goroutine with a channel of its own, which has room for one value: the member waits
// there for its turn, with nil, and for the check of its order. One member at a time works until
// all are checked, so a party takes no more of the machine than one order does. Whoever has its
// turn must soon Bring or Miss, and may not wait for anything else before that: the others wait.
//
// # Reading order
//
// party.go, crew.go.
package party

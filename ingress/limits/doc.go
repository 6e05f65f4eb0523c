// Package limits decides how often a caller may ask, and how often it may fail. It counts; it does
// not know what a request means or how a refusal looks.
//
//	method, path ──► AddressScope ──┐
//	address ────────────────────────┴─► Windows.Address ─┐
//	account, orders or keys ──────────► Windows.Account ─┼─► counters ──► Verdict: let in, or how
//	address and account, cancels ─────► Windows.Cancel ──┤      ▲         long to wait, what is left
//	Commands that another door let in ► Windows.Forwarded ┘     │
//	                                                            │
//	address and key ──► Claim ──► is it true? ──► Proved, or Failed
//	account ──────────► Order ──► is it signed? ─► Proved, or FailedOrder
//	anybody ──────────► Crowd: how many are they?
//
// # Contract
//
// No period of a window ever holds more requests than the window's limit. A request that one of its
// windows refuses counts in none of them. After the wait that it is told there is room for it, if
// its caller has sent nothing else.
//
// The general window counts all requests of an address but the cancels of proven callers. Those
// have windows of their own, and when these are used up, cancels of everything have another.
//
// Claims that failed use up a budget, and are not checked again before it has refilled. It belongs
// to a key and an address together. Keys that never succeeded at an address also share the
// address's. So a stranger locks nobody out who is somewhere else, or who was there before.
//
// Memory is bounded for any number of callers: each table keeps a fixed number of them, and forgets
// the one that was silent longest. A forgotten caller begins with empty windows.
//
// # Reading order
//
// window.go (one window), table.go (which there are), policy.go (their limits), callers.go (who is
// counted in them), forwarded.go (requests to other nodes), claims.go (failures), rests.go
// (pauses), crowd.go, file.go (limits that an operator sets).
package limits

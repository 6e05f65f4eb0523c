// Package limits decides how often a caller may ask. It counts; it does not know what a request
// means or how a refusal looks.
//
//	method, path ──► AddressScope ──► rows of addressTable ──┐
//	                                                         ▼
//	address ─────────────────────────► Windows.Address ──► counters ──► 0, or how long to wait
//	account, rows of accountWindows ─► Windows.Account ──► counters ──► 0, or how long to wait
//
// # Contract
//
// No period of a window ever holds more requests than the window's limit. A request that one of its
// windows refuses counts in none of them. After the wait that it is told there is room for it, if
// its caller has sent nothing else.
//
// Memory is bounded for any number of callers: each table keeps a fixed number of them, and forgets
// the one that was silent longest. A forgotten caller begins with empty windows.
//
// # Reading order
//
// window.go (one window), table.go (which there are), callers.go (who is counted in them).
package limits

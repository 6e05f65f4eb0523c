// Package answer words what became of an order: its result, or why it was refused and what would be
// taken instead.
//
//	Receipt ──► Result ──► Append, AppendRefused: the six keys of all clients, and more by dialect
//	   └─ Reject ──► Refuse ──► Asked.Refuse: advice from the books and rules as they are now
//
// # Contract
//
// Clients compare texts, so the words of a refusal never change; advice stands in "detail". What a
// result says beside its members is in headers: replay, fees, orders that made way.
//
// # Reading order
//
// answer.go, advice.go.
package answer

// Package answer writes what became of an order: its result, or why it was refused and what would
// be accepted instead.
//
//	Receipt ──► Result ──► Append, AppendRefused: the six keys of all clients, and more by dialect
//	   └─ Reject ──► Refuse ──► Asked.Refuse: advice from the books and rules as they are now
//
// # Contract
//
// Clients compare texts, so the text of a refusal never changes; advice is in the member "detail".
// Headers carry what the members of a result do not: replay, fees, and orders that were canceled in
// favor of the new one.
//
// # Reading order
//
// answer.go, advice.go; stages.go (the clock of a request), slowest.go.
package answer

// Package history answers questions about the past from an index that it folds from the journal.
//
//	journal.Tail ──► Index.Run: fold, one batch ──► index/   derived, deletable
//	                        │                       m place: journal, frame, hash
//	                        │ publish               o OrderID → row
//	                        ▼                       t OrderID, chunk → trades
//	    History: Order, Orders, Trades, MarketTrades, Past, Await, Position, Holders, Prices …
//
// The contract:
//
//   - An answer that begins after a call of History.Sequence knows all Commands up to its result.
//   - An index that does not fit the journal, or cannot be read, is made anew at the next start.
//     Deleting its folder is always a repair.
//   - History.Failed returns why the index does not move. A disk that takes no writes neither ends
//     the process nor delays a stop.
//
// Goroutines: Index.Run is one. Any goroutine may use History and Collectors.
//
// Read fold.go with row.go, varints.go and keys.go, then index.go with durable.go, filter.go,
// history.go and progress.go. pages.go lists orders and trades; it stands on resting.go, deals.go,
// lists.go and recent.go. ledger.go has what wallets own, with positions.go, moves.go, holders.go,
// leaders.go and supply.go; scan.go merges trades with moves. prices.go has the prices of markets,
// with liveprices.go and volumes.go. verify.go compares an index with the journal, and makes it
// anew. DESIGN.md has the layout, the recovery cases and the decisions.
package history

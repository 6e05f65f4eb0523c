// Package history answers questions about the past from an index that is folded from the journal.
// The index is derived: whenever it does not fit the journal it is thrown away and made again.
//
//	journal.Tail ──► Index.Run: fold, one batch ──► index/   derived, deletable
//	                        │                       m place: journal, frame, hash
//	                        │ publish               o OrderID → row
//	                        ▼                       t OrderID, chunk → trades
//	    History: Order, Orders, Trades, Tape, Past, Await, Positions, Holders, Prices …
//
// The contract:
//
//   - History.Sequence is a promise: what is asked after it was read knows all Commands up to it.
//   - The index is thrown away and made again, at the next start, whenever it does not fit the
//     journal or cannot be read. History.Failed says why it does not move. Deleting its folder is
//     always a repair. A disk that does not take it neither ends the process nor holds up a stop.
//
// Goroutines: Index.Run is one; History and Collectors are everybody's.
//
// Read fold.go with row.go, index.go, durable.go, filter.go and history.go; pages.go has the lists
// of orders and trades, which stand on resting.go, deals.go, lists.go and recent.go; ledger.go with
// positions.go, holders.go, leaders.go and supply.go has what wallets have, prices.go with
// ladder.go and volumes.go what markets cost and how much of them is traded; verify.go compares an
// index with the journal, and makes it anew.
package history

// Package cases replays what others wrote through the real engine: matching scenarios out of other
// engines' test suites, settlements of an exchange contract, and order flows recorded at a market.
// It knows the engine only from outside: it hands Commands to Apply, folds the Events that come
// back into a ladder of its own, and asks for balances by withdrawals that are too large.
//
//	file ─► form.go, flow.go  strict JSON ─┬─► book.go        place, cancel, replace, look
//	                                       ├─► settlement.go  makers, a taker, balances
//	                                       └─► flow.go        a day of orders
//	                                                │ Commands, by scale.go in engine units
//	                                                ▼
//	        ladder.go ◄──── Events ──── venue.go: Exchange.Apply
//	            │
//	            ▼
//	     expected = got?  ──► Tally: N agree, M disagree, K skipped
//
// How a case is put to the engine:
//
//   - An order has a wallet of its own unless the file names an account, and the wallet is given
//     what the order needs, unless the file states balances: then it has what the file deposits.
//   - A source unit of size is size_mul lots; the tick is the finest, the minimum one lot, the fee
//     zero. A linear price map is kept; one that only keeps the order is used both ways, so that
//     prices and costs are compared in the source's own units.
//   - A FOK or FAK that buys is bounded by shares in other engines and by its budget in this one.
//     It is placed as its complement: BUY A at p is SELL B at 1-p in the same ladder, and a SELL
//     is bounded by shares.
//   - Each book scenario is run three times: as it is, with every resting order placed as its
//     complement, and with every other one. All three must agree.
//   - A market order takes any price: its limit is 0.9999 or 0.0001.
//   - An amend that changes the price, or of an order with nobody behind it in its queue, is a
//     cancel and a new order: nobody can tell the difference.
//   - An order whose total is bounded, and so its average price, is placed at the price of the
//     last share that it needs, where the book makes that the same.
//   - An order larger than one may be is placed in parts, one behind the other.
//   - The taker of a settlement is a FAK. Its fee becomes the market's schedule, where one gives
//     that very fee. Makers are post-only: they owe no fee.
//
// What none of this can express is skipped with its reason, after all before it has been checked.
//
// Contract: a file that cannot be read in full, or that states what would not be checked, is an
// error; nothing is passed over in silence. The same file gives the same lines, but for the time.
//
// Words: a case is one scenario, or one operation of a flow; a venue is an Exchange with one
// market; an offer is an order in the engine's units; source units are those of the file.
//
// Read cases.go first, then form.go, book.go, venue.go.
package cases

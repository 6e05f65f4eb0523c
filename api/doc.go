// Package api answers every request that only reads.
//
//	GET /book /midpoint /price /tick-size …          GET /data/order/{id}
//	                │                                 (owner, dialect: the door has
//	                ▼ Handler.Public                   checked the key)
//	         router: path, method                              │
//	                │                                          ▼ Handler.Account
//	                ▼                                  wait for the owner's last write
//	 view.Board ── one atomic load, no lock                    │
//	                │                                          ▼
//	                ▼                            journal.History ── the row
//	 Snapshot.Text: JSON built at most once      view.Directory  ── market, maker
//	 per version, shared by all who ask          catalog.Catalog ── the outcome's label
//	                │                                          │
//	                └──────────────► bytes ◄───────────────────┘
//
// The contract:
//
//   - Nothing here changes anything, and nothing here can reach the writer.
//   - What is answered is durable: Board and History hold only what was synced.
//   - Market data is read from the Board without a lock and, in steady state, without an
//     allocation.
//   - An account sees its own acknowledged writes: a read waits for the index up to 250 ms, then
//     says 503 index_lagging rather than something old.
//   - Prices and sizes are exact decimals, as text, without exponent or trailing zeros.
//   - Errors are worded as the clients of the route expect them, in one of three families; the
//     text is the known one to the byte, "code" is a stable word, "detail" helps people.
//   - Every route answers HEAD like GET. Pages of any origin may read market data.
//
// A book's timestamp is the Time of the frame that changed it last, which for a book that was never
// touched is the Time at which its market was listed. Its hash is the SHA-1 of the same JSON with
// an empty hash: public clients compute it again from what they received, so the ten keys have one
// order.
//
// Wire names occur only here, in the files that encode; two of them come in two styles, by the
// dialect of the caller's headers (orders.go).
//
// Reading order: api.go (the routes), book.go, price.go, orders.go, errors.go, encode.go.
package api

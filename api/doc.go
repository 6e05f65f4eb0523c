// Package api answers every request that only reads.
//
//	GET /book /price /tick-size …                    GET /data/orders /data/trades …
//	POST /books /prices …                             (owner, dialect: the door has
//	                │                                  checked the key)
//	                ▼ Handler.Public                           │
//	         router: path, method                              ▼ Handler.Account
//	                │                                  wait for the owner's last write, and
//	                ▼                                  that of each wallet linked to it
//	 view.Board ── one atomic load, no lock                    │
//	                │                                          ▼
//	                ▼                            history.History ── rows, pages
//	 Snapshot.Text: JSON built at most once      view.Directory  ── market, maker
//	 per version, shared by all who ask          catalog.Catalog ── the outcome's label
//	                │                                          │
//	                └──────────────► bytes ◄───────────────────┘
//
//	GET /markets /events …  ──► catalog.Catalog: rows of a page, their records as written
//	                              └─► describer: Values and Board in place of the source's figures
//
// The contract:
//
//   - Nothing here changes anything, and nothing here can reach the writer.
//   - What is answered is durable: Board and History hold only what was synced.
//   - Market data is read from the Board without a lock and, in steady state, without an
//     allocation.
//   - An account sees its own acknowledged writes: a read of the index waits for it up to 250 ms,
//     then says 503 index_lagging rather than something old.
//   - Prices and sizes are exact decimals, as text, without exponent or trailing zeros.
//   - Errors are worded as the clients of the route expect them, in one of three families; the
//     text is the known one to the byte, "code" is a stable word, "detail" helps people.
//   - The catalog is told as its source wrote it: what that does not say is absent. Prices,
//     volumes, liquidity and whether orders are taken are those of the books here, for what trades
//     here.
//   - Every route answers HEAD like GET. Pages of any origin may read market data.
//
// A book's timestamp is the Time of the frame that changed it last, which for a book that was never
// touched is the Time at which its market was listed. Its hash is the SHA-1 of the same JSON with
// an empty hash: public clients compute it again from what they received, so the ten keys have one
// order.
//
// A page of a list begins at an ordinal, which its cursor holds and which never changes: nothing is
// skipped or repeated when orders come and go between two pages. At most 100 items are on a page
// (500 of markets); a page may hold fewer although the list goes on.
//
// Wire names occur only here, in the files that read queries and those that encode. Orders and
// trades come in several styles, by the dialect of the caller's headers (orders.go, trades.go).
//
// Reading order: api.go (the routes), token.go (which token is asked for), book.go, price.go and
// lists.go (one token, many tokens), market.go, listing.go and entry.go (markets), gamma.go,
// gamma_query.go, gamma_write.go, gamma_live.go and values.go (the catalog), search.go, related.go,
// charts.go and tape.go (what was), account.go (whose request it is), cursor.go and filter.go
// (which part of a list), orders.go, trades.go, lookup.go, balance.go, activity.go (what there is
// none of), wallets.go (whom everybody may ask about), asked.go, figures.go (their parameters and
// sums), positions.go, holders.go, interest.go (sums over a market), deeds.go, profiles.go,
// errors.go, encode.go.
package api

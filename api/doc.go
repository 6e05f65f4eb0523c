// Package api answers every request that only reads: market data by itself, all else by its rooms,
// which it puts together in one table of routes.
//
//	GET /book /price /tick-size …    GET /markets /events …   GET /positions …   GET /data/orders …
//	POST /books /prices …                     │                      │           (owner, dialect:
//	         │ Handler.Public: path, method   │                      │            the door has
//	         ▼                                ▼                      ▼            checked the key)
//	   market data                       api/gamma             api/wallets              │
//	         │                                │                      │         Handler.Account
//	 view.Board: one atomic load,       catalog.Catalog       history.History           ▼
//	 no lock                            Values, Board         Board, Catalog       api/account
//	         │                                │                      │                  │
//	 Snapshot.Text: JSON built at             │                      │           history.History
//	 most once per version                    │                      │                  │
//	         └────────────────────────────────┴───► api/wire ◄───────┴──────────────────┘
//
// The contract:
//
//   - Nothing here changes anything, and nothing here can reach the writer.
//   - Answers are durable: Board and History hold only synced frames.
//   - Market data is read from the Board without a lock and, in steady state, without an
//     allocation.
//   - Prices and sizes of market data are exact decimals, as text, without exponent or trailing
//     zeros.
//   - Pages of the catalog and of the order book's lists are made once and shared (api/pages).
//   - Errors are worded as the clients of the route expect them, in one of three families; the
//     text is the known one to the byte, "code" is a stable word, "detail" helps people.
//   - Every route answers HEAD like GET. Pages of any origin may read public routes.
//   - The rooms do not import each other. They share api/wire, and get functions: how to wait for
//     the index, what a market is worth.
//   - The pages of the console (api/console) are no part of the interface; what they are told of
//     the node is.
//
// A book's timestamp is the Time of the frame that changed the book last; a book that was never
// touched has the Time at which its market was listed. Its hash is the SHA-1 of the same JSON with
// an empty hash: public clients compute it again from the body, so the ten keys have one order.
//
// Wire names occur only here and in the rooms, in the files that read queries or encode answers.
//
// Reading order: api.go (the routes), book.go, price.go and lists.go (one token, many tokens),
// market.go, charts.go and latest.go (what was), errors.go;
// then the doc.go of account, wallets, gamma, pages and wire.
package api

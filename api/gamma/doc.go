// Package gamma answers what the catalog says of markets, events, series and tags, what a search
// finds, and the order book's lists of markets.
//
//	GET /markets /events /series /tags …            GET /public-search      GET /simplified-markets …
//	      │ query: filters, order, page                   │                      │ ordinal
//	      ▼                                               ▼                      ▼
//	catalog.Catalog ── rows of a page, their records ── words ──────────── every row, then what
//	      │                                                                only the engine lists
//	      ▼
//	describer ── the record as its source wrote it, with prices, volumes and states of the
//	      │      books here in place of the source's: Values and view.Board
//	      ▼
//	pages.Cache: bytes made once for all who ask, with an entity tag: 304 for whoever has them
//
// The contract:
//
//   - A record is told as its source wrote it, bytes between ours. What the source does not say is
//     absent.
//   - A market that trades here has the prices, volumes, liquidity and states of its book, whatever
//     its source says.
//   - GET /markets is the order book's list if the query has next_cursor, else the catalog's; a
//     prefix of the path or the name of the host decides alone.
//   - An unknown parameter means nothing; a known one with an impossible value is refused.
//   - Figures of a book are added up once per Snapshot; any number of goroutines may ask.
//
// Reading order: gamma.go (routes and lists), query.go (parameters), describer.go (records),
// live.go (members that the book decides), values.go (what markets are worth), listing.go and
// booked.go (the order book's shape), shared.go (what a page shows), search.go,
// related.go.
package gamma

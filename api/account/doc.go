// Package account answers what the owner of an API key asks about its own orders, trades and
// balances, and what anybody asks about the trades of a builder.
//
//	ingress checks the key ──► api ──► Account.Serve(owner, dialect)
//	                                        │ wait for the owner's last write, and for that of
//	                                        ▼ each wallet linked to the owner
//	query ──► listQuery: filter, cursor ──► history.History ── rows of orders, trades, balances
//	                                        │
//	view.Directory  names of markets,       ▼
//	                tokens, wallets ──► appendRecord, appendTrade … in the caller's dialect
//	catalog.Catalog label of the outcome
//
// The contract:
//
//   - An owner sees its own acknowledged writes: a read waits for the index up to 250 ms, then
//     says 503 index_lagging rather than something old.
//   - Orders of another owner are as unknown as orders that never were.
//   - Pages begin at an ordinal that never changes: nothing is skipped or repeated when orders come
//     and go between two pages. A page may hold fewer than 100 items although the list goes on.
//   - A Story has the same bytes whenever it is told: what a row says of later times is not in it.
//   - Prices and sizes are exact decimals, as text, without exponent or trailing zeros.
//   - In answers about many orders or conditions each entry has a status; such an answer never has
//     a key that is called error.
//   - What this exchange does not have (rewards, fees of builders) is answered as if there
//     were none of it.
//   - Notices are of the last 48 hours, at most 100. Those that were dropped come back after a
//     restart: nothing durable is made of them.
//
// Reading order: account.go (routes, who asks), filter.go (which part of a list), orders.go (one
// order, its record), trades.go (both lists), story.go (both as messages of a stream),
// lookup.go (many orders, volumes), balance.go, builders.go, notices.go, absent.go, refusals.go.
package account

// Package wallets answers what anybody may ask about wallets: positions, values, holders, activity,
// trades, profiles, and the sums over all holders of a market.
//
//	GET /positions /closed-positions /value /traded   ── positions.go ──┐
//	GET /activity /trades                             ── activity.go  ──┤
//	GET /holders                                      ── holders.go   ──┼──► history.History
//	GET /oi /live-volume /v1/market-positions         ── market.go    ──┘         │
//	GET /public-profile                               ── profiles.go ◄── a file   ▼
//	                                                          integers, rounded once: figures.go
//	Options.Price, Options.Volume: what a market is worth          │
//	catalog.Catalog: title, slug, labels ──────────────────────────┴──► JSON numbers
//
// The contract:
//
//   - Everybody may ask about every wallet, unless the operator names the networks that may.
//   - A read of one wallet waits until the index holds what the wallet was told of, up to 250 ms,
//     then says 503. Reads of markets wait for nobody.
//   - Sums are made in integers of base units and rounded once, half away from zero: money and
//     percentages to two decimals, prices that were paid to six.
//   - Of several mistakes in a query the answer names the first in a fixed order: an unknown name,
//     a parameter that every request needs, a value, a parameter that another one needs.
//   - Refusals have one member, "error": a word, a colon and the parameter.
//
// Reading order: wallets.go (routes, whom a request is about), query.go (parameters), figures.go
// (rounding), positions.go, activity.go, holders.go, market.go (sums over a market), profiles.go,
// checksums.go (addresses as text).
package wallets

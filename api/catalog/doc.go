// Package catalog describes markets. It reads records that others wrote (what a condition asks,
// what its outcomes are called, which event it belongs to), keeps them as they are, finds them
// again, and hands on what the engine must know in order to trade a condition.
//
//	source.Source: a file, a folder, or a service with the same lists
//	     │  Store.Load
//	     ▼
//	splitter ── records, at most 16 MiB each
//	     │
//	     ▼  several goroutines
//	parser ──── rows: the two dozen values that filters, orders and lookups need
//	     │      frames: the record as written, sorted into core, rest and live
//	     ▼  one goroutine
//	editor ──── which record counts, what belongs together, what contradicts
//	     │
//	     ├──► log, a file: every frame, then how far the source was read
//	     ├──► engine.Listing ──► Options.List, Options.Close
//	     ▼
//	Catalog: immutable, swapped whole
//	     rows in chunks, tables, orders, search.Index ── shared, but for what changed
//
// The contract:
//
//   - The catalog describes, the engine lists. Nothing here touches money. Once a condition is
//     listed its tokens, tick and minimum belong to the engine; a record that says otherwise is
//     refused. What the source closes or archives is closed in the engine; nothing that a source
//     says resolves a market.
//   - Tradable is a condition with exactly two outcomes, two distinct token ids and an id of 0x and
//     64 hex digits, which is neither closed nor archived and has an order book. If it takes no
//     orders yet it is listed unopened. Without a tick it gets 0.01, without a minimum 5 shares.
//   - A record is answered with every field that its source has, as written; what a trading market
//     has from its book lies apart (Record.Live), and what other rows say (the events of a market,
//     the markets of an event) is not kept twice.
//   - A bad record never ends a load. It is counted and named, and every market record is counted
//     exactly once: Markets + Books = Listed + the sum of Skipped + Refused. A text that cannot be
//     read to its end changes nothing.
//   - Of two records of one thing the one that was updated later counts; of two of the same moment
//     the first of one load, and otherwise the newer load's. A whole record counts more than a
//     summary inside another one. What a source no longer mentions stays described.
//   - A Catalog never changes, and what it says it says for ever: its records lie in a file that is
//     only appended to. Anybody may read it; a newer one replaces it whole.
//   - Numbers of rows are for ever: a cursor may hold one.
//
// The package api/wire/scan reads the records instead of encoding/json. They are long: a hundred
// fields each, most of them of no interest here, and one odd value in one market must not cost the
// whole event. All of a record is checked, because it is answered as it was written.
//
// Reading order: model.go and catalog.go (what there is), store.go, load.go and edit.go (the
// story), derive.go (what follows from rows), members.go and parse.go (records), flow.go and
// split.go (bytes), log.go, restore.go and damage.go (the file), rows.go, table.go and sorted.go
// (what is shared), query.go, pages.go and live.go (lists), report.go, status.go, find.go.
// Package source looks for records. demo.jsonl is the project's own small catalog; DESIGN.md has
// the reasons and the figures.
package catalog

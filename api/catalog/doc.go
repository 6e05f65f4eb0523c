// Package catalog describes markets. It reads records of other services (the question of a
// condition, the labels of its outcomes, its event), keeps them as they are, finds them again, and
// hands the engine the facts that it needs to trade a condition.
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
//     listed its tokens, tick and minimum belong to the engine, and a record that contradicts them
//     is refused. The engine closes what the source closes or archives. No source resolves.
//   - Tradable is a condition with exactly two outcomes, two distinct token ids and an id of 0x and
//     64 hex digits, which is neither closed nor archived and has an order book. If it takes no
//     orders yet it is listed unopened. Without a tick it gets 0.01, without a minimum 5 shares.
//   - A record is answered with every field of its source, as written. The members that a trading
//     market takes from its book lie apart (Record.Live). Lists that other rows tell (the events of
//     a market, the markets of an event) are not kept twice.
//   - A bad record never ends a load. It is counted and named, and every market record is counted
//     exactly once: Markets + Books = Listed + the sum of Skipped + Refused. A text that cannot be
//     read to its end changes nothing.
//   - Of two records of a row the later update counts; of two of the same moment the first of one
//     load, else the newer load's. A whole record beats a summary inside another record. A row that
//     a source no longer mentions stays.
//   - A Catalog never changes: its records lie in a file that is only appended to. Anybody may read
//     it; a newer one replaces it whole. The numbers of rows stay for ever: a cursor may hold one.
//
// The package api/wire/scan reads the records instead of encoding/json: one odd value in one market
// must not cost the whole event. It checks all of a record, which is answered as it was written.
//
// Reading order: model.go and catalog.go (the rows), store.go, load.go and edit.go (the story),
// derive.go (lists and search), members.go and parse.go (records), flow.go and split.go (bytes),
// log.go, restore.go, damage.go and verify.go (the file), rows.go, table.go and sorted.go (shared
// parts), query.go, pages.go and live.go (lists), report.go, status.go, find.go. Package source
// looks for records. demo.jsonl is the project's own small catalog; DESIGN.md has the reasons.
package catalog

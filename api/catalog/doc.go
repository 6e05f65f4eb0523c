// Package catalog describes markets. It reads records that others wrote (what a condition asks,
// what its outcomes are called, which event it belongs to), keeps the few fields that the node
// answers with, and hands on what the engine must know in order to trade a condition.
//
//	file: JSON array or one event a line, plain or gzip
//	                      │
//	                      ▼
//	splitter ── one record at a time, at most 16 MiB
//	                      │
//	                      ▼
//	fields ──── the dozen values that matter, as written
//	                      │
//	          ┌───────────┴─────────────┐
//	          ▼                         ▼
//	Market: question, labels,    engine.Listing: tokens, tick,
//	slug, event, Skipped         minimum, group, neg-risk, open
//	          │                         │
//	          ▼                         ▼
//	      Catalog                 Options.List, in chunks,
//	 immutable, swapped whole     after Parse read the whole file
//
// The contract:
//
//   - The catalog describes, the engine lists. Nothing here touches money. Once a condition is
//     listed its tokens, tick and minimum belong to the engine; a record that says otherwise is
//     refused.
//   - Tradable is a condition with exactly two outcomes, two distinct token ids and an id of 0x and
//     64 hex digits, which is neither closed nor archived and has an order book. If it takes no
//     orders yet it is listed unopened. Without a tick it gets 0.01, without a minimum 5 shares.
//   - A bad record never ends a load. It is counted and named, and every market record is counted
//     exactly once: Markets = Listed + the sum of Skipped + Refused. A file that cannot be read to
//     its end lists nothing.
//   - Of a condition that occurs twice the first record counts; the second must agree with it.
//   - A Catalog never changes. Anybody may read it; a newer one replaces it whole.
//
// Records are read by a small scanner of their own instead of encoding/json: they are long, a
// hundred fields each, nearly all of no interest here, and one odd value in one market must not
// cost the whole event. What the scanner passes over it checks for brackets and quotes only.
//
// Reading order: catalog.go (what there is), load.go (the story), records.go (the decisions),
// split.go and scan.go (bytes), report.go. demo.jsonl is the project's own small catalog.
package catalog

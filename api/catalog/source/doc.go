// Package source brings records of markets to the catalog: from a file, from the files of a folder,
// or from a service with the same lists, which may be another node. It knows where records lie, how
// far they were read and when to look again. The catalog knows the meaning of records.
//
//	a file, a folder             a service: tags, series, events, markets, clob/markets
//	     │ the changed files          │ pages of 100 records, 10 MB, 10 s
//	     ▼                            ▼
//	files.go                     remote.go ── stages of 64 pages
//	     │                            │
//	     └──────── Source.load ───────┘
//	                    │  records, and the mark: how far the source was read
//	                    ▼
//	             catalog.Store.Load ──► the next catalog
//
// The contract:
//
//   - A look that fails changes nothing, except that stages of a service before the failure count.
//   - The mark lies in the catalog's log, behind the records that it vouches for. If the mark is
//     lost or belongs to another source, everything is read again.
//   - A file that changes while the node runs is read once two looks in a row find it the same.
//   - A service is asked only for records updated since the walk before, and once a day for all.
//   - Answers, redirects and waits are bounded; a redirect stays on the host that was asked.
//
// Reading order: source.go (the type), sync.go (looks and waits), files.go, remote.go, health.go.
package source

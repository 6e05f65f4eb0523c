// Package view is publication: the only memory that the writer shares with readers. The committer
// passes every durable frame to Board.Publish, which folds its Events into immutable Snapshots, one
// per changed market, and into the Directory. Readers load pointers: they take no lock, allocate
// nothing, and neither wait for the writer nor make it wait.
//
//	token ──hash──► cells: hash | reference          (Directory: tokens, conditions, addresses)
//	                           │
//	market number ─────────────▼
//	  pages of rows   [ Market │ Snapshot ] [ Market │ Snapshot ] …
//	                       │        │
//	    tokens, tick, ◄────┘        ▼
//	    state           Snapshot  Sequence Time best depth last, text of either outcome
//	                        │
//	                        ▼
//	                     ladder   16 groups ──► group  16 chunks ──► chunk  64 sizes
//	                        bits of groups         bits of chunks and levels
//
//	frame n   ladder ──► group 0 ──► chunk 0
//	             │   └─► group 1 ──► chunk 5
//	             │          ▲
//	frame n+1 ladder'───────┘             one order at a level of chunk 0:
//	             └─────► group 0' ─► chunk 0'     three small copies, all else shared
//
// A ladder is kept in prices of outcome 0: buying outcome 0 at p and selling outcome 1 at 1-p are
// the same bid. Snapshot's methods take an outcome and answer in its terms.
//
// The contract:
//
//   - One goroutine calls Publish, with frames in order. Any goroutine may call the rest.
//   - A frame becomes visible in this order: Sequence, Directory, Snapshots. All of it is visible
//     when Publish returns. The comment of Board draws the conclusions.
//   - A Snapshot never changes. Levels, Best, Depth and Last belong to one moment between frames.
//     Snapshots of two markets may belong to two moments: each has its Sequence.
//   - Markets and wallets are never forgotten. A market without orders costs about 270 bytes.
//   - The first reader renders the Text of a Snapshot, not the writer.
//   - Events that contradict earlier ones are a bug and panic: a negative level, a crossed book, an
//     unknown market or wallet, a gap between frames.
//   - Replay folds frames that nobody may read yet; Save and Load carry all that a Board shows over
//     a restart.
//   - Readers ask; nobody is told of changes. Changes compares two Snapshots of a market.
//
// Read board.go first, then snapshot.go, ladder.go, changes.go and draft.go (how a ladder is
// copied), directory.go with table.go and pages.go (how tables grow under readers), save.go.
package view

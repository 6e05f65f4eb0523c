// Package disk is what the databases of a node stand on: files, folders and locks as Pebble needs
// them, and the watch over a disk that fills, hangs or fails. It knows nothing of what the
// databases hold.
//
//	 journal          journal/history
//	    │                   │
//	    ▼                   ▼
//	┌───────────── Guard ─────────────┐   Space: how much is free; ballast
//	│ Pebble's logger and listener:   │   Unsynced: how long a sync has taken
//	│ failures, last words, exit 70   │   Claim, LockFolder: who has a folder
//	├─────────────────────────────────┤   MakeFolder, SyncFolder: durable entries
//	│ files: waits after failures,    │
//	│ spare logs, abandons a database │
//	└────────────────┬────────────────┘
//	                 ▼
//	           vfs.FS of Pebble
//
// The contract:
//
//   - A Guard opens and closes one database. When Pebble cannot go on, or the owner finds that a
//     promise cannot be kept, the Guard says what happened, what was promised and what to do, and
//     ends the process with ExitCode, unless its owner wants something else done.
//   - A database that was abandoned changes no file any more.
//   - A folder has one holder at a time; the error of the next one names the first.
//   - A Space changes its mind in three steps, and tells its owner of each.
//   - A small file that Twice has read is whole after the next Twice, whichever of it and its copy
//     is damaged.
//
// Read guard.go, files.go with spare.go, options.go, folder.go, lock.go, stall.go, space.go, and
// failure.go with the kinds of errors; twin.go (files that are kept twice); sum.go
// (checksums, and the bit that makes one wrong), gate.go and metrics.go are small tools for all.
package disk

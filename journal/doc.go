// Package journal makes frames durable and gives them back in order: it keeps the truth of a node.
// It owns the journal's database; nobody else opens it.
//
//	 appender            committer                           data folder
//	    │ Append             │ Wait
//	    ▼                    ▼                                journal/   the truth
//	┌────────┐  write   ┌─────────┐  durable   ┌──────────┐     m format, ID, created
//	│ check, │ ───────► │ Pebble's│ ─────────► │  last    │     f frame number → frame
//	│ batch  │ ordered  │ log sync│   frames   │  64 MiB  │
//	└────────┘          └─────────┘            └────┬─────┘   checkpoints/  derived, deletable
//	     start: Restore, from a checkpoint          │
//	  ┌──────┐  chunks ┌────────────┐      ┌────────┴───┐     mark  how far was acknowledged
//	  │ scan,│ ──────► │ check chain│      │ Tail: next │
//	  │decode│         │ ApplyFrame │      │ or wait    │
//	  └──────┘         └────────────┘      └────┬───────┘
//	                                            ├─► Follower.Run: replay, compare, save itself
//	                                            └─► whoever else reads frames: journal/history
//
// The contract:
//
//   - Append takes frames in order and refuses what does not chain; Wait(n) returns nil only
//     when all frames up to n are on disk. The first error is final: the last words name the
//     Sequence, the folder and what to do, and the process exits with ExitJournal. A failed sync
//     is never tried again.
//   - After a crash every frame for which Wait returned is there; of the others a first part.
//   - Restore is how to start: the newest checkpoint that is good, and the frames after it, each
//     compared with what was recorded; Recover does so with all frames. The first thing that is
//     wrong, or panics, is a *Break with frame, Sequence, key, path; a journal that ends before
//     what was acknowledged, as far as the mark, a checkpoint or another Witness knows, is a
//     *LossError with what is lost.
//   - A Follower computes everything a second time, from the bytes: a difference is exit 70.
//     It saves itself without anybody waiting for it.
//   - A Tail shows durable frames only, each once, in order, and holds nobody back.
//
// Goroutines: Append belongs to one, Wait to one, Recover and Restore run before them with one of
// their own, the mark's begins there and ends in Close, Follower.Run is one, each Tail belongs to
// one; Status and Collectors are everybody's.
//
// Read journal.go (Open, Append), wait.go (Wait, Close), mark.go, witness.go, tail.go with
// latest.go, recover.go, checkpoint.go (what is in the file, how it is written and read) and
// follower.go. agreed.go and entries.go are for journal/raft.
// verify.go, scrub.go, read.go, backup.go, and salvage.go with collect.go, flip.go (frames from the
// bytes of damaged files) and swap.go are for operators. DESIGN.md has the layout, the recovery
// cases and the decisions.
package journal

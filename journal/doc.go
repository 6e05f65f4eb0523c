// Package journal makes frames durable, gives them back in order, and keeps what can be asked about
// the past. It owns the two embedded databases of a node; nobody else opens them.
//
//	 appender            committer                           data folder
//	    │ Append             │ Wait
//	    ▼                    ▼                                journal/   the truth
//	┌────────┐  write   ┌─────────┐  durable   ┌──────────┐     m format, ID, created
//	│ check, │ ───────► │ Pebble's│ ─────────► │ hub: last│     f frame number → frame
//	│ batch  │ ordered  │ log sync│   frames   │  64 MiB  │
//	└────────┘          └─────────┘            └────┬─────┘   index/     derived, deletable
//	     start: Restore, from a checkpoint          │           m place: journal, frame, hash
//	  ┌──────┐  chunks ┌────────────┐      ┌────────┴───┐       o OrderID → row
//	  │ scan,│ ──────► │ check chain│      │ Tail: next │       t OrderID, chunk → trades
//	  │decode│         │ ApplyFrame │      │ or wait    │
//	  └──────┘         └────────────┘      └────┬───────┘   checkpoints/  derived, deletable
//	                                            │           mark  how far was acknowledged
//	                                            ├─► Follower.Run: replay, compare, save itself
//	                                            └─► Index.Run: fold, one batch
//	                                                     │
//	                               History: Order, Orders, Trades, Tape, Past, Await
//
// The contract:
//
//   - Append takes frames in order and refuses what does not chain; Wait(n) returns nil only
//     when all frames up to n are on disk. The first error is final: the last words name the
//     Sequence, the folder and what to do, and the process exits with disk.ExitCode. A failed sync
//     is never tried again.
//   - After a crash every frame for which Wait returned is there; of the others a first part.
//   - Restore is how to start: the newest checkpoint that is good, and the frames after it, each
//     compared with what was recorded; Recover does so with all frames. The first thing that is
//     wrong, or panics, is a *Break with frame, Sequence, key, path; a journal that ends before
//     what was acknowledged is a *LossError with what is lost.
//   - A Follower computes everything a second time, from the bytes: a difference ends the process.
//     It saves itself without anybody waiting for it.
//   - A Tail shows durable frames only, each once, in order, and holds nobody back.
//   - History.Sequence is a promise: what is asked after it was read knows all Commands up to it.
//   - The index is thrown away and made again, at the next start, whenever it does not fit the
//     journal or cannot be read. History.Failed says why it does not move. Deleting its folder is
//     always a repair. A disk that does not take it neither ends the process nor holds up a stop.
//
// Goroutines: Append belongs to one, Wait to one, Recover and Restore run before them with one of
// their own, the mark's begins there and ends in Close, Index.Run and Follower.Run are one each,
// each Tail belongs to one; History, Status and Collectors are everybody's.
//
// Read journal.go (Open, Append, Wait), mark.go, tail.go with hub.go, recover.go, checkpoint.go
// (what is in the file, how it is written and read), follower.go, then fold.go with row.go,
// index.go, durable.go, filter.go and history.go; pages.go has the lists of orders and trades,
// which stand on resting.go, deals.go, lists.go and recent.go; ledger.go with positions.go,
// holders.go, leaders.go and supply.go has what wallets have, prices.go with ladder.go and
// volumes.go what markets cost and how much of them is traded; pebble.go has the databases'
// options and the last words, disk.go what they stand on, spare.go the files that logs are written
// into, stall.go knows how long the disk hangs, folder.go makes folders.
// verify.go with verifyindex.go, read.go, backup.go, and salvage.go with collect.go and flip.go
// (frames from the bytes of damaged files) and swap.go are for operators; space.go watches the
// disk, lock.go says who has a folder.
// DESIGN.md has the layout, the recovery cases and the decisions.
package journal

// Package sequencer is the one writer: only its matcher changes the Exchange of a running node.
//
// Any goroutine Submits a verified Command and waits for the answer. Three goroutines do the rest,
// each one step of the pipeline, and a few preallocated Batches circulate between them:
//
//	 callers            matcher                appender              committer
//	┌────────┐ ring  ┌─────────────┐       ┌──────────────┐       ┌───────────────────┐
//	│ Submit ├─────► │ Step        │applied│ Append       │append-│ Commit            │
//	│ Submit ├─────► │ stamp       ├──────►│ encode, once │ed     │ Journal.Wait      │
//	│ Submit ├─────► │ Apply       │       │ chain        ├──────►│ Board.Publish     │
//	└───▲────┘ Busy  │ digest      │       │ Journal.     │       │ answer in order   │
//	    │      when  └──────▲──────┘       │ Append       │       └──────┬──────┬─────┘
//	    │      full         │              └──────────────┘              │      │
//	    │                   └────────────── free batches ────────────────┘      │
//	    └──────────────────────────────── Receipts ─────────────────────────────┘
//
// While the disk syncs one frame, the matcher fills the next: the disk sets the batch size, without
// a timer. When all batches are in flight, the matcher waits for a free one. That wait is the whole
// of backpressure: the ring fills, and Submit answers ErrBusy at once.
//
// The contract:
//
//   - Nothing of a frame is visible, published or acknowledged, before the Journal says that the
//     frame is durable. That includes Rejects and the answers to duplicates.
//   - A cancel that finds nothing is forgotten: it takes no Sequence and is not journaled. Its
//     answer waits like all others until what it saw is durable.
//   - Sequences have no gaps and follow the order in which slots were claimed, so the Commands of
//     one caller keep their order. Callers are answered in that order too.
//   - ErrBusy and ErrClosed: the Command did not enter. ErrTimeout and ErrUnknown: it entered, and
//     only the journal knows its outcome. The committer never waits for a caller.
//   - The first failure, of the Journal or a panic of a stage, is final: no later frame is
//     acknowledged, and Run returns the failure.
//   - The matcher allocates nothing once its slices have grown, and builds nothing for readers.
//   - Orders that have expired at a frame's Time leave the book before its first Command: the
//     matcher adds an Advance. An alarm wakes an idle matcher when an order expires.
//   - A bundle (EnterAll) enters whole, as neighbours in its order, or not at all.
//
// All frames of one Sequencer carry one epoch, in a cluster the leader's term. The caller submits
// the Started Command that opens the epoch before it serves anybody.
//
// Reading order of one Command: Enter (sequencer.go, ring.go), Step and fill (matcher.go), Append
// (appender.go), Commit (committer.go), Call.Wait (call.go). Then clock.go, counters.go,
// stall.go. Package memory has a Journal without a disk. DESIGN.md has the reasons.
package sequencer

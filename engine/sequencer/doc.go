// Package sequencer is the one writer: the only goroutines that touch an Exchange on the live path.
//
// Callers from anywhere Submit a verified Command and park. Three goroutines take it from there,
// each in its own step of the pipeline, and a few preallocated Batches circulate between them:
//
//	 callers            matcher                appender              committer
//	┌────────┐ ring  ┌─────────────┐       ┌──────────────┐       ┌───────────────────┐
//	│ Submit ├─────► │ Step        │applied│ Append       │append-│ Commit            │
//	│ Submit ├─────► │ take, stamp ├──────►│ encode, once │ed     │ Journal.Wait      │
//	│ Submit ├─────► │ Apply       │       │ chain        ├──────►│ Board.Publish     │
//	└───▲────┘ Busy  │ digest      │       │ Journal.     │       │ acknowledge, FIFO │
//	    │      when  └──────▲──────┘       │ Append       │       └──────┬──────┬─────┘
//	    │      full         │              └──────────────┘              │      │
//	    │                   └────────────── free batches ────────────────┘      │
//	    └──────────────────────────────── Receipts ─────────────────────────────┘
//
// While the disk syncs one frame, the matcher fills the next: the disk sets the batch size, without
// a timer. With the four batches in flight it looks like this, and the fifth has to wait:
//
//	  frame 7          frame 8          frame 9          frame 10
//	┌──────────────┐ ┌──────────────┐ ┌──────────────┐ ┌──────────────┐
//	│ acknowledged │ │ in Wait      │ │ appended     │ │ being filled │
//	└──────────────┘ └──────────────┘ └──────────────┘ └──────────────┘
//
// That wait is the whole of backpressure: the ring fills, and Submit answers ErrBusy at once.
//
// The contract:
//
//   - Nothing of a frame is visible, published or acknowledged, before the Journal says that the
//     frame is durable. Refusals by Apply and answers to duplicates wait like everything else.
//   - Sequences have no gaps and follow the order in which slots were claimed, so the Commands of
//     one caller keep their order. Callers are answered in that order too.
//   - ErrBusy and ErrClosed: nothing was entered. ErrTimeout and ErrUnknown: it was, and only the
//     journal knows. The committer never waits for a caller.
//   - The first failure, of the Journal or a panic of a stage, is final: nothing behind it is
//     acknowledged, and Run returns it.
//   - The matcher allocates nothing once its slices have grown, and builds nothing for readers.
//   - What has expired when a frame is stamped is gone before the frame's first Command: an
//     Advance, nobody's Command, comes first. An alarm wakes an idle matcher for it.
//   - A bundle (EnterAll) enters whole, as neighbours in its order, or not at all.
//
// All frames of one Sequencer carry the epoch that follows Head.Epoch; the caller submits the
// Started Command that opens it before it serves anybody.
//
// Reading order: ring.go, sequencer.go, call.go, matcher.go, appender.go, committer.go; then
// clock.go, counters.go, and memory.go, the Journal without a disk. DESIGN.md says why.
package sequencer

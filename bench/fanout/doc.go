// Package fanout compares three servers, the sides of a fan-out: the node's market stream, a bare
// loop that only writes, and the library centrifuge. Each side runs in a process of its own and
// sends the same messages to the same number of subscribers.
//
//	Plan: cases, rounds                  a turn of one side, in processes of its own
//	  │                         ┌──────────────────────────────────────────────────────────┐
//	  ├─ texts: the messages ──►│ Serve: node (hub.go), bare loop, centrifuge              │
//	  │  of two bursts          │    │ bursts at a constant rate                           │
//	  ├─ node, bare, centrifuge,│    ▼                                                     │
//	  │  in turns, by round     │ crowd: reads all, checks the number of each message      │
//	  ▼                         └──────────────────────────────────────────────────────────┘
//	Measured ◄── CPU time a message, due to last read, gaps, cuts, memory of idle subscribers
//
// Contract: a case has no verdict if a message is missing, comes twice or comes out of order, if a
// socket ends early, or if the rate was not reached. A turn that only missed its rate is measured
// again. The node's side makes its messages while the clock runs. The other sides get theirs before
// the clock starts, and only insert the numbers.
//
// Read plan.go, turn.go, serve.go, hub.go, measured.go. DESIGN.md says why.
package fanout

// Package fanout measures the node's market stream beside a bare loop and centrifuge: the same
// messages to the same subscribers, from a process each.
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
// Contract: a case has no verdict if one message is missing, comes twice or out of order, if a
// socket is cut, or if the rate was not reached. A turn that only missed its rate is measured
// again. The node's side makes its messages while the clock runs; the others are handed theirs
// ahead of it and only put in the number.
//
// Read plan.go, turn.go, serve.go, hub.go, measured.go. DESIGN.md says why.
package fanout

// Package lean sends prepared HTTP requests with as little CPU time as it can, because the server
// that is measured runs on the same machine. It reads HTTP/1.1 over TCP and takes no other answer
// than one with a length.
//
//	Load: Requests, lanes, rate
//	  │ planned: the instants of an open loop
//	  ▼
//	pump, one thread ──► wait: epoll, nanoseconds ◄──────────────────────────────┐
//	  │                    │ answers                        │ what is due         │
//	  │                    ▼                                ▼                     │
//	  │             lane.read ─► scan ─► judge ─► good   sendDue                  │
//	  │                                    │        │       │                     │
//	  │                                    └────────┴► lane.shoot: stencil, stamp ─┘
//	  ▼ a leaf each fifth of a second
//	scribe ─► Moment, Progress                                        Measured ◄── the end
//
//	Load.Dispatch ─► share ─► processes that Serve ─► Apart.Wait ─► one Measured
//
// # Contract
//
// A lane is one connection with one request in flight; its requests keep their order. With a Flight
// it is a WebSocket with several in flight (desk.go), whose end ends the load. All that is
// sent and received is checked by its text, and one good answer in 64 is parsed as JSON. What is no
// answer, the end of a connection and the end of patience are failures: a closed loop ends with
// them, an open one counts them and goes on over a new connection. Nothing waits for ever: within
// 50 ms of the end of ctx the last request is sent, and what is in flight has 2 s to be answered.
//
// Answers that one wait reports have one time, that of its end. So the times are the server's and
// the kernel's, and how late this package is itself stands apart, in Measured.Late. In an open loop
// a request is late from the instant at which it was due, not from its sending: a server that
// stands still shows in Measured.Corrected for each request that was due meanwhile.
//
// The requests lie in memory before the clock runs. Sending one and scanning its answer makes no
// garbage. Read load.go, plan.go, pump.go, lane.go, desk.go, render.go, scan.go, socket.go,
// moment.go, measured.go, pause.go, apart.go.
package lean

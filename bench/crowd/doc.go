// Package crowd runs a process of subscribers to a WebSocket stream. One thread reads all of their
// sockets, with as little CPU time as it can, because the server runs on the same machine.
//
//	the process that measures              the process of the crowd
//	  Crowd.Gather ──── Crowd ────────────► Run ──► open: connect, shake hands, send the wish,
//	               ◄─── "begun" ──────────          │     wait for the first answer
//	                                                ▼
//	                                        listen: epoll ─► read ─► take: frames ─► text: messages
//	                                                                                 │
//	  Hall.Hear    ◄─── Heard ───────────── all is there, or standard input ended ◄──┘
//	  Hall.End     ──── killed
//
// # Contract
//
// A message is a line of a text frame with a member "sequence", which numbers the messages of a
// socket. A number that does not follow the number before is a gap. If Crowd.Bursts is 0, a line
// without a number is a gap, too. A socket that ends while the crowd listens is cut. The sockets
// stay open until standard input ends, so the end of the crowd cuts no socket. The crowd ignores
// control frames. It sends "{}", a ping of centrifuge, back.
//
// All messages that one system call has read have the same time: that of the call's return, before
// the crowd parses any of them.
//
// Read crowd.go, then listen.go.
package crowd

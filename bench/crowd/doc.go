// Package crowd is a process of subscribers to a WebSocket stream: one thread that reads all of
// their sockets and takes as little CPU time from the server as it can.
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
// A message is a line of a text frame with a member "sequence", which counts the messages of a
// socket. What is not the successor of the message before is a gap, and so is a text without a
// number unless the server is one that says how many messages come. A socket that ends while the
// crowd listens is cut; the sockets stay open until standard input ends, so the end of the crowd
// cuts none. Control frames are passed over, and "{}", a ping of centrifuge's, is sent back.
//
// All messages that one call of the kernel has brought were read at one instant: that of its
// return, before any of them is parsed.
//
// Read crowd.go, then listen.go.
package crowd

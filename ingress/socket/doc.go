// Package socket takes orders over a WebSocket. Each request is a text message with an id, and does
// the same as a request over HTTP.
//
//	messages from the client                                               answers, each with its id
//	  │ Login, once                                                             ▲
//	  ▼                                                                         │
//	Begin each ─► Judge together ─────► Enter, in the order of arrival ─► Await, Finish
//	  └─ reader's goroutine ──────────────────────────────────────────┘  └─ teller's goroutine
//
// A story is the work of one request, and package ingress makes it as for HTTP. This package gives
// each request the form that it has over HTTP, and sends the answer back as one text message, which
// comes in fragments if it is long: pings must not stand within a frame, and must not wait either.
//
// # Contract
//
// A client logs in with its first message. Requests enter the journal in the order in which the
// client sent them. Answers may come in any order. The socket refuses a request that arrives while
// too many are in work. The socket waits for every request that has entered and answers it, even if
// the client has hung up.
//
// The node pings a client every 3 s, and closes the socket after 10 s without a sign of life. If a
// client does not read its answers, the node closes the socket with 1013.
//
// Room.Close makes each socket answer the requests in work, and then closes the socket with 1001.
//
// # Reading order
//
// story.go, room.go, session.go, text.go.
package socket

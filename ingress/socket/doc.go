// Package socket takes orders over a WebSocket: the requests of HTTP in texts that carry an id.
//
//	texts that came together                                               answers, each with its id
//	  │ Login, once                                                             ▲
//	  ▼                                                                         │
//	Begin each ─► Judge side by side ─► Enter, in the order of arrival ─► Await, Finish
//	  └─ reader's goroutine ──────────────────────────────────────────┘  └─ teller's goroutine
//
// The stories are those of HTTP: this package hands each request over in the form that it has
// there, and writes what comes back as one text.
//
// # Contract
//
// A client logs in with its first text. Requests enter the journal in the order in which the client
// sent them. Answers may come in any order. A request that came while too many were in work is
// refused. Whatever has entered is waited for and answered, also after the client has hung up.
//
// A client without a sign of life for 10 s is gone; the node asks for one every 3 s. A client that
// does not read its answers is closed with 1013.
//
// Room.Close has each socket answer what is in work, and then closes it with 1001.
//
// # Reading order
//
// story.go, room.go, session.go, text.go.
package socket

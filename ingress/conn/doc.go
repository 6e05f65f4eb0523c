// Package conn decides who gets a connection, and for how long. It knows sockets and addresses; it
// does not know what a request means.
//
//	          Listener.Next                       Conn.Read, Conn.Write
//	kernel ──► shortage? wait ──► Turnstile ──► Conn ──► the HTTP server
//	                                 │            └─ deadlines: request, idle, answer
//	                                 └─ no room ──► 429 or 503, hang up
//
// # Contract
//
// An error of Accept that passes by itself (no descriptors, no memory) never ends a Listener.
//
// A Turnstile serves at most Options.Most connections, and at most Options.MostPerAddress of one
// address; an IPv6 caller counts by its /64. A connection without room gets a refusal as JSON and
// is closed. Connections of trusted proxies count among all, not by address.
//
// The bytes that a caller makes the node hold come out of a Budget, a quarter of which is kept for
// known addresses: those from which somebody has authenticated lately.
//
// When all places are taken, idle connections give way to new ones, first those of addresses that
// have most. An address with far more connections than a newcomer's loses also one in the middle of
// a request, or while its refusal is delayed; it gains none at the cost of others. For loads,
// Budgets and new connections, an IPv6 network of 48 bits counts as four addresses at most. An
// address that opens connections all the time is turned away without an answer.
//
// A client has RequestTimeout for a whole request, IdleTimeout until its next one begins, and
// AnswerTimeout to read an answer that the socket has no room for.
//
// A LineWatch tells of request lines that end with LF alone. The HTTP server hides them, and a
// proxy may take them for something else.
//
// # Reading order
//
// listener.go, turnstile.go, conn.go, deadlines.go, sockets.go, address.go, arrivals.go;
// buffers.go, lines.go, unix.go, certificate.go, cap.go.
package conn

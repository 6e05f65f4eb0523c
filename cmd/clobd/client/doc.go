// Package client asks a running node, over its sockets and as anybody could from another machine.
//
//	fund, pause, mode …    DATA/admin.token ─► admin listener ─► Command
//	ready                  no key ─► admin listener ─► code 0 or 1
//	tail                   an API key, or none ─► public listener ─► lines on standard output
//
// Contract: it knows the wire and no folder but for the token in it, so what it can do every other
// client can do. A command ends with the node's own refusal and hint. Tail prints each message of
// the stream once, goes on by itself after a break, and ends with an error if the node no longer
// had what came in between.
//
// Read operator.go, ready.go, tail.go.
package client

// Command witness is a proxy between a client and the node. It checks every answer against the
// node's own OpenAPI document, and every message on a socket against the AsyncAPI document. It
// serves tests of clients that are not written in Go:
//
//	client ──► witness ──► node
//	             └── GET /openapi.json and /asyncapi.json, once
//
//	witness --listen HOST:PORT --node http://HOST:PORT
//
// Contract: witness passes requests, answers and frames on unchanged, even if they are not as
// documented. If an answer asks for the same request again, witness sends the request again, and
// checks every answer in between. On SIGTERM it prints how many answers and messages it has seen,
// how often it sent a request again, and what was not as documented, each kind once. It exits with
// 1 if there was any such thing, or no answer at all.
//
// Read witness.go first, then sockets.go; main.go starts and ends it.
package main

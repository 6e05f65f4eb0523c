// Command witness stands between a client and the node and holds every answer against the node's
// own OpenAPI document, and every text on a socket against the AsyncAPI document, for clients that
// are not written in Go:
//
//	client ──► witness ──► node
//	             └── GET /openapi.json and /asyncapi.json, once
//
//	witness --listen HOST:PORT --node http://HOST:PORT
//
// Contract: it hands requests, answers and frames on as they are, also those that are not as
// documented. Where the node asks for the same request again, it sends it
// again, and looks at every answer on the way. SIGTERM ends it: it says how many answers and texts
// it has seen, how often it sent again, and which were not as promised, each kind once, and exits
// with 1 if there were any, or no answers at all.
//
// Read witness.go first, then sockets.go; main.go starts and ends it.
package main

// Command witness stands between a client and the node and holds every answer against the node's
// own OpenAPI document, for clients that are not written in Go:
//
//	client ──► witness ──► node
//	             └── GET /openapi.json, once
//
//	witness --listen HOST:PORT --node http://HOST:PORT
//
// Contract: it hands requests and answers on as they are, also those that are not as documented,
// and sockets without looking at them. Where the node asks for the same request again, it sends it
// again, and looks at every answer on the way. SIGTERM ends it: it says how many answers it has
// seen, how often it sent again, and which were not as promised, each kind once, and exits with 1
// if there were any, or none at all.
//
// Read witness.go first; main.go starts and ends it.
package main

// Package head says which heads of HTTP requests are served, and how long a body may be.
//
//	head ──► Received: no wait for a body that is too long, or held back
//	  └────► Judge ──► nil: one reading only, the request goes to its handler
//	           └─────► the refusal, after which the connection is closed
//	bytes ──► Plain ──► where the request ends, for who refuses it without the HTTP server
//
// The contract:
//
//   - Whatever a proxy before the node could read in two ways is refused: such a proxy would pass
//     on a request that it never saw (RFC 9112, section 11.2).
//   - A body is read as its client wrote it: one in gzip is refused, because signatures cover the
//     bytes, and a few bytes could unpack to gigabytes.
//   - Judge and Plain copy nothing and allocate nothing.
//   - Whatever Plain takes has one end for all readers, and Judge serves it.
//
// Reading order: head.go; plain.go; orders.go (which requests place orders); credentials.go (what
// the headers say about who asks).
package head

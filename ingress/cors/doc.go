// Package cors tells browsers which pages may read the answers of a node.
//
//	page ── OPTIONS ──► Stamp: methods, Sendable headers, for two hours
//	     ── request ──► Stamp: the page's origin, readable headers
//	     ── bytes that are no request ──► Unread, Lines
//
// The contract:
//
//   - A page signs with its user's key, and the node knows no cookie: an origin gives a page no
//     right that another client lacks.
//   - A page of an origin that is allowed reads each answer, refusals and those of the HTTP server
//     itself included; a page of another origin reads none, and caches keep the two apart.
//   - A request without an Origin costs nothing and gets nothing.
//
// Reading order: cors.go, public.go (pages that read without a key).
package cors

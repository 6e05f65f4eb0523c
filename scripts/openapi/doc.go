// Package openapi holds answers of the node against its OpenAPI document. Only tests import it: the
// door and the reads are packages that do not know each other, but they keep one promise.
//
//	api/openapi.json ──► Load ──► Document ──┬─► Check   one answer: path, status, header, body
//	                     parse               ├─► Routes  what is promised, for the route tables
//	                     validate            └─► Promises ──► Record: what of it tests have shown
//
// Contract:
//
//   - An answer to a documented method and path has a documented status and media type, the headers
//     that are documented for it and no others but common ones, and a body that its schema allows.
//     HEAD is GET without a body; /clob, /gamma or /data-api before a path changes nothing.
//   - Any other answer is a refusal in one of the three error shapes, or what browsers get for
//     OPTIONS.
//   - Where a schema is an anyOf by dialect, the members say in x-dialects whom they are for, and
//     the body must be what the caller's dialect has: exactly one member. It must fit the whole
//     schema as well, for a reader that knows nothing of dialects.
//   - An answer that succeeded is an object without a key that is called error.
//   - Each promised status of each route is shown by a script of requests and answers, or is an
//     exception with a reason, whose own test is named and exists.
//
// Read document.go first, then record.go. The witness (witness/) holds the answers that programs in
// other languages get.
package openapi

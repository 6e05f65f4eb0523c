// Package openapi holds answers of the node against its OpenAPI document. Only tests import it: the
// door and the reads are packages that do not know each other, but they keep one promise.
//
//	api/openapi.json ──► Load ──► Document ──► Check   one answer: path, status, type, body
//	                     parse     │
//	                     validate  └────────► Routes  what is promised, for the route tables
//
// Contract:
//
//   - An answer to a documented method and path has a documented status and media type, and a body
//     that its schema allows. HEAD is GET without a body; /clob, /gamma or /data-api before a path
//     changes nothing.
//   - Any other answer is a refusal in one of the three error shapes, or what browsers get for
//     OPTIONS.
//   - Where a schema is a oneOf by dialect, the members say in x-dialects whom they are for, and
//     the body must be what the caller's dialect has: exactly one member.
//   - An answer that succeeded is an object without a key that is called error.
//
// Read document.go first.
package openapi

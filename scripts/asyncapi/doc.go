// Package asyncapi holds messages of sockets against the node's AsyncAPI document. Only tests
// import it: the door and the reads are packages that do not know each other, but they keep one
// promise.
//
//	api/asyncapi.json ──► Load ──► Protocol ──┬─► Check        what the node says on a channel
//	                      parse               ├─► CheckSent    what a client says there
//	                      link                └─► CheckAnswer  what the node answers to a method
//
// Contract:
//
//   - A message of a documented channel is one of those that an operation of the channel names for
//     its side: a bare text, or one JSON value that the schema allows, without a key that comes
//     twice. Schemas are strict: an undocumented member is an error.
//   - Where a schema has x-last, the object ends with these members, in this order; so does each
//     object of an array.
//   - /clob before the address of a channel changes nothing.
//   - Load refuses a document with members that nobody reads, with references to nowhere, or with
//     an example that is not as its own schema says. Whether the whole of it is AsyncAPI is for the
//     tools of others to say.
//
// The tests hold the schemas that are in the OpenAPI document as well against those there. Read
// document.go first, then check.go.
package asyncapi

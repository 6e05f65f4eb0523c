// Package asyncapi checks messages on sockets against the node's AsyncAPI document. Only tests
// import it. It lets the tests of ingress and of api, which do not import each other, check the
// same document.
//
//	api/asyncapi.json ──► Load ──► Protocol ──┬─► Check        what the node says on a channel
//	                      parse               ├─► CheckSent    what a client says there
//	                      link                └─► CheckAnswer  what the node answers to a method
//
// Contract:
//
//   - A message on a documented channel is one of those that an operation of the channel names for
//     its sender: a bare text, or one JSON value that the schema allows, in which no name comes
//     twice. Schemas are strict: an undocumented member is an error.
//   - If a schema has x-last, the object ends with these members, in this order. The same holds for
//     each object of an array.
//   - An address may begin with /clob; the channel is the same without it.
//   - Load refuses a document with members that this package does not read, with broken references,
//     or with an example that its own schema refuses. Load does not check that the document as a
//     whole is valid AsyncAPI; other tools do.
//
// The tests also compare the schemas with those of the same name in the OpenAPI document. Read
// document.go first, then check.go.
package asyncapi

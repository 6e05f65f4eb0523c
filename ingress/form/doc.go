// Package form reads the bodies of orders and cancels, in all the forms in which clients write
// them. It judges their form only: not whether the market exists, nor who signed.
//
//	body ──► scan.Document ──► texts of the members ──► Decode ──► Request: integers and bytes
//	                  └─ a key twice, or too many ──► KeyError       └─ MemberError
//
// # Contract
//
// A body that Decode takes means the same to every reader of JSON: no object of it has two keys
// that fold alike, and none has more than 64 keys. Whatever Decode takes, encoding/json reads the
// same.
//
// Members have the kinds that public clients write: integers of the signed struct as texts or as
// numbers, and each documented spelling of an order's id.
//
// # Reading order
//
// order.go, terms.go, cancel.go.
package form

// Package vectors checks package auth by known answers that others published, or that other
// programs computed: signed orders, ClobAuth messages, request HMACs, domain separators, struct
// hashes and type hashes.
//
//	JSON file ─► walk: every object, at any depth
//	                │ its keys say what it is
//	                ▼
//	order, auth, hmac, separator, structHash, typeHash ─► package auth computes the same
//	                │
//	                ▼
//	equal to everything that is stated? ─► N agree, M disagree: a line for each of these
//
// Contract: each vector is checked against the domain that it states, whether or not a node would
// take that domain. A vector that says "valid": false agrees if it is refused. An object that looks
// like a vector but that no check knows disagrees, so a misspelt key is noticed.
//
// Read check.go. testdata/known.json is copied from publications; testdata/signed.json is made by
// the test itself.
package vectors

// Package mirror keeps books as a client of the market channel does, and compares the hash of each
// with the one that the node tells. It knows the text of the channel only, nothing of the node.
//
//	frame ──► Parse ──► Message ──► Books.Apply ──► Book ──► SHA-1 of its text
//	                                                              │
//	                            hash of the message ◄── equal? ───┘
//
// # Contract
//
// Apply changes a book as a message says, whatever it says, and returns an error if the book is not
// the one that the message names. That costs some microseconds, so that a test can follow a million
// changes.
//
// Reading order: mirror.go.
package mirror

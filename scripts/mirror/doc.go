// Package mirror keeps books as a client of the market channel does, and compares the hash of each
// book with the hash that the node sent. It knows only the messages of the channel, and imports
// nothing of the node.
//
//	frame ──► Parse ──► Message ──► Books.Apply ──► Book ──► SHA-1 of its text
//	                                                              │
//	                            hash of the message ◄── equal? ───┘
//
// # Contract
//
// Apply changes a book as a message says, in any case, and returns an error if the book then has
// another hash than the message names. That takes a few microseconds, so that a test can apply a
// million changes.
//
// Reading order: mirror.go.
package mirror

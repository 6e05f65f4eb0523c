// Package copies carries the files of a new member: a copy of another member's journal, index and
// last checkpoint of the engine, instead of all entries one by one.
//
//	Giver   DATA/copy.given/   links to files that never change, for one member at a time
//	           │ chunks of 1 MiB, each with its SHA-256
//	           ▼
//	Taker   DATA/copy/         manifest.json and whole/…
//
// Contract: a Giver removes a copy that nobody asks for any more, and what a crash has left. A
// Taker that begins again asks with the sum of each chunk that it has, and gets what is different.
// A Manifest can name no file outside of the folder; number and sizes of its files have bounds.
// What is in the files, and whether they are good, package role knows.
//
// Read manifest.go, giver.go, taker.go.
package copies

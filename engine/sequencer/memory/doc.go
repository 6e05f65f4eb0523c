// Package memory is a journal without a disk, for tests and for measuring everything but the disk.
// No node links it.
//
//	Sequencer ── Append, Wait ──► Journal ──► Frames
//	                                └ OnAppend, OnWait: may sleep, block or fail
//
// Contract: Journal keeps the promises of sequencer.Journal, as long as the process lives. Frames
// must follow each other without a gap; else Append panics. The first failure is final.
//
// Read journal.go.
package memory

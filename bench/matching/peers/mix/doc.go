// Package mix is what every peer of "clobench matching" has in common: it reads the file of a mix,
// keeps the clocks and the thread, and replays once for each line of standard input.
//
//	clobench ──FILE──► Read ──► Mix ──► the peer's replay
//	         ◄──JSON── Serve: a Turn for each line, Gather ahead of the clock, Timed around it
//
// Contract: the goroutine that calls Serve keeps its thread, on one CPU. The format of the file is
// told in bench/matching/mix.go.
//
// Read mix.go.
package mix

// Package matching measures matchers side by side, without ledger, journal or network: the engine's
// bare books, the whole Exchange, the textbook's book, and libraries of others.
//
//	seed ─► Mix.Draw ─► operations, and what they must come to
//	            │
//	            ▼ a file (mix.go has its format)
//	  ┌─────────┼──────────┬────────────────┐
//	bare      apply     textbook     peers/geseq, peers/i25959341     a process each, on one CPU
//	  └─────────┴──────────┴────────────────┘
//	            │ a Turn for each line of standard input
//	            ▼
//	Compare: rounds in alternating order, every Turn checked ─► Compared: ns per operation
//
// Contract: all matchers replay the same operations and must report the fills, the volume and the
// resting orders of the generator's model; in the first turn ours also report who was filled, in
// order. A matcher that reports anything else ends the comparison without a figure. Times are CPU
// time of the thread that replays.
//
// peers is a module of its own, because nothing else needs what it requires. DESIGN.md of package
// bench has the figures.
//
// Read mix.go, matching.go, matchers.go, bare.go, fetch.go, textbook.go, then peers.
package matching

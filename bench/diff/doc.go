// Package diff says with which confidence two sides of measured runs differ.
//
//	Side A: reports ──► samples of a figure ─┐
//	                    (one a turn)         ├─► medians, delta, p of the Mann–Whitney U test
//	Side B: reports ──► samples of a figure ─┘            │
//	                                                      ▼
//	                     deciding figure (CPU per operation, else rate): better, worse, or
//	                     no difference found
//
// Contract: a difference is found if p is at most Alpha. All figures are printed, and one decides:
// with four figures at 5 % each, one in five comparisons of a thing with itself would find
// something. A run that was cut into turns has a sample a turn, any other run has one. Runs of
// different workloads, levels or machines are not compared unless the caller insists; different
// conditions are told.
//
// The test assumes that samples are independent of each other. Turns of one run share their minute
// of the machine, so two runs that did not take turns with each other may differ by what the
// machine did meanwhile; the comparison says so.
//
// Reading order: diff.go, alike.go.
package diff

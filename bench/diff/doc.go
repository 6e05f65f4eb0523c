// Package diff says with which confidence two sides of measured runs differ.
//
//	Side A: reports ──► samples of a figure ─┐    rounds of one run of turns: paired sign-flip test
//	                    (one a turn)         ├─►  anything else: Mann–Whitney U test
//	Side B: reports ──► samples of a figure ─┘            │
//	                                                      ▼  medians, delta with interval, p
//	                     deciding figure (CPU per operation, else rate): better, worse, or
//	                     no difference found
//
// Contract: a difference is found if p is at most Alpha. All figures are printed, and one decides:
// with four figures at 5 % each, one in five comparisons of a thing with itself would find
// something. A run that was cut into turns has a sample a turn, any other run has one. Only runs
// without turns can have an open loop: their corrected percentiles are compared if both sides have
// some. Runs of different workloads, levels or machines are not compared unless the caller insists;
// different conditions are told.
//
// Pairs: turn i of both reports of one clobench turns was measured at nearly the same time, so
// what the machine did to both cancels in their ratio. Rounds are A, B and B, A in turn; the
// geometric mean of two such rounds has the first turn's luck on both sides, and is a sample. The
// test takes the logarithms of these ratios and tries all assignments of signs (up to 16 pairs;
// 65,536 drawn ones beyond): p is the share whose sum is at least as far from 0. Eight pairs, of
// 16 rounds, reach 0.008; less than six cannot reach Alpha. The delta is the geometric mean of the
// ratios, and its interval of 95 % has all ratios that the same test does not reject: it is made
// of the means of subsets of the logarithms, and lacks 0 % if a difference is found, and only
// then. The test assumes that without a difference two rounds could as well have come out the
// other way round.
//
// The U test, and the interval of each side's median, assume that samples are independent of each
// other. Turns of one run share their minute of the machine, so two runs that did not take turns
// with each other may differ by what the machine did meanwhile; the comparison says so.
//
// Reading order: diff.go, paired.go, alike.go.
package diff

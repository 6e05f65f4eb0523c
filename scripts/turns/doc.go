// Command turns measures two trees of this repository in turns and says whether the new one is
// slower: what scripts/turns.sh runs.
//
//	OLD ─► build ─┬─► A    every round, figure by figure:  A  A' B,  then A' B  A, then B A  A',
//	              └─► A'                                   and every other three rounds backwards
//	NEW ─► build ───► B                │
//	                                   ▼
//	per figure: medians of A and B, median of B/A, spread of A'/A ─► slower beyond it, or not
//
// What is measured, each figure a time, so that less is better:
//
//	apply 1, apply 1000   BenchmarkApply of package engine, ns per Command
//	bare                  BenchmarkBare of package bench/matching, ns per operation
//	commit 100            BenchmarkCommit/100 of package journal, ns per Command and p50 of a batch
//	orders, book          clobench compare: the node's time per request and its CPU time
//
// Conditions: both trees are built with the same toolchain and the caller's environment, before the
// first round. A' is the same build as A in other files, so A'/A shows what the machine and the
// order of turns do to a figure. Turns are short (300 ms of a micro bench, 2 x 500 ms of a
// comparison), and nine rounds take about ten minutes on two cores. Other work on the machine
// widens the spread; the verdict stays fair, because A' has its turn within the same seconds.
//
// With -with, three nodes of one tree take turns of 4 s instead, and only the third has the option:
// "scrape" reads its metrics once a second, "trace" lets it keep a runtime trace in memory, and
// "cluster" makes it the only voter of a cluster. The
// figure is the node's CPU time per order in POST /order, from 16 traders with one order in flight
// each. Nine rounds take two minutes. What a stage of the order path costs, its clock for one, is a
// matter of two trees.
//
// With -with forward, three voters and a gateway of one tree are loaded through the gateway: in
// lists, so that frames are large, then order by order, then below what they can, then alone. Told
// are CPU time and bytes of messages of each process by order, and what share of the leader's CPU
// time is its index, its follower and the way of frames, of a profile. Nothing is judged.
//
// Contract: the ratio is the median over rounds of B by the mean of A and A'. The spread is the
// second largest A'/A or A/A' of all rounds (of fewer than four rounds the largest). A figure is
// slower beyond the spread if its ratio is above it and B took longer than both A and A' in three
// rounds of four, where chance alone gives one of three; then the exit code is 1. Where a bench
// stands in a tree does not matter: it is found by its name. A bench that fails or is missing is an
// error, code 2. With "scrape" the exit code is 1 if the ratio is above 1.02, with "cluster" 1.10.
//
// Read main.go, build.go, verdict.go, then option.go and forward.go.
package main

// Command clobench is the load tester: it runs seeded workloads against one part of the node or all
// of it, checks what they ended with, and prints every figure with its conditions.
//
//	clobench run        one workload at one level         ──► figure + conditions + check
//	clobench soak       one workload for long             ──► laps, and whether the node has drifted
//	clobench compare    node, baseline, baseline, node …  ──► ratios of the medians
//	clobench ramp       rates that step up, open loop     ──► table of latencies, and where it broke
//	clobench agree      clobench, wrk, wrk, clobench …    ──► ratios of the medians
//	clobench flood      reads beside signed orders        ──► ratio of the medians
//	clobench overload   more orders than a node can take  ──► what it took, refused, how it healed
//	clobench streams    orders, and who is told of them   ──► latencies of the delivery
//	clobench budget     CPU of an order by stage          ──► table beside floors
//	clobench stall      reads while nothing is written    ──► ratio of the medians
//	clobench pages      pages anywhere in a long history  ──► percentiles
//	clobench workloads                                    ──► the workloads, a line each
//	clobench turns      node A, node B, node B, node A …  ──► a report of each, and their difference
//	clobench diff       reports of two sides              ──► medians, delta, p, interval
//	clobench page       reports                           ──► one HTML page
//	clobench order      one signed order                  ──► request and answer
//	clobench completion a shell                           ──► the completion of this program for it
//	clobench sign       an order, or who asks for a key   ──► what a wallet signs, for curl
//	clobench key        a private key                     ──► its API key
//	clobench cancel     a private key                     ──► what was canceled
//	clobench matching   bare books, Exchange, peers       ──► ns per operation, results compared
//	clobench peer       (hidden) the baseline process that compare starts
//	clobench replay     (hidden) the processes that matching starts
//	clobench lean       (hidden) a process that sends requests for other commands
//	clobench crowd      (hidden) the subscribers of streams and of compare fanout
//	clobench fan-side   (hidden) a server of compare fanout
//	clobench hiccups    (hidden) the process that watches for pauses beside every run
//
// A run whose check fails prints no figure and ends with code 1. So does one whose generator made
// the figures (INVALID), or that breaks a threshold. Read main.go; what it calls is in
// package bench and in the packages below that.
package main

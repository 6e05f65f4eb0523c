// Command clobench is the load tester: it runs seeded workloads against one part of the node or all
// of it, checks what they ended with, and prints every figure with its conditions.
//
//	clobench run      one workload at one level        ──► figure + conditions + check
//	clobench compare  node, baseline, node, baseline … ──► ratio of the medians
//	clobench order    one signed order                 ──► request and answer
//	clobench peer     (hidden) the baseline process that compare starts
//
// A run whose check fails prints no figure and ends with code 1. Read main.go; what it calls is in
// package bench.
package main

// Package tidy holds the house rules as code: who may import whom, how long a file, a function or
// a line may be, which words and shapes are not used, and what every package owes its reader. Its
// test checks the whole tree, so a rule that is broken fails "make test" and says why it is there.
//
//	tree on disk ──► Load ──► Tree ──► imports.go  who may import whom            ──┐
//	                 parse             shape.go    files, functions, types, purity  │
//	                 and resolve       text.go     words, lines, documents          ├──► []Problem
//	                                   size.go     packages, the product, methods   │
//	                                   words.go    shared names, dated decisions  ──┘
//	                                   trunk.go    the way of one order, walked by TestTrunk
//
// Contract: Check reads only, needs nothing but the tree, and never stops at the first problem.
// Every rule is a function over a parsed package, a text file or the tree, and its test has samples
// that break it and samples that do not.
//
// Read tidy.go first (the Tree and the order of the rules), then imports.go: its table is the
// architecture. Which modules go.mod may require, and why, is in budget_test.go.
package tidy

// Package fuzz runs every fuzz target of the repository for as many inputs as somebody asks for.
//
//	the tree ──► func Fuzz… ──► go test -fuzz, one after the other
//	                                  │
//	   inputs tried, failures ◄───────┘
//
// CLOBD_SIZE is how many inputs each target gets. Without it only one target runs, and not for
// long: the seeds of all run in the ordinary tests of their packages.
//
// # Contract
//
// Every parser of what strangers, files or disks may hold has a target: TestParsers names them. A
// target that fails leaves its input in testdata/fuzz of its package, and from then on the ordinary
// tests try it.
package fuzz

// Command clobsim replays cases that others wrote through the same code that the node runs.
//
//	FILE…
//	  │
//	  ▼
//	vectors ──► every disagreement by name
//	  │
//	  ▼
//	N agree, M disagree
//
// It ends with code 1 if anything disagrees. Read main.go; the checks are in package auth.
package main

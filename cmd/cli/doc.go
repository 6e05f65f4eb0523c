// Package cli is what the three programs have in common: how a command line is read, how a failure
// is told, and which code a program ends with.
//
//	args, PREFIX_… ──► kong ──► command.Run() ──► 0  done
//	                    │              ├────────► 1  failed   error: what
//	                    │              └────────► 70 broken   hint:  what to do
//	                    └───────────────────────► 2  usage
//
// The environment holds what a server is set to; where there is one, the flags of other commands
// are acts, and are given on the command line only.
//
// 70 means that a node stopped itself, or would not start, because it could no longer keep its
// promise: whatever starts programs again should leave it to a person.
//
// Read cli.go.
package cli

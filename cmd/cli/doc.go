// Package cli is what the three programs have in common: how a command line is read, how a failure
// is told, and which code a program ends with.
//
//	args, PREFIX_… ──► kong ──► command.Run() ──► 0 done
//	                    │              └────────► 1 failed   error: what
//	                    └───────────────────────► 2 usage    hint:  what to do
//
// Read cli.go.
package cli

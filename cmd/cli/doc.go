// Package cli is what the three programs have in common: how a command line is read, how a failure
// is told, and which code a program ends with.
//
//	args, PREFIX_… ──► kong ──► command.Run() ──► 0  done
//	                    │              ├────────► 1  failed   error: what
//	                    │              └────────► 70 broken   hint:  what to do
//	                    └───────────────────────► 2  usage
//
// In a program with a server the environment sets the server's flags only. 70 means that a node
// cannot keep its promise: a person should look before the node starts again. Completion makes what
// a shell offers from the same table of commands. Read cli.go, completion.go.
package cli

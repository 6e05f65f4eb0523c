// Package process is what a measurement asks of the system: processes beside its own, their
// priority and CPU time, and a thread that stays on one CPU.
//
//	the process that measures                    its own program, with a hidden command
//	  Start ─────────────────────────────────────► main
//	  Tell, Ask ──── a line of JSON each ────────► standard input, ReadLine
//	  Hear      ◄─── a line of JSON each ───────── standard output
//	  Lower ──► nice 10
//	  End   ──► killed; standard error is for the message of an error
//
// Contract: a process that Start or Command has made ends with the context, and never outlives its
// parent. A terminal's Ctrl-C does not reach it: its parent decides.
//
// Read partner.go, system.go, pin.go.
package process

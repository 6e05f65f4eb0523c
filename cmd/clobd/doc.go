// Command clobd is the node, and the operator's commands to a running one. It wires and decides
// nothing: rules are in engine, formats in journal, ingress and api.
//
//	               serve                                      fund, withdraw, link
//	                 │                                                 │
//	 listen: secrets, public door (425), admin                         │ DATA/admin.token
//	                 │                                                 ▼
//	recover: journal ──► Exchange, Board ──► index          admin listener ──► Command
//	                 │
//	   open: Started, catalog ──► List, door attached, ready
//	                 │
//	 SIGTERM: bots ──► door drains ──► writer drains ──► index, journal, admin closed
//
// Contract: starting and recovering are one path. The first failure of anything that runs ends the
// process; codes are 0 done, 1 failed, 2 wrong usage, 70 when a promise can no longer be kept.
//
// Reading order: main.go, serve.go (options), node.go (the life of a node), admin.go, demo.go,
// poison.go, operator.go.
package main

// Command clobd is the node, and the operator's commands to a running one. It wires and decides
// nothing: rules are in engine, formats in journal, ingress and api.
//
//	               serve                                      fund, withdraw, link
//	                 │                                                 │
//	checkCatalog: a bad one ends it here                              │ DATA/admin.token
//	                 │                                                 ▼
//	 listen: secrets, public door (425), admin              admin listener ──► Command
//	                 │
//	recover: journal ──► Exchange, Board ──► index
//	                 │
//	openCatalog: what is known, and what is new
//	                 │
//	  begin: Started, catalog ──► List
//	                 │
//	   open: door attached, ready; the catalog's source is looked at from now on
//	                 │
//	 SIGTERM: bots ──► door drains ──► writer drains ──► index, journal, admin closed
//
// Contract: starting and recovering are one path. The first failure of anything that runs ends the
// process; but if it was damage of the index, the node stops in order and starts again in the same
// process, which makes the index anew. Exit codes: 0 done, 1 failed, 2 wrong usage, 70 the node
// stopped itself because it could no longer keep its promise (the journal or the writer failed, the
// engine panicked) or would not start because a promise was broken already (the journal makes no
// sense, or is gone, or nobody knows how far it was acknowledged).
//
// Commands that work on a folder which no node has: verify, inspect, restore, recover, checkpoint.
// backup asks a running node, which copies while it trades; checkpoint does the same if a node has
// the folder. verify and inspect change nothing. recover repairs what it can without a loss; a loss
// it only reports, until --accept-loss. A finding that a command did not repair ends it with 1.
//
// Reading order: main.go, serve.go (options), node.go (the life of a node), admin.go, catalog.go,
// secret.go, demo.go, poison.go, operator.go; offline.go, then verify.go, inspect.go with record.go,
// backup.go, restore.go with stage.go, recover.go.
package main

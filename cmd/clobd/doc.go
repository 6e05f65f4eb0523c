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
// Contract: starting and recovering are one path. The first failure ends the process. After
// damage of the index the node starts again in the same process and makes the index anew. Exit
// codes: 0 done, 1 failed, 2 wrong usage, 70 the node cannot keep a promise (the journal or the
// writer failed, the engine panicked), or the promise was broken before the start (the journal is
// damaged or gone).
//
// verify, inspect, restore, recover and checkpoint work on a folder without a running node;
// backup, and checkpoint if a node has the folder, ask the node, which goes on trading. recover
// repairs without a loss; it accepts a loss only with --accept-loss. An open finding ends a
// command with 1. doctor looks at the machine, with or without a node: it measures beside it and
// takes no lock.
//
// Reading order: main.go, serve.go, node.go (the life of a node), admin.go with symptoms.go,
// catalog.go; stopwatch.go, blackbox.go; listen.go, harden.go, secret.go, masters.go; offline.go,
// then verify.go, inspect.go with record.go, backup.go, restore.go, recover.go; doctor.go;
// cluster.go, join.go (a cluster, and how its members change). Commands that only ask a node are in
// client/; what a browser sees is page/.
package main

// Command clobsim simulates the node's inside from seeds, and replays cases that others wrote
// through the same code that the node runs.
//
//	seed ─┬─► run      a node that crashes, disks that fail   package simulator
//	      └─► cluster  3 or 5 members, and a network          package simulator
//	            │
//	            ▼
//	the seed first; what was found, and the one command that repeats it
//
//	reliability: every fault test, at full size ──► go test ──► reliability.json
//
//	FILE…
//	  │
//	  ├─► vectors    signatures                        package vectors
//	  ├─► scenarios  books, balances and settlements   package cases ─► engine.Exchange
//	  └─► flow       a day of orders, fills and books  package cases ─► engine.Exchange
//	          │
//	          ▼
//	every disagreement by name, every skip with its reason
//	          │
//	          ▼
//	N agree, M disagree, K skipped
//
// It ends with code 1 if anything disagrees or a file cannot be read in full. Read main.go,
// run.go with package simulator, reliability.go, then replay.go.
package main

// Command clobsim replays cases that others wrote through the same code that the node runs.
//
//	FILE…
//	  │
//	  ├─► vectors    signatures                        package auth
//	  ├─► scenarios  books, balances and settlements   package cases ─► engine.Exchange
//	  └─► flow       a day of orders, fills and books  package cases ─► engine.Exchange
//	          │
//	          ▼
//	every disagreement by name, every skip with its reason
//	          │
//	          ▼
//	N agree, M disagree, K skipped
//
// It ends with code 1 if anything disagrees or a file cannot be read in full. Read main.go, then
// replay.go.
package main

// Package door attacks a node from outside, as a stranger without a key could. Its tests speak to
// the node over sockets only.
//
//	testdata/http.jsonl ──► TestRawHTTP ──► socket ──► node
//	  bytes to send,                                     │
//	  statuses to expect ◄───────────────────────────────┘
//
//	attackers, a process at nice 19 ──► node in 1 GiB ◄── honest callers, a process
//	                                     │ memory              │ times, refusals
//	                                     └──► TestAttacks ◄────┘
//
// TestAbusiveConnections opens many connections that no client would, and asks as another client
// all the while. TestAuthHeaders and TestAuthValues make their requests themselves: they ask the
// node for the key of an address without an account, and spoil one header at a time.
//
// By default the tests build a node and start it on a free port. To try another one:
//
//	go test ./scripts/door -args -address 127.0.0.1:8080 [-pid PROCESS]
//	go test ./scripts/door -args -address 127.0.0.1:8080 -chain 137 -limited
//
// TestHandshakes lets strangers begin handshakes that they never end, and open sockets and say
// nothing.
//
// CLOBD_SIZE is how many seconds an attack or the soak lasts, or how many connections abuse the
// node. Times are judged in long runs only.
//
// # Contract
//
// Each case says all statuses that its connection may carry. A refused request is the last one of
// its connection: whatever stands behind it is never answered.
//
// Under each attack the node lives, its memory has a bound and goes back, and honest callers are
// answered. Reading order: node_test.go, http_test.go, limits_test.go; attacks_test.go (what is
// judged), attackers_test.go and honest_test.go (what is sent), child_test.go; sockets_test.go,
// abuse_test.go, soak_test.go.
package door

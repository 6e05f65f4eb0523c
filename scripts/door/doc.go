// Package door attacks a node from outside, as a stranger without a key could. Its tests speak to
// the node over sockets only.
//
//	testdata/http.jsonl ──► TestRawHTTP ──► socket ──► node
//	  bytes to send,                                     │
//	  statuses to expect ◄───────────────────────────────┘
//
// TestAuthHeaders and TestAuthValues make their requests themselves: they ask the node for the key
// of an address without an account, and spoil one header at a time.
//
// By default the tests build a node and start it on a free port. To try another one:
//
//	go test ./scripts/door -args -address 127.0.0.1:8080
//	go test ./scripts/door -args -address 127.0.0.1:8080 -chain 137 -limited
//
// # Contract
//
// Each case says all statuses that its connection may carry. A refused request is the last one of
// its connection: whatever stands behind it is never answered.
package door

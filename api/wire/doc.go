// Package wire holds the words that all answers of the node share: refusals, dialects, cursors, the
// reader of queries and the pieces of JSON. The door and every room of api write with it, so that
// an error has one shape wherever it arises.
//
//	ingress   ingress/conn   api   api/account   api/wallets   api/gamma
//	    └───────────┴─────────┴─────────┴─────────────┴────────────┘
//	                              api/wire
//	                               engine
//
// Contract:
//   - Bytes are promises: a text, a code, the order of keys and the escapes of a refusal never
//     change. Contract cases in the rooms' testdata hold them.
//   - Shared values are made once and never change: any number of goroutines may send one Refusal.
//   - A text of a request is good until its handler returns: Text and Query do not copy.
//   - The package knows no route, no market and no wallet.
//
// Reading order: refusal.go, missing.go (refusals of several rooms), text.go (JSON), query.go,
// cursor.go, dialect.go.
package wire

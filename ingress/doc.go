// Package ingress is the front door: from a socket to a Command, from a Receipt to bytes. It owns
// the public listener, decides who is let in and how often, checks every signature, and is the only
// package that writes. What only reads is served by function fields, so that reading and writing
// do not know each other.
//
//	 client
//	   │ turnstile ─── too many connections, of all or of its address ──► 503, 429
//	   │ HTTP
//	┌──▼──────────────────────── fasthttp worker ────────────────────────────┐
//	│ handle ─► route ─► ready? ─no─► 425                                    │
//	│                      │                                                 │
//	│                    admit ─── a window of the address is full ──► 429   │
//	│                      │                                                 │
//	│   reads ◄────────────┼─────────────► writes                            │
//	│   Public             │               authenticate: HMAC, raw body      │
//	│   Account (after     │               admitAccount: windows of a wallet │
//	│   authenticate, or   │             ┌ accept: JSON ─► integers, owner   │
//	│   with a read-only   │     a place │ verify                            │
//	│   key)               │ in the pool │ authorize: terms, link, Command   │
//	│                      │             └ Past ─known──► the same answer    │
//	│                      │               Submit ─────┐                     │
//	└──────────────────────┼───────────────────────────┼─────────────────────┘
//	                       ▼                           ▼ parks until durable
//	                 api (view, index)           sequencer ─► engine ─► journal
//
// # Contract
//
// Bad input never reaches the engine: whatever is malformed, unsigned, unknown or too large is
// answered here, with an error object whose text is what public clients look for and whose code is
// a stable word. Nothing in an answer with a 2xx status has the key error.
//
// 503 and 425 mean that nothing happened and the same bytes may be sent again. 429 is the caller's
// own limit. 4xx is a judgement. 504 means that the outcome is unknown: an order's id is in it.
//
// An order is taken at most once. Sent again, it gets its first result with its status of today
// and X-Idempotent-Replay: true, whether the index knows it already or only the engine does; so
// does one that its own terms killed. A split, merge or redemption is named by the digest that
// its request is signed with, and repeated for two minutes.
//
// A list of orders or cancels is judged one by one and enters as neighbours in the journal; what
// keeps all of it out is the answer to the whole request, and then nothing has entered. All that
// an owner has is canceled in all wallets that he may trade for.
//
// A key that has begun to send heartbeats loses its orders when it is silent for 10 s and a
// buffer of 5 s. That it is watched is journaled, its beats are not: a restart gives it one full
// grace.
//
// Strangers make nothing durable: without an account there is no way into the ring, except for
// the faucet, which has a window per address and a cap on the wallets there are.
//
// Everything has a limit: bodies 64 KiB, of lists 256 KiB, headers 16 KiB, nesting 32,
// connections (an eighth of them for one address), callers counted, orders waiting (50 ms of
// work, a quarter of it for one caller and for all who have no account, an eighth for all key
// derivations). A shortage of descriptors is waited out. Bodies are copied out of the request
// before it is answered.
//
// Whoever has a place in the pool computes: he waits for nothing while he holds it, neither for
// bytes nor for the ring, the index, the reader of his answer or a second place. Cancels,
// heartbeats and reads need none.
//
// # Reading order
//
// listener.go and turnstile.go (who gets a connection), deadlines.go (for how long), server.go
// (route table), order.go (the story of an order), bundle.go (of a list), cancel.go, tokens.go,
// heartbeat.go, keys.go (who asks), records.go (which keys there are), decode.go and scan.go (JSON
// to integers), reply.go (integers to JSON), limits.go, pool.go, seat.go, admin.go (the operator's
// writes), metrics.go.
package ingress

// Package ingress is the front door: from a socket to a Command, from a Receipt to bytes. It
// decides who is let in and how often, checks every signature, and is the only package that enters
// Commands. Routes that only read are function fields, so that reading and writing do not know each
// other.
//
//	 client
//	   │ conn ─── too many connections, of all or of its address ──► 503, 429
//	   │ HTTP
//	┌──▼──────────────────────── fasthttp worker ─────────────────────────────┐
//	│ handle ─► gate: ready? windows of the address? ─no─► 425, 429           │
//	│             │                                                           │
//	│   reads ◄───┴───► writes: authenticate (HMAC over the raw body),        │
//	│   Public,         unless too many have failed; windows of the account   │
//	│   Account           │                                                   │
//	│                     │ in a seat of the pool                             │
//	│                     ├─ judge: JSON ─► integers, terms, owner, signature │
//	│                     ├─ Past: does the index know the order? ─► replay   │
//	│                     └─ Enter ─────────┐                                 │
//	└───────────────────────────────────────┼─────────────────────────────────┘
//	                                        ▼ parks until durable
//	                            sequencer ─► engine ─► journal
//
// # The way of one order
//
// The functions that an accepted order runs through, in their order. Each is called by an earlier
// one, or handed over by what follows "by". No file is visited twice. Left out are leaves:
// parsers (form.Decode), writers (appendResult), arithmetic, queues and locks.
//
//	ingress.Server.handle      ingress/server.go
//	ingress.Server.gate        ingress/server.go             by ingress.Server.routes
//	ingress.door.admit         ingress/limits.go
//	ingress.Server.tells       ingress/story.go              by ingress.Server.gate
//	ingress.door.authenticate  ingress/caller.go
//	auth.Keyring.Authenticate  ingress/auth/keyring.go
//	ingress.orders.judge       ingress/judge.go              by ingress.placing.Judge
//	auth.Verifier.Verify       ingress/auth/verifier.go
//	ingress.orders.enterOne    ingress/order.go              by ingress.placing.Enter
//	sequencer.Sequencer.Enter  engine/sequencer/sequencer.go by ingress.Options.Enter
//	sequencer.Sequencer.Step   engine/sequencer/matcher.go   by sequencer.Sequencer.ring
//	sequencer.Sequencer.fill   engine/sequencer/matcher.go
//	engine.Exchange.Apply      engine/exchange.go
//	sequencer.Sequencer.Append engine/sequencer/appender.go  by sequencer.Sequencer.applied
//	journal.Journal.Append     journal/journal.go
//	sequencer.Sequencer.Commit engine/sequencer/committer.go by sequencer.Sequencer.appended
//	journal.Journal.Wait       journal/wait.go
//	view.Board.Publish         engine/view/board.go
//
// # Contract
//
// 503 and 425 mean that nothing happened and the same bytes may be sent again. 429 is the caller's
// own limit. 504 means that the outcome is unknown: the answer has the order's id. Any other 4xx
// changed nothing. An error object has a text that clients look for and a code that never changes.
//
// An order is taken at most once. Sent again, it gets its first result with its status of today and
// X-Idempotent-Replay: true. A split, merge or redemption is named by its Idempotency-Key, for
// good, or else for two minutes by the digest that its request is signed with. Orders and cancels
// of a list are judged each for itself and enter as neighbours in the journal, or none does.
//
// A key that sends heartbeats loses its orders after 15 s of silence. Strangers make nothing
// durable, but for the faucet, which has limits of its own. Everything has a limit: bodies 64 KiB,
// lists 256 KiB, headers 16 KiB, nesting 32, connections, callers, seats and their queue. Whoever
// holds a seat computes, and waits for nothing but the orders that share the seat.
//
// # Reading order
//
// The way above; replay.go (an order that is sent again), idempotency.go (a transfer), bundle.go
// (lists), answer (results and refusals of orders); secure.go (TLS); cancel.go, tokens.go,
// heartbeat.go; keys.go, records.go, faucet.go; claims.go (failures; the packages below: limits
// counts, conn holds sockets, auth holds keys, cors speaks to browsers, head judges heads, party
// shares seats); door.go (all other Commands), options.go, routes.go, pool.go, metrics.go; operator
// (the operator's requests).
package ingress

// Package role is what a node does for the truth: who gives Commands their Sequence, who makes them
// durable, and who computes everything a second time. "Alone" is the only role so far: the node has
// no others beside it, so it writes the journal itself. A leader, a follower and a gateway will
// differ from it here and nowhere else.
//
//	           Recover                          Start                        Close
//	journal ────────────► Exchange, Board ────────────► writer ──────────────────► drained
//	                                                       ▲ Supply: Enter, EnterAll
//	                                                     door
//	journal ───────────────────────────────────────────► follower ──► checkpoints ──► stopped
//
// Contract: nothing is entered before Start has returned. Supply gives the door functions, so the
// door does not see which role is behind them. Failed is called once, with the first failure of the
// writer or the follower. After a failure of the writer nothing is acknowledged. Close joins the
// writer and the follower. The caller closes the readers of the journal, and then the journal.
//
// Read alone.go.
package role

// Package role is what a node does for the truth: who gives Commands their Sequence, who makes them
// durable, and who computes everything a second time. "Alone" has no others beside it, and writes
// the journal itself. "Together" is a member of a cluster, and whatever it is now, a leader, a
// follower or a gateway, differs here and nowhere else.
//
//	alone     door ─► writer ─► journal            journal ─► follower ─► checkpoints
//
//	together  door ─┬─► writer ─► Lead ─► agreement ─► journals of all members
//	                └─► relay ═══► the member that leads
//	          journal ─┬─► Board, unless a writer shows what it has committed
//	                   ├─► spare Exchange: the next writer's
//	                   └─► follower ─► checkpoints
//
// Contract: nothing is entered before Start has returned. Supply gives the door functions, so the
// door does not see which role is behind them. Failed is called once, with the first failure of the
// writer or the follower. After a failure of the writer nothing is acknowledged. Close joins the
// writer and the follower. The caller closes the readers of the journal, and then the journal.
//
// A member has one writer at a time, and only while it leads. The writer takes over the spare
// Exchange, to which only committed frames were applied. When the lead is lost, a writer that has
// applied nothing else gives the Exchange back. After any other writer, the spare is made anew of a
// checkpoint. Callers of frames in flight are told that the outcome is unknown.
//
// Read role.go, alone.go; member.go, leading.go, replica.go, heir.go, hello.go;
// ready.go, change.go, guest.go, heal.go, copy.go, standing.go, found.go; metrics.go.
package role

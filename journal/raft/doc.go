// Package raft makes the members of a cluster agree on the frames of one journal. The log they
// agree on is the journal: a frame is an entry, written once, in its database and its chain.
//
//	 matcher                              member that leads                     other members
//	┌───────────┐ Append  ┌──────┐ take  ┌───────┐ Work.Send (entries)        ┌───────┐
//	│ sequencer ├────────►│ Lead ├──────►│ Core  ├───────────────────────────►│ Core  │
//	│           │◄────────┤      │◄──────┤       │◄───────────────────────────┤       │
//	└───────────┘  Wait   └──────┘commit │ Tick, │  answers, once their disk  │       │
//	                                     │ Step, │  has what they answer for  └───┬───┘
//	              Tails, mark            │ Ready │                                │
//	            ┌──────────┐   Commit    └─┬───▲─┘ Work.Write                     │ Write
//	            │ readers: │◄──────────────┤   │ Written                          │
//	            │ committed│           ┌───▼───┴──────────────────┐     ┌─────────▼─────────┐
//	            │ frames   │           │ journal.Agreed           │     │ journal.Agreed    │
//	            └──────────┘           │ Write … Settle: one sync │     │ the same frames   │
//	                                   └──────────────────────────┘     └───────────────────┘
//
// The contract:
//
//   - Lead.Wait(n) returns nil only when frames 1 to n are on the disks of a majority. The leader's
//     own sync runs beside those of the others, and is one of them.
//   - A member answers for an entry, a term or a vote only when its disk has it. What it answered
//     for is in its mark, too: one that finds less in its journal never votes again.
//   - Readers of a member's journal see committed frames only, each durable on that member.
//   - A Lead ends with its term, with the first frame that the cluster does not take, and with its
//     member. Whoever waits for a frame that is not known to be committed then gets ErrLost: its
//     outcome is unknown. Frames carry their term as epoch, and a Lead takes no other.
//   - A Lead begins when everything in the log, an entry of its own term included, is committed and
//     on this member's disk: its Head is the end of the frames that this member's readers see.
//
// A Core has no clock, goroutine, disk or network: the simulator runs several of them in virtual
// time, with all that can go wrong. A Peer runs one for real, and a Network carries its messages
// over TCP, with both ends proving who they are.
//
// Read lead.go, core.go, storage.go, peer.go, network.go. DESIGN.md has the rules, the figures and
// the decisions; the rows in the database are described in the journal's DESIGN.md.
package raft

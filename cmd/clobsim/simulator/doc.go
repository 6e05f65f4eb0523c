// Package simulator runs the node's inside in one goroutine, in virtual time, against disks that
// crash, fill up, fail and tear. All that happens is drawn from one seed: the same seed is the same
// run, to the byte.
//
//	             seed
//	               │
//	     ┌─────────┴─────────┐
//	     ▼                   ▼
//	 plan: rules, sizes   dice: what happens next
//	     │                   │
//	     ▼                   ▼
//	traders ──Enter──► Sequencer: Step ─► Append ─► Commit ──Receipts──► checks
//	   ▲                   │ Exchange      │ disk     │ Board              ▲
//	   │                   │               ▼          └──Snapshots─────────┤
//	   │                   │      memory, or Pebble on                     │
//	   │                   │      a crashable filesystem ──what is left────┤
//	   └──sent again───────┴─────────── start: replay ◄──crash─────────────┘
//
// What is real: the engine, the Sequencer's three stages, the Board, and on the Pebble disk the
// journal with its database. What is not: goroutines, clocks, HTTP. The stages are called in an
// order that is drawn, so that every crash finds batches stepped, appended, synced and committed in
// every mixture.
//
// Checked after every step: nothing is visible or acknowledged that is not durable. After every
// frame: what any observer can add up from its Events, the witness: cash and tokens conserved,
// reserves covered, price and time priority, nobody trades after his expiry, no crossed book, an id
// counts once, and the Board shows the same. After every start: what was acknowledged is there,
// with the same Receipt; what else is there was sent, and follows without a gap; the Digests agree.
// At the end everything is committed, started once more, and compared.
//
// Two Pebble databases never do their background work at the same moments, so what a crash leaves
// of the log is decided here, not by the timing of goroutines: a sync of the log waits until the
// dice let it through, and unsynced blocks are kept by dice of their own.
//
// A simulator that cannot fail proves nothing: Options.Sabotage builds in mistakes, and the tests
// require that a run finds them.
//
// RunCluster does the same with 3 or 5 members of a cluster, each with the real agreement and the
// real journal on a disk that crashes. What it adds: a network that loses, delays, doubles and
// reorders, cuts of many shapes, pauses, clocks that jump, crashes that tear a write, flipped bits,
// and members that leave and join. Checked: all members show the same frames, for ever; what is
// acknowledged is on a majority's disks, and never lost; a term has one leader; an order counts
// once; time never runs backwards; and once everything is healed, the cluster goes on and is whole.
// All that a disk does happens at a moment that is drawn, so no goroutine decides anything.
//
// Read simulator.go (Options, Run), plan.go, then step.go, traders.go, witness.go, check.go,
// recover.go, and the two disks, memory.go and pebble.go. Of a cluster: cluster.go, seat.go,
// leader.go, nemesis.go.
package simulator

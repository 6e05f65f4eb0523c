// Package bench measures clobd: four levels of one workload, and the baselines that run beside the
// node. Package workload knows what is sent and what must come of it, trader has the client that
// signs, lean the thread that sends, matching the matchers, fanout the market stream beside others,
// crowd the subscribers to streams, report pages for people, diff the comparison of runs, budget
// the division of a CPU profile among stages, process what all of them ask of the system.
//
//	package workload: a seed, or a recording
//	       │
//	      Draw ──► []Op ───────────────┬─────────────┬────────────────┐
//	       │                           │             │                │
//	       ▼                           ▼             ▼                ▼
//	   Expected      checks   L0  Exchange.Apply    L1 Submit,    L3 volley: lean,
//	               ──────────►    one goroutine     L2 + Pebble      signed, over HTTP
//	                                   └──────┬──────┴────────────────┘
//	                                          ▼
//	                   Report: figure, latencies, counts, digest, Conditions
//	                                          ▲
//	       the node's /readyz and /metrics ───┴─── hiccup meter, own process
//
// Each level adds one cost to the one before it, so the difference between two levels is that
// cost. Every run checks what it ended with: L0 against the generator's own model of the book, the
// others by replaying their journal and looking for each order that was acknowledged. A run that
// fails its check has no figure.
//
// A run may also replay what a node has recorded, in place of what Draw draws.
//
// Reading order: drive.go (how work is driven and clocked), load.go (levels L0 to L2), funds.go
// (markets and money at L3), http.go and volley.go (level L3), playback.go (what a node recorded,
// there), replay.go (the check), compare.go (interleaved rounds against the baselines of peer.go
// and naive.go, or of one node in batch.go and entry.go), child.go (their processes),
// conditions.go, node.go, disk.go and hiccup.go (what a figure was taken under), record.go and
// report.go (what is kept and printed), turns.go (runs in turns), pace.go, ramp.go, flood.go,
// overload.go, streams.go, stall.go, inside.go and pages.go (open loops), agree.go (beside wrk),
// bookkeeper.go (what wallets must hold), observe.go, verdict.go, thresholds.go and progress.go
// (what a run says beside its figures), budgeted.go (where the CPU time goes), soak.go, keys.go and
// listeners.go (long runs, wallets that have funds, subscribers), order.go (one order by hand).
package bench

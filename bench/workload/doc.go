// Package workload knows what is sent to a venue and what must come of it: the mixes of operations,
// the operations that a seed draws from one, or that a node has recorded, and a model that says how
// they end. It sends nothing and measures nothing.
//
//	a name, or a file of lines            the journal of a stopped node
//	     │ Named, ReadMix                      │ Recorded: frames
//	     ▼                                     ├────────────────┬──────────────┐
//	Workload, a seed                           ▼                ▼              ▼
//	     │ Draw                             ReadScore       Rehearse         Film
//	     ▼                                     │                │              │
//	generator ◄─ dice                          ▼                │              ▼
//	     │  aims at what rests           Score: []Op, stakes    │           Reel.Apply:
//	     ▼                                     │                │           as recorded,
//	model: queues by price                     │                │           digests equal
//	     │                                     │                │
//	     ▼                                     │                │
//	[]Op, Expected ─────────────┬──────────────┘                │
//	     │          │           ▼                               ▼
//	     │          │  Commands ──► Exchange.Apply, Sequencer ◄─┘
//	     │          └─────────────────┐  │
//	     │ Together: lists            ▼  ▼
//	     ▼                  Tally.Check: equal, or there is no figure
//	signed, over HTTP: package bench
//
// # Contract
//
// The same workload, seed and sizes draw the same operations on every processor, and a draw is a
// prefix of each longer one from the same seed. Figures of years are comparable because of that:
// the digests of three seeds of each workload are in a test, and a workload that exists is not
// changed. What is not drawn but computed (dice.go) avoids all floating point that processors
// round differently.
//
// The model shares no code with the engine. Both know self-trades, FAKs with their budgets, mints
// and merges; the model knows no balances, so Setup gives everybody enough.
//
// A recording is read and never written. What of it cannot be played is counted by kind
// (Score.Left), and left out nowhere in silence.
//
// Read workload.go, mix.go, generate.go, model.go, dice.go, world.go, then recording.go, score.go.
package workload

package view

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"clobd/engine"
)

// Board holds the current Snapshot of every market and the Directory: all that readers may know of
// an Exchange. One goroutine calls Publish; any goroutine may call the other methods.
//
// Publish makes a frame visible in this order: Sequence, Directory, Snapshots. A reader that has
// seen a frame in one of them also sees it in all those named before. So:
//
//   - no Snapshot and no row of the Directory is newer than a Sequence loaded after it;
//   - the Directory has the markets and wallets of every Snapshot.
//
// In the other direction nothing is guaranteed until Publish returns; then the whole frame is
// visible. So Sequence is an upper bound of what is visible, and an acknowledgement a lower bound.
type Board struct {
	Directory *Directory // set once, by NewBoard
	// Version is that of the rules in force after the last frame. Whoever makes a Board of a
	// checkpoint sets it.
	Version atomic.Uint32

	sequence, shown           atomic.Uint64
	frames, snapshots, chunks atomic.Uint64

	// The writer's own.
	drafts []draft     // of the frames that are folded and not shown
	now    engine.Time // of the last frame
}

// Counters are what a Board has published since it was made, and what it holds. What they count
// was visible before: what a reader sees later is at least as new.
type Counters struct {
	Frames    uint64 // published
	Snapshots uint64 // published
	Chunks    uint64 // of 64 levels, copied or made for those Snapshots
	Changes   uint64 // of listings, states, rules and modes of markets
	Markets   uint32 // listed
	Wallets   uint32 // numbered, owners included
}

// NewBoard returns an empty Board. Strangers choose tokens, so a random seed salts its tables.
func NewBoard() *Board {
	return &Board{Directory: newDirectory(maphash.MakeSeed())}
}

// Publish folds the Commands and Events of a durable frame into the Board; when it returns, the
// whole frame is visible. Frames must follow each other without gaps; the first may begin at any
// Sequence. Publish keeps nothing of f. Only one goroutine may call it. Publish panics on Events
// that contradict earlier ones, because readers would see other books than the Exchange has.
func (b *Board) Publish(f *engine.Frame) {
	b.Replay(f)
	b.Show()
}

// Replay folds a frame like Publish, but shows no Snapshots. That saves most of the cost when many
// frames change the same markets before anybody may read. Show, or the next Publish, shows the
// Snapshots, each as of the last frame that changed its market.
func (b *Board) Replay(f *engine.Frame) {
	last := f.Last()
	if before := b.Sequence(); before != 0 && f.First != before+1 {
		panic(fmt.Sprintf("BUG: frame %d starts at %d after %d", f.No, f.First, before))
	}
	b.sequence.Store(uint64(last))
	b.Version.Store(uint32(f.Engine))
	b.now = f.Time
	for i := range f.Commands {
		c, events := &f.Commands[i], f.EventsOf(i)
		b.Directory.named(c.Wallet, last)
		b.Directory.named(c.Owner, last)
		for j := range events {
			b.fold(c, &events[j], last, f.Time)
		}
	}
	b.frames.Add(1)
}

// Show shows the Snapshots of all folded frames. Only the writer may call it.
func (b *Board) Show() {
	for i := range b.drafts {
		d := &b.drafts[i]
		d.finish()
		d.row.draft = 0
		d.row.snapshot.Store(d.next)
		b.chunks.Add(uint64(d.copied))
	}
	b.snapshots.Add(uint64(len(b.drafts)))
	clear(b.drafts)
	b.drafts = b.drafts[:0]
	b.shown.Store(b.sequence.Load())
}

// fold applies one Event of Command c to the Directory and to the draft of its market.
func (b *Board) fold(c *engine.Command, e *engine.Event, last engine.Sequence, now engine.Time) {
	price, side := mirror(e.Outcome, e.Price), turn(e.Outcome, e.Side)
	switch e.Kind {
	case engine.Listed:
		row := b.Directory.list(e.Market, c.Listing, e.State)
		b.draft(row).next.Market = row.market.Load()
	case engine.Deposited, engine.Collected:
		b.Directory.number(e.Wallet, c.Address, last)
	case engine.Linked:
		b.Directory.number(e.Wallet, c.Address, last)
		b.Directory.number(e.Owner, c.Holder, last)
		b.Directory.link(e.Wallet, e.Owner)
	case engine.KeySet:
		b.Directory.setKey(e, now)
	case engine.Armed:
		b.Directory.arm(e)
	case engine.Placed:
		b.market(e).add(side, price, e.Remaining)
	case engine.Filled:
		d := b.market(e)
		d.add(side, price, -e.Size)
		d.next.last, d.next.taker = price, side.Other()
	case engine.Cancelled:
		b.market(e).add(side, price, -e.Remaining)
	case engine.StateChanged, engine.Adjusted, engine.Resolved, engine.ModeSet:
		b.control(c, e)
	}
	b.Directory.named(e.Wallet, last)
	b.Directory.named(e.Owner, last)
}

// control applies the Event of an operator's Command to a market, to a wallet or to all markets.
func (b *Board) control(c *engine.Command, e *engine.Event) {
	if e.Kind == engine.ModeSet && e.Wallet != 0 {
		b.Directory.setWalletMode(e.Wallet, e.Mode)
		return
	}
	if e.Kind == engine.ModeSet && e.Market == 0 {
		b.Directory.mode.Store(uint32(e.Mode))
		b.Directory.changes.Add(1)
		return
	}
	d := b.market(e)
	was := d.next.Market.Tick
	b.Directory.change(d.row, func(m *Market) {
		switch e.Kind {
		case engine.StateChanged:
			m.enter(e.State, b.now)
		case engine.Adjusted:
			l := c.Listing
			m.Tick, m.MinSize, m.MinBuy, m.Fee = l.Tick, l.MinSize, l.MinBuy, l.Fee
		case engine.Resolved:
			m.enter(engine.Settled, b.now)
			m.Payout = e.Price
		case engine.ModeSet:
			m.Mode = e.Mode
		}
	})
	if d.next.Market = d.row.market.Load(); d.next.Market.Tick != was {
		d.retick(was)
	}
}

func (b *Board) market(e *engine.Event) *draft {
	row := b.Directory.markets.at(uint32(e.Market))
	if row == nil || row.market.Load() == nil {
		panic(fmt.Sprintf("BUG: event %d of market %d, which is not listed", e.Kind, e.Market))
	}
	return b.draft(row)
}

// draft returns the market's draft, if need be a new one. It is valid until the next call.
func (b *Board) draft(row *marketRow) *draft {
	if row.draft == 0 {
		b.drafts = append(b.drafts, newDraft(row, row.snapshot.Load()))
		row.draft = int32(len(b.drafts))
	}
	d := &b.drafts[row.draft-1]
	d.next.Sequence, d.next.Time = b.Sequence(), b.now
	return d
}

// Book returns the current Snapshot of the market of t, and which of its outcomes t is. The bool is
// false if no market lists t. Book takes no lock and does not allocate.
func (b *Board) Book(t engine.Token) (*Snapshot, engine.Outcome, bool) {
	row, _, o := b.Directory.token(&t)
	if row == nil {
		return nil, 0, false
	}
	s := row.snapshot.Load()
	return s, o, s != nil
}

// Condition returns the current Snapshot of a condition, nil if it is not listed.
func (b *Board) Condition(c engine.Condition) *Snapshot {
	row, _ := b.Directory.condition(&c)
	if row == nil {
		return nil
	}
	return row.snapshot.Load()
}

// Sequence returns the last Sequence of the newest frame that may be visible, 0 before the first.
func (b *Board) Sequence() engine.Sequence { return engine.Sequence(b.sequence.Load()) }

// Shown returns a Sequence that is visible with all before it: a lower bound, as Sequence is an
// upper bound. It is 0 before the first Show.
func (b *Board) Shown() engine.Sequence { return engine.Sequence(b.shown.Load()) }

// Counters returns the Board's counters: each exact, but not all of the same moment.
func (b *Board) Counters() Counters {
	return Counters{
		Frames:    b.frames.Load(),
		Snapshots: b.snapshots.Load(),
		Chunks:    b.chunks.Load(),
		Changes:   b.Directory.changes.Load(),
		Markets:   b.Directory.listed.Load(),
		Wallets:   b.Directory.numbered.Load(),
	}
}

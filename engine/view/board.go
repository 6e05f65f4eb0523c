package view

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"clobd/engine"
)

// Board holds the current Snapshot of every market, the Directory and the Feed: all that readers
// may know of an Exchange. One goroutine calls Publish; everybody may call the rest at any time.
//
// Publish makes a frame visible in this order: Sequence, Directory, Snapshots, Feed. So a reader
// that has seen one of them and then asks for one named before it gets that as new or newer:
//
//   - no Snapshot and nothing of the Directory is above a Sequence loaded after it;
//   - the markets and wallets that a Snapshot came from are in the Directory;
//   - who was handed a frame by the Feed finds it in the Snapshots.
//
// The other way round nothing is promised until Publish returns; then all is visible. So Sequence
// says what may be visible, and the return of Publish, hence an acknowledgement, what is.
type Board struct {
	// Directory and Feed are set once, by NewBoard.
	Directory *Directory
	Feed      *Feed

	sequence                  atomic.Uint64
	frames, snapshots, chunks atomic.Uint64

	drafts []draft     // of the frames that are folded and not shown; the writer's own
	now    engine.Time // of the last frame; the writer's own
}

// Counters are what a Board has done since it was made, and what it holds.
type Counters struct {
	Frames    uint64 // published
	Snapshots uint64 // published
	Chunks    uint64 // of 64 levels, copied or made for those Snapshots
	Markets   uint32 // listed
	Wallets   uint32 // numbered, owners included
}

// NewBoard is an empty Board. Its tables are salted by a random seed, because strangers choose
// tokens and addresses.
func NewBoard() *Board {
	return &Board{Directory: newDirectory(maphash.MakeSeed()), Feed: newFeed(feedFrames)}
}

// Publish folds the Commands and Events of a durable frame into the Board; when it returns all of
// it is visible. Frames come in order without gaps; the first may begin at any Sequence. Of f only
// f.Bytes is kept, for the Feed: they must not change any more, unless nobody subscribed yet. One
// goroutine may call it. It panics on Events that contradict those before: then the books that
// clients see would no longer be those of the Exchange.
func (b *Board) Publish(f *engine.Frame) {
	b.follow(f)
	b.Settle()
	b.Feed.push(f)
}

// Replay folds a frame as Publish does, but shows no Snapshot of it: that costs most where many
// frames touch the same markets before anybody may look. Settle, or the next Publish, shows the
// Snapshots, each of the last frame that touched its market. The Feed does not get the frame.
func (b *Board) Replay(f *engine.Frame) { b.follow(f) }

// follow folds a frame: the Directory shows it, the Snapshots do not yet.
func (b *Board) follow(f *engine.Frame) {
	last := f.Last()
	if before := b.Sequence(); before != 0 && f.First != before+1 {
		panic(fmt.Sprintf("BUG: frame %d starts at %d after %d", f.No, f.First, before))
	}
	b.sequence.Store(uint64(last))
	b.now = f.Time
	for i := range f.Commands {
		c, events := &f.Commands[i], f.EventsOf(i)
		b.Directory.touch(c.Wallet, last)
		b.Directory.touch(c.Owner, last)
		for j := range events {
			b.fold(c, &events[j], last, f.Time)
		}
	}
	b.frames.Add(1)
}

// Settle shows the Snapshots of all that was folded. The writer calls it.
func (b *Board) Settle() {
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
}

// fold applies one Event of Command c: to the Directory at once, to a market's draft for later.
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
	b.Directory.touch(e.Wallet, last)
	b.Directory.touch(e.Owner, last)
}

// control applies what an operator's Command did to a market, or to all.
func (b *Board) control(c *engine.Command, e *engine.Event) {
	if e.Kind == engine.ModeSet && e.Wallet != 0 {
		b.Directory.setWalletMode(e.Wallet, e.Mode)
		return
	}
	if e.Kind == engine.ModeSet && e.Market == 0 {
		b.Directory.mode.Store(uint32(e.Mode))
		return
	}
	d := b.market(e)
	was := d.next.Market.Tick
	b.Directory.change(d.row, func(m *Market) {
		switch e.Kind {
		case engine.StateChanged:
			m.State = e.State
		case engine.Adjusted:
			l := c.Listing
			m.Tick, m.MinSize, m.MinBuy, m.Fee = l.Tick, l.MinSize, l.MinBuy, l.Fee
		case engine.Resolved:
			m.State, m.Payout = engine.Settled, e.Price
		case engine.ModeSet:
			m.Mode = e.Mode
		}
	})
	if d.next.Market = d.row.market.Load(); d.next.Market.Tick != was {
		d.retick(was)
	}
}

// market is the draft of the market that e names.
func (b *Board) market(e *engine.Event) *draft {
	row := b.Directory.markets.at(uint32(e.Market))
	if row == nil || row.market.Load() == nil {
		panic(fmt.Sprintf("BUG: event %d of market %d, which is not listed", e.Kind, e.Market))
	}
	return b.draft(row)
}

// draft is the market's draft, of the frame that is being folded, begun if need be from its current
// Snapshot. The pointer holds until the next call.
func (b *Board) draft(row *marketRow) *draft {
	if row.draft == 0 {
		next := &Snapshot{Market: row.market.Load(), ladder: &empty}
		if was := row.snapshot.Load(); was != nil {
			next.ladder, next.depth = was.ladder, was.depth
			next.last, next.taker = was.last, was.taker
		}
		b.drafts = append(b.drafts, draft{row: row, next: next})
		row.draft = int32(len(b.drafts))
	}
	d := &b.drafts[row.draft-1]
	d.next.Sequence, d.next.Time = b.Sequence(), b.now
	return d
}

// Book is the current Snapshot of the market that t belongs to, and which of its outcomes t is. It
// says false if no such token is listed. It takes no lock and does not allocate.
func (b *Board) Book(t engine.Token) (*Snapshot, engine.Outcome, bool) {
	row, _, o := b.Directory.token(&t)
	if row == nil {
		return nil, 0, false
	}
	s := row.snapshot.Load()
	return s, o, s != nil
}

// Condition is the current Snapshot of a condition, nil if it is not listed.
func (b *Board) Condition(c engine.Condition) *Snapshot {
	row, _ := b.Directory.condition(&c)
	if row == nil {
		return nil
	}
	return row.snapshot.Load()
}

// Sequence is the last of the newest frame of which anything may be visible, 0 before the first.
func (b *Board) Sequence() engine.Sequence { return engine.Sequence(b.sequence.Load()) }

// Counters are the Board's counters: each exact, but not all of the same moment.
func (b *Board) Counters() Counters {
	return Counters{
		Frames:    b.frames.Load(),
		Snapshots: b.snapshots.Load(),
		Chunks:    b.chunks.Load(),
		Markets:   b.Directory.listed.Load(),
		Wallets:   b.Directory.numbered.Load(),
	}
}

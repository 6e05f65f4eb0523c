package journal

import (
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"clobd/engine"
)

const (
	makerMarkets = 4
	makerWallets = 8
	makerTime    = engine.Time(1_700_000_000_000)
)

// maker makes the frames that a sequencer would: real Commands through a real Exchange.
type maker struct {
	x      *engine.Exchange
	r      *rand.Rand
	head   engine.Head
	script []engine.Command // comes before anything random
	live   []engine.OrderID
	owners map[engine.OrderID]engine.WalletNo
	rules  [makerMarkets + 1]engine.Listing // by market, as they are now
	ids    uint64
	now    engine.Time // of the last frame, since makerTime
	epoch  uint64      // 0: 1
}

// newMaker makes a market with funded wallets and then random traffic.
func newMaker(seed uint64) *maker {
	m := &maker{x: engine.NewExchange(seed), r: rand.New(rand.NewPCG(seed, 1)),
		owners: make(map[engine.OrderID]engine.WalletNo)}
	m.script = append(m.script, engine.Command{Kind: engine.Started})
	for i := range makerMarkets {
		l := &engine.Listing{Group: uint64(i), Tick: 100, MinSize: 5 * engine.Unit, Open: true,
			Fee: engine.Fee{Rate: uint16(100 * i), Exponent: 1}}
		l.Condition[0], l.Tokens[0][0], l.Tokens[1][0] = byte(i+1), byte(2*i+1), byte(2*i+2)
		m.script = append(m.script, engine.Command{Kind: engine.List, Listing: l})
	}
	for i := range makerWallets {
		a := engine.Address{19: byte(i + 1)}
		m.script = append(m.script, engine.Command{Kind: engine.Deposit, ID: m.id(),
			Address: a, Cash: 1_000_000_000 * engine.Unit})
		for no := range makerMarkets {
			for o := range engine.Outcome(2) {
				m.script = append(m.script, engine.Command{Kind: engine.Deposit, ID: m.id(),
					Address: a, Market: engine.MarketNo(no + 1), Outcome: o, Size: 1_000_000 * engine.Unit})
			}
		}
	}
	return m
}

// id draws an id that was never used.
func (m *maker) id() engine.OrderID {
	m.ids++
	var id engine.OrderID
	binary.BigEndian.PutUint64(id[:], m.r.Uint64())
	binary.BigEndian.PutUint64(id[24:], m.ids)
	return id
}

// command is the next Command: a cancel in three of ten cases.
func (m *maker) command() engine.Command {
	if len(m.script) > 0 {
		c := m.script[0]
		m.script = m.script[1:]
		return c
	}
	if len(m.live) > 0 && m.r.IntN(10) < 3 {
		i := m.r.IntN(len(m.live))
		id := m.live[i]
		m.live[i] = m.live[len(m.live)-1]
		m.live = m.live[:len(m.live)-1]
		return engine.Command{Kind: engine.Cancel, ID: id, Owner: m.owners[id]}
	}
	w := engine.WalletNo(1 + m.r.IntN(makerWallets))
	size := int64(5+m.r.IntN(40)) * engine.Unit
	price := int64(40 + m.r.IntN(20))
	c := engine.Command{Kind: engine.Place, Side: engine.Side(m.r.IntN(2)),
		Outcome: engine.Outcome(m.r.IntN(2)), Market: engine.MarketNo(1 + m.r.IntN(makerMarkets)),
		Wallet: w, Owner: w, Key: uint32(w) * 7, Size: engine.Size(size),
		Cash: engine.Cash(size * price / 100), Seen: m.head.Sequence, ID: m.id(),
		Proof: make([]byte, 200)}
	switch m.r.IntN(50) {
	case 0: // off the grid: refused, binds nothing
		c.Cash += 3000
	case 1: // a duplicate
		if len(m.live) > 0 {
			c.ID = m.live[m.r.IntN(len(m.live))]
		}
	case 2: // another fee
		l := m.rules[c.Market]
		l.Fee.Rate = uint16(m.r.IntN(500))
		return engine.Command{Kind: engine.Adjust, Market: c.Market, Listing: &l}
	}
	for i := range c.Proof {
		c.Proof[i] = byte(m.r.Uint32())
	}
	return c
}

// frame makes the next frame, of n Commands.
func (m *maker) frame(n int) *engine.Frame {
	f := &engine.Frame{Engine: engine.Version, Epoch: max(1, m.epoch), No: m.head.Frame + 1,
		First: m.head.Sequence + 1, Time: makerTime + engine.Time(m.head.Frame) + m.now}
	for i := range n {
		c := m.command()
		seq := f.First + engine.Sequence(i)
		at := len(f.Events)
		f.Commands = append(f.Commands, c)
		f.Events = m.x.Apply(&c, seq, f.Time, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
		m.note(&c, f.Events[at:])
	}
	f.Digest = m.x.Digest()
	f.Encode(m.head.Hash)
	m.head = f.Head()
	return f
}

// soon is how long a test waits until it says that something hangs or does not come. No machine is
// so slow that it comes later.
const soon = 2 * time.Minute

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// write appends and waits for frames of n Commands each.
func (m *maker) write(t testing.TB, j *Journal, frames, n int) {
	t.Helper()
	for range frames {
		f := m.frame(n)
		if err := j.Append(f); err != nil {
			t.Fatal(err)
		}
		if err := j.Wait(f.No); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens a journal and recovers it without replay.
func open(t testing.TB, o Options) *Journal {
	t.Helper()
	if o.Log == nil {
		o.Log = quiet()
	}
	j, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Recover(nil, nil); err != nil {
		t.Fatal(err)
	}
	return j
}

// shut closes what must close without an error.
func shut(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// note remembers which orders can be cancelled, and by whom.
func (m *maker) note(c *engine.Command, es []engine.Event) {
	for i := range es {
		switch e := &es[i]; e.Kind {
		case engine.Listed, engine.Adjusted:
			m.rules[e.Market] = *c.Listing
		case engine.Placed, engine.Completed, engine.Rejected:
			if c.Kind == engine.Place && (e.Kind != engine.Rejected || engine.Rejects[e.Reject].Final) {
				m.owners[c.ID] = c.Owner
				m.live = append(m.live, c.ID)
			}
		}
	}
}

package history

import (
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal"
)

const (
	makerMarkets = 4
	makerWallets = 8
	makerTime    = engine.Time(1_700_000_000_000)
)

// maker makes the frames that a sequencer would: real Commands through a real Exchange. It keeps a
// plain model of all orders beside it, which the index must equal.
type maker struct {
	x        *engine.Exchange
	r        *rand.Rand
	head     engine.Head
	journal  uint64
	script   []engine.Command // Commands before the random ones
	live     []engine.OrderID
	orders   map[engine.OrderID]*OrderRow
	first    map[engine.OrderID]engine.Receipt // the Receipt of each order's arrival
	trades   []TradeRow                        // oldest first
	rules    [makerMarkets + 1]engine.Listing  // by market, the present ones
	ids      uint64
	replaced int                           // how many orders were replaced
	now      engine.Time                   // Time of the last frame, less makerTime
	draw     func(m *maker) engine.Command // draws what follows script; nil: command does
	codes    map[BuilderCode]BuilderNo     // nil: proofs hold no builders
}

// newMaker makes a market with funded wallets and then random traffic.
func newMaker(seed uint64) *maker {
	m := &maker{x: engine.NewExchange(seed), r: rand.New(rand.NewPCG(seed, 1)),
		orders: make(map[engine.OrderID]*OrderRow),
		first:  make(map[engine.OrderID]engine.Receipt)}
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
	if m.draw != nil {
		return m.draw(m)
	}
	if len(m.live) > 0 && m.r.IntN(10) < 3 {
		i := m.r.IntN(len(m.live))
		id := m.live[i]
		m.live[i] = m.live[len(m.live)-1]
		m.live = m.live[:len(m.live)-1]
		return engine.Command{Kind: engine.Cancel, ID: id, Owner: m.orders[id].Owner}
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
	f := &engine.Frame{Engine: engine.Version, Epoch: 1, No: m.head.Frame + 1,
		First: m.head.Sequence + 1, Time: makerTime + engine.Time(m.head.Frame) + m.now}
	for i := range n {
		c := m.command()
		seq := f.First + engine.Sequence(i)
		at := len(f.Events)
		f.Commands = append(f.Commands, c)
		f.Events = m.x.Apply(&c, seq, f.Time, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
		m.note(&c, seq, f.Time, f.Events[at:])
	}
	f.Digest = m.x.Digest()
	f.Encode(m.head.Hash)
	m.head = f.Head()
	return f
}

// codeOf is the builder whom the tests find in a proof: one of five in a quarter of them.
func codeOf(proof []byte) (code BuilderCode) {
	if len(proof) > 0 && proof[0] < 64 {
		code[0], code[31] = 1+proof[0]%5, 0xee
	}
	return code
}

// builder is the number of the code in a proof, a new one if need be.
func (m *maker) builder(proof []byte) BuilderNo {
	code := codeOf(proof)
	if m.codes == nil || code == (BuilderCode{}) {
		return 0
	}
	if m.codes[code] == 0 {
		m.codes[code] = BuilderNo(len(m.codes) + 1)
	}
	return m.codes[code]
}

// note keeps the model: as plain as can be, trades as ids and as rows.
func (m *maker) note(c *engine.Command, seq engine.Sequence, now engine.Time, es []engine.Event) {
	var taken [][16]byte
	r := engine.ReceiptOf(c, seq, now, es)
	matched := engine.Size(0)
	for i := range es {
		e := &es[i]
		switch e.Kind {
		case engine.Filled:
			matched += e.Size
			taken = m.fill(c, e, seq, taken)
			m.trades[len(m.trades)-1].Time = now
			m.orders[e.Order].Updated = now
		case engine.Listed, engine.Adjusted:
			m.rules[e.Market] = *c.Listing
		case engine.Cancelled:
			o := m.orders[e.Order]
			o.Status, o.Reason, o.Updated = engine.Canceled, e.Reason, now
			switch {
			case c.Kind == engine.Place && e.Reason == engine.ByOwner:
				m.replaced++
			case c.Kind != engine.CancelAll || e.Reason != engine.ByOwner:
			case c.Market == 0:
				o.Reason = engine.ByOwnerAll
			default:
				o.Reason = engine.ByOwnerMarket
			}
		case engine.Placed, engine.Completed, engine.Rejected:
			if c.Kind != engine.Place || e.Kind == engine.Rejected && !engine.Rejects[e.Reject].Final {
				continue
			}
			o := &OrderRow{ID: c.ID, Market: c.Market, Outcome: c.Outcome, Side: c.Side,
				Type: c.Type, PostOnly: c.PostOnly, Wallet: c.Wallet, Owner: c.Owner, Key: c.Key,
				Price: e.Price, Size: e.Size, Matched: matched, Making: r.Making, Taking: r.Taking,
				Fee: r.Fee, Status: r.Status, Reason: e.Reason, Sequence: seq, Time: now,
				Updated: now, Expiry: c.Expiry, Trades: taken, Builder: m.builder(c.Proof)}
			if e.Kind == engine.Rejected {
				o.Status, o.Reject, o.Args = engine.Canceled, e.Reject, e.Args
				o.Price = engine.Price((int64(c.Cash)*100/int64(c.Size) + 1) / 2 * 200)
				o.Size = c.Size
			}
			m.orders[c.ID], m.first[c.ID] = o, r
			m.live = append(m.live, c.ID)
		}
	}
}

// fill notes a fill: in the row of its maker, and in that of the trade.
func (m *maker) fill(c *engine.Command, e *engine.Event, seq engine.Sequence, taken [][16]byte,
) [][16]byte {
	p := e.Price
	if e.Outcome != c.Outcome {
		p = 10_000 - p
	}
	if n := len(taken); n == 0 || p != m.trades[len(m.trades)-1].Price {
		taken = append(taken, engine.TradeID(m.journal, seq, uint32(n)))
		m.trades = append(m.trades, TradeRow{ID: taken[n], Sequence: seq, Index: uint32(n),
			Taker: c.ID, Market: c.Market, Outcome: c.Outcome, Side: c.Side, Price: p,
			Wallet: c.Wallet, Owner: c.Owner, Key: c.Key, Builder: m.builder(c.Proof),
			FeeRate: m.rules[c.Market].Fee.Rate})
	}
	t, o := &m.trades[len(m.trades)-1], m.orders[e.Order]
	t.Size, t.Fee = t.Size+e.Size, t.Fee+e.Fee
	t.Makers = append(t.Makers, MakerFill{Order: e.Order, Wallet: e.Wallet, Owner: e.Owner,
		Key: o.Key, Side: e.Side, Outcome: e.Outcome, Price: e.Price, Size: e.Size,
		Builder: o.Builder})
	o.Matched += e.Size
	o.Trades = append(o.Trades, taken[len(taken)-1])
	cash, size := int64(engine.Cost(e.Size, e.Price)), int64(e.Size)
	if o.Side == engine.Sell {
		cash, size = size, cash
	}
	o.Making, o.Taking = o.Making+cash, o.Taking+size
	if e.Remaining == 0 {
		o.Status = engine.Matched
	}
	return taken
}

// soon is how long a test waits until it says that something hangs or does not come. No machine is
// so slow that it comes later.
const soon = 2 * time.Minute

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// write appends and waits for frames of n Commands each.
func (m *maker) write(t testing.TB, j *journal.Journal, frames, n int) {
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
func open(t testing.TB, o journal.Options) *journal.Journal {
	t.Helper()
	if o.Log == nil {
		o.Log = quiet()
	}
	j, err := journal.Open(o)
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

package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// fold turns frames into changed rows and writes each once a batch, in the goroutine of Index.Run.
type fold struct {
	*History
	gauges *gauges

	// rows are the changed rows of this batch, and some unchanged rows of live orders.
	rows   map[engine.OrderID]*row
	dirty  []*row
	placed []*row // the new rows among dirty, oldest first
	free   []*row // rows to be used again
	batch  *pebble.Batch

	deals   deals
	ledger  *ledger
	markets *markets
	touches touches
	rules   map[engine.MarketNo]rules // those needed so far
	marked  engine.Time               // of the last mark
	noticed uint32                    // day of the last notice
	pace    engine.Time               // between marks

	// builderOf finds the builder in the evidence of an order; nil if no order has one.
	builderOf func(proof []byte) BuilderCode
	builders  map[BuilderCode]BuilderNo // those needed so far

	frame    engine.Frame // scratch
	value    []byte       // scratch
	at       reached      // how far it has come
	commands int          // in this batch
	written  int          // bytes of batches since Index.waitForDisk last looked
	keep     int          // how many rows stay between batches
}

const (
	// keepRows bounds the live rows in memory between batches, about 300 bytes each. farRows is the
	// bound while the index is far behind.
	keepRows = 1 << 16
	farRows  = 1 << 19
	// sortRows rows of a kind, or more, are written in key order: a memtable takes sorted keys faster,
	// which pays for sorting many.
	sortRows = 64
)

func (d *fold) apply(b []byte) error {
	f := &d.frame
	if err := engine.DecodeFrame(b, f); err != nil {
		return fmt.Errorf("decode frame %d: %w", d.at.frame+1, err)
	}
	if f.No != d.at.frame+1 {
		return fmt.Errorf("frame %d came after frame %d", f.No, d.at.frame)
	}
	if err := d.mark(f.Time, f.First); err != nil {
		return err
	}
	for i := range f.Commands {
		seq := f.First + engine.Sequence(i)
		if err := d.touch(f.No, &f.Commands[i], f.EventsOf(i)); err != nil {
			return err
		}
		if err := d.command(&f.Commands[i], seq, f.Time, f.EventsOf(i)); err != nil {
			return fmt.Errorf("fold Sequence %d of frame %d: %w", seq, f.No, err)
		}
	}
	d.markets.frame(f.Time)
	d.at.frame, d.at.sequence, d.at.hash = f.No, f.Last(), f.Hash
	d.commands += len(f.Commands)
	return nil
}

// markEvery is the distance of marks in milliseconds of Time.
const markEvery = 100

// mark stores now and then the first Sequence at a time, so that readers find a time in a list.
func (d *fold) mark(now engine.Time, first engine.Sequence) error {
	if now < d.marked+d.pace {
		return nil
	}
	d.marked = now
	key := numberKey(spaceMarks, uint64(now))
	d.value = binary.AppendUvarint(d.value[:0], uint64(first))
	if err := d.batch.Set(key[:], d.value, nil); err != nil {
		return fmt.Errorf("mark Sequence %d: %w", first, err)
	}
	return nil
}

type stamp struct {
	seq engine.Sequence
	now engine.Time
}

func (d *fold) command(c *engine.Command, seq engine.Sequence, now engine.Time,
	events []engine.Event) error {
	if err := d.markets.load(d.resting); err != nil {
		return err
	}
	if err := d.ledger.command(d.batch, c, now, events); err != nil {
		return err
	}
	if err := d.markets.command(d.batch, c, now, events); err != nil {
		return err
	}
	s := stamp{seq, now}
	d.deals.index = 0
	if err := d.attribute(c, events); err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		var err error
		switch e.Kind {
		case engine.Filled:
			err = d.fill(c, e, s)
		case engine.Cancelled:
			err = errors.Join(d.cancel(c, e, now), d.notice(e, s, i))
		case engine.Resolved:
			err = d.notice(e, s, i)
		case engine.Placed, engine.Completed:
			d.deals.finish(c, s)
			r := engine.ReceiptOf(c, seq, now, events)
			d.addPlaced(c, e, &r)
		case engine.Rejected:
			if c.Kind == engine.Place && engine.Rejects[e.Reject].Final {
				r := engine.ReceiptOf(c, seq, now, events)
				err = d.addKilled(c, &r)
			}
		case engine.Split, engine.Merged, engine.Redeemed:
			err = d.move(e, s)
		case engine.Listed, engine.Adjusted:
			err = d.setRules(e.Market, rules{c.Listing.Tick, c.Listing.Fee.Rate})
		}
		if err != nil {
			return err
		}
	}
	return d.deals.flush(d.batch, dealChunk)
}

func (d *fold) attribute(c *engine.Command, events []engine.Event) (err error) {
	if d.deals.builder = 0; c.Kind != engine.Place || len(events) == 0 {
		return nil
	}
	if e := &events[0]; e.Kind != engine.Rejected || engine.Rejects[e.Reject].Final {
		d.deals.builder, err = d.builder(c.Proof)
	}
	return err
}

func (d *fold) addPlaced(c *engine.Command, e *engine.Event, r *engine.Receipt) {
	o := d.addRow(c, r)
	o.Price, o.Size, o.Reason, o.Status = e.Price, e.Size, e.Reason, r.Status
	o.Making, o.Taking, o.Fee, o.own = r.Making, r.Taking, r.Fee, r.Trades
	if o.Matched = engine.Size(r.Taking); c.Side == engine.Sell {
		o.Matched = engine.Size(r.Making)
	}
}

func (d *fold) addRow(c *engine.Command, r *engine.Receipt) *row {
	d.filter.add(&c.ID) // before publish shows this Sequence
	o := d.emptyRow()
	o.OrderRow = OrderRow{
		ID: c.ID, Market: c.Market, Outcome: c.Outcome, Side: c.Side, Type: c.Type,
		PostOnly: c.PostOnly, Wallet: c.Wallet, Owner: c.Owner, Key: c.Key,
		Builder:  d.deals.builder,
		Sequence: r.Sequence, Time: r.Time, Updated: r.Time, Expiry: c.Expiry,
	}
	d.rows[c.ID] = o
	d.at.orders++
	d.placed = append(d.placed, o)
	d.markDirty(o)
	return o
}

func (d *fold) addKilled(c *engine.Command, r *engine.Receipt) error {
	rules, err := d.rulesOf(c.Market)
	if err != nil {
		return err
	}
	o := d.addRow(c, r)
	o.Price, o.Size = asked(c, rules.tick)
	o.Status, o.Reject, o.Args = engine.Canceled, r.Reject, r.Args
	return nil
}

// asked returns the price and size that the engine finds in the two signed amounts of an order. No
// Event has those of an order that was killed. The engine has not refused the price.
func asked(c *engine.Command, tick engine.Price) (engine.Price, engine.Size) {
	ticks := int64(engine.PriceOne / tick)
	n := (int64(c.Cash)*ticks + int64(c.Size)/2) / int64(c.Size)
	price, lots := engine.Price(n)*tick, int64(c.Size/engine.Lot)
	if c.Side == engine.Buy && c.Type != engine.FOK && price != 0 { // a FOK asks for all it signed
		lots = min(lots, int64(c.Cash)/int64(price))
	}
	return price, engine.Size(lots) * engine.Lot
}

type rules struct {
	tick engine.Price // the price step
	rate uint16       // of fees, in basis points
}

func (d *fold) setRules(market engine.MarketNo, r rules) error {
	d.rules[market] = r
	key := shortKey(spaceRules, market)
	d.value = appendUvarints(d.value[:0], uint64(r.tick), uint64(r.rate))
	if err := d.batch.Set(key[:], d.value, nil); err != nil {
		return fmt.Errorf("write the rules of market %d: %w", market, err)
	}
	return nil
}

func (d *fold) rulesOf(market engine.MarketNo) (rules, error) {
	if r, known := d.rules[market]; known {
		return r, nil
	}
	key := shortKey(spaceRules, market)
	var r rules
	found, err := read(d.db, key[:], func(b []byte) error {
		c := varints{rest: b}
		if r = (rules{engine.Price(c.uvarint()), uint16(c.uvarint())}); r.tick == 0 {
			return errRow
		}
		return c.end()
	})
	if err != nil {
		return rules{}, fmt.Errorf("read the rules of market %d: %w", market, err)
	}
	if !found {
		return rules{}, fmt.Errorf("%w: market %d is unknown to the index", errContradiction, market)
	}
	d.rules[market] = r
	return r, nil
}

// fill adds a fill to the trade under way and to the row of its maker. A new trade begins with each
// execution price, as in the Receipt of the taker c.
func (d *fold) fill(c *engine.Command, e *engine.Event, s stamp) error {
	o, err := d.rowOf(&e.Order)
	if err != nil {
		return err
	}
	deals, same, price := &d.deals, e.Outcome == c.Outcome, e.Price
	if !same {
		price = engine.PriceOne - price
	}
	if deals.count > 0 && price != deals.price {
		deals.finish(c, s)
	}
	deals.price = price
	t := tradeRef{s.seq, deals.index}
	if deals.count == 0 {
		rules, err := d.rulesOf(c.Market)
		if err != nil {
			return err
		}
		deals.rate = rules.rate
		deals.entry = appendEntries(deals.entry, 0, c.Market, t.entry(c.Outcome))
		deals.entry = appendEntries(deals.entry, c.Owner, c.Market, t.entry(c.Outcome))
		deals.entry = appendEntries(deals.entry, deals.builder.list(), c.Market, t.entry(c.Outcome))
	}
	if o.Owner != c.Owner {
		deals.entry = appendEntries(deals.entry, o.Owner, c.Market, t.entry(e.Outcome))
	}
	deals.entry = appendEntries(deals.entry, o.Builder.list(), c.Market, t.entry(e.Outcome))
	deals.add(o, e, same)
	return d.fillMaker(o, e, s.now, t)
}

func (d *fold) fillMaker(o *row, e *engine.Event, now engine.Time, t tradeRef) error {
	cash := int64(engine.Cost(e.Size, e.Price))
	if o.Matched += e.Size; o.Side == engine.Buy {
		o.Making, o.Taking = o.Making+cash, o.Taking+int64(e.Size)
	} else {
		o.Making, o.Taking = o.Making+int64(e.Size), o.Taking+cash
	}
	if o.Size-o.Matched != e.Remaining {
		return fmt.Errorf("%w: order %x has %d left, its row says %d", errContradiction, e.Order,
			e.Remaining, o.Size-o.Matched)
	}
	if e.Remaining == 0 {
		o.Status = engine.Matched
	}
	o.Updated = now
	if o.made = append(o.made, t); len(o.made) == 2*chunkTrades {
		if err := d.split(o); err != nil {
			return err
		}
	}
	d.markDirty(o)
	return nil
}

func (d *fold) split(o *row) error {
	key := chunkKey(&o.ID, o.chunks)
	d.value = appendTrades(d.value[:0], o.made[:chunkTrades])
	if err := d.batch.Set(key[:], d.value, nil); err != nil {
		return fmt.Errorf("write trades of order %x: %w", o.ID, err)
	}
	o.chunks++
	o.made = append(o.made[:0], o.made[chunkTrades:]...)
	return nil
}

func (d *fold) cancel(c *engine.Command, e *engine.Event, now engine.Time) error {
	o, err := d.rowOf(&e.Order)
	if err != nil {
		return err
	}
	o.Status, o.Reason, o.Updated = engine.Canceled, e.Reason, now
	if c.Kind == engine.CancelAll && e.Reason == engine.ByOwner {
		if o.Reason = engine.ByOwnerAll; c.Market != 0 {
			o.Reason = engine.ByOwnerMarket
		}
	}
	d.markDirty(o)
	return nil
}

func (d *fold) rowOf(id *engine.OrderID) (*row, error) {
	if o := d.rows[*id]; o != nil {
		return o, nil
	}
	d.gauges.reads.Inc()
	o := d.emptyRow()
	if err := mustLoad(d.db, id, o); err != nil {
		return nil, err
	}
	d.rows[*id] = o
	return o, nil
}

func mustLoad(db *pebble.DB, id *engine.OrderID, o *row) error {
	found, err := o.load(db, id)
	if err == nil && !found {
		err = unknownOrder(id)
	}
	return err
}

func unknownOrder(id *engine.OrderID) error {
	return fmt.Errorf("%w: order %x is unknown to the index", errContradiction, *id)
}

func (d *fold) markDirty(o *row) {
	if !o.dirty {
		o.dirty = true
		d.dirty = append(d.dirty, o)
	}
}

func (d *fold) emptyRow() *row {
	if n := len(d.free); n > 0 {
		o := d.free[n-1]
		d.free = d.free[:n-1]
		*o = row{made: o.made[:0]}
		return o
	}
	return &row{}
}

func (d *fold) commit() error {
	if err := d.write(); err != nil {
		return err
	}
	d.written += d.batch.Len()
	d.writing.Store(uint64(d.at.sequence))
	if err := d.db.Apply(d.batch, pebble.NoSync); err != nil {
		return fmt.Errorf("write the index up to Sequence %d: %w", d.at.sequence, err)
	}
	if err := d.batch.Close(); err != nil {
		return fmt.Errorf("write the index up to Sequence %d: %w", d.at.sequence, err)
	}
	if err := d.resting.update(d.placed, d.dirty); err != nil {
		return err
	}
	d.recent.update(d.deals.entry, d.at.listed)
	d.deals.entry = d.deals.entry[:0]
	d.leaders.update(d.ledger.shifts)
	d.gauges.batches.Inc()
	d.gauges.rows.Add(float64(len(d.dirty)))
	d.sweep()
	d.batch, d.commands = d.db.NewBatch(), 0
	return nil
}

func (d *fold) write() error {
	if err := d.resting.write(d); err != nil {
		return err
	}
	if err := d.writeTouches(); err != nil {
		return err
	}
	if len(d.dirty) >= sortRows {
		slices.SortFunc(d.dirty, func(a, b *row) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	}
	for _, o := range d.dirty {
		key := orderKey(&o.ID)
		d.value = o.append(d.value[:0])
		if err := d.batch.Set(key[:], d.value, nil); err != nil {
			return fmt.Errorf("write order %x: %w", o.ID, err)
		}
	}
	if err := d.deals.flush(d.batch, 0); err != nil {
		return err
	}
	var err error
	if d.at.listed, err = d.recent.write(d.batch, &d.value); err != nil {
		return err
	}
	if err := errors.Join(d.ledger.write(d.batch), d.markets.write(d.batch)); err != nil {
		return err
	}
	d.value = d.at.append(d.value[:0])
	if err := d.batch.Set(stateKey(metaPlace), d.value, nil); err != nil {
		return fmt.Errorf("write the index's place: %w", err)
	}
	return nil
}

// sweep drops rows that will not change again, and some others when there are too many.
func (d *fold) sweep() {
	for i, o := range d.dirty {
		o.dirty, d.dirty[i] = false, nil
		if o.Status != engine.Live {
			delete(d.rows, o.ID)
			if len(d.free) < 4096 {
				d.free = append(d.free, o)
			}
		}
	}
	d.dirty, d.placed = d.dirty[:0], d.placed[:0]
	if len(d.builders) > keepCodes {
		clear(d.builders)
	}
	d.ledger.sweep()
	d.markets.sweep()
	if len(d.rows) > d.keep {
		d.forget()
	}
}

// forget keeps any half of the rows, in a new map, because a cleared map keeps its size.
func (d *fold) forget() {
	kept := make(map[engine.OrderID]*row, d.keep)
	for id, o := range d.rows {
		if len(kept) == d.keep/2 {
			break
		}
		kept[id] = o
	}
	d.rows = kept
}

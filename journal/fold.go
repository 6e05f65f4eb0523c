package journal

import (
	"fmt"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// fold turns frames into changed rows, and those into one batch. An order that is touched many
// times in a batch is written once. It belongs to the goroutine of Index.Run.
type fold struct {
	db     *pebble.DB
	gauges *indexGauges

	// rows are the changed rows of this batch, and as many clean live ones as are worth keeping.
	rows  map[engine.OrderID]*row
	dirty []*row
	free  []*row // to be used again
	batch *pebble.Batch

	frame    engine.Frame // scratch
	value    []byte       // scratch
	at       place        // what is folded so far
	commands int          // in this batch
}

// keepRows bounds the live rows kept in memory between batches (about 300 bytes each).
const keepRows = 1 << 16

// apply folds the encoded frame b.
func (d *fold) apply(b []byte) error {
	f := &d.frame
	if err := engine.DecodeFrame(b, f); err != nil {
		return fmt.Errorf("decode frame %d: %w", d.at.frame+1, err)
	}
	if f.No != d.at.frame+1 {
		return fmt.Errorf("frame %d came after frame %d", f.No, d.at.frame)
	}
	for i := range f.Commands {
		seq := f.First + engine.Sequence(i)
		if err := d.command(&f.Commands[i], seq, f.Time, f.EventsOf(i)); err != nil {
			return fmt.Errorf("fold Sequence %d of frame %d: %w", seq, f.No, err)
		}
	}
	d.at.frame, d.at.sequence, d.at.hash = f.No, f.Last(), f.Hash
	d.commands += len(f.Commands)
	return nil
}

// command folds one Command with its Events.
func (d *fold) command(c *engine.Command, seq engine.Sequence, now engine.Time,
	events []engine.Event) error {
	trades, last := uint32(0), engine.Price(0) // numbered by execution price, as in the Receipt
	for i := range events {
		e := &events[i]
		var err error
		switch e.Kind {
		case engine.Filled:
			price := e.Price
			if e.Outcome != c.Outcome {
				price = engine.PriceOne - price
			}
			if trades == 0 || price != last {
				trades, last = trades+1, price
			}
			err = d.fill(e, tradeRef{seq, trades - 1}, now)
		case engine.Cancelled:
			err = d.cancel(e, now)
		case engine.Placed, engine.Completed:
			r := engine.ReceiptOf(c, seq, now, events)
			d.place(c, e, &r)
		case engine.Rejected:
			if c.Kind == engine.Place && engine.Rejects[e.Reject].Final {
				r := engine.ReceiptOf(c, seq, now, events)
				d.place(c, e, &r)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// place makes the row of an order whose last word is e.
func (d *fold) place(c *engine.Command, e *engine.Event, r *engine.Receipt) {
	o := d.take()
	o.OrderRow = OrderRow{
		ID: c.ID, Market: c.Market, Outcome: c.Outcome, Side: c.Side, Type: c.Type,
		Wallet: c.Wallet, Owner: c.Owner, Key: c.Key, Price: e.Price, Size: e.Size,
		Matched: e.Size - e.Remaining, Making: r.Making, Taking: r.Taking, Status: r.Status,
		Reject: r.Reject, Args: r.Args, Sequence: r.Sequence, Time: r.Time, Updated: r.Time,
		Expiry: c.Expiry,
	}
	o.own = r.Trades
	d.rows[c.ID] = o
	d.touch(o)
}

// fill counts a fill of the resting order that e names.
func (d *fold) fill(e *engine.Event, t tradeRef, now engine.Time) error {
	o, err := d.find(&e.Order)
	if err != nil {
		return err
	}
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
	d.touch(o)
	return nil
}

// split moves the older half of a row's trades to a key of their own.
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

// cancel ends the resting order that e names.
func (d *fold) cancel(e *engine.Event, now engine.Time) error {
	o, err := d.find(&e.Order)
	if err != nil {
		return err
	}
	o.Status, o.Reason, o.Updated = engine.Canceled, e.Reason, now
	d.touch(o)
	return nil
}

// find is the row of an order that was placed before.
func (d *fold) find(id *engine.OrderID) (*row, error) {
	if o := d.rows[*id]; o != nil {
		return o, nil
	}
	d.gauges.reads.Inc()
	key := orderKey(id)
	b, found, err := get(d.db, key[:], d.value)
	if err != nil {
		return nil, fmt.Errorf("read order %x: %w", *id, err)
	}
	if !found {
		return nil, fmt.Errorf("%w: order %x is unknown to the index", errContradiction, *id)
	}
	d.value = b
	o := d.take()
	if err := o.decode(id, b); err != nil {
		return nil, fmt.Errorf("read order %x: %w", *id, err)
	}
	d.rows[*id] = o
	return o, nil
}

// touch marks a row as changed in this batch.
func (d *fold) touch(o *row) {
	if !o.dirty {
		o.dirty = true
		d.dirty = append(d.dirty, o)
	}
}

// take gives an empty row.
func (d *fold) take() *row {
	if n := len(d.free); n > 0 {
		o := d.free[n-1]
		d.free = d.free[:n-1]
		*o = row{made: o.made[:0]}
		return o
	}
	return &row{}
}

// commit writes the changed rows and where they end as one batch, and begins the next one.
func (d *fold) commit() error {
	for _, o := range d.dirty {
		key := orderKey(&o.ID)
		d.value = o.append(d.value[:0])
		if err := d.batch.Set(key[:], d.value, nil); err != nil {
			return fmt.Errorf("write order %x: %w", o.ID, err)
		}
	}
	if err := d.batch.Set(metaKey(metaPlace), d.at.append(nil), nil); err != nil {
		return fmt.Errorf("write the index's place: %w", err)
	}
	if err := d.db.Apply(d.batch, pebble.NoSync); err != nil {
		return fmt.Errorf("write the index up to Sequence %d: %w", d.at.sequence, err)
	}
	if err := d.batch.Close(); err != nil {
		return fmt.Errorf("write the index up to Sequence %d: %w", d.at.sequence, err)
	}
	d.gauges.batches.Inc()
	d.gauges.rows.Add(float64(len(d.dirty)))
	d.sweep()
	d.batch, d.commands = d.db.NewBatch(), 0
	return nil
}

// sweep lets go of rows that will not change again, and of all when they are too many.
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
	d.dirty = d.dirty[:0]
	if len(d.rows) > keepRows {
		clear(d.rows)
	}
}

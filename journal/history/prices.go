package history

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
)

// The price of a market is what outcome 0 was paid once the market is resolved, else the midpoint,
// else the price of the last trade. Each minute that changed it stores the price at its end.

type market struct {
	no     engine.MarketNo
	last   engine.Price // of outcome 0 in the last trade, 0 if there was none
	payout engine.Price // of outcome 0, once it is settled
	known  uint32       // twice the last stored price, plus 1; 0 if there is none
	point  int          // index of its last point of this batch, plus 1

	settled bool
	changed bool // the price may have changed in this frame
	dirty   bool // the row has changed in this batch

	volume engine.Cash // collateral value of taker fills
	hour   uint32      // of the last trade, since 1970
	trades uint64
	live   livePrices
}

type point struct {
	market engine.MarketNo
	minute uint32 // since 1970
	twice  uint32
}

// markets folds prices and volumes. Every market that an Event named stays in memory.
type markets struct {
	db      *pebble.DB
	gauges  *gauges
	all     map[engine.MarketNo]*market
	changed []*market
	dirty   []*market
	points  []point
	ready   bool   // the live prices have all resting orders
	value   []byte // scratch
}

const minute = engine.Time(60_000)

func minuteOf(t engine.Time) uint32 { return uint32(min(max(t/minute, 0), math.MaxUint32)) }

// append appends the stored form. The rest follows from orders and points.
func (m *market) append(b []byte) []byte {
	settled := byte(0)
	if m.settled {
		settled = 1
	}
	return appendUvarints(append(b, settled), uint64(m.payout), uint64(m.last), uint64(m.volume),
		m.trades, uint64(m.hour))
}

func (m *market) decode(b []byte) error {
	if len(b) == 0 || b[0] > 1 {
		return errRow
	}
	c := varints{rest: b[1:]}
	m.settled = b[0] == 1
	m.payout, m.last = engine.Price(c.uvarint()), engine.Price(c.uvarint())
	m.volume, m.trades = engine.Cash(c.uvarint()), c.uvarint()
	hour := c.uvarint()
	if hour > math.MaxUint32 {
		return errRow
	}
	m.hour = uint32(hour)
	return c.end()
}

func (m *market) price() (uint32, bool) {
	if m.settled {
		return 2 * uint32(m.payout), true
	}
	if twice, both := m.live.twice(); both {
		return twice, true
	}
	return 2 * uint32(m.last), m.last != 0
}

func (k *markets) command(batch *pebble.Batch, c *engine.Command, now engine.Time,
	events []engine.Event) error {
	trades, last := uint64(0), engine.Price(0) // numbered by execution price, as in the Receipt
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case engine.Filled, engine.Placed, engine.Cancelled, engine.Resolved:
		default:
			continue
		}
		m, err := k.market(e.Market)
		if err != nil {
			return err
		}
		if !m.changed {
			m.changed = true
			k.changed = append(k.changed, m)
		}
		switch e.Kind {
		case engine.Placed:
			m.live.count(1, e.Side, e.Outcome, e.Price)
			continue
		case engine.Resolved:
			m.settled, m.payout = true, e.Price
		case engine.Filled:
			if err := k.turn(batch, m, now); err != nil {
				return err
			}
			if price := m.fill(c, e); trades == 0 || price != last {
				trades, last = trades+1, price
				m.trades++
			}
		}
		if e.Kind == engine.Cancelled || e.Kind == engine.Filled && e.Remaining == 0 {
			if !m.live.count(-1, e.Side, e.Outcome, e.Price) {
				return fmt.Errorf("%w: market %d has no live order at %d", errContradiction, m.no, e.Price)
			}
		}
		if e.Kind != engine.Cancelled && !m.dirty {
			m.dirty = true
			k.dirty = append(k.dirty, m)
		}
	}
	return nil
}

func (m *market) fill(c *engine.Command, e *engine.Event) engine.Price {
	price := e.Price
	if e.Outcome != c.Outcome {
		price = engine.PriceOne - price
	}
	m.volume += engine.Cost(e.Size, price)
	if m.last = price; c.Outcome == 1 {
		m.last = engine.PriceOne - price
	}
	return price
}

func (k *markets) frame(now engine.Time) {
	at := minuteOf(now)
	for i, m := range k.changed {
		k.changed[i], m.changed = nil, false
		twice, is := m.price()
		if !is || twice+1 == m.known {
			continue
		}
		m.known = twice + 1
		if m.point != 0 && k.points[m.point-1].minute == at {
			k.points[m.point-1].twice = twice
			continue
		}
		k.points = append(k.points, point{m.no, at, twice})
		m.point = len(k.points)
	}
	k.changed = k.changed[:0]
}

// load counts the prices of the orders that rest, once. One iterator goes over their rows in the
// order of the keys, which takes half of the time that a read for each takes.
func (k *markets) load(r *resting) (err error) {
	if k.ready {
		return nil
	}
	all := make([]*restingOrder, 0, r.live)
	for _, q := range r.owners {
		for i := range q.orders {
			if q.orders[i].market != 0 {
				all = append(all, &q.orders[i])
			}
		}
	}
	slices.SortFunc(all, func(a, b *restingOrder) int { return bytes.Compare(a.id[:], b.id[:]) })
	it, err := iterate(k.db, spaceOrder)
	if err != nil {
		return fmt.Errorf("read the resting orders: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var o row
	for _, at := range all {
		m, err := k.market(at.market)
		if err != nil {
			return err
		}
		if err := o.seek(it, &at.id); err != nil {
			return err
		}
		m.live.count(1, o.Side, o.Outcome, o.Price)
	}
	k.ready = true
	return nil
}

// seek moves an iterator forward to the row of an order, and reads the row. Orders must come in the
// order of their ids.
func (r *row) seek(it *pebble.Iterator, id *engine.OrderID) error {
	key := orderKey(id)
	next := it.Valid() && it.Next() && bytes.Equal(it.Key(), key[:]) // where most orders rest
	if !next && (!it.SeekGE(key[:]) || !bytes.Equal(it.Key(), key[:])) {
		return cmp.Or(it.Error(), unknownOrder(id))
	}
	b, err := it.ValueAndErr()
	if err == nil {
		err = r.decode(id, b)
	}
	if err != nil {
		return fmt.Errorf("read order %x: %w", *id, err)
	}
	return nil
}

func (k *markets) market(no engine.MarketNo) (*market, error) {
	if m := k.all[no]; m != nil {
		return m, nil
	}
	k.gauges.reads.Inc()
	m, err := readMarket(k.db, no)
	if err == nil {
		m.known, err = k.newest(no)
	}
	if err != nil {
		return nil, fmt.Errorf("read market %d: %w", no, err)
	}
	k.all[no] = m
	return m, nil
}

func readMarket(db *pebble.DB, no engine.MarketNo) (*market, error) {
	m, key := &market{no: no}, shortKey(spaceMarket, no)
	_, err := read(db, key[:], m.decode)
	return m, err
}

func (k *markets) newest(no engine.MarketNo) (known uint32, err error) {
	it, err := points(k.db, no, math.MaxUint32)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return 0, nil
	}
	p, err := pointOf(it.Key(), it.Value())
	return p.Twice + 1, err
}

func (k *markets) write(batch *pebble.Batch) error {
	for _, m := range k.dirty {
		key := shortKey(spaceMarket, m.no)
		k.value = m.append(k.value[:0])
		if err := batch.Set(key[:], k.value, nil); err != nil {
			return fmt.Errorf("write market %d: %w", m.no, err)
		}
	}
	for i := range k.points {
		p := &k.points[i]
		key := pairKey(spacePoint, p.market, p.minute)
		k.value = binary.BigEndian.AppendUint16(k.value[:0], uint16(p.twice))
		if err := batch.Set(key[:], k.value, nil); err != nil {
			return fmt.Errorf("write price of market %d: %w", p.market, err)
		}
	}
	return nil
}

func (k *markets) sweep() {
	for i, m := range k.dirty {
		m.dirty, k.dirty[i] = false, nil
	}
	for i := range k.points {
		k.all[k.points[i].market].point = 0
	}
	k.dirty, k.points = k.dirty[:0], k.points[:0]
}

// PricePoint is twice the price of outcome 0 at a time, in 1/10,000: so every midpoint is exact.
type PricePoint struct {
	Time  engine.Time
	Twice uint32
}

// MaxPoints is how many points Prices returns at most.
const maxPoints = 100_000

// errSteps is the error of Prices for a step that there is not, or for more than maxPoints.
var errSteps = errors.New("no such price steps")

func pointEnd(key []byte) engine.Time {
	return (engine.Time(binary.BigEndian.Uint32(key[shortKeyLen:])) + 1) * minute
}

func pointOf(key, value []byte) (p PricePoint, err error) {
	if len(key) != pairKeyLen || len(value) != 2 {
		return p, errRow
	}
	return PricePoint{pointEnd(key), uint32(binary.BigEndian.Uint16(value))}, nil
}

// Prices returns the prices of outcome 0 of a market at all whole multiples of step since 1970 in
// [from, to], and at to itself, beginning where the price is first known. step is 1, 5, 30, 180 or
// 720 minutes. A price is that at the end of the last minute that was over at its time. The error
// is errSteps, journal.ErrClosed, or names what cannot be read.
func (h *History) Prices(market engine.MarketNo, from, to engine.Time, step time.Duration) (
	[]PricePoint, error) {
	switch step {
	case time.Minute, 5 * time.Minute, 30 * time.Minute, 180 * time.Minute, 720 * time.Minute:
	default:
		return nil, fmt.Errorf("%w: %v", errSteps, step)
	}
	if from = max(from, 0); to < max(from, minute) {
		return nil, nil
	}
	by := engine.Time(step.Milliseconds())
	s := sampler{at: (from + by - 1) / by * by, by: by}
	err := h.view(func() error {
		it, err := points(h.db, market, minuteOf(to)-1)
		if err != nil {
			return err
		}
		return errors.Join(s.sample(it, market, from, to), it.Close())
	}, "read prices of market", uint32(market))
	if err != nil {
		return nil, err
	}
	return s.points, nil
}

type sampler struct {
	points []PricePoint
	at, by engine.Time // the next step, and the distance of steps
	known  bool
	twice  uint32
}

// fill repeats the price for all steps up to to, as long as there is room.
func (s *sampler) fill(to engine.Time) {
	for ; s.known && s.at <= to && len(s.points) <= maxPoints; s.at += s.by {
		s.points = append(s.points, PricePoint{s.at, s.twice})
	}
}

func (s *sampler) advance(p PricePoint, to engine.Time) {
	s.fill(min(p.Time-1, to))
	if s.known, s.twice = true, p.Twice; s.at < p.Time {
		s.at = (p.Time + s.by - 1) / s.by * s.by
	}
}

// nearPoints stored prices are walked before seeking the end of a step, which is more work.
const nearPoints = 8

// walk follows the stored prices to time to. Of a step with many it reads the first and last ones.
func (s *sampler) walk(it *pebble.Iterator, no engine.MarketNo, to engine.Time) error {
	for ok, near := it.Valid(), 0; ok && len(s.points) <= maxPoints; {
		p, err := pointOf(it.Key(), it.Value())
		if err != nil {
			return err
		}
		at := s.at
		if s.advance(p, to); s.at != at {
			near = 0
		}
		if near++; near == nearPoints {
			near = 0
			key := pairKey(spacePoint, no, minuteOf(min(s.at, (to/minute+1)*minute)))
			if it.SeekLT(key[:]) && pointEnd(it.Key()) > p.Time {
				continue
			} // else p is the last price of the step
		}
		ok = it.Next()
	}
	s.fill(to)
	return it.Error()
}

func (s *sampler) sample(it *pebble.Iterator, no engine.MarketNo, from, to engine.Time) error {
	if begin := pairKey(spacePoint, no, minuteOf(from)); !it.SeekLT(begin[:]) {
		it.First()
	}
	if err := s.walk(it, no, to); err != nil {
		return err
	}
	if s.known && to%s.by != 0 {
		s.points = append(s.points, PricePoint{to, s.twice})
	}
	if len(s.points) > maxPoints {
		return fmt.Errorf("%w: more than %d", errSteps, maxPoints)
	}
	return nil
}

func points(db *pebble.DB, no engine.MarketNo, last uint32) (*pebble.Iterator, error) {
	low, high := pairKey(spacePoint, no, 0), pairKey(spacePoint, no, last)
	return db.NewIter(&pebble.IterOptions{LowerBound: low[:], UpperBound: append(high[:], 0)})
}

// PricedSince returns the end of the minute in which the price of a market was first known; false
// if it never was. The error is journal.ErrClosed, or names what cannot be read.
func (h *History) PricedSince(market engine.MarketNo) (at engine.Time, known bool, err error) {
	if !h.gate.Enter() {
		return 0, false, journal.ErrClosed
	}
	defer h.gate.Leave()
	it, err := points(h.db, market, math.MaxUint32)
	if err != nil {
		return 0, false, fmt.Errorf("read prices of market %d: %w", market, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return 0, false, it.Error()
	}
	p, err := pointOf(it.Key(), it.Value())
	return p.Time, err == nil, err
}

// Volume returns the collateral value of all fills of takers in a market, in base units, and the
// number of trades: one for each taker and price. The error is as for Past.
func (h *History) Volume(no engine.MarketNo) (cash engine.Cash, trades uint64, err error) {
	err = h.view(func() error {
		m, err := readMarket(h.db, no)
		cash, trades = m.volume, m.trades
		return err
	}, "read market", uint32(no))
	return cash, trades, err
}

package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// A market's price is what outcome 0 was paid once it is resolved, else the midpoint, else what was
// paid for it last, else unknown. It is kept for each minute in which it changed, as it was at the
// end of that minute: the last one before any time says what it was then.

// market is what the index knows of one market.
type market struct {
	no     engine.MarketNo
	last   engine.Price // of outcome 0 in the last trade, 0 if there was none
	payout engine.Price // of outcome 0, once it is settled
	known  uint32       // the last stored price, twice it plus 1; 0 if there is none
	point  int          // where its last point of this batch is, plus 1

	settled bool
	changed bool // its price may have changed in this frame
	dirty   bool // its row has changed in this batch

	volume engine.Cash // collateral value of taker fills
	hour   uint32      // of the last trade, since 1970
	trades uint64
	ladder livePrices
}

// point is a price on its way to the database.
type point struct {
	market engine.MarketNo
	minute uint32 // since 1970
	twice  uint32
}

// markets folds prices and volumes. All markets that were touched stay in memory, with a rung for
// each price at which they have orders.
type markets struct {
	db      *pebble.DB
	gauges  *gauges
	all     map[engine.MarketNo]*market
	changed []*market
	dirty   []*market
	points  []point
	past    []pastHour
	ready   bool   // the ladders hold what rests in the books
	value   []byte // scratch
}

const (
	marketKeyLen = 1 + 4
	pointKeyLen  = 1 + 4 + 4
	minute       = engine.Time(60_000)
)

// marketKey is the key of a market's row.
func marketKey(m engine.MarketNo) [marketKeyLen]byte {
	var k [marketKeyLen]byte
	k[0] = spaceMarket
	binary.BigEndian.PutUint32(k[1:], uint32(m))
	return k
}

// pointKey is the key of a market's price at the end of a minute.
func pointKey(m engine.MarketNo, minute uint32) [pointKeyLen]byte {
	var k [pointKeyLen]byte
	k[0] = spacePoint
	binary.BigEndian.PutUint32(k[1:], uint32(m))
	binary.BigEndian.PutUint32(k[5:], minute)
	return k
}

// minuteOf is the minute of a time.
func minuteOf(t engine.Time) uint32 {
	return uint32(min(max(t/minute, 0), math.MaxUint32))
}

// append appends the stored form of what does not follow from orders and points.
func (m *market) append(b []byte) []byte {
	settled := byte(0)
	if m.settled {
		settled = 1
	}
	b = append(b, settled)
	b = binary.AppendUvarint(b, uint64(m.payout))
	b = binary.AppendUvarint(b, uint64(m.last))
	b = binary.AppendUvarint(b, uint64(m.volume))
	b = binary.AppendUvarint(b, m.trades)
	return binary.AppendUvarint(b, uint64(m.hour))
}

// decode reads the stored form.
func (m *market) decode(b []byte) error {
	if len(b) == 0 || b[0] > 1 {
		return errRow
	}
	c := varints{rest: b[1:]}
	m.settled = b[0] == 1
	m.payout, m.last = engine.Price(c.uvarint()), engine.Price(c.uvarint())
	m.volume, m.trades = engine.Cash(c.uvarint()), c.uvarint()
	last := c.uvarint()
	if c.bad || len(c.rest) > 0 || last > math.MaxUint32 {
		return errRow
	}
	m.hour = uint32(last)
	return nil
}

// price is twice the price of outcome 0, in 1/10,000; false if it is unknown.
func (m *market) price() (uint32, bool) {
	if m.settled {
		return 2 * uint32(m.payout), true
	}
	if twice, both := m.ladder.twice(); both {
		return twice, true
	}
	return 2 * uint32(m.last), m.last != 0
}

// newMarkets makes an empty one.
func newMarkets(db *pebble.DB, gauges *gauges) *markets {
	return &markets{db: db, gauges: gauges, all: make(map[engine.MarketNo]*market)}
}

// command folds what one Command did to books and trades.
func (k *markets) command(c *engine.Command, now engine.Time, events []engine.Event) error {
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
			m.ladder.add(e.Side, e.Outcome, e.Price)
			continue
		case engine.Resolved:
			m.settled, m.payout = true, e.Price
		case engine.Filled:
			k.turn(m, now)
			if price := m.fill(c, e); trades == 0 || price != last {
				trades, last = trades+1, price
				m.trades++
			}
		}
		if e.Kind == engine.Cancelled || e.Kind == engine.Filled && e.Remaining == 0 {
			if !m.ladder.remove(e.Side, e.Outcome, e.Price) {
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

// fill counts a fill and returns its price for the taker.
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

// frame notes the prices that changed up to the end of a frame.
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

// load counts the orders that rested when the index was opened, in the order of their keys.
func (k *markets) load(r *resting) error {
	all := make([]*restingOrder, 0, r.live)
	for _, q := range r.owners {
		for i := range q.orders {
			if q.orders[i].market != 0 {
				all = append(all, &q.orders[i])
			}
		}
	}
	slices.SortFunc(all, func(a, b *restingOrder) int { return bytes.Compare(a.id[:], b.id[:]) })
	var o row
	var value []byte
	for _, at := range all {
		m, err := k.market(at.market)
		if err != nil {
			return err
		}
		key, found := orderKey(&at.id), false
		if value, found, err = disk.Get(k.db, key[:], value); err == nil && !found {
			return fmt.Errorf("%w: order %x is unknown to the index", errContradiction, at.id)
		}
		if err == nil {
			err = o.decode(&at.id, value)
		}
		if err != nil {
			return fmt.Errorf("read order %x: %w", at.id, err)
		}
		m.ladder.add(o.Side, o.Outcome, o.Price)
	}
	k.ready = true
	return nil
}

// market is market no, read if need be.
func (k *markets) market(no engine.MarketNo) (*market, error) {
	if m := k.all[no]; m != nil {
		return m, nil
	}
	k.gauges.reads.Inc()
	m, key := &market{no: no}, marketKey(no)
	b, found, err := disk.Get(k.db, key[:], k.value)
	if err == nil && found {
		err = m.decode(b)
	}
	if err == nil {
		m.known, err = k.newest(no)
	}
	if err != nil {
		return nil, fmt.Errorf("read market %d: %w", no, err)
	}
	k.value = b
	k.all[no] = m
	return m, nil
}

// newest is the last stored price of a market, plus 1; 0 if there is none.
func (k *markets) newest(no engine.MarketNo) (known uint32, err error) {
	from, to := pointKey(no, 0), pointKey(no, math.MaxUint32)
	it, err := k.db.NewIter(&pebble.IterOptions{LowerBound: from[:], UpperBound: append(to[:], 0)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return 0, nil
	}
	p, err := pointOf(it.Key(), it.Value())
	return p.twice + 1, err
}

// write adds all that changed to the batch.
func (k *markets) write(batch *pebble.Batch) error {
	for _, m := range k.dirty {
		key := marketKey(m.no)
		k.value = m.append(k.value[:0])
		if err := batch.Set(key[:], k.value, nil); err != nil {
			return fmt.Errorf("write market %d: %w", m.no, err)
		}
	}
	for i := range k.points {
		p := &k.points[i]
		key := pointKey(p.market, p.minute)
		k.value = binary.BigEndian.AppendUint16(k.value[:0], uint16(p.twice))
		if err := batch.Set(key[:], k.value, nil); err != nil {
			return fmt.Errorf("write price of market %d: %w", p.market, err)
		}
	}
	return k.writePast(batch)
}

// sweep begins the next batch.
func (k *markets) sweep() {
	for i, m := range k.dirty {
		m.dirty, k.dirty[i] = false, nil
	}
	for i := range k.points {
		k.all[k.points[i].market].point = 0
	}
	k.dirty, k.points, k.past = k.dirty[:0], k.points[:0], k.past[:0]
}

// PricePoint is a market's price at a time: twice the price of outcome 0, in 1/10,000, so that
// every midpoint is exact, [0, 20,000].
type PricePoint struct {
	Time  engine.Time
	Twice uint32
}

// MaxPoints is how many points Prices returns at most.
const maxPoints = 100_000

// ErrSteps says that Prices was asked for a step that there is not, or for more than MaxPoints.
var errSteps = errors.New("no such price steps")

// quote is a stored price and when its minute ended.
type quote struct {
	ended engine.Time
	twice uint32
}

// pointEnd is when the minute in a key ended.
func pointEnd(key []byte) engine.Time {
	return (engine.Time(binary.BigEndian.Uint32(key[marketKeyLen:])) + 1) * minute
}

// pointOf is the quote in a key and its value.
func pointOf(key, value []byte) (p quote, err error) {
	if len(key) != pointKeyLen || len(value) != 2 {
		return p, errRow
	}
	p.ended = pointEnd(key)
	p.twice = uint32(binary.BigEndian.Uint16(value))
	return p, nil
}

// Prices are the prices of outcome 0 of a market at all times in [from, to] that are whole
// multiples of step since 1970, and at to itself, from where the first one is known. step is 1, 5,
// 30, 180 or 720 minutes. Prices are kept by the minute, so that a price is what the last minute
// ended with that was over by then: what came later is never told of a time before it. What the
// minute that runs has come to so far is the price at its end. The error is ErrSteps, ErrClosed, or
// names what cannot be read.
func (h *History) Prices(market engine.MarketNo, from, to engine.Time, step time.Duration) (
	[]PricePoint, error) {
	by := engine.Time(step.Milliseconds())
	switch step {
	case time.Minute, 5 * time.Minute, 30 * time.Minute, 180 * time.Minute, 720 * time.Minute:
	default:
		return nil, fmt.Errorf("%w: %v", errSteps, step)
	}
	if from = max(from, 0); to < max(from, minute) {
		return nil, nil
	}
	if !h.gate.Enter() {
		return nil, journal.ErrClosed
	}
	defer h.gate.Leave()
	points, err := h.sample(market, from, to, by)
	if err != nil {
		return nil, fmt.Errorf("read prices of market %d: %w", market, err)
	}
	return points, nil
}

// sampler writes the price in force at each step.
type sampler struct {
	points []PricePoint
	at, by engine.Time // the next step, and how far they are apart
	known  bool
	twice  uint32
}

// fill repeats the price for all steps up to to, as far as there is room.
func (s *sampler) fill(to engine.Time) {
	for ; s.known && s.at <= to && len(s.points) <= maxPoints; s.at += s.by {
		s.points = append(s.points, PricePoint{s.at, s.twice})
	}
}

// take goes on with the price of a minute that has ended.
func (s *sampler) advance(p quote, to engine.Time) {
	s.fill(min(p.ended-1, to))
	if s.known, s.twice = true, p.twice; s.at < p.ended {
		s.at = (p.ended + s.by - 1) / s.by * s.by
	}
}

// nearPoints is how many stored prices within a step are walked, which is less work than to seek
// the step's end.
const nearPoints = 8

// walk goes along the stored prices of a market from where the iterator stands to time to. Of a
// step with many of them it reads a few and the last one.
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
			key := pointKey(no, minuteOf(min(s.at, (to/minute+1)*minute)))
			if it.SeekLT(key[:]) && pointEnd(it.Key()) > p.ended {
				continue
			} // else p itself is in force then
		}
		ok = it.Next()
	}
	s.fill(to)
	return it.Error()
}

// sample makes the points. The caller is inside the door.
func (h *History) sample(no engine.MarketNo, from, to, by engine.Time) (
	_ []PricePoint, err error) {
	it, err := h.points(no, minuteOf(to)-1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if begin := pointKey(no, minuteOf(from)); !it.SeekLT(begin[:]) {
		it.First()
	}
	s := sampler{at: (from + by - 1) / by * by, by: by}
	if err := s.walk(it, no, to); err != nil {
		return nil, err
	}
	if s.known && to%by != 0 {
		s.points = append(s.points, PricePoint{to, s.twice})
	}
	if len(s.points) > maxPoints {
		return nil, fmt.Errorf("%w: more than %d", errSteps, maxPoints)
	}
	return s.points, nil
}

// points are the stored prices of a market up to a minute. The caller closes them.
func (h *History) points(no engine.MarketNo, last uint32) (*pebble.Iterator, error) {
	low, high := pointKey(no, 0), pointKey(no, last)
	return h.db.NewIter(&pebble.IterOptions{LowerBound: low[:], UpperBound: append(high[:], 0)})
}

// PricedSince is the end of the minute in which the price of a market was known first; false if it
// never was. The error is ErrClosed, or names what cannot be read.
func (h *History) PricedSince(market engine.MarketNo) (at engine.Time, known bool, err error) {
	if !h.gate.Enter() {
		return 0, false, journal.ErrClosed
	}
	defer h.gate.Leave()
	it, err := h.points(market, math.MaxUint32)
	if err != nil {
		return 0, false, fmt.Errorf("read prices of market %d: %w", market, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return 0, false, it.Error()
	}
	p, err := pointOf(it.Key(), it.Value())
	return p.ended, err == nil, err
}

// Volume is the collateral value of all that takers got or gave in a market, in base units, and how
// many trades that were: one for each taker and price. The error is ErrClosed, or names a row that
// cannot be read.
func (h *History) Volume(no engine.MarketNo) (cash engine.Cash, trades uint64, err error) {
	if !h.gate.Enter() {
		return 0, 0, journal.ErrClosed
	}
	defer h.gate.Leave()
	var m market
	key := marketKey(no)
	b, found, err := disk.Get(h.db, key[:], nil)
	if err == nil && found {
		err = m.decode(b)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read market %d: %w", no, err)
	}
	return m.volume, m.trades, nil
}

package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// A market's volume is one sum in its row. What that sum was at the end of an hour in which the
// market traded gets a key of its own when the first trade of a later hour comes: so a window of
// the volume is the sum now less what it was when the window began, to the hour, and a trade
// costs a comparison.

// pastHour is what the volume of a market was at the end of an hour, on its way to the database.
type pastHour struct {
	market engine.MarketNo
	hour   uint32 // since 1970
	volume engine.Cash
}

const (
	volumeKeyLen = 1 + 4 + 4
	hour         = 60 * minute
)

// volumeKey is the key of a market's volume at the end of an hour.
func volumeKey(m engine.MarketNo, at uint32) [volumeKeyLen]byte {
	var k [volumeKeyLen]byte
	k[0] = spaceVolume
	binary.BigEndian.PutUint32(k[1:], uint32(m))
	binary.BigEndian.PutUint32(k[5:], at)
	return k
}

// hourOf is the hour of a time.
func hourOf(t engine.Time) uint32 {
	return uint32(min(max(t/hour, 0), math.MaxUint32))
}

// turn ends the hour of the last trade of a market if the next one comes in a later hour.
func (k *markets) turn(m *market, now engine.Time) {
	at := hourOf(now)
	if at == m.hour {
		return
	}
	if m.volume > 0 {
		k.past = append(k.past, pastHour{m.no, m.hour, m.volume})
	}
	m.hour = at
}

// writePast adds the hours that are over to the batch.
func (k *markets) writePast(batch *pebble.Batch) error {
	for i := range k.past {
		e := &k.past[i]
		key := volumeKey(e.market, e.hour)
		k.value = binary.AppendUvarint(k.value[:0], uint64(e.volume))
		if err := batch.Set(key[:], k.value, nil); err != nil {
			return fmt.Errorf("write volume of market %d: %w", e.market, err)
		}
	}
	return nil
}

// VolumesUntil are the parts of a market's volume that were traded before each of some times, in
// base units. A time counts as the beginning of its hour. What was traded since is the whole
// volume less that. The error is ErrClosed, or names a row that cannot be read.
func (h *History) VolumesUntil(no engine.MarketNo, at []engine.Time) ([]engine.Cash, error) {
	if !h.gate.Enter() {
		return nil, journal.ErrClosed
	}
	defer h.gate.Leave()
	parts, err := h.volumesUntil(no, at)
	if err != nil {
		return nil, fmt.Errorf("read volumes of market %d: %w", no, err)
	}
	return parts, nil
}

// volumesUntil reads the row first: an hour before that of its last trade never changes any more.
// The caller is inside the door.
func (h *History) volumesUntil(no engine.MarketNo, at []engine.Time) (
	parts []engine.Cash, err error) {
	parts = make([]engine.Cash, len(at))
	var m market
	key := marketKey(no)
	b, found, err := disk.Get(h.db, key[:], nil)
	if err == nil && found {
		err = m.decode(b)
	}
	if err != nil || m.volume == 0 {
		return parts, err
	}
	low, high := volumeKey(no, 0), volumeKey(no, m.hour)
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: low[:], UpperBound: high[:]})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for i, t := range at {
		since := hourOf(t)
		if m.hour < since {
			parts[i] = m.volume
			continue
		}
		if key := volumeKey(no, since); it.SeekLT(key[:]) {
			c := varints{rest: it.Value()}
			if parts[i] = engine.Cash(c.uvarint()); c.bad || len(c.rest) > 0 {
				return nil, errRow
			}
		}
		if err := it.Error(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// The row of a market has its whole volume. The first trade of a later hour stores the volume so
// far under the hour that is over. So the volume of a window is the difference of two sums.

const hour = 60 * minute

func hourOf(t engine.Time) uint32 { return uint32(min(max(t/hour, 0), math.MaxUint32)) }

func (k *markets) turn(batch *pebble.Batch, m *market, now engine.Time) error {
	over := m.hour
	if m.hour = hourOf(now); m.hour == over || m.volume == 0 {
		return nil
	}
	key := pairKey(spaceVolume, m.no, over)
	k.value = binary.AppendUvarint(k.value[:0], uint64(m.volume))
	if err := batch.Set(key[:], k.value, nil); err != nil {
		return fmt.Errorf("write volume of market %d: %w", m.no, err)
	}
	return nil
}

// VolumesUntil returns how much of a market's volume was traded before each of some times, in base
// units. A time counts as the beginning of its hour. The error is as for Past.
func (h *History) VolumesUntil(no engine.MarketNo, at []engine.Time) (
	parts []engine.Cash, err error) {
	parts = make([]engine.Cash, len(at))
	err = h.view(func() error { return h.volumesUntil(no, at, parts) },
		"read volumes of market", uint32(no))
	if err != nil {
		return nil, err
	}
	return parts, nil
}

func (h *History) volumesUntil(no engine.MarketNo, at []engine.Time, parts []engine.Cash) (
	err error) {
	m, err := readMarket(h.db, no) // first: hours before that of its last trade never change
	if err != nil || m.volume == 0 {
		return err
	}
	low, high := pairKey(spaceVolume, no, 0), pairKey(spaceVolume, no, m.hour)
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: low[:], UpperBound: high[:]})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for i, t := range at {
		since := hourOf(t)
		if m.hour < since {
			parts[i] = m.volume
			continue
		}
		if key := pairKey(spaceVolume, no, since); it.SeekLT(key[:]) {
			c := varints{rest: it.Value()}
			parts[i] = engine.Cash(c.uvarint())
			if err := c.end(); err != nil {
				return err
			}
		}
		if err := it.Error(); err != nil {
			return err
		}
	}
	return nil
}

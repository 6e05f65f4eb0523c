package history

import (
	"encoding/binary"
	"errors"
	"fmt"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// NoticeRow is something that happened to an owner without his doing: an order of his was cancelled
// by somebody else, or a market was resolved. Fills are in the lists of trades.
type NoticeRow struct {
	Sequence engine.Sequence
	Index    uint32           // of the Event among those of its Command
	Kind     engine.EventKind // engine.Cancelled or engine.Resolved
	Market   engine.MarketNo
	Time     engine.Time
	Order    engine.OrderID // that was cancelled
	Reason   engine.Reason  // why
	Payout   engine.Price   // of outcome 0 of the market that was resolved
}

// Notices are kept by days of Time: today's and those of noticeDays days before. The first notice
// of a day takes the older ones away, so that the journal alone decides which ones there are.
const (
	noticeDays = 2
	day        = 24 * hour
)

// noticeKey sorts the notices of a day by owner, 0 for resolutions, and then as they happened.
func noticeKey(day uint32, owner engine.WalletNo, seq engine.Sequence, index uint32) []byte {
	k := make([]byte, 0, noticeKeyLen)
	k = binary.BigEndian.AppendUint32(append(k, spaceNotice), day)
	k = binary.BigEndian.AppendUint32(k, uint32(owner))
	k = binary.BigEndian.AppendUint64(k, uint64(seq))
	return binary.BigEndian.AppendUint32(k, index)
}

// notice writes a notice, if the Event deserves one. s is the stamp of its Command, and index its
// place there.
func (d *fold) notice(e *engine.Event, s stamp, index int) error {
	owner := e.Owner
	switch {
	case e.Kind == engine.Resolved:
		owner = 0
	case e.Reason == engine.ByOwner:
		return nil
	}
	today := uint32(max(s.now/day, 0))
	if today > d.noticed && today > noticeDays {
		d.noticed = today
		from, to := []byte{spaceNotice}, noticeKey(today-noticeDays, 0, 0, 0)
		if err := d.batch.DeleteRange(from, to, nil); err != nil {
			return fmt.Errorf("delete notices before day %d: %w", today-noticeDays, err)
		}
	}
	b := appendUvarints(append(d.value[:0], byte(e.Kind)), uint64(s.now), uint64(e.Market),
		uint64(e.Reason), uint64(e.Price))
	d.value = append(b, e.Order[:]...)
	if err := d.batch.Set(noticeKey(today, owner, s.seq, uint32(index)), d.value, nil); err != nil {
		return fmt.Errorf("write a notice of owner %d: %w", owner, err)
	}
	return nil
}

func (r *NoticeRow) decode(key, b []byte) error {
	if len(key) != noticeKeyLen || len(b) == 0 {
		return errRow
	}
	*r = NoticeRow{Kind: engine.EventKind(b[0])}
	r.Sequence = engine.Sequence(binary.BigEndian.Uint64(key[9:]))
	r.Index = binary.BigEndian.Uint32(key[17:])
	c := varints{rest: b[1:]}
	r.Time, r.Market = engine.Time(c.uvarint()), engine.MarketNo(c.uvarint())
	price := engine.Price(0)
	r.Reason, price = engine.Reason(c.uvarint()), engine.Price(c.uvarint())
	if r.Kind == engine.Resolved {
		r.Payout = price
	}
	if c.bad || copy(r.Order[:], c.rest) != len(r.Order) || len(c.rest) != len(r.Order) {
		return errRow
	}
	return nil
}

// Notices lists what happened to an owner since a time, newest first, at most limit of it; owner 0
// has the markets that were resolved. What is older than two days may be gone. The error is as for
// Past.
func (h *History) Notices(owner engine.WalletNo, since engine.Time, limit int) (
	rows []NoticeRow, err error) {
	err = h.view(func() error {
		it, err := iterate(h.db, spaceNotice)
		if err != nil {
			return err
		}
		rows, err = readNotices(it, owner, since, limit)
		return errors.Join(err, it.Close())
	}, "read notices of owner", uint32(owner))
	return rows, err
}

func readNotices(it *pebble.Iterator, owner engine.WalletNo, since engine.Time, limit int) (
	rows []NoticeRow, err error) {
	if !it.Last() {
		return nil, it.Error()
	}
	newest := binary.BigEndian.Uint32(it.Key()[1:])
	for day, n := newest, 0; n <= noticeDays; day, n = day-1, n+1 {
		const high = 1<<32 - 1
		from := noticeKey(day, owner, 0, 0)
		end := append(noticeKey(day, owner, ^engine.Sequence(0), high), 0)
		for ok := it.SeekLT(end); ok && string(it.Key()) >= string(from); ok = it.Prev() {
			var r NoticeRow
			b, err := it.ValueAndErr()
			if err == nil {
				err = r.decode(it.Key(), b)
			}
			if err != nil {
				return nil, err
			}
			if r.Time < since || len(rows) == limit {
				return rows, nil
			}
			rows = append(rows, r)
		}
		if day == 0 {
			break
		}
	}
	return rows, it.Error()
}

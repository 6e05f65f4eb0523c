package history

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"clobd/engine"
)

// A block is 64 runs of 64 frames. The row of an owner and a block has one bit for each run in
// which an order of the owner was placed, filled or cancelled: a reader who wants all of that reads
// these frames only.
const (
	runBits   = 6
	blockBits = runBits + 6
)

// touches gathers the rows of the block under way.
type touches struct {
	block uint64 // number of the first frame >> blockBits
	rows  map[engine.WalletNo]uint64
	dirty map[engine.WalletNo]struct{} // owners whose rows are not in the batch yet
	older uint64                       // the block that had begun when the index was opened
}

func touchKey(owner engine.WalletNo, block uint64) [moveKeyLen]byte {
	k := moveKey(owner, engine.Sequence(block))
	k[0] = spaceTouch
	return k
}

// touch notes the owners whose orders a Command of a frame changed.
func (d *fold) touch(frame uint64, c *engine.Command, events []engine.Event) error {
	for i := range events {
		owner := events[i].Owner
		switch events[i].Kind {
		case engine.Filled, engine.Cancelled:
		case engine.Placed, engine.Completed:
			owner = c.Owner
		default:
			continue
		}
		if err := d.mayTouch(frame, owner); err != nil {
			return err
		}
	}
	return nil
}

func (d *fold) mayTouch(frame uint64, owner engine.WalletNo) error {
	t, bit := &d.touches, uint64(1)<<(frame>>runBits&63)
	if block := frame >> blockBits; block != t.block {
		if err := d.writeTouches(); err != nil {
			return err
		}
		t.block = block
		clear(t.rows)
	}
	row, known := t.rows[owner]
	if !known && t.block == t.older {
		key := touchKey(owner, t.block)
		if _, err := read(d.db, key[:], func(b []byte) (err error) {
			row, err = decodeTouches(b)
			return err
		}); err != nil {
			return fmt.Errorf("read the frames of owner %d: %w", owner, err)
		}
	}
	if !known || row&bit == 0 {
		t.rows[owner] = row | bit
		t.dirty[owner] = struct{}{}
	}
	return nil
}

// writeTouches puts the rows that changed into the batch.
func (d *fold) writeTouches() error {
	t := &d.touches
	for _, owner := range slices.Sorted(maps.Keys(t.dirty)) {
		key := touchKey(owner, t.block)
		d.value = binary.BigEndian.AppendUint64(d.value[:0], t.rows[owner])
		if err := d.batch.Set(key[:], d.value, nil); err != nil {
			return fmt.Errorf("write the frames of owner %d: %w", owner, err)
		}
	}
	clear(t.dirty)
	return nil
}

func decodeTouches(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errRow
	}
	return binary.BigEndian.Uint64(b), nil
}

// Touched returns the next frames, from a frame on, that may have changed orders of an owner; those
// before first did not. The index does not know the frames behind its own place: last is then
// math.MaxUint64. The error is as for Past.
func (h *History) Touched(owner engine.WalletNo, from uint64) (first, last uint64, err error) {
	err = h.view(func() error {
		first, last, err = h.touched(owner, from)
		return err
	}, "find the frames of owner", uint32(owner))
	return first, last, err
}

func (h *History) touched(owner engine.WalletNo, from uint64) (first, last uint64, err error) {
	var at reached
	if _, err := read(h.db, stateKey(metaPlace), func(b []byte) error {
		if !at.decode(b) {
			return errRow
		}
		return nil
	}); err != nil {
		return 0, 0, err
	}
	first, last = max(from, at.frame+1), math.MaxUint64
	low, high := touchKey(owner, from>>blockBits), touchKey(owner+1, 0)
	err = each(h.db, low[:], high[:], func(key, value []byte) (bool, error) {
		row, err := decodeTouches(value)
		if err != nil || len(key) != moveKeyLen {
			return false, errRow
		}
		begin := binary.BigEndian.Uint64(key[5:]) << blockBits
		if begin < from {
			row = row >> ((from - begin) >> runBits) << ((from - begin) >> runBits)
		}
		if row == 0 {
			return true, nil
		}
		begin += uint64(bits.TrailingZeros64(row)) << runBits
		if begin <= at.frame {
			first, last = max(begin, from), min(begin+1<<runBits-1, at.frame)
		}
		return false, nil
	})
	return first, last, err
}

// Trade finds a trade of a Sequence by its index there. The error is as for Past, or that there is
// no such trade.
func (h *History) Trade(seq engine.Sequence, index uint32) (t TradeRow, err error) {
	err = h.view(func() error {
		deals, err := newDealReader(h.db)
		if err != nil {
			return err
		}
		err = deals.must(h.journal, tradeRef{seq, index}.number(), &t)
		if e := deals.it.Close(); err == nil {
			err = e
		}
		return err
	}, "read a trade", 0)
	return t, err
}

// Terms finds the order id as Order does, without the ids of its trades.
func (h *History) Terms(id engine.OrderID) (r OrderRow, known bool, err error) {
	err = h.view(func() error {
		var o row
		known, err = o.load(h.db, &id)
		r = o.OrderRow
		return err
	}, "read the terms of an order", 0)
	return r, known, err
}

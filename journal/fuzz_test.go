package journal

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"clobd/engine"
	"clobd/journal/disk"
)

// FuzzMark: a slot of the mark that checks out is written again with the same bytes, and of two
// slots the one written last counts.
func FuzzMark(f *testing.F) {
	one := Mark{Journal: 7, Frame: 8, Sequence: 9, Hash: engine.Hash{1, 31: 2}}
	f.Add(one.encode(1)[:markSize], uint64(2), true)
	f.Add((&Mark{}).encode(math.MaxUint64)[:markSize], uint64(0), true)
	f.Add(one.encode(3)[:markSize-1], uint64(1), false)
	f.Add([]byte("CLOBMARK"), uint64(1), false)
	f.Fuzz(func(t *testing.T, slot []byte, other uint64, mend bool) {
		if mend && len(slot) >= markSize {
			le := binary.LittleEndian
			le.PutUint64(slot, markMagic)
			le.PutUint64(slot[8:], markFormat)
			le.PutUint32(slot[markSumAt:], disk.Sum(slot[:markSumAt]))
		}
		m, turn, ok := decodeMark(slot)
		if mend && len(slot) >= markSize != ok {
			t.Fatalf("%x: %v", slot, ok)
		}
		if ok && !bytes.Equal(m.encode(turn)[:markSize], slot[:markSize]) {
			t.Fatalf("%x: %+v of turn %d", slot, m, turn)
		}
		// The file, with this slot first and a good one behind it.
		on := vfs.NewMem()
		whole := append(make([]byte, 0, 2*markSlot), slot[:min(len(slot), markSlot)]...)
		if err := writeWhole(on, markName, append(whole[:markSlot], one.encode(other)...)); err != nil {
			t.Fatal(err)
		}
		got, err := readMark(on, markName)
		want := one
		if ok && turn >= other {
			want = m
		}
		if err != nil || got.Mark != want {
			t.Fatalf("%x, then turn %d: %+v, %v, want %+v", slot, other, got, err, want)
		}
	})
}

// FuzzDescription: whatever the description of a checkpoint holds, one that is read says the same
// once it is written again.
func FuzzDescription(f *testing.F) {
	var chunks [][]byte
	keep := func(b []byte) error {
		chunks = append(chunks, bytes.Clone(b))
		return nil
	}
	c := Checkpoint{Journal: 7, Engine: engine.Version, Partition: 3, Created: time.UnixMilli(5),
		Head: engine.Head{Frame: 9, Sequence: 1 << 40, Epoch: 2, Time: -1}, beside: true}
	if err := c.pack(keep); err != nil {
		f.Fatal(err)
	}
	f.Add(chunks[0][engine.ChunkOverhead:])
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{255}, 100))
	describe := func(chunks [][]byte) (*Checkpoint, error) {
		on := vfs.NewMem()
		if err := writeWhole(on, "x", bytes.Join(chunks, nil)); err != nil {
			return nil, err
		}
		return describe(on, "x")
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		chunks = nil
		p := engine.NewPacker(keep)
		for part := range slices.Chunk(body, 1<<10) {
			p.Bytes(part)
		}
		if err := p.Close(0); err != nil {
			t.Fatal(err)
		}
		first, err := describe(chunks)
		if err != nil {
			return
		}
		chunks = nil
		if err := first.pack(keep); err != nil {
			t.Fatal(err)
		}
		again, err := describe(chunks)
		if err == nil {
			again.Bytes = first.Bytes // a number may have been written with more bytes than it needs
		}
		if err != nil || *again != *first {
			t.Fatalf("%x: %+v, written and read: %+v, %v", body, first, again, err)
		}
	})
}

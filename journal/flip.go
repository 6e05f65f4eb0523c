package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// maxSuspects bounds how many frames with a wrong checksum are kept, maxSuspect the size of each.
const (
	maxSuspects = 64
	maxSuspect  = 4 << 20
)

func (c *collector) suspect(b []byte) {
	if len(c.suspects) < maxSuspects && len(b) <= maxSuspect &&
		!slices.ContainsFunc(c.suspects, func(s []byte) bool { return bytes.Equal(s, b) }) {
		c.suspects = append(c.suspects, bytes.Clone(b))
	}
}

// unflip repairs frames of which one bit was flipped: the checksum says which bit. A repair counts
// only if the next frame, or the mark, names the hash of the repaired frame.
func (c *collector) unflip() error {
	type found struct {
		no uint64
		b  []byte
	}
	var all []found
	for _, b := range c.suspects {
		if disk.TurnBack(b, checksumAt) && engine.DecodeFrame(b, &c.frame) == nil && c.frame.No > 0 {
			all = append(all, found{c.frame.No, b})
		}
	}
	// The last one first: a repaired frame names the one before it.
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(b.no, a.no) })
	mark, _, _ := ReadMark(c.r.o.FS, c.r.o.Dir)
	for _, f := range all {
		if _, known := c.seen[f.no]; known || engine.DecodeFrame(f.b, &c.frame) != nil {
			continue
		}
		hash := c.frame.Hash
		after, err := c.get(f.no + 1)
		if err != nil {
			return err
		}
		if named := after != nil && c.follows(after, f.b); !named &&
			(mark.Frame != f.no || mark.Hash != hash) {
			continue
		}
		key := frameKey(f.no)
		if err := c.db.Set(key[:], f.b, pebble.NoSync); err != nil {
			return err
		}
		c.seen[f.no] = binary.LittleEndian.Uint64(hash[:])
		c.unflipped++
	}
	return nil
}

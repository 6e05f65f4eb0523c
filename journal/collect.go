package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// collector finds frames in the bytes of the files of a damaged database. It needs none of the
// database's own structure: a frame begins with known bytes, and has its length, a checksum, its
// number and the hash of the frame before it. So whole frames are found in a table without an end,
// in a table that no manifest names, and in a log behind the place where it is damaged.
type collector struct {
	r     *rescuer
	db    *pebble.DB
	batch *pebble.Batch
	frame engine.Frame
	// seen has a part of the hash of each frame that was written into db. others has further frames
	// with the same number and another hash: old ends of a log that was written again after a crash.
	seen   map[uint64]uint64
	others map[uint64][][]byte
	newer  int // frames of a later format
	// suspects are frames with a wrong checksum; unflipped is how many of them were repaired.
	suspects  [][]byte
	unflipped uint64
	meta      map[string]uint64
	unread    []string // files that could not be read to their end
	err       error    // of writing db
}

// collect writes all frames that it finds in the files of folder from into db, and finds out which
// journal they belong to.
func collect(r *rescuer, from string, db *pebble.DB) (*collector, error) {
	c := &collector{r: r, db: db, batch: db.NewBatch(), seen: map[uint64]uint64{},
		others: map[uint64][][]byte{}, meta: map[string]uint64{}}
	names, err := r.o.FS.List(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, errors.Join(err, c.batch.Close())
	}
	slices.Sort(names)
	for _, name := range names {
		read := c.table
		if strings.HasSuffix(name, ".log") {
			read = c.log
		} else if !strings.HasSuffix(name, ".sst") {
			continue
		}
		path := filepath.Join(from, name)
		f, err := r.o.FS.Open(path)
		var b []byte
		if err == nil {
			b, err = io.ReadAll(f)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			c.unread = append(c.unread, fmt.Sprintf("%s: %v", path, err))
		}
		read(b)
		if c.err == nil {
			c.err = r.ctx.Err()
		}
	}
	if c.err = errors.Join(c.err, c.batch.Commit(pebble.NoSync), c.batch.Close()); c.err == nil {
		c.err = c.unflip()
	}
	if c.err == nil {
		c.err = c.choose()
	}
	return c, c.err
}

// frameStart are the first bytes of a frame. frameLengthAt is the offset of the number of bytes
// that follow the header.
var frameStart = []byte("CLOF")

const frameLengthAt = engine.FrameOverhead - 8

// table collects all frames that lie in one piece in b. Tables are not compressed.
func (c *collector) table(b []byte) {
	for c.err == nil {
		i := bytes.Index(b, frameStart)
		if i < 0 {
			return
		}
		b = b[i:]
		b = b[max(c.take(b), 1):]
	}
}

// take collects the frame at the beginning of b and returns its length; 0 if there is none.
func (c *collector) take(b []byte) int {
	if len(b) < engine.FrameOverhead {
		return 0
	}
	size := uint64(binary.LittleEndian.Uint32(b[frameLengthAt:])) + engine.FrameOverhead
	if size > uint64(len(b)) {
		return 0
	}
	b = b[:size]
	err := engine.DecodeFrame(b, &c.frame)
	if errors.Is(err, engine.ErrFormat) && disk.Holds(b, checksumAt) {
		c.newer++
	}
	if errors.Is(err, engine.ErrChecksum) {
		c.suspect(b)
	}
	if err != nil {
		return 0
	}
	no, part := c.frame.No, binary.LittleEndian.Uint64(c.frame.Hash[:])
	switch was, found := c.seen[no]; {
	case !found:
		c.seen[no] = part
		c.set(no, b)
	case was != part:
		c.others[no] = append(c.others[no], bytes.Clone(b))
	}
	return len(b)
}

// checksumAt is where a frame of any format has its checksum.
const checksumAt = engine.FrameOverhead - disk.SumBytes

func (c *collector) set(no uint64, b []byte) {
	key := frameKey(no)
	c.err = c.batch.Set(key[:], b, nil)
	if c.err == nil && c.batch.Len() >= copyBatch {
		c.err = errors.Join(c.batch.Commit(pebble.NoSync), c.batch.Close(), c.r.drain())
		c.batch = c.db.NewBatch()
	}
}

// Pebble's log consists of blocks, a block of chunks. A chunk holds a part of a record behind a
// header: checksum, length, kind, and in later kinds the log's number and how far it is synced.
const (
	logBlock    = 32 << 10
	chunkHeader = 7
	chunkKinds  = 12
	chunkKindAt = 6

	// The values of (kind-1) modulo 4: a whole record, its first part, a middle part (2), its last.
	chunkFull, chunkFirst, chunkLast = 0, 1, 3
)

// chunkHeaders are the lengths of the headers of the kinds 1 to 4, 5 to 8, 9 to 12.
var chunkHeaders = [...]int{chunkHeader, chunkHeader + 4, chunkHeader + 12}

// log collects all frames of a log. After a damaged chunk it goes on with the next chunk if there
// is a good one; else it collects what lies in one piece and goes on with the next block.
func (c *collector) log(b []byte) {
	var record []byte
	whole := false // all parts so far were good
	for ; len(b) > 0; b = b[min(logBlock, len(b)):] {
		block := b[:min(logBlock, len(b))]
		for len(block) >= chunkHeader {
			part, kind, rest, good := logChunk(block)
			if kind > 0 && (kind-1)%4 <= chunkFirst {
				record, whole = record[:0], true
			}
			record = append(record, part...) // even of a damaged one: frames have their own checksum
			if !good {
				whole = false
			}
			if !good && !inStep(rest) {
				c.table(record)
				c.table(block)
				break
			}
			if place := (kind - 1) % 4; place == chunkFull || place == chunkLast {
				c.table(record)
				if whole {
					c.learn(record)
				}
				record, whole = record[:0], false
			}
			block = rest
		}
	}
	c.table(record)
}

// inStep reports whether a good chunk follows a damaged one: then the length of the damaged chunk
// is right, and only its content is wrong.
func inStep(rest []byte) bool {
	if len(rest) < chunkHeader {
		return rest != nil // the end of the block
	}
	_, _, _, good := logChunk(rest)
	return good
}

// logChunk reads the chunk at the beginning of a block: its content, its kind (0 if there is no
// chunk), the rest of the block, and whether the checksum is right.
func logChunk(block []byte) (part []byte, kind int, rest []byte, whole bool) {
	kind = int(block[chunkKindAt])
	if kind == 0 || kind > chunkKinds {
		return nil, 0, nil, false
	}
	from := chunkHeaders[(kind-1)/4]
	to := from + int(binary.LittleEndian.Uint16(block[4:]))
	if to > len(block) {
		return nil, 0, nil, false
	}
	sum := disk.Sum(block[chunkKindAt:to])
	sum = (sum>>15 | sum<<17) + 0xa282ead8 // as LevelDB masks it
	return block[from:to], kind, block[to:], sum == binary.LittleEndian.Uint32(block)
}

// A record of the log is a batch: a number, the count of entries, then the entries. An entry that
// sets a key is a byte, then key and value, each after its length.
const (
	batchHeader = 12
	entrySets   = 1
)

// learn reads the journal's description of itself from a whole record of the log: the values of its
// meta keys. It does not look into frames, whose content callers choose.
func (c *collector) learn(record []byte) {
	if len(record) < batchHeader {
		return
	}
	next := func(b []byte) (text, rest []byte, ok bool) {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, nil, false
		}
		return b[size:][:n], b[size:][n:], true
	}
	for b := record[batchHeader:]; len(b) > 0 && b[0] == entrySets; {
		key, rest, ok := next(b[1:])
		if !ok {
			return
		}
		value, rest, ok := next(rest)
		if !ok {
			return
		}
		for _, name := range []string{metaFormat, metaJournal, metaCreated} {
			if bytes.Equal(key, metaKey(name)) && len(value) == 8 {
				c.meta[name] = binary.BigEndian.Uint64(value)
			}
		}
		b = rest
	}
}

// choose decides between frames with the same number. It prefers a frame that continues the frame
// before it; of those one of the latest epoch, whose writer knew where the journal ended; and of
// those the one that the next frame names, if there is only one next frame.
func (c *collector) choose() error {
	for _, no := range slices.Sorted(maps.Keys(c.others)) {
		mine, err := c.get(no)
		if err != nil {
			return err
		}
		before, err := c.get(no - 1)
		if err != nil {
			return err
		}
		var after []byte
		if len(c.others[no+1]) == 0 {
			if after, err = c.get(no + 1); err != nil {
				return err
			}
		}
		rank := func(b []byte) [3]uint64 {
			r := [3]uint64{1: epochOf(b)}
			if before != nil && c.follows(b, before) {
				r[0] = 1
			}
			if after != nil && c.follows(after, b) {
				r[2] = 1
			}
			return r
		}
		best, most := mine, rank(mine)
		for _, other := range c.others[no] {
			if r := rank(other); slices.Compare(r[:], most[:]) > 0 {
				best, most = other, r
			}
		}
		key := frameKey(no)
		if err := c.db.Set(key[:], best, pebble.NoSync); err != nil {
			return err
		}
	}
	return nil
}

// get is a collected frame; nil if there is none with that number.
func (c *collector) get(no uint64) ([]byte, error) {
	key := frameKey(no)
	b, found, err := disk.Get(c.db, key[:], nil)
	if !found {
		return nil, err
	}
	return b, err
}

func (c *collector) follows(b, before []byte) bool {
	if engine.DecodeFrame(before, &c.frame) != nil {
		return false
	}
	hash := c.frame.Hash
	return engine.DecodeFrame(b, &c.frame) == nil && c.frame.Prev == hash
}

func epochOf(b []byte) uint64 {
	var f engine.Frame
	if engine.DecodeFrame(b, &f) != nil {
		return 0
	}
	return f.Epoch
}

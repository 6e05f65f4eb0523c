package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// Version is the version of the journal folder's layout: key spaces and meta values. The frames
// carry a format version of their own.
const Version = 1

// The meta keys of the journal. Each value is 8 bytes, big endian.
const (
	metaFormat  = "format"
	metaJournal = "journal"
	metaCreated = "created"
	metaHole    = "hole"
)

// meta is the journal's description of itself. All but hole is written once, before the first
// frame.
type meta struct {
	format  uint64
	id      uint64
	created uint64 // unix milliseconds
	hole    uint64 // the last missing frame that has frames behind it, 0: none
}

// newMeta makes the identity of a new journal. The ID is the one given, or, for 0, random and not
// 0; it has 60 bits, as many as fit into a trade id.
func newMeta(now time.Time, id uint64) (meta, error) {
	var b [8]byte
	if id != 0 {
		return meta{format: Version, id: id, created: uint64(now.UnixMilli())}, nil
	}
	for {
		if _, err := rand.Read(b[:]); err != nil {
			return meta{}, fmt.Errorf("draw a journal ID: %w", err)
		}
		if id := binary.BigEndian.Uint64(b[:]) >> 4; id != 0 {
			return meta{format: Version, id: id, created: uint64(now.UnixMilli())}, nil
		}
	}
}

// save writes m into a new journal.
func (m *meta) save(db *pebble.DB, how *pebble.WriteOptions) error {
	b := db.NewBatch()
	defer b.Close()
	for _, kv := range []struct {
		name  string
		value uint64
	}{{metaFormat, m.format}, {metaJournal, m.id}, {metaCreated, m.created}} {
		v := binary.BigEndian.AppendUint64(nil, kv.value)
		if err := b.Set(metaKey(kv.name), v, nil); err != nil {
			return fmt.Errorf("write meta %s: %w", kv.name, err)
		}
	}
	if err := b.Commit(how); err != nil {
		return fmt.Errorf("write meta: %w", err)
	}
	return nil
}

// loadMeta reads the journal's description of itself; false if it has none.
func loadMeta(db *pebble.DB) (meta, bool, error) {
	var m meta
	found := 0
	for _, kv := range []struct {
		name  string
		value *uint64
	}{{metaFormat, &m.format}, {metaJournal, &m.id}, {metaCreated, &m.created}, {metaHole, &m.hole}} {
		v, there, err := disk.Get(db, metaKey(kv.name), nil)
		switch {
		case err != nil:
			return m, false, fmt.Errorf("read meta %s: %w", kv.name, err)
		case !there:
			continue
		case len(v) != 8:
			return m, false, fmt.Errorf("meta %s has %d bytes instead of 8", kv.name, len(v))
		}
		*kv.value = binary.BigEndian.Uint64(v)
		if kv.name != metaHole {
			found++
		}
	}
	if found != 0 && found != 3 {
		return m, false, fmt.Errorf("%d of 3 meta values exist", found)
	}
	return m, found == 3, nil
}

// errNewer is the error of data that a later version of the program wrote.
var errNewer = errors.New("it is of a newer version")

const hintNewer = "start it with the version of clobd that wrote it, or a later one"

// saveHole writes the number of the last missing frame after an accepted loss. The write is not
// durable yet.
func saveHole(db *pebble.DB, frame uint64) error {
	err := db.Set(metaKey(metaHole), binary.BigEndian.AppendUint64(nil, frame), pebble.NoSync)
	if err != nil {
		return fmt.Errorf("write meta %s: %w", metaHole, err)
	}
	return nil
}

// judge returns why this program cannot use a journal with that description, or nil.
func (m *meta) judge(path string) error {
	switch {
	case m.format > Version:
		return disk.Advise(
			fmt.Errorf("journal %s has layout version %d, this program's is %d: %w",
				path, m.format, Version, errNewer), hintNewer)
	case m.format < 1:
		return disk.Advise(disk.Damaged(fmt.Errorf("journal %s has the unknown layout version %d: it "+
			"is damaged or was not written by clobd", path, m.format)), disk.HintDamaged)
	case m.id == 0:
		return disk.Advise(disk.Damaged(fmt.Errorf("journal %s has no ID: it is damaged", path)),
			disk.HintDamaged)
	}
	return nil
}

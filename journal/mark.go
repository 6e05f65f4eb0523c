package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Mark is the high-water mark: that frame, and so all before it, was acknowledged. It lies in a
// file of its own, because a database whose log has lost its end does not notice.
type Mark struct {
	Journal  uint64 // ID of the journal
	Frame    uint64 // 0: none
	Sequence engine.Sequence
	Hash     engine.Hash // of that frame
	Promise  Promise     // of a cluster's member; else zero
}

// The file DIR/mark has two slots, which are written in turns, so that a torn write leaves the
// other slot whole. All integers are little endian:
//
//	at  size         at  size           at  size
//	 0   8  magic    24   8  turn       48  32  hash
//	 8   8  format   32   8  frame      80   4  CRC32C of all before it
//	16   8  journal  40   8  Sequence
//
// A member of a cluster writes format 2: the Promise's four integers come before the CRC32C.
const (
	markName   = "mark"
	markMagic  = 0x4b52414d424f4c43 // "CLOBMARK"
	markFormat = 1
	markMember = 2
	markSlot   = 4096
	markSumAt  = 80
	markSize   = markSumAt + 4
	promised   = 4 * 8 // bytes of a Promise
)

const hintMark = "clobd verify tells whether the journal itself is whole; then clobd recover " +
	"--accept-loss makes a new mark; or clobd restore brings back a copy"

func (m *Mark) encode(turn uint64) []byte {
	le, b, format := binary.LittleEndian, make([]byte, 0, markSlot), uint64(markFormat)
	if m.Promise != (Promise{}) {
		format = markMember
	}
	for _, v := range []uint64{markMagic, format, m.Journal, turn, m.Frame, uint64(m.Sequence)} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, m.Hash[:]...)
	if p := &m.Promise; format == markMember {
		for _, v := range []uint64{p.Entry.Index, p.Entry.Term, p.Term, p.Vote} {
			b = le.AppendUint64(b, v)
		}
	}
	b = le.AppendUint32(b, disk.Sum(b))
	return b[:markSlot]
}

// decodeMark reads a slot; false if the slot is empty or damaged.
func decodeMark(b []byte) (m Mark, turn uint64, ok bool) {
	le, sumAt := binary.LittleEndian, markSumAt
	if len(b) < markSize || le.Uint64(b) != markMagic {
		return m, 0, false
	}
	switch le.Uint64(b[8:]) {
	case markFormat:
	case markMember:
		if len(b) < markSize+promised {
			return m, 0, false
		}
		p := b[markSumAt:]
		m.Promise = Promise{EntryID{le.Uint64(p), le.Uint64(p[8:])}, le.Uint64(p[16:]),
			le.Uint64(p[24:])}
		sumAt += promised
	default:
		return m, 0, false
	}
	if le.Uint32(b[sumAt:]) != disk.Sum(b[:sumAt]) {
		return Mark{}, 0, false
	}
	m.Journal, m.Frame = le.Uint64(b[16:]), le.Uint64(b[32:])
	m.Sequence, m.Hash = engine.Sequence(le.Uint64(b[40:])), engine.Hash(b[48:80])
	return m, le.Uint64(b[24:]), true
}

// ReadMark reads the mark of the data folder dir on a filesystem, nil for the machine's own. It
// returns false if there is no mark. A file of which neither slot can be read is an error.
func ReadMark(on vfs.FS, dir string) (Mark, bool, error) {
	m, err := readMark(disk.Filesystem(on), filepath.Join(dir, markName))
	return m.Mark, m.good > 0, err
}

// markFile is the newest mark of a file, and where it stands.
type markFile struct {
	Mark
	slot int
	turn uint64
	good int // slots that can be read; 0: there is no file
}

// readMark is ReadMark for a file.
func readMark(on vfs.FS, path string) (newest markFile, err error) {
	if about, err := on.Stat(path); err == nil && about.IsDir() {
		return newest, disk.Advise(disk.Damaged(fmt.Errorf("the high-water mark %s is a "+
			"folder, not a file: nobody knows how far was acknowledged", path)), hintMark)
	}
	f, err := on.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newest, nil
	} else if err != nil {
		return newest, fmt.Errorf("open mark: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*markSlot))
	if err = errors.Join(err, f.Close()); err != nil {
		return newest, fmt.Errorf("read mark %s: %w", path, err)
	}
	for i := range 2 {
		m, turn, ok := decodeMark(b[min(len(b), i*markSlot):min(len(b), (i+1)*markSlot)])
		if !ok {
			continue
		}
		if newest.good++; newest.good == 1 || turn > newest.turn {
			newest.Mark, newest.slot, newest.turn = m, i, turn
		}
	}
	if newest.good == 0 {
		return newest, disk.Advise(disk.Damaged(fmt.Errorf("the high-water mark %s is "+
			"damaged: nobody knows how far was acknowledged", path)), hintMark)
	}
	return newest, nil
}

// WriteMark writes the mark of the data folder dir, durably, and whole or not at all. No Journal
// may have the folder open.
func WriteMark(on vfs.FS, dir string, m Mark) error {
	path := filepath.Join(dir, markName)
	err := writeWhole(disk.Filesystem(on), path, append(m.encode(1), m.encode(2)...))
	if err != nil {
		return fmt.Errorf("write mark %s: %w", path, err)
	}
	return nil
}

// writeWhole makes or replaces a small file, durably and whole or not at all.
func writeWhole(on vfs.FS, path string, b []byte) error {
	temp := path + tempSuffix
	f, err := on.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := on.Rename(temp, path); err != nil {
		return err
	}
	return disk.SyncFolder(on, on.PathDir(path))
}

// LossError is the error of a journal that ends before the last frame that was acknowledged.
type LossError struct {
	Mark Mark
	By   string      // who knows of its frame; empty: the high-water mark
	Head engine.Head // the journal's end
	Path string      // the database's folder

	member bool // of a cluster
}

// First is the first lost Sequence.
func (e *LossError) First() engine.Sequence { return e.Head.Sequence + 1 }

// Last is the last Sequence known to be lost.
func (e *LossError) Last() engine.Sequence { return e.Mark.Sequence }

// Count is the number of Sequences known to be lost.
func (e *LossError) Count() uint64 { return uint64(e.Mark.Sequence - e.Head.Sequence) }

// Error says what is lost and what to do.
func (e *LossError) Error() string {
	by := ""
	if e.By != "" {
		by = ", as " + e.By + " shows"
	}
	return fmt.Sprintf("journal %s ends at frame %d, but frame %d was acknowledged%s: %d acknowledged "+
		"commands are lost, Sequences %d to %d; %s", e.Path, e.Head.Frame, e.Mark.Frame, by, e.Count(),
		e.First(), e.Last(), e.advice())
}

func (e *LossError) advice() string {
	if e.member {
		return "nothing was changed: this member must not vote any more; it can join the cluster again " +
			"as a new member"
	}
	return "nothing was changed: keep the folder and restore it from a copy that has them, or go on " +
		"without them by clobd recover --accept-loss"
}

// marker writes the mark after frames were acknowledged. The committer calls note; a goroutine of
// the marker writes.
type marker struct {
	file    vfs.File
	slots   [2]Mark // their contents
	slot    int     // written last
	turn    uint64
	fail    func(error)
	writes  func() // counts
	bell    chan struct{}
	closing chan struct{}
	ended   chan struct{}

	writing sync.Mutex // held by Agreed.Note, which writes instead of run

	mu     sync.Mutex
	latest Mark
}

const (
	// markGap is the pause between two writes, which leaves the disk to the log. Without it the syncs
	// of the mark cost a tenth of the log's throughput, with it nothing that can be measured.
	markGap = 2 * time.Millisecond
	// markIdle is how long nothing must be acknowledged until the older slot is brought up to date,
	// too. From then on damage of one slot loses nothing.
	markIdle = 20 * time.Millisecond
)

// checkMark compares the journal's end with the mark and with all other witnesses.
func (j *Journal) checkMark(head engine.Head) error {
	m, err := readMark(j.Options.FS, filepath.Join(j.Dir, markName))
	if err != nil {
		return err
	}
	if m.good > 0 && m.Journal != j.ID {
		return disk.Advise(disk.Damaged(fmt.Errorf("the high-water mark %s belongs to another "+
			"journal: it is of %016x, this one is %016x; nobody knows how far this one was acknowledged",
			filepath.Join(j.Dir, markName), m.Journal, j.ID)),
			"if one of the two was put here by mistake, put its own back; else "+hintMark)
	}
	far := farthest(j)
	if m.Frame >= far.Frame {
		far = Witness{Mark: m.Mark}
	}
	if far.Frame > head.Frame {
		return &LossError{Mark: far.Mark, By: far.By, Head: head, Path: j.Path,
			member: j.agreed != nil}
	}
	if m.good == 0 && head.Frame > 0 {
		j.Options.Log.Warn("no high-water mark: if the journal lost its end nobody knows",
			"path", j.Path, "frame", head.Frame, "seen", far.Frame)
	}
	if m.Frame == 0 {
		return nil
	}
	return j.checkFrame(&m.Mark, head)
}

// checkFrame compares the frame that the mark names with that of the journal.
func (j *Journal) checkFrame(m *Mark, head engine.Head) error {
	hash := head.Hash
	if m.Frame < head.Frame {
		b, err := j.frameBytes(m.Frame)
		if err != nil {
			return fmt.Errorf("read the frame of the high-water mark: %w", err)
		}
		hash = sha256.Sum256(b)
	}
	if hash != m.Hash {
		return &Break{Frame: m.Frame, Key: frameText(m.Frame), Path: j.Path, Last: head.Frame,
			Sequence: m.Sequence, What: fmt.Sprintf("another frame, with hash %x, was acknowledged; "+
				"this one has %x", m.Hash[:8], hash[:8])}
	}
	return nil
}

// frameBytes is a copy of one frame. Callers have entered the gate.
func (j *Journal) frameBytes(no uint64) ([]byte, error) {
	key := frameKey(no)
	b, found, err := disk.Get(j.db, key[:], nil)
	if err == nil && !found {
		err = &Break{Frame: no, Key: frameText(no), Path: j.Path, What: "missing"}
	}
	return b, err
}

// startMark sets the mark to head, the journal's end, and starts the marker.
func (j *Journal) startMark(head engine.Head) error {
	if j.Options.Async || j.Options.ReadOnly || j.mark != nil {
		return nil // nothing is promised without a sync
	}
	now := Mark{j.ID, head.Frame, head.Sequence, head.Hash, Promise{}}
	if j.agreed != nil {
		now.Promise = j.agreed.promised()
	}
	path := filepath.Join(j.Dir, markName)
	m, err := readMark(j.Options.FS, path)
	if err == nil && m.good == 0 {
		m, err = markFile{now, 1, 2, 2}, WriteMark(j.Options.FS, j.Dir, now)
	}
	if err != nil {
		return err
	}
	file, err := j.Options.FS.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("open mark: %w", err)
	}
	k := &marker{file: file, slot: m.slot, turn: m.turn, latest: now,
		bell: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}),
		writes: j.gauges.marks.Inc,
		fail: func(err error) {
			j.failAs("how far was acknowledged cannot be noted",
				fmt.Errorf("write the high-water mark %s: %w", path, err))
		}}
	k.slots[m.slot] = m.Mark
	if m.Mark != now {
		if err := k.write(now); err != nil {
			return errors.Join(fmt.Errorf("write mark %s: %w", path, err), file.Close())
		}
	}
	j.mark = k
	if j.agreed != nil { // its owner calls Note
		close(k.ended)
		return nil
	}
	go k.run()
	return nil
}

func (k *marker) note(f *flight, id uint64) {
	k.mu.Lock()
	k.latest = Mark{id, f.number, f.last, f.hash, Promise{}}
	k.mu.Unlock()
	select {
	case k.bell <- struct{}{}:
	default: // the marker will wake up
	}
}

// write writes m into the older slot, durably.
func (k *marker) write(m Mark) error {
	slot := 1 - k.slot
	if _, err := k.file.WriteAt(m.encode(k.turn+1), int64(slot*markSlot)); err != nil {
		return err
	}
	if err := k.file.SyncData(); err != nil {
		return err
	}
	k.slot, k.turn, k.slots[slot] = slot, k.turn+1, m
	k.writes()
	return nil
}

// run writes the newest mark soon after the last write. It brings both slots up to date when
// nothing is acknowledged for a while, and at the end. A failed sync is final, as for the log.
func (k *marker) run() {
	defer close(k.ended)
	idle, gap := time.NewTimer(markIdle), time.NewTimer(markGap)
	defer idle.Stop()
	defer gap.Stop()
	for closing := false; !closing; {
		ring := false
		select {
		case <-k.bell:
			ring = true
		case <-idle.C:
		case <-k.closing:
			closing = true
		}
		k.mu.Lock()
		m := k.latest
		k.mu.Unlock()
		for i := 0; i < 2 && (k.slots[k.slot] != m || !ring && k.slots[1-k.slot] != m); i++ {
			if err := k.write(m); err != nil {
				k.fail(err)
				return
			}
		}
		if !ring {
			continue
		}
		idle.Reset(markIdle)
		gap.Reset(markGap)
		select {
		case <-gap.C:
		case <-k.closing:
		}
	}
}

func (k *marker) close() error {
	close(k.closing)
	<-k.ended
	return k.file.Close()
}

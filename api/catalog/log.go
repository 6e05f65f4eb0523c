package catalog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The log is the file that keeps the records: a title, then frames one behind the other.
//
//	length u32 | CRC-32C u32 | kind u8 | partial u8 | 0 u16 | no u32 | link u32 | group u64 |
//	core u32 | rest u32 | the members: core, rest, live
//
// length counts the bytes behind the CRC, and the CRC is of these bytes. Of two frames of a row the
// later counts. A frame that does not check out ends the log. Open puts aside the bytes behind it
// (damage.go), and with them the mark that would vouch for them.
const (
	logTitle = "clobd catalog 1\n"
	headSize = 36
	// maxFrame bounds a frame: the members of a record are no longer than maxRecord.
	maxFrame = headSize + maxRecord + 1<<10
	// logBuffer is how many bytes are written at once.
	logBuffer = 1 << 20
)

// recordKind is the kind of a record and of its frame in the log.
type recordKind uint8

const (
	noKind recordKind = iota
	aMarket
	aBook // the order book's record of a market
	anEvent
	aSeries
	aTag
	aLink // a market belongs to an event: no members
	aMark // how far the source was read: the members are the source package's own
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// head stands in front of the members of a frame.
type head struct {
	kind       recordKind
	partial    bool
	no, link   int32
	group      uint64
	core, rest uint32
}

// putHead fills in the head of a frame whose members are there already.
func putHead(frame []byte, h *head) {
	body := frame[8:]
	body[0], body[1], body[2], body[3] = byte(h.kind), 0, 0, 0
	if h.partial {
		body[1] = 1
	}
	binary.LittleEndian.PutUint32(body[4:], uint32(h.no))
	binary.LittleEndian.PutUint32(body[8:], uint32(h.link))
	binary.LittleEndian.PutUint64(body[12:], h.group)
	binary.LittleEndian.PutUint32(body[20:], h.core)
	binary.LittleEndian.PutUint32(body[24:], h.rest)
	binary.LittleEndian.PutUint32(frame, uint32(len(body)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(body, crcTable))
}

var errFrame = errors.New("a frame of the catalog's log does not check out")

// readHead checks a whole frame and reads its head.
func readHead(frame []byte) (h head, err error) {
	if len(frame) < headSize || int(binary.LittleEndian.Uint32(frame)) != len(frame)-8 ||
		binary.LittleEndian.Uint32(frame[4:]) != crc32.Checksum(frame[8:], crcTable) {
		return h, errFrame
	}
	body := frame[8:]
	h = head{kind: recordKind(body[0]), partial: body[1] == 1,
		no:    int32(binary.LittleEndian.Uint32(body[4:])),
		link:  int32(binary.LittleEndian.Uint32(body[8:])),
		group: binary.LittleEndian.Uint64(body[12:]),
		core:  binary.LittleEndian.Uint32(body[20:]),
		rest:  binary.LittleEndian.Uint32(body[24:])}
	if uint64(h.core)+uint64(h.rest) > uint64(len(frame)-headSize) {
		return h, errFrame
	}
	return h, nil
}

// recordLog is one file of records. One goroutine appends; any number read the flushed frames.
type recordLog struct {
	file    *os.File
	out     *bufio.Writer
	size    int64 // with the bytes that are not flushed
	garbage int64 // bytes of frames that later ones replaced
}

// newLog makes an empty log. Without a folder it is a file without a name, gone with the process.
func newLog(dir, name string) (*recordLog, error) {
	var file *os.File
	var err error
	if dir == "" {
		if file, err = os.CreateTemp("", "clobd-catalog-"); err == nil {
			err = os.Remove(file.Name())
		}
	} else {
		file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("make catalog log: %w", err)
	}
	l := &recordLog{file: file, out: bufio.NewWriterSize(file, logBuffer), size: int64(len(logTitle))}
	if _, err := l.out.WriteString(logTitle); err != nil {
		return nil, fmt.Errorf("write catalog log: %w", err)
	}
	return l, nil
}

const logPrefix, logSuffix = "records-", ".log"

func logName(dir string, generation int) string {
	return filepath.Join(dir, fmt.Sprintf("%s%06d%s", logPrefix, generation, logSuffix))
}

// generations returns the numbers of the logs in a folder, the newest first.
func generations(dir string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read catalog folder: %w", err)
	}
	var found []int
	for _, f := range files {
		number, isLog := strings.CutPrefix(strings.TrimSuffix(f.Name(), logSuffix), logPrefix)
		if n, err := strconv.Atoi(number); isLog && err == nil {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b int) int { return b - a })
	return found, nil
}

// append writes a frame whose head is filled in.
func (l *recordLog) append(frame []byte) (location, error) {
	at := location{at: l.size, size: uint32(len(frame)), hash: maphash.Bytes(seed, frame[headSize:])}
	l.size += int64(len(frame))
	_, err := l.out.Write(frame)
	return at, err
}

// replaced counts a frame that another one replaces.
func (l *recordLog) replaced(old location) { l.garbage += int64(old.size) }

// read reads the frame of a location into buf, which grows if it must.
func (l *recordLog) read(at location, buf []byte) ([]byte, error) {
	if l == nil || at.size == 0 {
		return nil, errors.New("there is no such record")
	}
	buf = slices.Grow(buf[:0], int(at.size))[:at.size]
	if _, err := l.file.ReadAt(buf, at.at); err != nil {
		return nil, fmt.Errorf("read catalog log at %d: %w", at.at, err)
	}
	return buf, nil
}

// Record is a record of the source: JSON members "key":value,… without braces, if any.
type Record struct {
	// Core has the members of all forms of a record.
	Core []byte
	// Rest has those of the full form of an event: series, eventMetadata, creationDate.
	Rest []byte
	// Live has those that a market that trades here takes from its book instead.
	Live []byte
	// Buf is the room that the parts lie in, for the next call.
	Buf []byte
}

func (l *recordLog) record(at location, buf []byte) (Record, error) {
	frame, err := l.read(at, buf)
	if err != nil {
		return Record{Buf: buf}, err
	}
	h, err := readHead(frame)
	if err != nil {
		return Record{Buf: buf}, fmt.Errorf("at %d: %w", at.at, err)
	}
	return partsOf(frame, &h), nil
}

func partsOf(frame []byte, h *head) Record {
	members := frame[headSize:]
	return Record{Core: members[:h.core], Rest: members[h.core : h.core+h.rest],
		Live: members[h.core+h.rest:], Buf: frame[:0]}
}

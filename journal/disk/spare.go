package disk

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spares keeps one full-sized file ready for the database's next log. While a log grows, each sync
// must also write its new length and block list, which takes several times as long as overwriting
// existing bytes. Pebble reserves blocks, which does not help, and reuses old logs, which it does
// not have in the first minutes. A spare's content does not matter: a reader of a log ignores what
// follows its end, as it must with reused logs.
//
// A log outgrows its spare if a restart has replayed others: Pebble's memtables then begin with a
// larger one. Such a log grows by pieces of zeros, and the next spares are larger. If there is no
// spare, for want of room or time, a log is an ordinary new file.
type spares struct {
	on      vfs.FS
	path    string
	most    int64 // bytes of a log without its overhead
	log     *slog.Logger
	bell    chan struct{}
	begun   chan struct{} // closed when the first spare is made, or has failed
	closing chan struct{}
	ended   chan struct{}

	mu    sync.Mutex
	logs  int   // how many were made since the database was opened
	ready int64 // size of the spare, 0 while there is none
}

const (
	// spareName is a name that Pebble does not know, so that it leaves the file alone.
	spareName = "spare"
	logSuffix = ".log"
	// firstLog is the size of Pebble's first memtable, and so of its log. Each of the next ones is
	// twice as large, up to the size in its options.
	firstLog = 256 << 10
	// A spare is written in pieces of spareChunk bytes, with a sync every spareSync, at spareRate
	// bytes a second, so that it does not delay syncs of the log.
	spareChunk = 256 << 10
	spareSync  = 4 << 20
	spareRate  = 64 << 20
	// spareRoom times the size of a spare must be free on the disk.
	spareRoom = 16
)

// newSpares starts to make spares. The first one, which is small, is made at full speed while
// Pebble opens the database.
func newSpares(on vfs.FS, dir string, most int64, log *slog.Logger) *spares {
	s := &spares{on: on, path: on.PathJoin(dir, spareName), most: most, log: log,
		bell: make(chan struct{}, 1), begun: make(chan struct{}), closing: make(chan struct{}),
		ended: make(chan struct{})}
	go s.run()
	return s
}

// next is the size of the next log, with the overhead of its blocks and records.
func (s *spares) next() int64 {
	size := min(int64(firstLog)<<min(s.logs, 32), s.most)
	return size + size/16
}

func (s *spares) run() {
	defer close(s.ended)
	s.fill(true)
	close(s.begun)
	for {
		select {
		case <-s.closing:
			return
		case <-s.bell:
			s.fill(false)
		}
	}
}

// take turns the spare into the log called name; nil if there is no spare. Pebble syncs the folder
// before it writes.
func (s *spares) take(name string, category vfs.DiskWriteCategory) vfs.File {
	<-s.begun
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.ring()
	size := s.ready
	s.logs++
	if s.ready = 0; size == 0 {
		return nil
	}
	f, err := s.on.ReuseForWrite(s.path, name, category)
	if err != nil {
		s.log.Debug("the spare log cannot be used", "path", s.path, "error", err)
		return nil
	}
	return &logFile{File: f, spares: s, end: size}
}

// ring lets run look whether the spare is large enough.
func (s *spares) ring() {
	select {
	case s.bell <- struct{}{}:
	default: // run will wake up
	}
}

// again turns an old log, or the spare if the old log is too short, into the log called name.
func (s *spares) again(from, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	size := int64(0)
	if about, err := s.on.Stat(from); err == nil {
		size = about.Size()
	}
	s.mu.Lock()
	better := s.ready > size && size < s.next()
	if !better {
		s.logs++
	}
	s.mu.Unlock()
	if better {
		if f := s.take(name, category); f != nil {
			if err := s.on.Remove(from); err != nil {
				s.log.Debug("an old log cannot be removed", "path", from, "error", err)
			}
			return f, nil
		}
	}
	f, err := s.on.ReuseForWrite(from, name, category)
	if err != nil {
		return nil, err
	}
	return &logFile{File: f, spares: s, end: size}, nil
}

// fill makes a spare for the next log, at full speed if hurry.
func (s *spares) fill(hurry bool) {
	s.mu.Lock()
	size, there := s.next(), s.ready
	if there < size {
		s.ready = 0 // not to be taken while it is written
	}
	s.mu.Unlock()
	if there >= size {
		return
	}
	usage, err := s.on.GetDiskUsage(s.on.PathDir(s.path)) // not every filesystem knows
	if err == nil && usage.AvailBytes < uint64(spareRoom*size) {
		_ = s.on.Remove(s.path) // a process that was killed may have left one
		return
	}
	if err := s.write(size, hurry); err != nil {
		s.log.Debug("no spare log", "path", s.path, "error", err)
		_ = s.on.Remove(s.path)
		return
	}
	s.mu.Lock()
	s.ready = size
	s.mu.Unlock()
}

// write writes the file and syncs it.
func (s *spares) write(size int64, hurry bool) error {
	f, err := s.on.Create(s.path, "pebble-wal")
	if err != nil {
		return err
	}
	zeros, start := make([]byte, spareChunk), time.Now()
	for at := int64(0); at < size && err == nil; at += spareChunk {
		clear(zeros) // a write may change what it is given
		if _, err = f.Write(zeros[:min(spareChunk, size-at)]); err == nil && at%spareSync == 0 {
			err = f.SyncData()
		}
		if closed(s.closing) {
			err = errors.New("the journal is closed")
		}
		if !hurry {
			due := time.Duration(float64(at) / spareRate * float64(time.Second))
			time.Sleep(due - time.Since(start))
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (s *spares) close() {
	close(s.closing)
	<-s.ended
	_ = s.on.Remove(s.path)
}

// outgrown notes that the log in use is as large as its memtable was expected to be, or larger. The
// next memtable is twice as large as the present one.
func (s *spares) outgrown(size int64) {
	s.mu.Lock()
	for s.logs < 32 && int64(firstLog)<<s.logs < 2*size {
		s.logs++
	}
	s.mu.Unlock()
	s.ring()
}

// logFile is a log that overwrites a file.
type logFile struct {
	vfs.File
	spares *spares
	at     int64 // where the next write goes
	end    int64 // of the file
}

// Write continues behind the last write. A log that passes its file's end makes the file longer.
func (f *logFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if f.at += int64(n); err == nil && f.at > f.end {
		f.spares.outgrown(f.at)
		f.end = math.MaxInt64 // where WriteAt fails it grows as an ordinary file does
		if _, err := f.File.WriteAt(make([]byte, spareChunk), f.at); err == nil {
			f.end = f.at + spareChunk
		}
	}
	return n, err
}

// Preallocate does nothing: the file has its blocks.
func (f *logFile) Preallocate(int64, int64) error { return nil }

func isLog(name string) bool { return strings.HasSuffix(name, logSuffix) }

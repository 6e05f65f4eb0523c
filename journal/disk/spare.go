package disk

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spares keeps one full-sized file ready for the database's next log. While a log grows, each sync
// must also write its new length and block list, which takes several times as long as overwriting
// existing bytes. Pebble reserves blocks, which does not help, and reuses old logs, which it does
// not have in the first minutes. A spare's content does not matter: a reader of a log ignores what
// follows its end, as it must with reused logs.
//
// If there is no spare, for want of room or time, a log is an ordinary new file.
type spares struct {
	on      vfs.FS
	path    string
	most    int64 // bytes of a log without its overhead
	log     *slog.Logger
	bell    chan struct{}
	begun   chan struct{} // closed when the first spare is made, or has failed
	closing chan struct{}
	ended   chan struct{}

	size    atomic.Int64 // expected, of the log in use
	written atomic.Int64 // bytes of the log in use

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
	// bytes a second if there is time, so that it does not delay syncs of the log.
	spareChunk = 256 << 10
	spareSync  = 4 << 20
	spareRate  = 64 << 20
	// spareRoom times the size of a spare must be free on the disk.
	spareRoom = 16
)

// errSpareClosed is logged when a close interrupts the making of a spare. Only the journal has one.
var errSpareClosed = errors.New("journal is closed")

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
	defer func() {
		s.logs++
		select {
		case s.bell <- struct{}{}:
		default: // run will wake up
		}
	}()
	s.size.Store(s.next())
	s.written.Store(0)
	if s.ready == 0 {
		return nil
	}
	s.ready = 0
	f, err := s.on.ReuseForWrite(s.path, name, category)
	if err != nil {
		s.log.Debug("the spare log cannot be used", "path", s.path, "error", err)
		return nil
	}
	return &logFile{f, s, true}
}

// again turns an old log, or the spare if the old log is too short, into the log called name.
func (s *spares) again(from, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	about, err := s.on.Stat(from)
	s.mu.Lock()
	better := err == nil && s.ready > 0 && about.Size() < s.next()
	s.mu.Unlock()
	if better {
		if f := s.take(name, category); f != nil {
			if err := s.on.Remove(from); err != nil {
				s.log.Debug("an old log cannot be removed", "path", from, "error", err)
			}
			return f, nil
		}
	} else {
		s.mu.Lock()
		s.logs++
		s.size.Store(s.next())
		s.written.Store(0)
		s.mu.Unlock()
	}
	f, err := s.on.ReuseForWrite(from, name, category)
	if err != nil {
		return nil, err
	}
	return &logFile{f, s, false}, nil
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
		if _, err = f.Write(zeros[:min(spareChunk, size-at)]); err == nil && at%spareSync == 0 {
			err = f.SyncData()
		}
		if closed(s.closing) {
			err = errSpareClosed
		}
		// There is time while the spare is fuller than the log in use.
		late := float64(s.written.Load())/float64(s.size.Load()) > float64(at)/float64(size)
		if !hurry && !late {
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

// logFile is a log that overwrites a file of full size.
type logFile struct {
	vfs.File
	spares *spares
	whole  bool // large enough: no blocks need to be reserved
}

// Write continues behind the last write.
func (f *logFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.spares.written.Add(int64(n))
	return n, err
}

// Preallocate reserves blocks.
func (f *logFile) Preallocate(offset, length int64) error {
	if f.whole {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

func isLog(name string) bool { return strings.HasSuffix(name, logSuffix) }

package disk

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spares keeps one file ready that the database's next log is written into. A log that grows makes
// each sync tell the filesystem of its new length and of blocks that hold something now, which
// costs several times what writing over bytes that are there does. Pebble reserves blocks, which
// does not help, and uses old logs again, of which it has none in the first minutes. What a spare
// holds does not matter: a log's reader takes what follows its end for no part of it, as it must
// for old logs.
//
// Without a spare, for want of room or of time, a log is an ordinary new file.
type spares struct {
	on      vfs.FS
	path    string
	most    int64 // bytes of a log, but for its overhead
	log     *slog.Logger
	bell    chan struct{}
	begun   chan struct{} // closed: the first one is made, or will not be
	closing chan struct{}
	ended   chan struct{}

	size    atomic.Int64 // of the log that is written
	written atomic.Int64 // of it

	mu    sync.Mutex
	logs  int   // made since the database was opened
	ready int64 // bytes of the spare, 0 while there is none
}

const (
	// spareName is no name that Pebble has, so that it leaves the file alone.
	spareName = "spare"
	logSuffix = ".log"
	// firstLog is the size of Pebble's first memtable, and so of the log behind it; each of the next
	// ones is twice as large, up to what its options say.
	firstLog = 256 << 10
	// spareChunk is written at once, spareSync between two syncs, spareRate bytes a second while there
	// is time, so that the log's own syncs have their turn.
	spareChunk = 256 << 10
	spareSync  = 4 << 20
	spareRate  = 64 << 20
	// spareRoom is how many times a spare's size the disk must have free for it to be made.
	spareRoom = 16
)

// newSpares begins to make them. The first one, which is small, is made at once, beside what else
// opening the database has to do until it makes its first log.
func newSpares(on vfs.FS, dir string, most int64, log *slog.Logger) *spares {
	s := &spares{on: on, path: on.PathJoin(dir, spareName), most: most, log: log,
		bell: make(chan struct{}, 1), begun: make(chan struct{}), closing: make(chan struct{}),
		ended: make(chan struct{})}
	go s.run()
	return s
}

// next is how large the next log will be, with what its blocks and records have around them.
func (s *spares) next() int64 {
	size := min(int64(firstLog)<<min(s.logs, 32), s.most)
	return size + size/16
}

// run makes a spare whenever there is none.
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

// take makes the log called name of the spare; nil if there is none. Pebble syncs the folder before
// it writes.
func (s *spares) take(name string, category vfs.DiskWriteCategory) vfs.File {
	<-s.begun
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		s.logs++
		select {
		case s.bell <- struct{}{}:
		default: // it rings already
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

// again makes the log called name of an old one, or of the spare if the old one is too short.
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

// fill makes a spare of the size of the next log; hurry: at once.
func (s *spares) fill(hurry bool) {
	s.mu.Lock()
	size, there := s.next(), s.ready
	if there < size {
		s.ready = 0 // nobody takes it while it is made anew
	}
	s.mu.Unlock()
	if there >= size {
		return
	}
	usage, err := s.on.GetDiskUsage(s.on.PathDir(s.path)) // not every filesystem can tell
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
			err = errAbandoned
		}
		// There is time as long as the spare is fuller than the log for which it takes over.
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

// close ends the work and leaves no spare behind.
func (s *spares) close() {
	close(s.closing)
	<-s.ended
	_ = s.on.Remove(s.path)
}

// logFile is a log that is written into a file which has its length already.
type logFile struct {
	vfs.File
	spares *spares
	whole  bool // of a size that is enough: no blocks need to be reserved
}

// Write goes on behind what was written.
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

// isLog says whether a file is one of Pebble's logs.
func isLog(name string) bool { return strings.HasSuffix(name, logSuffix) }

package disk

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// files is the filesystem under one database. Pebble repeats a flush or compaction that failed at
// once and for ever: after failures, files make it wait before the next table is begun. And files
// can be shut: then they refuse every change, so that a database that is given up leaves its
// folder as it is and its background work ends.
type files struct {
	vfs.FS

	spares   *spares       // spare logs; nil: none
	failures atomic.Int64  // of background work, in a row
	ending   chan struct{} // closed when the node wants to stop: waits are short from then on
	shut     chan struct{} // closed when the database is abandoned: nothing is written any more
	end      func()        // closes ending
	close    func()        // closes shut
}

// LastRest is how long a table waits after any failure while the node wants to stop.
const LastRest = 100 * time.Millisecond

// How long the next table waits after the n-th failure in a row.
const (
	firstRest = 50 * time.Millisecond // doubled by each failure
	longRest  = 5 * time.Second
)

// errAbandoned is the error of every write of an abandoned database.
var errAbandoned = errors.New("the database was given up")

func newFiles(on vfs.FS) *files {
	d := &files{FS: on, ending: make(chan struct{}), shut: make(chan struct{})}
	d.end = sync.OnceFunc(func() { close(d.ending) })
	d.close = sync.OnceFunc(func() { close(d.shut) })
	return d
}

// Unwrap gives the filesystem below.
func (d *files) Unwrap() vfs.FS { return d.FS }

// retire ends the goroutine of the spare logs. The database is closed.
func (d *files) retire() {
	if d.spares != nil {
		d.spares.close()
	}
}

func (d *files) refuse() error {
	if closed(d.shut) {
		return errAbandoned
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// rest waits, longer after each failure in a row.
func (d *files) rest() {
	n := d.failures.Load()
	if n == 0 {
		return
	}
	ending, shut, long := d.ending, d.shut, min(firstRest<<min(n-1, 10), longRest)
	if closed(ending) {
		ending, long = nil, LastRest
	}
	if closed(shut) {
		shut = nil
	}
	if ending == nil && shut == nil {
		return
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ending:
	case <-shut:
	}
}

// Create makes a file. After failures a table waits first. A log is made of a spare if there is
// one.
func (d *files) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		d.rest()
	}
	if err := d.refuse(); err != nil {
		return nil, err
	}
	if d.spares != nil && isLog(name) {
		if f := d.spares.take(name, category); f != nil {
			return d.wrap(f, nil)
		}
	}
	return d.wrap(d.FS.Create(name, category))
}

// OpenReadWrite opens a file to change it.
func (d *files) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	o ...vfs.OpenOption) (vfs.File, error) {
	if err := d.refuse(); err != nil {
		return nil, err
	}
	return d.wrap(d.FS.OpenReadWrite(name, category, o...))
}

// ReuseForWrite renames a file to write it anew.
func (d *files) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.refuse(); err != nil {
		return nil, err
	}
	if d.spares != nil && isLog(to) {
		return d.wrap(d.spares.again(from, to, category))
	}
	return d.wrap(d.FS.ReuseForWrite(from, to, category))
}

// Link makes a second name.
func (d *files) Link(from, to string) error {
	if err := d.refuse(); err != nil {
		return err
	}
	return d.FS.Link(from, to)
}

// Rename changes a name.
func (d *files) Rename(from, to string) error {
	if err := d.refuse(); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

// Remove deletes a file.
func (d *files) Remove(name string) error {
	if err := d.refuse(); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

// wrap lets the files shut an opened file.
func (d *files) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &file{f, d}, nil
}

// file is a file that can be shut.
type file struct {
	vfs.File
	files *files
}

// Write appends.
func (f *file) Write(b []byte) (int, error) {
	if err := f.files.refuse(); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

// WriteAt writes at an offset.
func (f *file) WriteAt(b []byte, at int64) (int, error) {
	if err := f.files.refuse(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

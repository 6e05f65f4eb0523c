package simulator

import (
	"bytes"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// block is the unit in which unsynced data stays or is lost.
const block = 4096

// mixer makes a filesystem that a crash may leave, from the synced data and from all written data.
// Each file has random numbers of its own, so that other work of the database at that moment does
// not change the result for the log.
type mixer struct {
	sure, all, to *vfs.MemFS
	keep          int  // percent
	torn          bool // cut the newest log at any byte behind its last sync
	dice          func(name string) *rand.Rand
}

// hashed returns a number for a name.
func hashed(name string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, name)
	return h.Sum64()
}

// folder copies a folder. An entry that only one of the two filesystems has stays or goes at
// random.
func (m *mixer) folder(path string) error {
	sure, _ := m.sure.List(path) // not there: no names
	all, _ := m.all.List(path)
	names := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(sure), all...))))
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			newest = name
		}
	}
	for _, name := range names {
		full, key := m.to.PathJoin(path, name), name
		if name == newest {
			key = "the newest log" // whatever its number is in this run
		}
		r := m.dice(path + key)
		inSure, inAll := slices.Contains(sure, name), slices.Contains(all, name)
		if inSure != inAll && inAll != (r.IntN(100) < m.keep) {
			continue // a new entry that is lost, or a removed one that stays removed
		}
		from := m.all
		if !inAll {
			from = m.sure
		}
		if err := m.entry(from, full, name == newest, r); err != nil {
			return err
		}
	}
	return m.syncFolder(path)
}

// entry copies what has a name.
func (m *mixer) entry(from *vfs.MemFS, full string, newest bool, r *rand.Rand) error {
	info, err := from.Stat(full)
	if err != nil {
		return describe("look at", full, err)
	}
	if info.IsDir() {
		if err := m.to.MkdirAll(full, 0o755); err != nil {
			return describe("make", full, err)
		}
		return m.folder(full)
	}
	written, err := load(from, full)
	if err != nil {
		return err
	}
	synced, _ := load(m.sure, full) // a file that was never synced has nothing
	return store(m.to, full, m.mix(synced, written, newest, r))
}

// mix returns what a crash leaves of a file.
func (m *mixer) mix(synced, written []byte, newest bool, r *rand.Rand) []byte {
	if m.torn && newest && len(written) > len(synced) && bytes.HasPrefix(written, synced) {
		return written[:len(synced)+r.IntN(len(written)-len(synced))]
	}
	left := slices.Clone(synced)
	for at := 0; at < len(written); at += block {
		if r.IntN(100) >= m.keep {
			continue
		}
		end := min(at+block, len(written))
		if end > len(left) {
			left = append(left, make([]byte, end-len(left))...)
		}
		copy(left[at:], written[at:end])
	}
	if m.keep == 100 {
		return written
	}
	return left
}

// syncFolder makes what was copied into a folder survive the next crash.
func (m *mixer) syncFolder(path string) error {
	d, err := m.to.OpenDir(path)
	if err != nil {
		return describe("open", path, err)
	}
	if err := d.Sync(); err != nil {
		return describe("sync", path, err)
	}
	return d.Close()
}

// load reads a file.
func load(fs *vfs.MemFS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, describe("open", name, err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, describe("read", name, err)
	}
	return b, f.Close()
}

// store writes a file, synced.
func store(fs *vfs.MemFS, name string, b []byte) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return describe("make", name, err)
	}
	// Builds with the race detector overwrite a buffer after writing it.
	if _, err := f.Write(bytes.Clone(b)); err != nil {
		return describe("write", name, err)
	}
	if err := f.Sync(); err != nil {
		return describe("sync", name, err)
	}
	return f.Close()
}

package copies

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Question asks for a copy, for one of its chunks, or says that all of it is there.
type Question struct {
	Begin bool   `json:"begin,omitempty"`
	ID    string `json:"id,omitempty"`   // of the copy, unless Begin
	File  int    `json:"file,omitempty"` // its number in the manifest
	At    int64  `json:"at,omitempty"`   // where in the file the chunk begins
	Have  []byte `json:"have,omitempty"` // the sum of what is there already
	Done  bool   `json:"done,omitempty"`
}

// Answer answers a Question.
type Answer struct {
	Refused  string    `json:"refused,omitempty"` // why
	Manifest *Manifest `json:"manifest,omitempty"`
	// Sum is the SHA-256 of the chunk. Size bytes of it follow, or 0 if it is there already.
	Sum  []byte `json:"sum,omitempty"`
	Size int    `json:"size,omitempty"`
	Data []byte `json:"-"`
}

const (
	givenDir = "copy.given"
	// unused is how long a copy is kept for a member that asks for nothing, and oldest for one that
	// never ends. The links keep tables on the disk that the databases have replaced meanwhile.
	unused = 2 * time.Minute
	oldest = 12 * time.Hour
	// between is the time between two copies for the same member, so that who asks again and again
	// does no harm.
	between = time.Minute
)

// Giver gives copies to new members, one at a time. Any goroutine may call its methods.
type Giver struct {
	Data string // the folder of the node
	// Make makes a copy in a folder that does not exist. It must not keep orders waiting.
	Make func(dir string) error
	// Refuse says why no copy is given now; "" if one may be.
	Refuse func() string
	Full   func() bool            // whether the disk needs the room that a copy keeps
	Called func(id uint64) string // the name of a member
	Log    *slog.Logger

	mu     sync.Mutex           // held while a question is answered
	begun  map[uint64]time.Time // when a member has begun one, less than between ago
	closed bool
	lent   atomic.Pointer[lent] // changed by who holds mu; nil: none
}

// lent is a copy that a member takes.
type lent struct {
	Manifest
	to          uint64
	begun, used time.Time
	bytes       atomic.Uint64
	expiry      *time.Timer
}

func (g *Giver) dir() string { return filepath.Join(g.Data, givenDir) }

// Clear removes the copy, and what an earlier process has left. It comes before the first question,
// and once more when the node stops: after that, the last one, no copy is made.
func (g *Giver) Clear(last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.begun = last, map[uint64]time.Time{}
	g.remove("the node stops or starts")
}

// remove removes the copy. Callers hold mu.
func (g *Giver) remove(why string) {
	err := os.RemoveAll(g.dir())
	if c := g.lent.Swap(nil); c != nil {
		c.expiry.Stop()
		g.Log.Info("a copy for a new member is removed", "node", g.Called(c.to), "why", why, "bytes",
			c.bytes.Load(), "whole", c.Bytes(), "took", time.Since(c.begun).String())
	}
	if err != nil {
		g.Log.Warn("a copy for a new member is still there", "error", err)
	}
}

// expire removes a copy that nobody has used for long.
func (g *Giver) expire(c *lent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lent.Load() == c && time.Since(c.used) >= unused {
		g.remove("nobody takes it any more")
	}
}

// Given is how many bytes of the copy that a member takes now it has got.
func (g *Giver) Given(to uint64) uint64 {
	if c := g.lent.Load(); c != nil && c.to == to {
		return c.bytes.Load()
	}
	return 0
}

// Answer answers a member, over a connection that has proved which one that is.
func (g *Giver) Answer(from uint64, q *Question) *Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.Begin {
		return g.begin(from)
	}
	c := g.lent.Load()
	switch {
	case c == nil || c.to != from || c.ID != q.ID || time.Since(c.begun) > oldest:
		return &Answer{Refused: "that copy is not here any more"}
	case q.Done:
		g.remove("it is taken")
		return &Answer{}
	case q.File < 0 || q.File >= len(c.Files) || q.At < 0 || q.At >= c.Files[q.File].Size:
		return &Answer{Refused: "the copy has no such chunk"}
	case g.Full():
		g.remove("the disk is full")
		return &Answer{Refused: "the disk is full"}
	}
	a, err := g.read(&c.Files[q.File], q)
	if err != nil {
		g.Log.Error("a copy for a new member cannot be read", "error", err)
		g.remove("it cannot be read")
		return &Answer{Refused: "the copy cannot be read"}
	}
	c.used = time.Now()
	c.expiry.Reset(unused)
	c.bytes.Add(uint64(a.Size))
	return a
}

// read reads a chunk.
func (g *Giver) read(f *File, q *Question) (*Answer, error) {
	file, err := os.Open(filepath.Join(g.dir(), filepath.FromSlash(f.Name)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b := make([]byte, min(Chunk, f.Size-q.At))
	if _, err := file.ReadAt(b, q.At); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	sum := sha256.Sum256(b)
	if bytes.Equal(sum[:], q.Have) {
		b = nil
	}
	return &Answer{Sum: sum[:], Size: len(b), Data: b}, nil
}

// begin makes a copy for a member. A member that asks again has lost the one before, or only the
// answer.
func (g *Giver) begin(to uint64) *Answer {
	maps.DeleteFunc(g.begun, func(_ uint64, at time.Time) bool { return time.Since(at) >= between })
	_, soon := g.begun[to]
	switch c := g.lent.Load(); {
	case g.closed:
		return &Answer{Refused: "it stops"}
	case c != nil && c.to != to && time.Since(c.begun) < oldest:
		return &Answer{Refused: g.Called(c.to) + " takes a copy here, and only one can at a time"}
	case c != nil && c.to == to && soon && !g.Full():
		return &Answer{Manifest: &c.Manifest}
	}
	g.remove("another one is wanted")
	if why := g.Refuse(); why != "" {
		return &Answer{Refused: why}
	} else if soon {
		return &Answer{Refused: "it has made one a moment ago"}
	}
	c := &lent{to: to, begun: time.Now()}
	g.begun[to] = c.begun
	err := g.Make(g.dir())
	if err == nil {
		c.Manifest, err = list(g.dir())
	}
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		g.Log.Error("no copy can be made for a new member", "node", g.Called(to), "error", err)
		g.remove("")
		return &Answer{Refused: "the copy cannot be made: the log says why"}
	}
	g.Log.Info("a new member takes a copy of this one", "node", g.Called(to), "bytes", c.Bytes(),
		"files", len(c.Files), "made_in", time.Since(c.begun).String())
	c.used, c.expiry = time.Now(), time.AfterFunc(unused, func() { g.expire(c) })
	g.lent.Store(c)
	return &Answer{Manifest: &c.Manifest}
}

// list is the manifest of a folder.
func list(dir string) (m Manifest, err error) {
	var id [16]byte
	rand.Read(id[:])
	m.ID = hex.EncodeToString(id[:])
	err = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "LOCK" {
			return err
		}
		about, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		m.Files = append(m.Files, File{filepath.ToSlash(name), about.Size()})
		return err
	})
	return m, err
}

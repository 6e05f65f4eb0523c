package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"clobd/api/catalog"
	"clobd/cmd/cli"
	"clobd/cmd/clobd/client"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/history"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	scrubRate = 32 << 20         // bytes a second, of a node that trades
	scrubSoon = 10 * time.Minute // after a start, or after a scrub that has failed
	scrubTime = 24 * time.Hour   // how long clobd scrub waits for a node
	hintScrub = "trading goes on: what is needed now is in memory; clobd verify tells more, clobd " +
		"restore brings back a copy, and a backup of what is good is refused until then"
)

// scrubber reads in the background what nobody else reads until a start needs it: damage of the old
// parts of a journal is known while there is still a good copy of them.
type scrubber struct {
	journal *journal.Journal
	parts   []journal.Part // what else there is
	damaged func(error)    // is told of damage of the journal itself; nil: nobody wants to know
	log     *slog.Logger
	life    context.Context // ends before the journal is closed
	end     context.CancelFunc
	running sync.Mutex
	memo    atomic.Pointer[scrubMemo] // never nil
}

// newScrubber goes on from what the folder says of its last scrub. A folder that does not say has
// waited for one since now.
func newScrubber(j *journal.Journal, log *slog.Logger, parts ...journal.Part) *scrubber {
	s := &scrubber{journal: j, log: log, parts: parts}
	s.life, s.end = context.WithCancel(context.Background())
	memo, err := readScrubMemo(j)
	if err != nil {
		log.Warn("nobody knows when the data folder was last scrubbed", "error", err)
	}
	switch now := time.Now(); {
	case memo == nil:
		s.keep(&scrubMemo{Since: now})
	case memo.Since.After(now): // by a clock that has been set back
		s.keep(&scrubMemo{Since: now, Last: memo.Last})
	default:
		s.memo.Store(memo)
	}
	return s
}

// follow scrubs each time that every has passed since the last scrub, whichever process made that,
// until ctx is done. If the last one found damage, somebody may have mended it before the start.
func (s *scrubber) follow(ctx context.Context, every time.Duration) {
	wait := s.wait(time.Now(), every)
	if last := s.memo.Load().Last; last != nil && last.Damaged > 0 {
		wait = min(every, scrubSoon)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.life.Done():
			return
		case <-time.After(wait):
		}
		if _, err := s.scrub(ctx); err != nil && ctx.Err() == nil && s.life.Err() == nil {
			s.log.Error("the data folder is not scrubbed", "error", err)
		}
		wait = s.wait(time.Now(), every)
	}
}

// wait is how long it is until the next scrub. One that is overdue begins soon, and not at once.
func (s *scrubber) wait(now time.Time, every time.Duration) time.Duration {
	return max(s.memo.Load().Since.Add(every).Sub(now), min(every, scrubSoon))
}

// scrub reads everything once, says what it found, and keeps that.
func (s *scrubber) scrub(ctx context.Context) (*scrubNote, error) {
	if !s.running.TryLock() {
		return nil, errors.New("the data folder is being scrubbed already")
	}
	defer s.running.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	found, err := journal.Scrub(ctx, s.journal, scrubRate, s.parts...)
	if err != nil {
		return nil, err
	}
	note := noteOfScrub(found)
	s.keep(&scrubMemo{Since: time.Now(), Last: note})
	if found.Journal != nil && s.damaged != nil {
		s.damaged(found.Journal)
	}
	for _, what := range found.Damages {
		s.log.Error("old data is damaged", "what", what, "hint", hintScrub)
	}
	s.log.Info("scrubbed", "frames", found.Frames, "checkpoints", found.Checkpoints,
		"bytes", found.Bytes, "damaged", found.Damaged, "took", found.Took.String())
	return note, nil
}

// status is what /readyz and clobd scrub tell; nil before the first scrub has ended.
func (s *scrubber) status() *scrubNote {
	if s == nil {
		return nil
	}
	return s.memo.Load().Last
}

func (s *scrubber) collectors() []prometheus.Collector {
	const of disk.Subsystem = "scrub"
	since := func(m *scrubMemo) float64 { return float64(m.Since.UnixMilli()) / 1000 }
	last := func(value func(*scrubMemo) float64) func() float64 {
		return func() float64 {
			if memo := s.memo.Load(); memo.Last != nil {
				return value(memo)
			}
			return 0
		}
	}
	return []prometheus.Collector{
		of.Gauge("last_timestamp_seconds", "When the last scrub of the data folder ended, in this "+
			"process or an earlier one; 0: never, or nobody knows.", last(since)),
		of.Gauge("unread_since_timestamp_seconds", "Since when nobody has read the old data: the end of "+
			"the last scrub, or before the first one, when a node first had the folder.",
			func() float64 { return since(s.memo.Load()) }),
		of.Gauge("damaged", "Damaged parts that the last scrub found.",
			last(func(m *scrubMemo) float64 { return float64(m.Last.Damaged) })),
		of.Gauge("bytes", "What the last scrub has read.",
			last(func(m *scrubMemo) float64 { return float64(m.Last.Bytes) })),
	}
}

// route scrubs at once, and answers when that has ended.
func (s *scrubber) route(w http.ResponseWriter, r *http.Request) {
	note, err := s.scrub(r.Context())
	if err != nil {
		tell(w, http.StatusServiceUnavailable, problem{err.Error(), "wait until that is done"})
		return
	}
	tell(w, http.StatusOK, note)
}

// catalogPart reads the catalog of a data folder.
func catalogPart(data string) journal.Part {
	return func(note func(int) error) error {
		return catalog.Scrub(filepath.Join(data, "catalog"), note)
	}
}

type scrubNote struct {
	Began       time.Time `json:"began"`
	Seconds     float64   `json:"seconds"`
	Frames      uint64    `json:"frames"`
	Checkpoints int       `json:"checkpoints"`
	Bytes       int64     `json:"bytes"`
	Damaged     int       `json:"damaged"`
	Damages     []string  `json:"damages,omitempty"` // the first ones
}

func noteOfScrub(f *journal.Scrubbed) *scrubNote {
	return &scrubNote{f.Began, f.Took.Seconds(), f.Frames, f.Checkpoints, f.Bytes, f.Damaged,
		f.Damages}
}

// scrubMemoName is the file of a data folder that tells the next process of the last scrub: its
// checksum, and a scrubMemo as JSON. Backups have none: nobody has read them as a whole.
const scrubMemoName = "last-scrub"

type scrubMemo struct {
	Journal string     `json:"journal"`
	Since   time.Time  `json:"unreadSince"` // the end of the last scrub, or when a node first had the folder
	Last    *scrubNote `json:"last"`        // null before the first one has ended
}

// readScrubMemo returns nil if the folder has no memo, or none that is good.
func readScrubMemo(j *journal.Journal) (*scrubMemo, error) {
	file := filepath.Join(j.Dir, scrubMemoName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	memo := new(scrubMemo)
	sum, rest, _ := strings.Cut(string(text), "\n")
	if sum != sumOf(rest) || json.Unmarshal([]byte(rest), memo) != nil {
		return nil, fmt.Errorf("%s is damaged", file)
	} else if memo.Journal != fmt.Sprintf("%016x", j.ID) {
		return nil, fmt.Errorf("%s is of the journal %s", file, memo.Journal)
	}
	return memo, nil
}

func sumOf(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// keep keeps a memo, in the folder if that takes it.
func (s *scrubber) keep(memo *scrubMemo) {
	memo.Journal = fmt.Sprintf("%016x", s.journal.ID)
	s.memo.Store(memo)
	text, err := json.Marshal(memo)
	if err == nil {
		rest := string(text) + "\n"
		err = disk.Replace(filepath.Join(s.journal.Dir, scrubMemoName), []byte(sumOf(rest)+"\n"+rest))
	}
	if err != nil {
		s.log.Warn("the next start will not know of the last scrub", "error", err)
	}
}

type scrubCommand struct {
	offline
	Admin string `default:"127.0.0.1:8081" help:"The admin listener of the node that has the folder, if one has."`
}

// Run reads the whole folder, or asks the node that has the folder to do so. Without a node the
// folder is only read: the next start does not know of this scrub.
func (c *scrubCommand) Run(ctx context.Context) error {
	j, err := journal.Open(c.options(true))
	var locked *disk.LockedError
	var note *scrubNote
	switch {
	case errors.As(err, &locked):
		if note, err = c.ask(locked); err != nil {
			return err
		}
	case err != nil:
		return c.explain(err)
	default:
		found, err := journal.Scrub(ctx, j, 0, catalogPart(c.Data), func(note func(int) error) error {
			return history.ScrubFolder(j, history.Options{Log: silent()}, note)
		})
		if err = errors.Join(err, j.Close()); err != nil {
			return err
		}
		note = noteOfScrub(found)
	}
	for _, what := range note.Damages {
		fmt.Printf("finding: %s\n", what)
	}
	fmt.Printf("scrubbed: %d frames, %d checkpoints, the mark, the index and the catalog, %d bytes in "+
		"%.1f s\n", note.Frames, note.Checkpoints, note.Bytes, note.Seconds)
	if note.Damaged > 0 {
		return cli.Hint(fmt.Errorf("%d parts are damaged", note.Damaged), "clobd "+
			"verify tells more; clobd restore brings back a copy")
	}
	return nil
}

func (c *scrubCommand) ask(locked *disk.LockedError) (*scrubNote, error) {
	o := client.Operator{Admin: c.Admin, Data: c.Data}
	text, err := o.Post("/admin/scrub", map[string]string{}, scrubTime)
	if err != nil {
		return nil, fmt.Errorf("%s is in use by %s: %w", locked.Path, locked.Holder, err)
	}
	note := new(scrubNote)
	if err := json.Unmarshal([]byte(text), note); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return note, nil
}

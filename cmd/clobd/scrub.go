package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"clobd/api/catalog"
	"clobd/cmd/cli"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/history"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	scrubRate  = 32 << 20 // bytes a second, of a node that trades
	scrubFirst = time.Hour
	scrubTime  = 24 * time.Hour // how long clobd scrub waits for a node
	hintScrub  = "trading goes on: what is needed now is in memory; clobd verify tells more, clobd " +
		"restore brings back a copy, and a backup of what is good is refused until then"
)

// scrubber reads in the background what nobody else reads until a start needs it: damage of the old
// parts of a journal is known while there is still a good copy of them.
type scrubber struct {
	journal *journal.Journal
	parts   []journal.Part // what else there is
	log     *slog.Logger
	life    context.Context // ends before the journal is closed
	end     context.CancelFunc
	running sync.Mutex
	last    atomic.Pointer[journal.Scrubbed] // nil before the first one has ended
}

func newScrubber(j *journal.Journal, log *slog.Logger, parts ...journal.Part) *scrubber {
	s := &scrubber{journal: j, log: log, parts: parts}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// follow scrubs an hour after the start, or earlier if every is shorter, and then each time that
// every has passed, until ctx is done.
func (s *scrubber) follow(ctx context.Context, every time.Duration) {
	wait := min(every, scrubFirst)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.life.Done():
			return
		case <-time.After(wait):
		}
		wait = every
		if _, err := s.scrub(ctx); err != nil && ctx.Err() == nil && s.life.Err() == nil {
			s.log.Error("the data folder is not scrubbed", "error", err)
		}
	}
}

// scrub reads everything once and says what it found.
func (s *scrubber) scrub(ctx context.Context) (*journal.Scrubbed, error) {
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
	s.last.Store(found)
	for _, what := range found.Damages {
		s.log.Error("old data is damaged", "what", what, "hint", hintScrub)
	}
	s.log.Info("scrubbed", "frames", found.Frames, "checkpoints", found.Checkpoints,
		"bytes", found.Bytes, "damaged", found.Damaged, "took", found.Took.String())
	return found, nil
}

// status is what /readyz and clobd scrub tell; nil before the first scrub has ended.
func (s *scrubber) status() *scrubNote {
	if s == nil {
		return nil
	}
	return noteOfScrub(s.last.Load())
}

func (s *scrubber) collectors() []prometheus.Collector {
	const of disk.Subsystem = "scrub"
	last := func(value func(*journal.Scrubbed) float64) func() float64 {
		return func() float64 {
			if found := s.last.Load(); found != nil {
				return value(found)
			}
			return 0
		}
	}
	return []prometheus.Collector{
		of.Gauge("last_timestamp_seconds", "When the last scrub of the data folder ended; 0: never.",
			last(func(f *journal.Scrubbed) float64 {
				return float64(f.Began.Add(f.Took).UnixMilli()) / 1000
			})),
		of.Gauge("damaged", "Damaged parts that the last scrub found.",
			last(func(f *journal.Scrubbed) float64 { return float64(f.Damaged) })),
		of.Gauge("bytes", "What the last scrub has read.",
			last(func(f *journal.Scrubbed) float64 { return float64(f.Bytes) })),
	}
}

// route scrubs at once, and answers when that has ended.
func (s *scrubber) route(w http.ResponseWriter, r *http.Request) {
	found, err := s.scrub(r.Context())
	if err != nil {
		tell(w, http.StatusServiceUnavailable, problem{err.Error(), "wait until that is done"})
		return
	}
	tell(w, http.StatusOK, noteOfScrub(found))
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
	if f == nil {
		return nil
	}
	return &scrubNote{f.Began, f.Took.Seconds(), f.Frames, f.Checkpoints, f.Bytes, f.Damaged,
		f.Damages}
}

type scrubCommand struct {
	offline
	Admin string `default:"127.0.0.1:8081" help:"The admin listener of the node that has the folder, if one has."`
}

// Run reads the whole folder, or asks the node that has the folder to do so.
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
	o := operator{Admin: c.Admin, Data: c.Data}
	text, err := o.post("/admin/scrub", map[string]string{}, scrubTime)
	if err != nil {
		return nil, fmt.Errorf("%s is in use by %s: %w", locked.Path, locked.Holder, err)
	}
	note := new(scrubNote)
	if err := json.Unmarshal([]byte(text), note); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return note, nil
}

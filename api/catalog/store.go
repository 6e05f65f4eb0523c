package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
)

// Store keeps the newest Catalog and makes the next one. Any number of goroutines may call Current
// and never wait; the other methods run one at a time.
type Store struct {
	o       Options
	current atomic.Pointer[Catalog]
	live    *liveBoard
	status  statusBoard

	mu   sync.Mutex // held to make the next catalog
	log  *recordLog
	load uint32
	gen  int
	mark []byte // of the last load, in its log
	// began: markets are handed on as they are read, no longer all at Begin.
	began bool
}

// Open opens the catalog that is kept in Options.Dir, or begins an empty one. It puts aside a log's
// damaged end, and tells Options.Log and Status. Nothing is listed before Begin. The caller sees to
// it that one process at a time has a folder open.
func Open(o Options) (*Store, error) {
	s := &Store{o: o, live: &liveBoard{ask: o.Live}}
	c := Empty()
	c.live = s.live
	if o.Dir == "" {
		var err error
		s.log, err = newLog("", "")
		c.log = s.log
		s.current.Store(c)
		return s, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make catalog folder: %w", err)
	}
	found, err := generations(o.Dir)
	if err != nil {
		return nil, err
	}
	s.current.Store(c)
	for i, generation := range found {
		if i > 0 {
			err = os.Remove(logName(o.Dir, generation))
		} else if err = s.reopen(generation); err != nil {
			err = fmt.Errorf("open %s: %w", logName(o.Dir, generation), err)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.log == nil {
		if s.log, err = newLog(o.Dir, logName(o.Dir, s.gen)); err != nil {
			return nil, err
		}
		c.log = s.log
	}
	return s, nil
}

// reopen reads the log of a generation.
func (s *Store) reopen(generation int) error {
	s.gen = generation
	file, err := os.OpenFile(logName(s.o.Dir, generation), os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	log := &recordLog{file: file}
	e := edit(s.current.Load(), log, 0)
	end, err := s.replay(e, log)
	if err == nil {
		err = s.cutOff(log, end)
	}
	if err == nil {
		err = log.resume(end)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.log = log
	s.publish(e.finish(s.live))
	return nil
}

// Current is the newest catalog.
func (s *Store) Current() *Catalog { return s.current.Load() }

func (s *Store) publish(c *Catalog) {
	s.current.Store(c)
	s.status.note(func(st *Status) {
		st.Markets, st.Events = c.Markets.Len(), c.Events.Len()
		st.Series, st.Tags = c.Series.Len(), c.Tags.Len()
	})
}

// Begin hands all tradable markets of the catalog to Options.List, and those that the source has
// closed to Options.Close: the engine of a new process may not know them. Loads before Begin only
// count what they would hand on, so that a bad source is known before anything is listed.
func (s *Store) Begin() (Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = true
	s.load++
	e := edit(s.Current(), s.log, s.load)
	for m := range s.Current().Markets.All() {
		switch m.Skipped {
		case "", Refused:
			e.queue = append(e.queue, m.No)
			e.pending[m.No] = aMarket
			e.report.Markets++
		case Closed, Archived:
			e.closing = append(e.closing, m.No)
		}
	}
	if err := s.settle(e); err != nil {
		return *e.report, err
	}
	if len(e.markets.changed) > 0 {
		s.publish(e.finish(s.live))
	}
	go warm(s.Current()) // so that nobody who asks for a page waits for its order
	return *e.report, nil
}

// rankEvery is how often the search follows the values of events.
const rankEvery = 30 * time.Second

// Follow keeps the search in the order of the values of events until ctx is done. It runs once.
func (s *Store) Follow(ctx context.Context) {
	tick := time.NewTicker(rankEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.rank()
			s.Gather()
		}
	}
}

// rank orders the search by the present values of events.
func (s *Store) rank() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.Current(); c.live.ask != nil {
		if next := ranked(c); next != c {
			s.publish(next)
		}
	}
}

// Gather puts a search that many changes have scattered in one piece again.
func (s *Store) Gather() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.Current(); c.searchEvents.Scattered() {
		s.publish(gathered(c))
	}
}

// settle hands on the markets to list and to close, and counts the results.
func (s *Store) settle(e *editor) error {
	queue := e.queue[:0]
	for _, no := range e.queue {
		if _, is := e.pending[no]; is {
			queue = append(queue, no)
		}
	}
	for from := 0; from < len(queue); from += listChunk {
		chunk := queue[from:min(from+listChunk, len(queue))]
		if err := s.list(e, chunk); err != nil {
			return fmt.Errorf("list markets %d to %d: %w", from+1, from+len(chunk), err)
		}
	}
	var conditions []engine.Condition
	for _, no := range e.closing {
		conditions = append(conditions, e.markets.At(no).Condition)
	}
	if len(conditions) > 0 && s.began && s.o.Close != nil {
		if err := s.o.Close(conditions); err != nil {
			return fmt.Errorf("close markets: %w", err)
		}
		e.report.Closed += len(conditions)
	}
	return nil
}

// list hands on one chunk of listings.
func (s *Store) list(e *editor, chunk []int32) error {
	listings := make([]engine.Listing, len(chunk))
	for i, no := range chunk {
		m := e.markets.At(no)
		listings[i] = engine.Listing{Condition: m.Condition, Tokens: m.Tokens, Group: m.Group,
			Tick: m.Tick, MinSize: m.MinSize, NegRisk: m.NegRisk, Open: m.Accepting}
	}
	var refused *RefusedError
	if s.began && s.o.List != nil {
		if err := s.o.List(listings); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	for i, no := range chunk {
		m, why := e.markets.At(no), ""
		if refused != nil {
			why = refused.Why[listings[i].Condition]
		}
		if was := m.Skipped; why != "" {
			if was != Refused {
				e.markets.own(no).Skipped = Refused
			}
			e.refuse(m.line, m.Condition.Hex(), why)
			continue
		} else if was == Refused {
			e.markets.own(no).Skipped = ""
		}
		e.report.Listed++
		if !m.Accepting {
			e.report.Unopened++
		}
	}
	return nil
}

// Close makes the log durable. Catalogs in use go on working.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.sync()
}

// syncDir makes names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"clobd/api/catalog"
)

// sourceMark says how far a source was read, as the log keeps it.
type sourceMark struct {
	Source  string                `json:"source"`
	Files   []fileMark            `json:"files,omitempty"`
	Lists   map[string]listMark   `json:"lists,omitempty"`
	Answers map[string]answerMark `json:"answers,omitempty"`
}

func (p *sourceMark) text() ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write catalog mark: %w", err)
	}
	return text, nil
}

const (
	// fileEvery and serviceEvery are how often Sync looks at files and asks a service.
	fileEvery    = 2 * time.Second
	serviceEvery = time.Minute
	// leastWait and mostWait bound how long Sync waits after a failure; each one doubles the wait.
	leastWait = time.Second
	mostWait  = 10 * time.Minute
)

// Look asks the source once for everything new since it was last read, also by an earlier process,
// and enters, lists and publishes that. After an error the catalog is as it was, or has a part of
// the new records that makes sense by itself.
func (s *Source) Look(ctx context.Context) (catalog.Report, error) {
	return s.look(ctx, false, false)
}

// look reads what is new, or everything. If steady, look reads only files that have not changed
// since the look before.
func (s *Source) look(ctx context.Context, steady, everything bool) (catalog.Report, error) {
	var err error
	if s.mark == nil {
		s.mark = new(sourceMark)
		err := json.Unmarshal(s.store.Mark(), s.mark)
		if err != nil || s.mark.Source != s.o.Address {
			s.mark = &sourceMark{Source: s.o.Address}
		}
		if s.mark.Lists == nil {
			s.mark.Lists = map[string]listMark{}
		}
		if s.mark.Answers == nil {
			s.mark.Answers = map[string]answerMark{}
		}
	}
	s.records, s.report = 0, catalog.Report{Skipped: map[catalog.Reason]int{}}
	if isAddress(s.o.Address) {
		if s.base, err = parseBase(s.o.Address); err != nil {
			return s.report, err
		}
		err = s.syncRemote(ctx, everything)
	} else {
		if everything {
			s.mark.Files = nil
		}
		err = s.syncFiles(ctx, steady)
	}
	if s.lookFailed = err; err == nil {
		if noted := s.succeeded(); noted != nil && s.o.Log != nil {
			s.o.Log.Warn("note the catalog's last success", "error", noted.Error())
		}
	} else if ctx.Err() == nil {
		s.note(func(h *Health) {
			h.Failures++
			h.LastError = err.Error()
		})
	}
	return s.report, err
}

// Again makes Sync read the whole source at once, as if it had never been read.
func (s *Source) Again() {
	select {
	case s.again <- struct{}{}:
	default: // Sync will do so already
	}
}

// Sync looks at the source from time to time until ctx is done. After a failure Sync tries again,
// later each time. One goroutine calls Sync once, after Look.
func (s *Source) Sync(ctx context.Context) {
	every := s.o.Every
	if every == 0 && isAddress(s.o.Address) {
		every = serviceEvery
	} else if every == 0 {
		every = fileEvery
	}
	wait := s.after(s.lookFailed, every, every) // a failed Look is repeated soon
	for {
		everything := false
		select {
		case <-ctx.Done():
			return
		case <-s.again:
			everything = true
		// Nodes that were started together do not ask together.
		case <-time.After(time.Duration(float64(wait) * (0.75 + rand.Float64()/2))):
		}
		if s.o.Room != nil {
			s.note(func(h *Health) { h.Waiting = true })
			s.o.Room(ctx)
			s.note(func(h *Health) { h.Waiting = false })
		}
		report, err := s.look(ctx, !everything, everything)
		if ctx.Err() != nil {
			return
		}
		s.store.Gather()
		if wait = s.after(err, wait, every); s.o.Log == nil {
			continue
		}
		if err != nil {
			s.o.Log.Warn("catalog source", "source", s.o.Address, "error", err.Error(),
				"again in", wait.String())
		} else if report.Usable()+report.Broken > report.Skipped[catalog.Known] {
			s.o.Log.Info("catalog", "refreshed", report.String())
		}
	}
}

// after returns how long to wait after a look that followed a wait of before.
func (s *Source) after(err error, before, every time.Duration) time.Duration {
	if err == nil {
		s.failures = 0
		return every
	}
	if s.failures++; s.failures == 1 {
		before = leastWait / 2
	}
	wait := min(2*before, mostWait)
	if status, ok := errors.AsType[*statusError](err); ok {
		wait = max(wait, min(status.after, mostWait))
	}
	return wait
}

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

// sourceMark is how far a source was read, as the log keeps it.
type sourceMark struct {
	Source  string                `json:"source"`
	Files   []fileMark            `json:"files,omitempty"`
	Lists   map[string]listMark   `json:"lists,omitempty"`
	Answers map[string]answerMark `json:"answers,omitempty"`
}

const (
	// leastWait and mostWait bound how long Sync waits after a failure; each one doubles it.
	leastWait = time.Second
	mostWait  = 10 * time.Minute
)

// Look asks the source once for what is new since it was last read, also by a process before this
// one. What is new is entered, listed and published before it returns. The error says what went
// wrong; the catalog is then as it was, or has a part of what is new that makes sense by itself.
func (s *Source) Look(ctx context.Context) (catalog.Report, error) {
	return s.look(ctx, false, false)
}

func (s *Source) look(ctx context.Context, steady, everything bool) (catalog.Report, error) {
	if s.mark == nil {
		s.mark = new(sourceMark)
		// A mark that cannot be read, or that is of another source, says nothing about this one.
		err := json.Unmarshal(s.store.Mark(), s.mark)
		if err != nil || s.mark.Source != s.o.Address {
			s.mark = &sourceMark{Source: s.o.Address}
		}
	}
	s.records = 0
	var report catalog.Report
	var err error
	if isAddress(s.o.Address) {
		if s.remote == nil {
			base, err := parseBase(s.o.Address)
			if err != nil {
				return report, err
			}
			s.remote = newRemote(base, &s.status, s.mark)
			s.remote.client.Timeout = s.patience
		}
		report, err = s.syncRemote(ctx, everything)
	} else {
		if everything {
			s.mark.Files = nil
		}
		report, err = s.syncFiles(ctx, steady)
	}
	if s.lookFailed = err; err == nil {
		if noted := s.status.succeeded(); noted != nil && s.o.Log != nil {
			s.o.Log.Warn("note the catalog's last success", "error", noted.Error())
		}
	} else if ctx.Err() == nil {
		s.status.note(func(h *Health) {
			h.Failures++
			h.LastError = err.Error()
		})
	}
	return report, err
}

// Again makes Sync look at all of the source at once, as if it had never been read.
func (s *Source) Again() {
	select {
	case s.again <- struct{}{}:
	default: // it will already
	}
}

// Sync looks at the source from time to time until ctx is done. What fails is tried again, later
// each time. It is run once, by a goroutine of its own, after Look.
func (s *Source) Sync(ctx context.Context) {
	every := s.o.Every
	if every == 0 && isAddress(s.o.Address) {
		every = serviceEvery
	} else if every == 0 {
		every = fileEvery
	}
	wait := s.after(s.lookFailed, every, every) // what Look could not is tried again soon
	for {
		everything := false
		// Nodes that were started together do not ask together.
		timer := time.NewTimer(time.Duration(float64(wait) * (0.75 + rand.Float64()/2)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.again:
			timer.Stop()
			everything = true
		case <-timer.C:
		}
		if s.o.Room != nil {
			s.status.note(func(h *Health) { h.Waiting = true })
			s.o.Room(ctx)
			s.status.note(func(h *Health) { h.Waiting = false })
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

// after is how long to wait after a look.
func (s *Source) after(err error, before, every time.Duration) time.Duration {
	if err == nil {
		s.failures = 0
		return every
	}
	if s.failures++; s.failures == 1 {
		before = leastWait / 2
	}
	wait := min(2*before, mostWait)
	var status *statusError
	if errors.As(err, &status) {
		wait = max(wait, min(status.after, mostWait))
	}
	return wait
}

// text is the place as a mark of the log.
func (p *sourceMark) text() ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write catalog mark: %w", err)
	}
	return text, nil
}

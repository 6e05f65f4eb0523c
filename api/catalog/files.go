package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// fileMark is what a file was like when it was read.
type fileMark struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Time int64  `json:"time"` // unix nanoseconds
}

// isAddress says whether a source is a service.
func isAddress(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// Check looks whether a source can be one at all, without reading it to its end or making anything:
// a file that begins as a catalog does, a folder with at least one such file, or the address of a
// service, which is not asked. A pipe is not looked into.
func Check(source string) error {
	if isAddress(source) {
		_, err := parseBase(source)
		return err
	}
	files, err := filesOf(source)
	if err != nil {
		return err
	}
	var first error
	for _, f := range files {
		err := checkFile(f.Path)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// errNoRecord is the fault of a text whose records are none of a catalog's. In a folder such a file
// is passed over and named; alone it is no source.
var errNoRecord = errors.New("not a catalog: no record in it")

func checkFile(path string) error {
	if about, err := os.Stat(path); err != nil {
		return fmt.Errorf("open catalog: %w", err)
	} else if !about.Mode().IsRegular() {
		return nil
	}
	file, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	s, err := newSplitter(file)
	if err != nil {
		return fmt.Errorf("catalog %s: not a catalog: %w", path, err)
	}
	p := newParser()
	why := "it is empty"
	for range 1000 {
		record, line, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && why == "it is empty" && s.array:
			return nil // an empty list
		case errors.Is(err, io.EOF):
			return fmt.Errorf("catalog %s: %w; %s", path, errNoRecord, why)
		case errors.Is(err, errTooLong), errors.Is(err, errCut), errors.Is(err, errNotObject),
			errors.Is(err, errGarbage):
			why = fmt.Sprintf("line %d: %v", line, err)
			continue
		case err != nil:
			return fmt.Errorf("catalog %s: read line %d: %w", path, line, err)
		}
		p.reset()
		p.take(record, int32(line))
		for i := range p.items {
			if !p.items[i].broken {
				return nil
			}
			why = fmt.Sprintf("line %d: %s", line, p.items[i].why)
		}
	}
	return fmt.Errorf("catalog %s: %w, in its first thousand lines; %s", path, errNoRecord, why)
}

// openFile opens a file as a pipe would be, so that opening one does not wait for its writer.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return f, nil
}

// filesOf are the files of a source as they are now: itself, or what a folder has that is called
// .json, .jsonl or .gz, by name.
func filesOf(source string) ([]fileMark, error) {
	about, err := os.Stat(source)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if !about.IsDir() {
		return []fileMark{{source, about.Size(), about.ModTime().UnixNano()}}, nil
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	var list []fileMark
	for _, entry := range entries {
		if !slices.Contains([]string{".json", ".jsonl", ".gz"}, filepath.Ext(entry.Name())) {
			continue
		}
		about, err := os.Stat(filepath.Join(source, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("open catalog: %w", err)
		}
		if about.Mode().IsRegular() {
			list = append(list, fileMark{filepath.Join(source, entry.Name()), about.Size(),
				about.ModTime().UnixNano()})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("open catalog: %s has no .json, .jsonl or .gz file", source)
	}
	return list, nil
}

// syncFiles reads what has changed of the files of the source. A file that changes while the node
// runs is read once it has stayed the same from one look to the next.
func (s *Store) syncFiles(ctx context.Context, steady bool) (Report, error) {
	files, err := filesOf(s.o.Source)
	if err != nil {
		s.status.asked(requestFailed)
		return Report{}, err
	}
	var todo []fileMark
	for _, f := range files {
		if !slices.Contains(s.place.Files, f) && (!steady || slices.Contains(s.looked, f)) {
			todo = append(todo, f)
		}
	}
	s.looked = files
	if len(todo) == 0 {
		s.status.asked(requestUnchanged)
		return Report{}, nil
	}
	next := &place{Source: s.o.Source}
	for _, f := range files {
		if slices.Contains(todo, f) || slices.Contains(s.place.Files, f) {
			next.Files = append(next.Files, f)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	report, err := s.refresh(next, func(l *load) error {
		for _, f := range todo {
			l.total += f.Size
		}
		return errors.Join(l.readFiles(ctx, todo), ctx.Err())
	})
	if err != nil {
		s.status.asked(requestFailed)
		return report, err
	}
	s.status.asked(requestNew)
	s.place = next
	return report, nil
}

// readFiles reads files one after the other. One that has no record of a catalog is passed over if
// another has: the report names it.
func (l *load) readFiles(ctx context.Context, files []fileMark) error {
	var strange error
	for _, f := range files {
		before := *l.report
		switch err := l.readFile(ctx, f.Path); {
		case errors.Is(err, errNoRecord) && len(l.s.place.Files)+len(files) > 1:
			strange = errors.Join(strange, err)
			l.passOver(f.Path, before)
		case err != nil:
			return err
		}
		l.logBad()
	}
	if l.report.usable() == 0 && len(l.s.place.Files) == 0 {
		return strange
	}
	return nil
}

// readFile reads one file to its end, or until ctx is done.
func (l *load) readFile(ctx context.Context, path string) error {
	file, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	// A pipe that nobody writes to is read for ever; closing it ends that.
	stop := context.AfterFunc(ctx, func() { _ = file.Close() })
	defer stop()
	if l.s.o.Source != path {
		l.file = filepath.Base(path)
	}
	if err := l.read(&counter{file, &l.readBytes}); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		return fmt.Errorf("catalog %s: %w", path, err)
	}
	return nil
}

// counter counts what was read.
type counter struct {
	in   io.Reader
	done *atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.done.Add(int64(n))
	return n, err
}

// fileEvery is how often files are looked at.
const fileEvery = 2 * time.Second

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"clobd/api/catalog"
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

// checkFile looks whether a file begins as a catalog does.
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
	if err := catalog.Probe(file); err != nil {
		return fmt.Errorf("catalog %s: %w", path, err)
	}
	return nil
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
func (s *Source) syncFiles(ctx context.Context, steady bool) (catalog.Report, error) {
	files, err := filesOf(s.o.Address)
	if err != nil {
		s.status.note(requestFailed)
		return catalog.Report{}, err
	}
	var todo []fileMark
	for _, f := range files {
		if !slices.Contains(s.mark.Files, f) && (!steady || slices.Contains(s.looked, f)) {
			todo = append(todo, f)
		}
	}
	s.looked = files
	if len(todo) == 0 {
		s.status.note(requestUnchanged)
		return catalog.Report{}, nil
	}
	next := &sourceMark{Source: s.o.Address}
	for _, f := range files {
		if slices.Contains(todo, f) || slices.Contains(s.mark.Files, f) {
			next.Files = append(next.Files, f)
		}
	}
	report, err := s.load(next, func(l *catalog.Load) error {
		for _, f := range todo {
			l.Total += f.Size
		}
		return errors.Join(s.readFiles(ctx, l, todo), ctx.Err())
	})
	if err != nil {
		s.status.note(requestFailed)
		return report, err
	}
	s.status.note(requestNew)
	s.mark = next
	return report, nil
}

// readFiles reads files one after the other. One that has no record of a catalog is passed over if
// another has: the report names it.
func (s *Source) readFiles(ctx context.Context, l *catalog.Load, files []fileMark) error {
	var strange error
	for _, f := range files {
		before := l.Report()
		switch err := s.readFile(ctx, l, f.Path); {
		case errors.Is(err, catalog.ErrNoRecord) && len(s.mark.Files)+len(files) > 1:
			strange = errors.Join(strange, err)
			l.PassOver(f.Path, &before)
		case err != nil:
			return err
		}
		l.LogBad()
	}
	if report := l.Report(); report.Usable() == 0 && len(s.mark.Files) == 0 {
		return strange
	}
	return nil
}

// readFile reads one file to its end, or until ctx is done.
func (s *Source) readFile(ctx context.Context, l *catalog.Load, path string) error {
	file, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	// A pipe that nobody writes to is read for ever; closing it ends that.
	stop := context.AfterFunc(ctx, func() { _ = file.Close() })
	defer stop()
	if s.o.Address != path {
		l.File = filepath.Base(path)
	}
	if err := l.Read(l.Count(file)); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		return fmt.Errorf("catalog %s: %w", path, err)
	}
	return nil
}

// fileEvery is how often files are looked at.
const fileEvery = 2 * time.Second

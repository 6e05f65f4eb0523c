package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"clobd/api/catalog"
)

// fileMark describes a file as it was when it was read.
type fileMark struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Time int64  `json:"time"` // unix nanoseconds
}

// isAddress reports whether a source is a service.
func isAddress(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// Check returns an error if a source cannot be one: it must be a file that begins like a catalog, a
// folder with such a file, or the address of a service. Check does not ask the service, read a pipe
// or make anything.
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
		first = cmp.Or(first, err)
	}
	return first
}

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

// openFile opens a file or a pipe, and does not wait for the writer of the pipe.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return f, nil
}

// filesOf returns the present files of a source: itself, or the .json, .jsonl and .gz files of a
// folder by name.
func filesOf(source string) (list []fileMark, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open catalog: %w", err)
		}
	}()
	about, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	if !about.IsDir() {
		return []fileMark{{source, about.Size(), about.ModTime().UnixNano()}}, nil
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		path := filepath.Join(source, entry.Name())
		if !slices.Contains([]string{".json", ".jsonl", ".gz"}, filepath.Ext(path)) {
			continue
		}
		about, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if about.Mode().IsRegular() {
			list = append(list, fileMark{path, about.Size(), about.ModTime().UnixNano()})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no .json, .jsonl or .gz file", source)
	}
	return list, nil
}

// syncFiles reads the files of the source that have changed. If steady, a file that changes while
// the node runs is read once two looks in a row have found it the same.
func (s *Source) syncFiles(ctx context.Context, steady bool) (err error) {
	var todo []fileMark
	defer func() { s.asked(len(todo) == 0, err) }()
	files, err := filesOf(s.o.Address)
	if err != nil {
		return err
	}
	next := &sourceMark{Source: s.o.Address}
	for _, f := range files {
		known := slices.Contains(s.mark.Files, f)
		fresh := !known && (!steady || slices.Contains(s.looked, f))
		if fresh {
			todo = append(todo, f)
		}
		if known || fresh {
			next.Files = append(next.Files, f)
		}
	}
	if s.looked = files; len(todo) == 0 {
		return nil
	}
	err = s.load(next, func(l *catalog.Load) error {
		for _, f := range todo {
			l.Total += f.Size
		}
		return errors.Join(s.readFiles(ctx, l, todo), ctx.Err())
	})
	if err == nil {
		s.mark = next
	}
	return err
}

// readFiles reads files one after the other. It passes over a file without a record of a catalog if
// another file has some; the report names the file.
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
	// A pipe without a writer is read for ever; closing it ends that.
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

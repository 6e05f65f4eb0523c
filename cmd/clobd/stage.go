package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"clobd/cmd/cli"
	"clobd/journal/disk"
)

type stage struct {
	to   string // what is to be made, links followed
	hull string // the folder of this try, with a note that says so
	part string // where it is made until then, in hull; newStage does not make it
	// inside is true if to is an empty folder, perhaps a mount point: part is in it, not beside it.
	inside bool
}

const insideName = "part"

// stageNote is a file in a hull: only a hull that has it is deleted. It is the first thing in the
// hull and the last to go, so that a kill leaves a hull with it, or nothing in the hull.
const (
	stageNote = "clobd-part"
	stageText = "a backup or a restore makes its folder here; if none runs, this can be deleted\n"
	wholeName = "whole"
)

// newStage refuses a folder that is not empty, and removes what an interrupted try has left.
func newStage(to string) (*stage, error) {
	real, err := resolve(to)
	if err != nil {
		return nil, err
	}
	s := &stage{to: real, hull: real + partSuffix}
	entries, err := os.ReadDir(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		s.inside, s.hull = true, filepath.Join(real, insideName)
		for _, e := range entries {
			if name := e.Name(); name != insideName && name != "lost+found" { // a disk has that
				return nil, cli.Hint(fmt.Errorf("%s is not empty", to), "name a folder that is not there "+
					"yet, or an empty one")
			}
		}
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	s.part = filepath.Join(s.hull, wholeName)
	err = os.MkdirAll(filepath.Dir(s.hull), 0o700)
	if err == nil {
		err = os.Mkdir(s.hull, 0o700)
	}
	if err == nil {
		err = disk.Replace(filepath.Join(s.hull, stageNote), []byte(stageText))
	}
	if err != nil {
		return nil, fmt.Errorf("make a folder to work in: %w", err)
	}
	return s, nil
}

// clear removes the hull of an interrupted try, and refuses a folder of somebody else.
func (s *stage) clear() error {
	if _, err := os.Lstat(s.hull); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !s.ours() {
		return cli.Hint(fmt.Errorf("%s is in the way, and no backup or restore has made it", s.hull),
			"move it away, or name another folder")
	}
	if err := s.discard(); err != nil {
		return fmt.Errorf("remove what is left of another try: %w", err)
	}
	return nil
}

// ours reports whether the hull is one of a try: it has the note, or nothing but a note that is not
// yet in its place.
func (s *stage) ours() bool {
	if text, err := os.ReadFile(filepath.Join(s.hull, stageNote)); err == nil {
		return string(text) == stageText
	}
	entries, err := os.ReadDir(s.hull)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stageNote+".tmp-") || !e.Type().IsRegular() {
			return false
		}
	}
	return err == nil
}

// discard removes the hull: what was made in it first, and its note last.
func (s *stage) discard() error {
	if err := os.RemoveAll(filepath.Join(s.hull, wholeName)); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.hull)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != stageNote {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.hull, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(s.hull)
}

// resolve returns an absolute path without links. The last parts need not exist.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for rest := ""; ; {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		parent := filepath.Dir(path)
		if _, is := os.Lstat(path); is == nil || !errors.Is(err, fs.ErrNotExist) || parent == path {
			return "", fmt.Errorf("%s: %w", path, err) // a link to nothing, for one
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}

// within reports whether a resolved path is a folder or lies in it.
func within(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rest)
}

func (s *stage) finish() error {
	if !s.inside {
		if err := errors.Join(syncFolder(s.part), os.Rename(s.part, s.to)); err != nil {
			return err
		}
		return errors.Join(s.discard(), syncFolder(filepath.Dir(s.to)))
	}
	entries, err := os.ReadDir(s.part)
	if err != nil {
		return err
	}
	// The mark first and the journal last: a folder moved in part does not start.
	names := []string{"mark"}
	for _, e := range entries {
		if name := e.Name(); name != "mark" && name != "journal" {
			names = append(names, name)
		}
	}
	for i, name := range append(names, "journal") {
		err = os.Rename(filepath.Join(s.part, name), filepath.Join(s.to, name))
		if name == "mark" && errors.Is(err, fs.ErrNotExist) {
			continue // an old folder without one
		} else if err == nil {
			err = syncFolder(s.to)
		}
		if err != nil {
			for _, name := range names[:i] {
				err = errors.Join(err, os.RemoveAll(filepath.Join(s.to, name)))
			}
			return err
		}
	}
	return errors.Join(s.discard(), syncFolder(s.to))
}

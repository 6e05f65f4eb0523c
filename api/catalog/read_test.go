package catalog

import (
	"fmt"
	"io"
	"os"
)

// ReadFile is Read from a file.
func ReadFile(path string, o Options) (*Catalog, Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Report{}, fmt.Errorf("open catalog: %w", err)
	}
	defer func() { _ = f.Close() }()
	c, report, err := Read(f, o)
	if err != nil {
		return nil, report, fmt.Errorf("catalog %s: %w", path, err)
	}
	return c, report, nil
}

// Read reads a text into a catalog of its own and lists its tradable markets.
func Read(r io.Reader, o Options) (*Catalog, Report, error) {
	o.Dir = ""
	s, err := Open(o)
	if err != nil {
		return nil, Report{}, err
	}
	s.began = true
	report, err := s.Read(r)
	if err != nil {
		return nil, report, err
	}
	return s.Current(), report, nil
}

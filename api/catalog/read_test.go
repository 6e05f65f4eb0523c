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

// Read reads a catalog and lists its tradable markets. The text is a JSON array of records or one
// record a line, plain or gzip, told apart by its content; records are events, markets, series,
// tags and the order book's markets, told apart by their keys. Those that cannot be used are
// counted and named in the Report. It is an error if the text cannot be read to its end, holds not
// one record (an empty array excepted), or Options.List fails; only in the last case have markets
// been listed.
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

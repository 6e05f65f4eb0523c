package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Cut is the end of a log that did not check out when Open read the log. The end lies in a file of
// its own: the catalog goes on without it, and reads its source again as a whole.
type Cut struct {
	File    string
	Bytes   int64
	Records int // whole ones in it
	// Torn is an end that looks like the beginning of a record, as a process leaves it that is killed
	// while it loads. Any other end has cost records.
	Torn bool
}

// The suffixes of the files. There is one torn end at most: the next one replaces it.
const (
	damagedSuffix = ".damaged"
	tornSuffix    = ".torn"
)

// judgeCut looks what is in the bytes behind the good part of a log.
func judgeCut(b []byte) Cut {
	c := Cut{Bytes: int64(len(b)), Torn: len(b) < headSize ||
		8+int64(binary.LittleEndian.Uint32(b)) > int64(len(b))}
	for len(b) >= headSize {
		size := 8 + int64(binary.LittleEndian.Uint32(b))
		body := b[8:]
		good := size >= headSize && size <= maxFrame && size <= int64(len(b)) && body[0] != 0 &&
			recordKind(body[0]) <= aMark && body[1] <= 1 && body[2] == 0 && body[3] == 0
		if good {
			_, err := readHead(b[:size])
			good = err == nil
		}
		if !good {
			b = b[1:]
			continue
		}
		c.Records, c.Torn = c.Records+1, false
		b = b[size:]
	}
	return c
}

// cutOff puts aside, durably, the bytes behind the good part of a log.
func (s *Store) cutOff(log *recordLog, end int64) error {
	about, err := log.file.Stat()
	if err != nil || about.Size() <= end {
		return err
	}
	b, err := io.ReadAll(io.NewSectionReader(log.file, end, about.Size()-end))
	if err != nil {
		return fmt.Errorf("read what is damaged: %w", err)
	}
	c := judgeCut(b)
	if !c.Torn {
		s.mark = nil // the source is read again
	}
	whole := strings.TrimSuffix(log.file.Name(), logSuffix)
	c.File = whole + tornSuffix
	for n := 1; !c.Torn; n++ {
		c.File = fmt.Sprintf("%s-%d%s", whole, n, damagedSuffix)
		if _, err := os.Lstat(c.File); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err := writeAll(c.File, b); err != nil {
		return fmt.Errorf("put aside what is damaged: %w", err)
	}
	s.status.note(func(st *Status) { st.Cut = c })
	if s.o.Log != nil {
		s.o.Log.Warn("the catalog's records are damaged: the end was cut off and kept", "from", end,
			"bytes", c.Bytes, "records", c.Records, "torn", c.Torn, "kept", c.File, "hint", "the source "+
				"is read again as a whole; when what is missing is back, delete the file")
	}
	return nil
}

// writeAll makes or replaces a file, durably.
func writeAll(name string, b []byte) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	return errors.Join(err, file.Sync(), file.Close(), syncDir(filepath.Dir(name)))
}

// cuts finds the cuts that lie in a folder.
func cuts(dir string) (all []Cut, err error) {
	for _, suffix := range []string{damagedSuffix, tornSuffix} {
		names, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"+suffix))
		if err != nil {
			return all, err
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				return all, err
			}
			c := judgeCut(b)
			c.File = name
			all = append(all, c)
		}
	}
	return all, nil
}

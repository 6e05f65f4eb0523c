package copies

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Chunk is the size of all chunks but the last one of a file.
const Chunk = 1 << 20

// The bounds of a copy. The room on the disk is another one.
const (
	mostFiles = 1 << 16
	mostBytes = 1 << 44
)

// File is a file of a copy.
type File struct {
	Name string `json:"name"` // with slashes, below the copy's folder
	Size int64  `json:"size"`
}

// Manifest says of which files a copy is.
type Manifest struct {
	ID    string `json:"id"` // no two copies have the same
	Files []File `json:"files"`
}

// The folders of a copy that can be made anew from the journal.
const (
	Index       = "index"
	Checkpoints = "checkpoints"
)

// The mark of a copy says where its journal ends.
const mark = "mark"

var (
	idForm   = regexp.MustCompile(`^[0-9a-f]{32}$`)
	nameForm = regexp.MustCompile(
		`^(mark|(journal|index|checkpoints)/[0-9A-Za-z][0-9A-Za-z._-]{0,79})$`)
)

// Check returns why a manifest is none; nil if it is good.
func (m *Manifest) Check() error {
	if !idForm.MatchString(m.ID) || len(m.Files) > mostFiles {
		return fmt.Errorf("a copy %.40q of %d files: more than %d, or not a name", m.ID, len(m.Files),
			mostFiles)
	}
	seen, journal, total := make(map[string]bool, len(m.Files)), false, int64(0)
	for _, f := range m.Files {
		if !nameForm.MatchString(f.Name) || seen[f.Name] || strings.HasSuffix(f.Name, "/LOCK") {
			return fmt.Errorf("a copy names the file %.100q", f.Name)
		}
		if f.Size < 0 || f.Size > mostBytes-total {
			return fmt.Errorf("the file %s of a copy has %d bytes: more than %d in all", f.Name, f.Size,
				int64(mostBytes))
		}
		seen[f.Name], total = true, total+f.Size
		journal = journal || strings.HasPrefix(f.Name, "journal/")
	}
	if !seen[mark] || !journal {
		return errors.New("a copy without a journal or its end")
	}
	return nil
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (total int64) {
	for i := range m.Files {
		total += m.Files[i].Size
	}
	return total
}

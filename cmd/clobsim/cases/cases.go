package cases

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Tally counts the outcomes of cases.
type Tally struct{ Agree, Disagree, Skipped int }

// Add adds the counts of another file.
func (t *Tally) Add(o Tally) {
	t.Agree += o.Agree
	t.Disagree += o.Disagree
	t.Skipped += o.Skipped
}

// Cases is how many there were.
func (t *Tally) Cases() int { return t.Agree + t.Disagree + t.Skipped }

// String is the line that every replay ends with.
func (t *Tally) String() string {
	return fmt.Sprintf("%d agree, %d disagree, %d skipped", t.Agree, t.Disagree, t.Skipped)
}

// count counts the end of the case at: nil agrees, a mismatch disagrees, an inexpressible is
// skipped; report gets a line for the last two. Any other error is an error of the file.
func (t *Tally) count(at string, err error, report func(line string)) error {
	var differs *mismatch
	var skip inexpressible
	switch {
	case err == nil:
		t.Agree++
	case errors.As(err, &differs):
		t.Disagree++
		report(fmt.Sprintf("%s: %v", at, err))
	case errors.As(err, &skip):
		t.Skipped++
		report(fmt.Sprintf("%s: skipped: %v", at, err))
	default:
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// mismatch is a difference between the engine and a case.
type mismatch struct{ what, expected, got string }

// Error names it.
func (m *mismatch) Error() string {
	return fmt.Sprintf("%s: expected %s, got %s", m.what, m.expected, m.got)
}

// differ makes a mismatch of any two values.
func differ(what string, expected, got any) error {
	return &mismatch{what, fmt.Sprint(expected), fmt.Sprint(got)}
}

// inexpressible is why a case cannot be put to the engine.
type inexpressible string

// Error is the reason.
func (i inexpressible) Error() string { return string(i) }

// cannot makes an inexpressible.
func cannot(format string, args ...any) error { return inexpressible(fmt.Sprintf(format, args...)) }

// inflate reads r, through gzip if it is that.
func inflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, err := b.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil // too short for gzip: whoever reads it says what is wrong
	}
	return gzip.NewReader(b)
}

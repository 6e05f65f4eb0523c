package setting

import (
	"fmt"
	"testing"
)

// refused is a test that only notes how it ends.
type refused struct {
	testing.TB
	said string
}

func (r *refused) Helper() {}

func (r *refused) Skip(args ...any) { r.said = fmt.Sprint(args...) }

func (r *refused) Fatalf(format string, args ...any) { r.said = fmt.Sprintf(format, args...) }

// TestNumber: numbers above 0 are taken, and anything else ends the test that asked.
func TestNumber(t *testing.T) {
	for text, want := range map[string]uint64{"": 5, "1": 1, "1000000": 1_000_000} {
		t.Setenv("CLOBD_SIZE", text)
		if got := Number(t, "CLOBD_SIZE", 5); got != want {
			t.Errorf("%q is read as %d", text, got)
		}
		if little := Size(t, 5, 5); little != int(want) {
			t.Errorf("%q is the size %d", text, little)
		}
	}
	for _, text := range []string{"0", "-1", "x", "1.5", "18446744073709551615"} {
		t.Setenv("CLOBD_SIZE", text)
		var r refused
		if n := Number(&r, "CLOBD_SIZE", 5); r.said == "" {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}

// TestFull: a test is left out of a short run only, unless the build is a thorough one or a size is
// asked for.
func TestFull(t *testing.T) {
	for _, size := range []string{"", "3"} {
		t.Setenv("CLOBD_SIZE", size)
		var r refused
		Full(&r, "it sleeps")
		want := ""
		if testing.Short() && !thorough && size == "" {
			want = "full size only: it sleeps"
		}
		if r.said != want {
			t.Errorf("size %q: said %q, want %q", size, r.said, want)
		}
	}
}

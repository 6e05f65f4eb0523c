package main

import (
	"bytes"
	"encoding"
	"fmt"
	"testing"
	"time"

	"clobd/api/catalog"
)

func TestProgress(t *testing.T) {
	p := progress{what: "journal", unit: "frames"}
	for _, c := range []struct {
		done, total uint64
		took        time.Duration
		want        string
	}{
		{250, 1000, 10 * time.Second, "journal: 250 of 1000 frames, 25 %, 25/s, 30s left"},
		{0, 1000, time.Second, "journal: 0 of 1000 frames, 0 %, 0/s"},
		{1200, 1000, 10 * time.Second, "journal: 1200 of 1000 frames, 100 %, 120/s"},
		{250, 0, 10 * time.Second, "journal: 250 frames, 25/s"},
	} {
		if got := p.line(c.done, c.total, c.took); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestScreen: lines of the log go above the line that changes, and what is left on the terminal are
// whole lines. Elsewhere there are lines and nothing else.
func TestScreen(t *testing.T) {
	for terminal, want := range map[bool]string{
		true: "one\n\rcatalog 1\x1b[K\rcatalog 2\x1b[K\r\x1b[Ktwo\ncatalog 2\rcat\x1b[K\nthree\n" +
			"\rlast\x1b[K\r\x1b[K",
		false: "one\ncatalog 1\ncatalog 2\ncatalog 2\ntwo\ncat\nthree\nlast\n",
	} {
		var out bytes.Buffer
		s := screen{out: &out, terminal: terminal}
		fmt.Fprintln(&s, "one")
		s.show("catalog 1")
		s.show("catalog 2")
		s.show("catalog 2")
		fmt.Fprintln(&s, "two")
		s.show("cat")
		s.leave()
		s.leave()
		fmt.Fprintln(&s, "three")
		s.show("last")
		s.erase()
		if got := out.String(); got != want {
			t.Errorf("terminal %v: %q, want %q", terminal, got, want)
		}
	}
}

// TestLoadBar: what takes long is shown as it goes on and to its end, and only the first load.
func TestLoadBar(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		before   time.Duration // since when it is read
		want     string
	}{
		{true, 0, ""},
		{true, time.Minute, "\rcatalog [===============               ]  50 %, 7 records, 1 of 3 MB\x1b[K" +
			"\rcatalog [==============================] 100 %, 9 records, 3 of 3 MB\x1b[K\n"},
		{false, time.Minute, "catalog: 50 %, 7 records, 1 of 3 MB\n"},
	} {
		var out bytes.Buffer
		b := newLoadBar(&screen{out: &out, terminal: c.terminal})
		now := b.began.Add(c.before)
		b.now = func() time.Time { return now }
		b.show(catalog.Progress{Records: 7, Done: 1_500_000, Total: 3_000_000})
		b.show(catalog.Progress{Records: 8, Done: 2_000_000, Total: 3_000_000})
		b.show(catalog.Progress{Records: 9, Done: 3_000_001, Total: 3_000_000})
		b.end()
		b.show(catalog.Progress{Records: 1})
		if got := out.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	b := newLoadBar(&screen{})
	if got := b.line(catalog.Progress{Records: 12}, 3*time.Second); got != "catalog: 12 records in 3 s" {
		t.Error(got)
	}
}

func TestByteSize(t *testing.T) {
	var b byteSize
	var _ encoding.TextUnmarshaler = &b
	for text, want := range map[string]byteSize{"0": 0, "12": 12, "3KiB": 3 << 10, "64MiB": 64 << 20,
		"1GiB": 1 << 30, "1024TiB": 1 << 50} {
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s is %d, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "-1", "1GB", "GiB", "1.5GiB", "1025TiB", "99999999999999999999"} {
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, b)
		}
	}
}

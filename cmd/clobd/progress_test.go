package main

import (
	"encoding"
	"testing"
	"time"
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

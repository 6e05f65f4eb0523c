package account

import (
	"testing"

	"clobd/api/wire"
	"clobd/engine"
)

// TestTimes: before and after are strict, in whole seconds or, from 1e12 up, in milliseconds.
func TestTimes(t *testing.T) {
	in := func(w *listQuery, at engine.Time) bool {
		return (w.Before == 0 || at < w.Before) && (w.After == 0 || at > w.After) && !w.none
	}
	for _, c := range []struct {
		before, after string
		at            engine.Time
		want          bool
	}{
		{"100", "", 99_999, true}, {"100", "", 100_000, false}, {"100", "", 100_999, false},
		{"", "100", 100_000, false}, {"", "100", 100_999, false}, {"", "100", 101_000, true},
		{"102", "100", 101_500, true}, {"0", "", 5, false}, {"", "0", 1_000, true},
		{"", "0", 999, false},
		{"1700000000400", "", 1_700_000_000_399, true}, {"1700000000400", "", 1_700_000_000_400, false},
		{"", "1700000000400", 1_700_000_000_401, true}, {"", "1700000000400", 1_700_000_000_400, false},
		{"999999999999", "", 999_999_999_998_999, true},
	} {
		var w listQuery
		if !w.readTimes(c.before, c.after) {
			t.Errorf("%+v is refused", c)
		} else if in(&w, c.at) != c.want {
			t.Errorf("%+v: %d to %d", c, w.After, w.Before)
		}
	}
	for _, s := range []string{
		"x", "-1", "1.5", "1e3", " 1", "1700000000000000", "18446744073709551616",
	} {
		var w listQuery
		if w.readTimes(s, "") || w.readTimes("", s) {
			t.Errorf("%q is taken", s)
		}
	}
}

// TestUUIDs: 32 digits of either letter case, dashes where they belong.
func TestUUIDs(t *testing.T) {
	id, ok := parseUUID("00112233-4455-8677-8899-AABBCCDDeeff")
	if !ok || id != [16]byte{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x86, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc,
		0xdd, 0xee, 0xff} {
		t.Errorf("%x %v", id, ok)
	}
	if got := string(wire.AppendUUID(nil, id)); got != `"00112233-4455-8677-8899-aabbccddeeff"` {
		t.Error(got)
	}
	for _, s := range []string{"", "00112233445586778899aabbccddeeff", "0x",
		"00112233-4455-8677-8899-AABBCCDDeef", "00112233-4455-8677-8899-AABBCCDDeefg",
		"001122334-455-8677-8899-AABBCCDDeeff", "-0112233-4455-8677-8899-AABBCCDDeeff"} {
		if _, ok := parseUUID(s); ok {
			t.Errorf("%q is taken", s)
		}
	}
}

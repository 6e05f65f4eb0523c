package lean

import "testing"

func TestLateness(t *testing.T) {
	const ms = 1_000_000
	p := &pump{}
	p.pauses.note(5*ms, 6*ms)
	p.pauses.note(100*ms, 400*ms)
	p.pauses.note(500*ms, 510*ms)
	if len(p.pauses) != 2 {
		t.Fatalf("pauses: %v", p.pauses)
	}
	for _, c := range []struct {
		name                  string
		due, free, sent, want int64
	}{
		{"on time", 50, 40, 51, 1},
		{"a busy lane", 50, 60, 60, 0},
		{"due in a pause, lane free before it", 200, 90, 401, 201},
		{"due in a pause, answer read after it", 200, 400, 401, 201},
		{"due before a pause, answer read after it", 90, 401, 402, 301},
		{"due in a pause, answer long after it", 200, 450, 450, 200},
		{"due after it", 401, 401, 402, 1},
		{"two pauses", 300, 511, 512, 111},
	} {
		if got := p.pauses.lateness(c.due*ms, c.free*ms, c.sent*ms); got != c.want*ms {
			t.Errorf("%s: late by %.1f ms, want %d", c.name, float64(got)/ms, c.want)
		}
	}
}

package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestFanCases: what is printed is read, and nonsense is refused.
func TestFanCases(t *testing.T) {
	for _, c := range FanCases() {
		if got, err := ParseFanCase(c.String()); err != nil || got != c {
			t.Errorf("%s is read as %v, %v", c, got, err)
		}
	}
	for _, text := range []string{"", "1x2", "1@2", "x1@2", "1x1@2x", "ax1@2"} {
		if c, err := ParseFanCase(text); err == nil {
			t.Errorf("%q is read as %v", text, c)
		}
	}
	f := Fanout{Rounds: 1, Duration: time.Second, Cases: []FanCase{{0, 1, 1}, {1, 201, 1}, {1, 1, 0}}}
	if err := f.validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three problems: %v", err)
	}
}

// TestFanTexts: all sides send the node's text, with the number of the message in its place.
func TestFanTexts(t *testing.T) {
	f := newFanTexts([][]byte{[]byte(`{"a":"\"sequence\":3","sequence":41,"seq":1}`), []byte(`{"sequence":9}`),
		[]byte(`{"b":1,"sequence":1234,"seq":2}`), []byte(`{"c":1,"sequence":2}`)}, 2)
	var got []string
	for n := range 3 {
		f.each(n, func(b []byte) { got = append(got, string(b)) })
	}
	want := `{"a":"\"sequence\":3","sequence":1,"seq":1} {"sequence":2} {"b":1,"sequence":3,"seq":2} ` +
		`{"c":1,"sequence":4} {"a":"\"sequence\":3","sequence":5,"seq":1} {"sequence":6}`
	if strings.Join(got, " ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
	}
}

// TestFanCrowd: a subscriber counts the messages of frames however they are cut, and sees each one
// that is missing or comes twice.
func TestFanCrowd(t *testing.T) {
	text := func(s string) []byte { return append([]byte{0x81, byte(len(s))}, s...) }
	long := append([]byte{0x81, 126, 1, 44}, bytes.Repeat([]byte("x"), 300-15)...)
	long = append(long, `"sequence":3,"}`...)
	good := bytes.Join([][]byte{text("{}"), text(`{"sequence":1}`), {0x89, 0}, text(`{"id":1}`),
		text("{\"sequence\":2}"), long, text("{\"sequence\":4}\n{\"sequence\":5}")}, nil)
	for name, c := range map[string]struct {
		in          []byte
		count, gaps int64
		over        bool
	}{
		"all":     {good, 5, 0, false},
		"end":     {append(bytes.Clone(good), 0x88, 0), 5, 0, true},
		"missing": {append(bytes.Clone(good), text(`{"sequence":7}`)...), 6, 1, false},
		"twice":   {append(bytes.Clone(good), text(`{"sequence":5}`)...), 6, 1, false},
	} {
		for step := 1; step <= len(c.in); step++ {
			crowd := fanCrier{fanCrowd: fanCrowd{Burst: 2, Bursts: 2}, ears: make([]*ear, 1),
				done: make([]int, 2), heard: fanHeard{Last: make([]int64, 2)}}
			e := &ear{fd: -1}
			for from := 0; from < len(c.in); from += step {
				crowd.take(e, c.in[from:min(from+step, len(c.in))], int64(from+1))
			}
			h := crowd.heard
			if h.Messages != c.count || h.Gaps != c.gaps || e.over != c.over || crowd.whole != 1 ||
				h.Last[0] == 0 || h.Last[1] < h.Last[0] {
				t.Fatalf("%s in steps of %d: %+v, %+v", name, step, h, e)
			}
		}
	}
}

// TestFanWrong: a turn in which something was missing or late is worth nothing.
func TestFanWrong(t *testing.T) {
	good := fanTurn{FanCase: FanCase{Subscribers: 3, Burst: 2},
		spec:  fanSpec{Warm: 1, Bursts: 4, Interval: time.Second},
		ran:   fanRun{Start: 1, Took: 3 * time.Second},
		heard: fanHeard{Messages: 30, Last: []int64{1, 2, 1e9, 2e9, 3e9}}, cpu: 24 * time.Microsecond}
	var side FanSide
	if good.add(&side); good.wrong() != "" || side.CPUMicros[0] != 1 || int(side.Messages[0]) != 8 {
		t.Errorf("%q, %+v", good.wrong(), side)
	}
	for want, spoil := range map[string]func(*fanTurn){
		"29 of 30":           func(t *fanTurn) { t.heard.Messages-- },
		"1 gaps":             func(t *fanTurn) { t.heard.Gaps++ },
		"1 sockets cut":      func(t *fanTurn) { t.heard.Cuts++ },
		"published within 5": func(t *fanTurn) { t.ran.Took += 2 * time.Second },
		"read within 5":      func(t *fanTurn) { t.heard.Last[4] += 2e9 },
	} {
		bad := good
		bad.heard.Last = append([]int64(nil), good.heard.Last...)
		if spoil(&bad); !strings.Contains(bad.wrong(), want) {
			t.Errorf("%q, want %q", bad.wrong(), want)
		}
	}
}

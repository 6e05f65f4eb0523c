package fanout

import (
	"strings"
	"testing"
	"time"

	"clobd/bench/crowd"
)

// TestCases: ParseCase reads what String prints, and ParseCase and validate refuse bad cases.
func TestCases(t *testing.T) {
	for _, c := range GoalCases() {
		if got, err := ParseCase(c.String()); err != nil || got != c {
			t.Errorf("%s is read as %v, %v", c, got, err)
		}
	}
	for _, text := range []string{"", "1x2", "1@2", "x1@2", "1x1@2x", "ax1@2"} {
		if c, err := ParseCase(text); err == nil {
			t.Errorf("%q is read as %v", text, c)
		}
	}
	f := Plan{Rounds: 1, Duration: time.Second, Cases: []Case{{0, 1, 1}, {1, 201, 1}, {1, 1, 0}}}
	if err := f.validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three problems: %v", err)
	}
}

// TestTexts: all sides send the node's text, with the number of the message in its place.
func TestTexts(t *testing.T) {
	f := newTexts([][]byte{[]byte(`{"a":"\"sequence\":3","sequence":41,"seq":1}`), []byte(`{"sequence":9}`),
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

// TestWrong: wrong reports a turn in which messages were missing or late.
func TestWrong(t *testing.T) {
	good := turn{Case: Case{Subscribers: 3, Burst: 2},
		spec:  spec{Warm: 1, Bursts: 4, Interval: time.Second},
		ran:   published{Start: 1, Took: 3 * time.Second},
		heard: crowd.Heard{Messages: 30, Last: []int64{1, 2, 1e9, 2e9, 3e9}}, cpu: 24 * time.Microsecond}
	var side SideResult
	if good.add(&side); good.wrong() != "" || side.CPUMicros[0] != 1 || int(side.Messages[0]) != 8 {
		t.Errorf("%q, %+v", good.wrong(), side)
	}
	for want, spoil := range map[string]func(*turn){
		"29 of 30":           func(t *turn) { t.heard.Messages-- },
		"1 gaps":             func(t *turn) { t.heard.Gaps++ },
		"1 sockets cut":      func(t *turn) { t.heard.Cuts++ },
		"published within 5": func(t *turn) { t.ran.Took += 2 * time.Second },
		"read within 5":      func(t *turn) { t.heard.Last[4] += 2e9 },
	} {
		bad := good
		bad.heard.Last = append([]int64(nil), good.heard.Last...)
		if spoil(&bad); !strings.Contains(bad.wrong(), want) {
			t.Errorf("%q, want %q", bad.wrong(), want)
		}
	}
}

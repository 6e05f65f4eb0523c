package bench

import (
	"context"
	"math"
	"testing"
	"time"
)

// metricsText is a node's metrics, as far as an observer reads them.
func metricsText(more string, sync, slow string) string {
	return `# HELP clobd_stage_seconds Time in a stage.
clobd_stage_seconds_bucket{stage="sync",le="0.001"} ` + sync + `
clobd_stage_seconds_bucket{stage="sync",le="0.131072"} ` + sync + `
clobd_stage_seconds_bucket{stage="sync",le="0.262144"} ` + slow + `
clobd_stage_seconds_bucket{stage="sync",le="+Inf"} ` + slow + `
clobd_stage_seconds_sum{stage="sync"} 1.5
clobd_stage_seconds_count{stage="sync"} ` + slow + `
clobd_stage_seconds_bucket{stage="parse",le="0.001"} 4
clobd_stage_seconds_bucket{stage="parse",le="+Inf"} 4
clobd_stage_seconds_sum{stage="parse"} 0.002
` + more
}

func TestMarks(t *testing.T) {
	start := time.Now()
	at := func(after time.Duration, text string) *scrape {
		s := parseScrape(text)
		s.asked, s.at = start.Add(after), start.Add(after)
		return &s
	}
	calm := at(0, metricsText("clobd_sequencer_ring_depth 3\nclobd_sequencer_commands_total 9\n",
		"10", "10"))
	for _, c := range []struct {
		after *scrape
		want  []Mark
	}{
		{at(time.Second, metricsText("clobd_sequencer_commands_total 10\n", "20", "20")), nil},
		{at(time.Second, metricsText("clobd_sequencer_commands_total 10\n", "20", "21")),
			[]Mark{{0, "stall of the disk", 0.131072}}},
		{at(time.Second, metricsText("clobd_journal_oldest_unsynced_seconds 0.75\n", "20", "20")),
			[]Mark{{0.25, "stall of the disk", 0.75}}},
		{at(time.Second, metricsText("clobd_sequencer_ring_depth 3\nclobd_sequencer_commands_total 9\n",
			"10", "10")), []Mark{{0, "stall of the matcher", 1}}},
		{at(time.Second, metricsText("clobd_checkpoint_writes_total 1\nclobd_checkpoint_seconds 0.25\n"+
			"clobd_checkpoint_age_seconds 0.5\nclobd_sequencer_commands_total 10\n", "10", "10")),
			[]Mark{{0.25, "checkpoint", 0.25}}},
	} {
		got := marksBetween(calm, c.after, start)
		if len(got) != len(c.want) {
			t.Errorf("marks %+v, want %+v", got, c.want)
			continue
		}
		for i, m := range got {
			if m.What != c.want[i].What || math.Abs(m.Seconds-c.want[i].Seconds) > 1e-6 ||
				math.Abs(m.Lasted-c.want[i].Lasted) > 1e-6 {
				t.Errorf("mark %+v, want %+v", m, c.want[i])
			}
		}
	}
	joined := joinMarks([]Mark{{2, "b", 1}, {0, "a", 0.5}, {0.52, "a", 0.5}, {4, "a", 1}})
	if len(joined) != 3 || joined[0] != (Mark{0, "a", 1.02}) || joined[2] != (Mark{4, "a", 1}) {
		t.Errorf("joined: %+v", joined)
	}
}

func TestStages(t *testing.T) {
	before := parseScrape(metricsText("", "10", "10"))
	after := parseScrape(metricsText("", "110", "110"))
	list := stagesBetween(&before, &after)
	if len(list) != 1 || list[0].Name != "sync" || list[0].Count != 100 ||
		math.Abs(list[0].P50-500) > 1e-6 || math.Abs(list[0].P99-990) > 1e-6 {
		t.Errorf("between: %+v", list)
	}
	whole := stagesBetween(&scrape{}, &after)
	if len(whole) != 2 || whole[0].Name != "parse" || math.Abs(whole[0].Mean-500) > 1e-6 {
		t.Errorf("since the start: %+v", whole)
	}
	if q := after.stages["sync"].quantile(1); q != 0.001 {
		t.Errorf("the longest is interpolated to %g", q)
	}
}

// TestTimelineOfTurns: the report's clock stands still between two turns, and marks that were seen
// on the wall's clock stand where the turns put them.
func TestTimelineOfTurns(t *testing.T) {
	start := time.Now()
	after := func(seconds float64) time.Time {
		return start.Add(time.Duration(seconds * float64(time.Second)))
	}
	r := &Report{Seconds: 5, windows: []stretch{{after(1), 0, 2}, {after(10), 2, 3}}}
	for wall, want := range map[float64]float64{0: 0, 1: 0, 2.5: 1.5, 3: 2, 5: 2, 10: 2, 12: 4, 13: 5,
		20: 5} {
		if got := r.onTimeline(after(wall)); math.Abs(got-want) > 1e-6 {
			t.Errorf("%v s after the start: %v, want %v", wall, got, want)
		}
	}
	ended := make(chan struct{})
	close(ended)
	over, stop := context.WithCancel(t.Context())
	stop()
	o := &observer{desk: desk{addr: "127.0.0.1:1"}, from: start, stop: func() {}, ended: ended,
		marks: []Mark{{1.5, "checkpoint", 0.5}, {2.5, "stall of the disk", 8.5}}}
	o.end(over, r)
	want := []Mark{{0.5, "checkpoint", 0.5}, {1.5, "stall of the disk", 1.5}}
	for i := range r.Marks {
		if len(r.Marks) != len(want) || r.Marks[i].What != want[i].What ||
			math.Abs(r.Marks[i].Seconds-want[i].Seconds) > 1e-6 ||
			math.Abs(r.Marks[i].Lasted-want[i].Lasted) > 1e-6 {
			t.Fatalf("marks %+v, want %+v", r.Marks, want)
		}
	}
	if len(r.Marks) == 0 {
		t.Error("the marks are lost")
	}
}

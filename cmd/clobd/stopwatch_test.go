package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestStages: an order that was placed is in the count of each stage of its path.
func TestStages(t *testing.T) {
	w := newWorldOf(t, 1, 1)
	counts := func() map[string]float64 {
		_, text := get(t, w.node.admin, "/metrics")
		all := map[string]float64{}
		for line := range strings.Lines(text) {
			var n float64
			rest, found := strings.CutPrefix(line, `clobd_stage_seconds_count{stage="`)
			name, value, _ := strings.Cut(rest, `"} `)
			if _, err := fmt.Sscan(value, &n); found && err == nil {
				all[name] = n
			}
		}
		return all
	}
	before := counts()
	if len(before) != 9 || before["parse"] != 0 || before["verify"] != 0 {
		t.Errorf("before the first order: %v", before)
	}
	x := w.traders[0]
	if status, text, err := x.post(x.draw(t)); err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	waitFor(t, "the committer", func() bool { return counts()["publish"] > before["publish"] })
	after := counts()
	for _, stage := range []string{"parse", "authenticate", "verify", "wait", "match", "append", "sync",
		"publish", "answer"} {
		if after[stage] <= before[stage] {
			t.Errorf("%s: %v before the order, %v after", stage, before[stage], after[stage])
		}
	}
	w.node.measures(t, "clobd_sequencer_orders_total 1")
	w.node.measures(t, "clobd_sequencer_wallets 1")
	w.node.measures(t, "clobd_sequencer_books 1")
	w.node.measures(t, `clobd_sequencer_rejects_total{code="balance"} 0`)
	w.node.measures(t, fmt.Sprintf(`clobd_build_info{go="%s",version="dev"} 1`, runtime.Version()))
	w.node.stop(t)
}

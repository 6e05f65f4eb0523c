package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// told are the reasons and warnings of /readyz, by the metric that shows each.
func (p *process) told(t *testing.T) (status int, reasons, warnings map[string]symptom) {
	t.Helper()
	status, text := get(t, p.admin, "/readyz")
	var body struct {
		Ready             bool
		Why               string
		Reasons, Warnings []symptom
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatalf("readyz: %v: %s", err, text)
	}
	reasons, warnings = map[string]symptom{}, map[string]symptom{}
	for list, into := range map[*[]symptom]map[string]symptom{&body.Reasons: reasons,
		&body.Warnings: warnings} {
		if *list == nil {
			t.Errorf("a list is null: %s", text)
		}
		for _, s := range *list {
			if into[s.Metric] = s; s.What == "" || s.Since.IsZero() || time.Since(s.Since) < -time.Second {
				t.Errorf("readyz: %+v", s)
			}
		}
	}
	if ready := status == http.StatusOK; body.Ready != ready || (len(reasons) == 0) != ready ||
		(body.Why == "") != ready || !ready && body.Why != body.Reasons[0].What {
		t.Errorf("readyz: %d %s", status, text)
	}
	return status, reasons, warnings
}

// warns waits until /readyz warns of a metric with words, and stays 200.
func (p *process) warns(t *testing.T, metric, words string) {
	t.Helper()
	waitFor(t, "a warning of "+metric, func() bool {
		status, _, warnings := p.told(t)
		if status != http.StatusOK {
			t.Errorf("readyz: %d with a warning", status)
		}
		return strings.Contains(warnings[metric].What, words) && p.shows(t, metric)
	})
}

// shows reports whether the operator's page is told of a symptom.
func (p *process) shows(t *testing.T, metric string) bool {
	t.Helper()
	_, text := get(t, p.admin, "/page.json")
	var sheet struct {
		Readyz struct{ Reasons, Warnings []symptom }
	}
	if err := json.Unmarshal([]byte(text), &sheet); err != nil {
		t.Fatalf("page.json: %v: %s", err, text)
	}
	return slices.ContainsFunc(append(sheet.Readyz.Reasons, sheet.Readyz.Warnings...),
		func(s symptom) bool { return s.Metric == metric })
}

// attack asks without a key, again and again until the end.
func (p *process) attack(t *testing.T, end chan struct{}) {
	for {
		answer, err := http.Get("http://" + p.listen + "/data/orders")
		if err != nil {
			t.Error(err)
			return
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			t.Error(answer.Status)
			return
		}
		select {
		case <-end:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestSymptoms: a node that is well has no symptom. Requests without a key, again and again, are a
// warning that goes when they end, and leave the node ready.
func TestSymptoms(t *testing.T) {
	setting.Full(t, "it waits for an attack to be over")
	t.Parallel()
	p := newProcess(t, buildNode(t), t.TempDir(), "--limits", "off", "--disk-reserve", "0")
	p.start(t)
	status, reasons, warnings := p.told(t)
	if status != http.StatusOK || len(reasons)+len(warnings) > 0 {
		t.Errorf("a node that is well: %d %v %v", status, reasons, warnings)
	}
	for _, line := range []string{"clobd_ready 1", "clobd_sequencer_ring_slots 4096",
		"clobd_sequencer_stalled_seconds 0"} {
		p.measures(t, line)
	}
	end, attackers := make(chan struct{}), sync.WaitGroup{}
	for range 4 { // together far above attackRate, also on a slow machine
		attackers.Go(func() { p.attack(t, end) })
	}
	over := sync.OnceFunc(func() {
		close(end)
		attackers.Wait()
	})
	defer over() // nobody may use t when the test has failed and is over
	p.warns(t, "clobd_http_requests_total", "the door is attacked")
	over()
	waitFor(t, "the end of the attack", func() bool {
		_, _, warnings := p.told(t)
		return len(warnings) == 0
	})
	p.stop(t)
}

// TestNotReady: before it is ready a node says that it starts, and afterwards that it stops; since
// is when that was first seen.
func TestNotReady(t *testing.T) {
	n := &node{}
	w := &watchman{node: n}
	begun := time.Now()
	for i, now := range []time.Time{begun, begun.Add(time.Second), begun.Add(time.Minute)} {
		found := w.look(now)
		if len(found.reasons) != 1 || len(found.warnings) != 0 ||
			!strings.HasPrefix(found.reasons[0].What, "starting") || !found.reasons[0].Since.Equal(begun) {
			t.Errorf("look %d: %+v", i, found)
		}
	}
	w.served = true
	if found := w.look(begun.Add(time.Hour)); !strings.HasPrefix(found.reasons[0].What, "stopping") {
		t.Errorf("%+v", found)
	}
}

// TestPace: a rate is what came in the last ten seconds, however often somebody looks.
func TestPace(t *testing.T) {
	var p pace
	begun, count := time.Now(), 1000.0
	look := func(at time.Duration, add, want float64) {
		t.Helper()
		count += add
		if got := p.rate(begun.Add(at), func() float64 { return count }); got != want {
			t.Errorf("after %v: %v, want %v", at, got, want)
		}
	}
	look(0, 0, 0)
	look(500*time.Millisecond, 100, 0) // not read yet
	look(time.Second, 0, 10)
	for s := 2; s <= 11; s++ {
		look(time.Duration(s)*time.Second, 0, map[bool]float64{true: 10}[s < 11])
	}
	look(20*time.Second, 50, 5)
	look(50*time.Second, 0, 0)
	if len(p.samples) > 12 {
		t.Errorf("%d samples", len(p.samples))
	}
}

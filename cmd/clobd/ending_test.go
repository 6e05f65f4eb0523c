package main

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
	"clobd/scripts/setting"
)

// endedFolder was written by a version that did not keep when markets ended. Its operator closed
// market 1, then market 2, and resolved that; market 3 is open. It is never made anew.
const endedFolder = "testdata/v1"

// life is what the catalog says of a market's end.
type life struct {
	Closed                               bool
	ClosedTime, UpdatedAt, OutcomePrices string
}

// livesOf are those of the markets 1 to 3.
func livesOf(t *testing.T, p *process) (all [3]life) {
	t.Helper()
	for i, path := range []string{"/markets/1", "/markets/2", "/markets/3"} {
		status, body := p.get(t, path)
		if err := json.Unmarshal([]byte(body), &all[i]); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
	}
	return all
}

// TestEndsOverStarts: when markets ended is the same after a start, with a checkpoint and after a
// kill; of a folder that does not say it, the last change counts.
func TestEndsOverStarts(t *testing.T) {
	setting.Full(t, "several starts")
	t.Parallel()
	p := newProcess(t, buildNode(t), t.TempDir())
	if err := os.CopyFS(p.data, os.DirFS(endedFolder)); err != nil {
		t.Fatal(err)
	}
	const old = "2020-01-02T03:04:05Z"
	p.start(t)
	want := [3]life{
		{true, "2026-11-23 16:30:11+00", "2026-11-23T16:30:11.127Z", `["0", "0"]`},
		{true, "2026-11-23 16:30:14+00", "2026-11-23T16:30:14.160Z", `["1", "0"]`},
		{false, "", old, `["0", "0"]`},
	}
	if got := livesOf(t, p); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	before := time.Now().Truncate(time.Second)
	o := client.Operator{Admin: p.admin, Data: p.data}
	if _, err := o.Post("/admin/state", map[string]string{"market": condition(3), "state": "close"},
		time.Minute); err != nil {
		t.Fatal(err)
	}
	p.untilSays(t, "/markets/3", `"closed":true`)
	want = livesOf(t, p)
	closed, err := time.Parse("2006-01-02 15:04:05Z07", want[2].ClosedTime)
	if err != nil || closed.Before(before) || closed.After(time.Now()) || want[2].UpdatedAt == old {
		t.Fatalf("%+v, closed after %v: %v", want[2], before, err)
	}
	for _, end := range []func(*testing.T){p.kill, p.stop, p.stop} {
		end(t)
		p.start(t)
		if got := livesOf(t, p); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	p.stop(t)
}

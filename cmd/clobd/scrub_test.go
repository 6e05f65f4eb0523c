package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/scripts/setting"
)

// TestScrubReadsEverything: damage of the mark, the index and the catalog is found in a folder, and
// that of the catalog and of the mark beside a node that runs. Their rate is that of the journal.
func TestScrubReadsEverything(t *testing.T) {
	setting.Full(t, "TestScrubKept stays")
	t.Parallel()
	w := newWorldOf(t, 4, 3)
	n := w.node
	w.load(t, func() { n.stop(t) })
	first := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join(n.data, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v %v", pattern, files, err)
		}
		return files[0]
	}
	flip := func(path string, at int) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err == nil {
			b[at%len(b)] ^= 3
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ask := func(code int, words ...string) {
		t.Helper()
		n.expect(t, code, []string{"scrub", "--data", n.data, "--admin", n.admin}, words...)
	}
	ask(cli.Done, "the mark, the index and the catalog")
	for pattern, word := range map[string]string{"mark": "two slots", "index/*.sst": "index ",
		"catalog/records-*": "catalog "} {
		path, at := first(pattern), 300
		if pattern == "mark" {
			at = 40
		}
		flip(path, at)
		ask(cli.Failed, "finding: ", word, "1 parts are damaged")
		flip(path, at)
	}
	ask(cli.Done, "scrubbed: ")
	n.start(t)
	ask(cli.Done, "scrubbed: ")
	flip(first("catalog/records-*"), 300)
	ask(cli.Failed, "finding: ", "catalog ")
	flip(first("catalog/records-*"), 300)
	gone := filepath.Join(t.TempDir(), "mark")
	if err := os.Rename(first("mark"), gone); err != nil {
		t.Fatal(err)
	}
	ask(cli.Failed, "finding: ", "is gone")
	if err := os.Rename(gone, filepath.Join(n.data, "mark")); err != nil {
		t.Fatal(err)
	}
	n.stop(t)
}

// TestScrubTells: damage of an old part of the journal stops no trading. A scrub of a running node,
// or of a folder, tells it, and so do log, metrics and readyz; no backup is made of it.
func TestScrubTells(t *testing.T) {
	setting.Full(t, "a node reads its whole journal again and again")
	t.Parallel()
	w := newWorldOf(t, 4, 3, "--checkpoint-commands", "200")
	n := w.node
	for range 3 {
		w.loadMuch(t, func() { n.leave(t) })
		n.start(t)
	}
	n.expect(t, cli.Done, []string{"scrub", "--data", n.data, "--admin", n.admin}, "scrubbed: ")
	n.leave(t)
	n.expect(t, cli.Done, []string{"scrub", "--data", n.data}, "scrubbed: ")
	n.start(t)
	n.stop(t) // a kill may leave tables that the database does not count, or whose log is still there
	tables, err := filepath.Glob(filepath.Join(n.data, "journal", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	largest, b := "", []byte(nil) // in its middle are frames that no start reads
	for _, name := range tables {
		if text, err := os.ReadFile(name); err == nil && len(text) > len(b) {
			largest, b = name, text
		}
	}
	b[len(b)/2] ^= 3
	err = os.WriteFile(largest, b, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	n.expect(t, cli.Failed, []string{"scrub", "--data", n.data}, "finding: ", "hint: clobd verify")
	n.start(t)
	if text := n.log.String(); strings.Contains(text, "old data is damaged") {
		t.Errorf("the start has found it: %s", text)
	}
	n.expect(t, cli.Failed, []string{"scrub", "--data", n.data, "--admin", n.admin}, "finding: ")
	status, ready := get(t, n.admin, "/readyz")
	if status != http.StatusOK || !strings.Contains(ready, `"damaged":`) {
		t.Errorf("readyz: %d %s", status, ready)
	}
	n.warns(t, "clobd_scrub_damaged", "parts of old data are damaged")
	_, metrics := get(t, n.admin, "/metrics")
	if !strings.Contains(metrics, "clobd_scrub_damaged ") ||
		strings.Contains(metrics, "clobd_scrub_damaged 0\n") ||
		strings.Contains(metrics, "clobd_scrub_last_timestamp_seconds 0\n") {
		t.Error("the metrics say nothing of it")
	}
	if !strings.Contains(n.log.String(), "old data is damaged") {
		t.Error("the log says nothing of it")
	}
	to := filepath.Join(t.TempDir(), "backup")
	n.expect(t, cli.Failed, []string{"backup", "--data", n.data, "--admin", n.admin, "--to", to},
		"the copy is damaged")
	if exists(to, "") || exists(to+partSuffix, "") {
		t.Error("a damaged copy is there")
	}
	w.load(t, func() { n.stop(t) })
	n.start(t) // and tells it before it has scrubbed
	n.warns(t, "clobd_scrub_damaged", "parts of old data are damaged")
	n.stop(t)
}

// scrubbed is when the last scrub ended and since when nobody has read the old data, as the metrics
// have it, in unix seconds.
func (p *process) scrubbed(t *testing.T) (last, since float64) {
	t.Helper()
	_, text := get(t, p.admin, "/metrics")
	for name, into := range map[string]*float64{"last": &last, "unread_since": &since} {
		_, rest, _ := strings.Cut(text, "\nclobd_scrub_"+name+"_timestamp_seconds ")
		if _, err := fmt.Sscan(rest, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return last, since
}

// resumes starts a node, whose last scrub must be what it was, or of which nobody may know.
func (p *process) resumes(t *testing.T, known bool, last, since float64) (end, unread float64) {
	t.Helper()
	now := float64(time.Now().Unix())
	p.start(t)
	end, unread = p.scrubbed(t)
	if known && (end != last || unread != since) || !known && (end != 0 || unread < now) {
		t.Errorf("after a start: last %f since %f, was %f %f", end, unread, last, since)
	}
	return end, unread
}

// TestScrubKept: a start knows of the last scrub, and since when the folder waits for its first
// one. Copies were not scrubbed.
func TestScrubKept(t *testing.T) {
	t.Parallel()
	n := newProcess(t, buildNode(t), t.TempDir())
	begun := float64(time.Now().Unix())
	last, since := n.resumes(t, false, 0, 0)
	n.kill(t)
	n.resumes(t, true, last, since)
	n.expect(t, cli.Done, []string{"scrub", "--data", n.data, "--admin", n.admin}, "scrubbed: ")
	if last, since = n.scrubbed(t); last < begun || last != since {
		t.Errorf("scrubbed: last %f since %f", last, since)
	}
	n.kill(t)
	n.resumes(t, true, last, since)
	if _, ready := get(t, n.admin, "/readyz"); !strings.Contains(ready, `"scrub":{"began":`) {
		t.Errorf("readyz: %s", ready)
	}
	folder := t.TempDir()
	backup, restored := filepath.Join(folder, "backup"), filepath.Join(folder, "restored")
	n.expect(t, cli.Done, []string{"backup", "--data", n.data, "--admin", n.admin, "--to", backup})
	n.stop(t)
	n.expect(t, cli.Done, []string{"verify", "--data", n.data}, "all is well")
	n.expect(t, cli.Done, []string{"inspect", "--data", n.data})
	n.expect(t, cli.Done, []string{"restore", "--from", n.data, "--data", restored}, "restored to ")
	for _, copied := range []string{backup, restored} {
		if exists(copied, scrubMemoName) || !exists(n.data, scrubMemoName) {
			t.Errorf("%s was scrubbed, or the node's folder was not", copied)
		}
	}
}

// TestScrubMemo: a memo that is damaged or gone is no scrub, and hinders nobody. One of the future
// is of now.
func TestScrubMemo(t *testing.T) {
	setting.Full(t, "TestScrubKept stays")
	t.Parallel()
	n := newProcess(t, buildNode(t), t.TempDir())
	n.start(t)
	n.expect(t, cli.Done, []string{"scrub", "--data", n.data, "--admin", n.admin}, "scrubbed: ")
	n.stop(t)
	memo := filepath.Join(n.data, scrubMemoName)
	text, err := os.ReadFile(memo)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(memo, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	later := strings.Replace(string(text), `"unreadSince":"20`, `"unreadSince":"21`, 1)
	_, rest, _ := strings.Cut(later, "\n")
	other := strings.Replace(rest, `"journal":"`, `"journal":"f`, 1)
	for _, bad := range []string{"", "\n", later, string(text[:len(text)/2]),
		sumOf(other) + "\n" + other} {
		write(bad)
		n.resumes(t, false, 0, 0)
		n.stop(t)
		if log := n.log.String(); !strings.Contains(log, "nobody knows when the data folder was last") {
			t.Errorf("the log says nothing of %q: %s", bad, log)
		}
	}
	if err := os.Remove(memo); err != nil {
		t.Fatal(err)
	}
	n.resumes(t, false, 0, 0)
	n.stop(t)
	write(sumOf(rest) + "\n" + rest) // as a clock that was ahead left it
	now := float64(time.Now().Unix())
	n.start(t)
	last, since := n.scrubbed(t)
	if since < now || since > now+patience.Seconds() || last != since {
		t.Errorf("scrubbed in the future: last %f since %f, now %f", last, since, now)
	}
	n.kill(t)
	n.resumes(t, true, last, since)
	n.stop(t)
}

// TestScrubWait: the next scrub is due a period after the last one. An overdue one begins soon.
func TestScrubWait(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ ago, every, want time.Duration }{
		{time.Hour, 24 * time.Hour, 23 * time.Hour},
		{24*time.Hour - time.Minute, 24 * time.Hour, scrubSoon},
		{1000 * time.Hour, 24 * time.Hour, scrubSoon},
		{0, time.Second, time.Second},
		{time.Hour, time.Second, time.Second},
	} {
		var s scrubber
		s.memo.Store(&scrubMemo{Since: now.Add(-c.ago)})
		if got := s.wait(now, c.every); got != c.want {
			t.Errorf("%v after the last one, of each %v: %v, want %v", c.ago, c.every, got, c.want)
		}
	}
}

// TestShortBackup: a bit of the live log flips under a node that runs, which has its frames in
// memory. No backup that ends before them is made, and a scrub of the folder finds the loss.
func TestShortBackup(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 4, 3)
	n := w.node
	w.load(t, func() {})
	name := newest(t, n.data, "journal/*.log")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := len(bytes.TrimRight(b, "\x00")) / 2
	log, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		_, err = log.WriteAt([]byte{b[at] ^ 1}, int64(at))
	}
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "backup")
	n.expect(t, cli.Failed, []string{"backup", "--data", n.data, "--admin", n.admin, "--to", to})
	if exists(to, "") {
		t.Error("a short copy is there")
	}
	n.kill(t)
	n.expect(t, cli.Failed, []string{"scrub", "--data", n.data}, "acknowledged")
}

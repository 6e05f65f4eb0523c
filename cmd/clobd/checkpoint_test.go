package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
	"clobd/scripts/setting"
)

// packed is what a Save hands on.
func packed(t *testing.T, save func(func([]byte) error) error) (chunks [][]byte) {
	t.Helper()
	err := save(func(c []byte) error { chunks = append(chunks, bytes.Clone(c)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}

// restored opens a stopped node's journal and makes Exchange and Board of it: of the newest
// checkpoint, or of all frames.
func restored(
	t *testing.T, data string, all bool) (*journal.State, *view.Board, *journal.Restored) {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var s *journal.State
	var board *view.Board
	fresh := func() *journal.State { s, board = role.NewState(); return s }
	if all {
		fresh()
		s.Exchange = engine.NewExchange(s.Seed)
		head, err := j.Recover(s.Exchange, s.Each)
		if err != nil {
			t.Fatal(err)
		}
		return s, board, &journal.Restored{State: s, Head: head}
	}
	r, err := j.Restore(context.Background(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	return s, board, r
}

// sameAsReplay holds what a start makes of a data folder against what all its frames make: the
// Exchange, and everything that the Board and its Directory show.
func sameAsReplay(t *testing.T, data string, tokens []outcome) *journal.Restored {
	t.Helper()
	s, board, r := restored(t, data, false)
	full, shown, whole := restored(t, data, true)
	if r.Head != whole.Head || s.Exchange.Digest() != full.Exchange.Digest() ||
		board.Sequence() != shown.Sequence() {
		t.Errorf("from the checkpoint %+v, from all frames %+v", r.Head, whole.Head)
	}
	if !slices.EqualFunc(packed(t, s.Exchange.Save), packed(t, full.Exchange.Save), bytes.Equal) {
		t.Error("the Exchange from the checkpoint differs from the replayed one")
	}
	if !slices.EqualFunc(packed(t, board.Save), packed(t, shown.Save), bytes.Equal) {
		t.Error("the Board from the checkpoint differs from the replayed one")
	}
	markets := 0
	for no := engine.MarketNo(1); shown.Directory.Market(no) != nil; no++ {
		m := shown.Directory.Market(no)
		for o := range engine.Outcome(2) {
			was, _, _ := shown.Book(m.Tokens[o])
			is, at, known := board.Book(m.Tokens[o])
			if !known || at != o || *is.Market != *was.Market || is.Sequence != was.Sequence ||
				is.Time != was.Time || !slices.Equal(ladderOf(is, o), ladderOf(was, o)) {
				t.Errorf("market %d: %+v of %d, want %+v of %d", no, is.Market, is.Sequence,
					was.Market, was.Sequence)
			}
			lastIs, sideIs, tradedIs := is.Last(o)
			lastWas, sideWas, tradedWas := was.Last(o)
			if lastIs != lastWas || sideIs != sideWas || tradedIs != tradedWas {
				t.Errorf("market %d: last trade at %d, want %d", no, lastIs, lastWas)
			}
		}
		markets++
	}
	if markets != len(tokens)/2 {
		t.Errorf("%d markets of %d tokens", markets, len(tokens))
	}
	return r
}

// ladderOf are all levels of both sides.
func ladderOf(s *view.Snapshot, o engine.Outcome) (all [][2]int64) {
	for side := range engine.Side(2) {
		s.Levels(o, side, func(p engine.Price, size engine.Size) bool {
			all = append(all, [2]int64{int64(p), int64(size)})
			return true
		})
	}
	return all
}

// checkpoints are the names of the finished checkpoints.
func checkpoints(t *testing.T, data string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(data, "checkpoints", "*.checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestCheckpointOnline: a node that runs writes a checkpoint when it is asked to, and goes on; a
// start after a kill begins with it.
func TestCheckpointOnline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	n, first := w.node, uint64(0)
	args := []string{"checkpoint", "--data", n.data, "--admin", n.admin}
	w.load(t, func() {
		first = n.sequence(t)
		n.expect(t, cli.Done, args, "checkpoint ", "Sequence ", "digest ")
	})
	names := checkpoints(t, n.data)
	if len(names) != 1 {
		t.Fatalf("%d checkpoints", len(names))
	}
	n.kill(t)
	if r := sameAsReplay(t, n.data, w.tokens); r.From == nil ||
		uint64(r.From.Head.Sequence) < first {
		t.Fatalf("restored %+v, asked at %d", r, first)
	}
	n.start(t)
	if status, body := get(t, n.admin, "/admin/checkpoint"); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d %s", status, body)
	}
	n.expect(t, cli.Failed, []string{"checkpoint", "--data", n.data, "--admin", freeAddress(t)},
		"in use by", "reach the node")
}

// TestStopLeavesACheckpoint: an orderly stop leaves one of the journal's very end, the next start
// replays nothing, and shows what a replay of everything shows.
func TestStopLeavesACheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.load(t, func() { w.node.leave(t) })
	if n := len(checkpoints(t, w.node.data)); n != 1 {
		t.Fatalf("%d checkpoints", n)
	}
	if r := sameAsReplay(t, w.node.data, w.tokens); r.From == nil || r.Frames != 0 {
		t.Fatalf("restored %+v", r)
	}
	w.node.start(t)
	if !strings.Contains(w.node.log.String(), `"replayed":0,`) {
		t.Errorf("log:\n%s", w.node.log.String())
	}
	answer, err := http.Get("http://" + w.node.admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var told struct {
		Checkpoint struct {
			Sequence, Bytes uint64
			AgeSeconds      float64
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil ||
		told.Checkpoint.Sequence == 0 || told.Checkpoint.Bytes == 0 {
		t.Errorf("readyz: %+v, %v", told, err)
	}
	round := w.load(t, func() { w.node.kill(t) })
	w.node.start(t)
	all := map[string]float64{}
	verify(t, w.all(), all)
	w.books(t, all)
	w.resend(t, round)
	w.node.stop(t)
	sameAsReplay(t, w.node.data, w.tokens)
}

// TestKillBesideCheckpoints ends the node with SIGKILL while it writes one checkpoint after the
// other: whatever is left of them, the start finds what was acknowledged.
func TestKillBesideCheckpoints(t *testing.T) {
	t.Parallel()
	setting.Full(t, "TestKill stays")
	cycles := setting.Size(t, 4, 1)
	w := newWorldOf(t, 4, 3, "--checkpoint-commands", "10")
	begun := 0
	for cycle := 1; cycle <= cycles; cycle++ {
		round := w.load(t, func() {
			waitFor(t, "a checkpoint", func() bool { return len(checkpoints(t, w.node.data)) > 0 })
			w.node.kill(t)
		})
		if cycle%2 == 0 { // the newest one is gone, or damaged
			names := checkpoints(t, w.node.data)
			if len(names) > 0 {
				spoil(t, names[len(names)-1], cycle)
			}
		}
		w.node.start(t)
		verify(t, round, map[string]float64{})
		w.resend(t, round)
		if !strings.Contains(w.node.log.String(), `"checkpoint":0,`) {
			begun++
		}
		if t.Failed() {
			t.Fatalf("the node's log:\n%s", w.node.log.String())
		}
	}
	all := map[string]float64{}
	verify(t, w.all(), all)
	w.books(t, all)
	w.node.leave(t)
	sameAsReplay(t, w.node.data, w.tokens)
	if begun == 0 {
		t.Error("no start began with a checkpoint")
	}
	if n := len(checkpoints(t, w.node.data)); n > 2 {
		t.Errorf("%d checkpoints are kept", n)
	}
}

// spoil removes a file, or changes one bit in its middle.
func spoil(t *testing.T, file string, cycle int) {
	t.Helper()
	if cycle%4 == 0 {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLostEndIsRefused: a journal that ends before the high-water mark does not start: code 70, and
// what is lost.
func TestLostEndIsRefused(t *testing.T) {
	p := newProcess(t, buildNode(t), t.TempDir())
	p.start(t)
	p.stop(t)
	m, found, err := journal.ReadMark(nil, p.data)
	if err != nil || !found || m.Frame == 0 {
		t.Fatalf("mark %+v, %v", m, err)
	}
	ahead := m
	ahead.Frame, ahead.Sequence = m.Frame+2, m.Sequence+7
	if err := journal.WriteMark(nil, p.data, ahead); err != nil {
		t.Fatal(err)
	}
	code, text := refusedStart(t, p.binary, "--data", p.data)
	if code != 70 || !bytes.Contains([]byte(text), []byte("7 acknowledged commands are lost")) ||
		!bytes.Contains([]byte(text), []byte("--accept-loss")) {
		t.Fatalf("code %d: %s", code, text)
	}
	if err := journal.WriteMark(nil, p.data, m); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	p.stop(t)
}

package role

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/relay"
	"clobd/engine/view"
	"clobd/journal"
	"clobd/journal/raft"
)

// TestLostBeforeItBegan: a right to append can be over before this member has used it, and frames
// of another one be committed and applied here. That is no failure: the member follows again.
func TestLostBeforeItBegan(t *testing.T) {
	ctx, data := context.Background(), t.TempDir()
	j, err := journal.Open(journal.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	members := []papers.Fellow{{Name: "a", ID: 1, Address: "127.0.0.1:1"}}
	if err := Found(ctx, j, members); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 8)
	r, err := Recover(ctx, Options{Data: data, Metrics: prometheus.NewRegistry(),
		Log: slog.New(slog.DiscardHandler), Cluster: &Cluster{Name: "a", ID: 1, Known: members,
			Passport: &papers.Passport{Journal: papers.JournalID(j.ID)}},
		Failed: func(_ string, err error) { failed <- err },
		Torn:   func(_ string, _ uint64, cause any, _ []byte) { t.Error(cause) }})
	if err != nil {
		t.Fatal(err)
	}
	m, leads := r.Play.(*Together), make(chan *raft.Lead, 8)
	m.client = relay.NewClient(relay.Options{Shown: m.Board.Shown})
	m.peer, err = raft.NewPeer(raft.Options{ID: 1, Journal: m.Journal, Send: func(*raft.Message) {},
		Lead: func(l *raft.Lead) { leads <- l }})
	if err != nil {
		t.Fatal(err)
	}
	go m.peer.Run()
	m.shown = m.show(m.restored.Head.Frame)
	m.setSpare(m.keep(m.restored.State.Exchange, m.restored.Head))
	l := <-leads
	other, err := sequencer.New(engine.NewExchange(1), view.NewBoard(), l,
		sequencer.Options{Head: l.Head, Epoch: l.Term})
	if err != nil {
		t.Fatal(err)
	}
	go other.Run()
	started := engine.Command{Kind: engine.Started, Seen: engine.Sequence(l.Term),
		Expiry: engine.Time(time.Now().UnixMilli())}
	if _, err := other.Submit(&started); err != nil {
		t.Fatal(err)
	}
	never := func() bool { return false }
	next := l.Head.Frame + 1
	if !m.shown.reach(next, never) || !m.spare.reader.reach(next, never) {
		t.Fatal("the other's frame does not come")
	}
	m.peer.Close()
	m.lead(l)
	select {
	case err := <-failed:
		t.Errorf("taken for a failure: %v", err)
	default:
	}
	if m.spare.head.Frame != next || m.shown.last.Load() != next || m.Board.Sequence() != 1 {
		t.Errorf("spare at %d, shown %d, Sequence %d; frame %d is committed", m.spare.head.Frame,
			m.shown.last.Load(), m.Board.Sequence(), next)
	}
	m.shown.stop()
	m.spare.end()
	if err := m.Journal.Close(); err != nil {
		t.Error(err)
	}
}

// TestDifferences: what members are set to is compared by name, also what one of them does not
// know.
func TestDifferences(t *testing.T) {
	a := map[string]string{"--faucet": "10", "--limits": "on", "new": "1"}
	b := map[string]string{"--faucet": "0", "--limits": "on"}
	const want = `--faucet is "10" at a and "0" at b; new is "1" at a and "" at b`
	if got := differences("a", a, "b", b); got != want {
		t.Error(got)
	}
	if got := differences("a", a, "b", a); got != "" {
		t.Error(got)
	}
}

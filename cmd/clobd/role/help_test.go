package role

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"clobd/cmd/clobd/copies"
	"clobd/engine"
	"clobd/journal"
	"clobd/journal/raft"
)

// TestHelp: a member that heals is answered over its newest connection only.
func TestHelp(t *testing.T) {
	m := newJudge(t)
	m.options.Log, m.names = slog.New(slog.DiscardHandler), map[uint64]Node{}
	helps := func(id uint64) (asks net.Conn, ended chan struct{}) {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			m.supply(id, near)
		}()
		for is := false; !is; time.Sleep(time.Millisecond) {
			now, _ := m.helped.Load(id)
			is = now == near
		}
		return far, ended
	}
	_, first := helps(2)
	_, other := helps(3)
	asks, second := helps(2)
	<-first
	select {
	case <-other:
		t.Error("another member's connection ends")
	case <-second:
		t.Error("the newest connection ends")
	default:
	}
	asks.Close()
	<-second
}

// TestLent: no copy is made for a member that votes, whose vote the others may need, nor for one
// that is no member. One that gets its vote while it takes a copy takes the rest of it.
func TestLent(t *testing.T) {
	m, j := newJudge(t), giving(t, 7)
	m.options.Log, m.names = slog.New(slog.DiscardHandler), map[uint64]Node{}
	words, ballot, err := raft.Found(engine.Head{}, []raft.Founder{{ID: 1}, {ID: 2},
		{ID: 3, Learns: true}})
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(journal.Options{Dir: t.TempDir(), Log: m.options.Log})
	if err == nil {
		_, err = log.Recover(engine.NewExchange(0), nil)
	}
	if err == nil {
		_, err = journal.Enroll(log, words, ballot)
	}
	if err == nil {
		m.peer, err = raft.NewPeer(raft.Options{ID: 1, Journal: log, Send: func(*raft.Message) {},
			Log: m.options.Log})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	go m.peer.Run()
	t.Cleanup(m.peer.Close)
	m.giver = copies.Giver{Data: t.TempDir(), Log: m.options.Log, Full: func() bool { return false },
		Refuse: func() string { return "" }, Called: func(id uint64) string { return fmt.Sprint(id) },
		Make: func(dir string) error {
			_, err := j.Backup(dir, func(dir string) error { return os.Mkdir(dir, 0o700) })
			return err
		}}
	m.giver.Clear(false)
	t.Cleanup(func() { m.giver.Clear(true) })
	asks := func(id uint64, q *copies.Question) (*copies.Answer, error) {
		near, far := net.Pipe()
		defer far.Close()
		go m.supply(id, near)
		return askCopy(far, q, time.Minute)
	}
	for id := uint64(2); id <= 4; id++ {
		a, err := asks(id, &copies.Question{Begin: true})
		if (err == nil) != (id == 3) || errors.Is(err, errRefused) != (id != 3) {
			t.Errorf("member %d: %+v %v", id, a, err)
		}
	}
	m.giver.Clear(false)
	given := m.giver.Answer(2, &copies.Question{Begin: true}) // as if it had no vote yet
	if given.Manifest == nil {
		t.Fatal(given.Refused)
	}
	if a, err := asks(2, &copies.Question{ID: given.Manifest.ID}); err != nil || a.Size == 0 {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := asks(3, &copies.Question{ID: given.Manifest.ID}); !errors.Is(err, errRefused) {
		t.Errorf("the copy of another one: %v", err)
	}
}

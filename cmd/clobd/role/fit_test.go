package role

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
	"clobd/journal/raft"
)

// TestClocks: a member knows between which bounds the median of the voters' clocks is, and takes
// its own for wrong only if that is certain.
func TestClocks(t *testing.T) {
	const s = time.Second
	for name, x := range map[string]struct {
		others      []time.Duration // how far they are ahead, to 100 ms in either direction
		least, most time.Duration
	}{
		"alone":           {nil, 0, 0},
		"one, far":        {[]time.Duration{9 * s}, 0, 9*s + s/10},
		"all alike":       {[]time.Duration{0, 0}, -s / 10, s / 10},
		"this one is off": {[]time.Duration{-5 * s, -5 * s}, -5*s - s/10, -5*s + s/10},
		"another is off":  {[]time.Duration{9 * s, 0}, 0, s / 10},
		"two of five":     {[]time.Duration{9 * s, 9 * s, 0, 0}, 0, s / 10},
		"three of five":   {[]time.Duration{9 * s, 8 * s, 7 * s, 0}, 7*s - s/10, 7*s + s/10},
		"three of four":   {[]time.Duration{9 * s, 8 * s, 7 * s}, 7*s - s/10, 8*s + s/10},
	} {
		var c clocks
		here := time.Now()
		var voters []uint64
		for i, d := range x.others {
			voters = append(voters, uint64(i+2))
			c.note(uint64(i+2), here.Add(d), here.Add(-s/10), here.Add(s/10))
		}
		least, most := c.median(1, append(voters, 1))
		if least != x.least || most != x.most {
			t.Errorf("%s: %v to %v", name, least, most)
		}
		if only, _ := c.median(1, nil); only != 0 {
			t.Errorf("%s: who does not vote counts: %v", name, only)
		}
	}
}

// TestGreetedClock: a greeting tells how far the other's clock is off, to the time that it took.
// Who is off by more than a second says that it is not to lead.
func TestGreetedClock(t *testing.T) {
	ahead := 5 * time.Second
	member := func(id uint64, off time.Duration) fellow {
		m := newJudge(t)
		m.clocks, m.cluster = clocks{}, &Cluster{Name: "x", ID: id, Priority: int(id),
			Clock:    func() time.Time { return time.Now().Add(off) },
			Settings: func() map[string]string { return nil }}
		m.options = Options{Log: slog.New(slog.DiscardHandler), Full: func() bool { return false }}
		return m
	}
	a, b, c := member(1, 0), member(2, ahead), member(3, 0)
	greet := func(from, to fellow) welcome {
		t.Helper()
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		go to.answer(from.cluster.ID, far)
		began := time.Now()
		w, err := from.greet(near, to.cluster.ID, true)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		seen := from.clocks.seen[to.cluster.ID]
		off := to.cluster.now().Sub(from.cluster.now())
		if slack := time.Millisecond; seen.least > off+slack || seen.most < off-slack ||
			seen.most-seen.least > took+slack {
			t.Errorf("%v is taken for %v to %v in %v", off, seen.least, seen.most, took)
		}
		return w
	}
	if w := greet(a, b); w.Priority != 2 || w.Unfit {
		t.Errorf("%+v", w)
	}
	greet(a, c)
	greet(b, a)
	greet(b, c)
	voters := []uint64{1, 2, 3}
	for m, off := range map[*fellow]bool{&a: false, &b: true} {
		least, most := m.clocks.median(m.cluster.ID, voters)
		if is := least > mostOff || most < -mostOff; is != off {
			t.Errorf("member %d: the median is %v to %v ahead", m.cluster.ID, least, most)
		}
	}
	b.unled.Store(true)
	if w := greet(a, b); !w.Unfit || w.well() {
		t.Errorf("one that is not to lead says %+v", w)
	}
}

// TestBetter: one that is well leads; of several the highest priority, then the longest log.
func TestBetter(t *testing.T) {
	if better(contender{1, true, 2, 5}, contender{2, true, 1, 9}) <= 0 ||
		better(contender{1, true, 1, 5}, contender{2, true, 1, 9}) >= 0 ||
		better(contender{1, true, 1, 5}, contender{2, false, 2, 9}) <= 0 {
		t.Error("another one would lead")
	}
	m := contest{fellow{&Together{cluster: &Cluster{Priority: 1}}}}
	if m.best() != 0 {
		t.Error("somebody is better although nobody was asked")
	}
	m.surveyed.Store(&map[uint64]welcome{2: {Spare: true, Priority: 3}, 3: {Priority: 9},
		4: {Spare: true, Priority: 8, Unfit: true}, 5: {Spare: true, Full: true, Priority: 7},
		6: {Spare: true, Priority: 9}}) // a gateway
	m.seen.Store(&glimpse{Standing: raft.Standing{Voters: []uint64{1, 2, 3, 4, 5}}})
	if got := m.best(); got != 3 {
		t.Errorf("the best of those that are well has priority %d", got)
	}
}

// TestQuestions: those who ask while a question is on its way share the next one, and no answer is
// given to a question that was asked before the caller came.
func TestQuestions(t *testing.T) {
	var asked atomic.Int64
	begun, answer := make(chan struct{}, 100), make(chan error)
	q := &questions{ask: func(context.Context) (engine.Head, error) {
		n := asked.Add(1)
		begun <- struct{}{}
		return engine.Head{Sequence: engine.Sequence(n)}, <-answer
	}}
	ctx := context.Background()
	first := make(chan engine.Sequence, 1)
	go func() {
		seq, _ := q.confirm(ctx)
		first <- seq
	}()
	<-begun
	const crowd = 500
	var all sync.WaitGroup
	var waiting atomic.Int64
	for range crowd {
		all.Go(func() {
			waiting.Add(1)
			if seq, err := q.confirm(ctx); err != nil || seq != 2 {
				t.Errorf("the crowd was told %d %v", seq, err)
			}
		})
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := q.confirm(gone); err == nil {
		t.Error("who does not wait has an answer")
	}
	for waiting.Load() < crowd {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // all of them have asked
	answer <- nil
	if seq := <-first; seq != 1 {
		t.Errorf("the first was told %d", seq)
	}
	<-begun
	answer <- nil
	all.Wait()
	go func() { <-begun; answer <- errors.New("nobody leads") }()
	if _, err := q.confirm(ctx); err == nil || asked.Load() != 3 {
		t.Errorf("%d questions, %v", asked.Load(), err)
	}
}

// TestRefusalEnds: who was refused by a member says so as long as that one leads, and no longer.
func TestRefusalEnds(t *testing.T) {
	m := &Together{cluster: &Cluster{ID: 1}}
	m.heard.Store(time.Now().UnixNano())
	m.caught.Store(true)
	m.leader.Store(2)
	m.refusal.Store(&refusedError{by: 2, name: "b", why: "--faucet differs"})
	if why := m.Unready(); why != "b refuses this node: --faucet differs" {
		t.Errorf("refused: %q", why)
	}
	for _, leader := range []uint64{1, 3} {
		m.leader.Store(leader)
		if why := m.Unready(); why != "" {
			t.Errorf("%d leads: %q", leader, why)
		}
	}
}

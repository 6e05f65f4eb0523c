package main

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
	"clobd/scripts/setting"
)

// disturb kills a node and starts it again, holds one still, or cuts the network, perhaps long
// enough for the others to elect another leader: then all goes on as if nothing had happened.
func (f *fleet) disturb(t *testing.T) string {
	t.Helper()
	time.Sleep(time.Duration(5+f.rand.IntN(40)) * time.Millisecond)
	name := f.names[f.rand.IntN(len(f.names))]
	if s, err := standing(f.nodes["g"]); err == nil && s.Leader != "" && f.rand.IntN(2) == 0 {
		name = s.Leader
	}
	p, pause := f.nodes[name], time.Duration(20+f.rand.IntN(1500))*time.Millisecond
	if p.lost.Load() {
		return "lost" // agree tells
	}
	if name != "g" && f.rand.IntN(3) == 0 { // most of the shapes are about who leads
		f.cut(f.rand.IntN(shapes), name)
		time.Sleep(pause)
		f.mesh.heal(f.rand.IntN(2) == 0)
		return "cut"
	}
	if f.rand.IntN(2) == 0 {
		p.kill(t)
		time.Sleep(time.Duration(f.rand.IntN(300)) * time.Millisecond)
		p.start(t)
		return "kill"
	}
	f.still(t, p, pause)
	return "pause"
}

// still holds a node still for a time.
func (f *fleet) still(t *testing.T, p *process, pause time.Duration) {
	t.Helper()
	f.signal(t, p, syscall.SIGSTOP)
	time.Sleep(pause)
	f.signal(t, p, syscall.SIGCONT)
}

func (f *fleet) signal(t *testing.T, p *process, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// watch reads the book again and again until the others have ended, a number of times at most.
func (x *actor) watch(t *testing.T, r *recorder, client int, ended *atomic.Bool) {
	for noted := 0; noted < 60 && !ended.Load() && time.Now().Before(r.late) && !x.lost(); {
		begun := time.Since(r.start)
		if out, read := x.books(t, r); read {
			r.note(client, deed{kind: "book"}, begun, out)
			noted++
		}
		time.Sleep(time.Duration(x.rand.IntN(2000)) * time.Microsecond)
	}
}

// TestClusterHistories records what traders at all four nodes are told while nodes are killed, held
// still and cut off, leaders more often than others. They write and read at their own node, with
// consistency=linearizable, and so does somebody beside each who only reads. There must be one
// order of all requests, of whichever node, in which a plain book would have given these answers.
func TestClusterHistories(t *testing.T) {
	setting.Full(t, "TestHistories stays, and TestClusterCutOff")
	t.Parallel()
	histories := setting.Size(t, 12, 2)
	f, seed := makeFleet(t, histories)
	f.meshed(t)
	f.begin(t, 2, seed)
	for _, x := range f.world.traders {
		x.manner, x.carried = "?consistency=linearizable", true
	}
	operations, open, undecided, disturbed := 0, 0, 0, map[string]int{}
	most := patience + time.Duration(histories)*patience/5
	late := time.Now().Add(most)
	for n := range histories {
		if time.Now().After(late) {
			t.Fatalf("%d of %d histories in %v", n, histories, most)
		}
		f.agree(t)
		r := &recorder{market: f.tokens[2*n], late: late}
		for _, x := range f.world.traders {
			x.wake()
		}
		r.start = time.Now()
		var group, watchers sync.WaitGroup
		var ended atomic.Bool
		for i, name := range f.names {
			group.Go(func() { f.traders[name][0].act(t, r, i, 16) })
			watchers.Go(func() { f.traders[name][1].watch(t, r, len(f.names)+i, &ended) })
		}
		for range 1 + f.rand.IntN(2) {
			disturbed[f.disturb(t)]++
		}
		group.Wait()
		ended.Store(true)
		watchers.Wait()
		f.agree(t)
		kept, lost := r.settled(t)
		operations, open = operations+len(r.operations), open+lost
		if !judge(t, n, kept, late) {
			undecided++
		}
		if t.Failed() {
			t.Fatal(f.logs())
		}
	}
	t.Logf("figures: histories=%d operations=%d unanswered=%d kills=%d pauses=%d cuts=%d undecided=%d",
		histories, operations, open, disturbed["kill"], disturbed["pause"], disturbed["cut"], undecided)
	if operations < 20*histories {
		t.Errorf("%d operations in %d histories: they say little", operations, histories)
	}
	if undecided > histories/10 {
		t.Errorf("%d of %d histories were not decided in time", undecided, histories)
	}
}

// TestClusterCutOff starts a gateway beside a leader that is cut off from the other voters: it does
// not take what that one shows for all that there is. A read that asks for all of it is refused,
// one that does not is answered.
func TestClusterCutOff(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	leader, g := f.agree(t), f.nodes["g"]
	x := f.traders["g"][0]
	linearizable := func() (int, string) {
		t.Helper()
		status, text, err := x.exchange(http.MethodGet,
			"/book?token_id="+f.tokens[0].token+"&consistency=linearizable", nil)
		if err != nil {
			t.Fatal(err)
		}
		return status, string(text)
	}
	if status, text := linearizable(); status != http.StatusOK {
		t.Fatalf("with a leader: %d %s", status, text)
	}
	g.stop(t)
	var others []*process
	for _, name := range []string{"a", "b", "c"} {
		if name != leader {
			others = append(others, f.nodes[name])
			f.signal(t, f.nodes[name], syscall.SIGSTOP)
		}
	}
	g.launch(t)
	until(t, g, "silent", func(r readiness) bool {
		if r.Ready {
			t.Error("it is ready, although nobody could know whether it is up to date")
		}
		return t.Failed() || strings.HasPrefix(r.Why, "no leader heard for ")
	})
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // the door opens now
		status, text, err := x.exchange(http.MethodGet, "/book?token_id="+f.tokens[0].token, nil)
		if err == nil && status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a plain read: %d %s %v", status, text, err)
		}
	}
	if status, text := linearizable(); status != http.StatusServiceUnavailable ||
		!strings.Contains(text, `"no_leader"`) {
		t.Errorf("without a majority: %d %s", status, text)
	}
	for _, p := range others {
		f.signal(t, p, syscall.SIGCONT)
	}
	until(t, g, "ready", func(r readiness) bool { return r.Ready })
	f.agree(t)
	if status, text := linearizable(); status != http.StatusOK {
		t.Errorf("with a majority again: %d %s", status, text)
	}
}

// TestClusterPriority: of voters that are well the one with the highest priority leads, and one
// without any does not while another one can.
func TestClusterPriority(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	f.agree(t)
	for name, priority := range map[string]string{"a": "0", "b": "1", "c": "2"} {
		p := f.nodes[name]
		p.flags = append(p.flags, "--priority", priority)
		p.stop(t)
		p.start(t)
	}
	led := func(by string) {
		t.Helper()
		for end := time.Now().Add(patience); f.agree(t) != by; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s does not lead\n%s", by, f.logs())
			}
		}
	}
	led("c")
	f.nodes["c"].kill(t)
	led("b")
	f.nodes["c"].start(t)
	led("c")
	f.nodes["b"].kill(t) // a alone would not take over: writes do not stop to find that out
	c := f.nodes["c"]
	o := client.Operator{Admin: c.admin, Data: c.data}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err := o.Post("/admin/cluster/step-down", map[string]string{}, time.Minute)
		if err != nil && strings.Contains(err.Error(), "no other voter that may lead") {
			break
		}
		if err == nil || time.Now().After(end) {
			t.Fatalf("a step-down: %v\n%s", err, f.logs())
		}
	}
	if s, err := standing(c); err != nil || s.Leader != "c" {
		t.Errorf("%+v %v", s, err)
	}
	f.nodes["b"].start(t)
	f.check(t)
}

package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
	"clobd/cmd/clobd/role"
)

// readiness is what /readyz says.
type readiness struct {
	Ready bool    `json:"ready"`
	Why   string  `json:"why"`
	Age   float64 `json:"ageSeconds"`
}

// until asks a node again and again until what it says of itself is right.
func until(t *testing.T, p *process, what string, right func(readiness) bool) {
	t.Helper()
	var r readiness
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + p.admin + "/readyz")
		if err != nil {
			continue
		}
		r = readiness{}
		err = json.NewDecoder(answer.Body).Decode(&r)
		answer.Body.Close()
		if err == nil && right(r) {
			return
		}
	}
	t.Fatalf("not %s: %+v\n%s", what, r, p.log.String())
}

// expectEnd waits for the end of a node that was launched, and returns what it said.
func expectEnd(t *testing.T, p *process) string {
	t.Helper()
	select {
	case err := <-p.ended:
		p.cmd = nil
		if err == nil {
			t.Error("ended with 0")
		}
	case <-time.After(patience):
		t.Fatalf("does not end:\n%s", p.log.String())
	}
	return p.log.String()
}

// TestClusterMember is about one member and the others: one with other settings is refused by name,
// one whose address is taken ends at once, one that hears no leader says so.
func TestClusterMember(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	f.agree(t)
	g := f.nodes["g"]
	if err := g.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); !strings.Contains(g.log.String(),
		"certificate of this member read again"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(g.log.String())
		}
	}
	f.agree(t)
	g.stop(t)
	same := g.flags
	g.flags = append(slices.Clone(same), "--faucet", "5")
	g.launch(t)
	if said := expectEnd(t, g); !strings.Contains(said, "refuses this node: --faucet is \\\"5\\\" at g") &&
		!strings.Contains(said, `refuses this node: --faucet is "5" at g`) {
		t.Errorf("another faucet: %s", said)
	}
	g.flags = same
	i := slices.Index(same, "--cluster")
	_, address, _ := strings.Cut(same[i+1], "@")
	taken, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	g.launch(t)
	if said := expectEnd(t, g); !strings.Contains(said, "listen for members") ||
		strings.Contains(said, "a stop took longer") {
		t.Errorf("an address that is taken: %s", said)
	}
	taken.Close()
	g.start(t)
	f.agree(t)
	voters := []string{"a", "b", "c"}
	for _, name := range voters {
		f.nodes[name].kill(t)
	}
	until(t, g, "silent", func(r readiness) bool {
		return !r.Ready && strings.HasPrefix(r.Why, "no leader heard for ") && r.Age > unheard
	})
	if s, err := standing(g); err != nil || s.Age <= unheard {
		t.Errorf("/cluster: %+v %v", s, err)
	}
	g.stop(t)
	g.launch(t) // nobody to ask: it answers reads, and is not ready
	until(t, g, "silent again", func(r readiness) bool {
		return !r.Ready && strings.HasPrefix(r.Why, "no leader heard for ")
	})
	for _, name := range voters {
		f.nodes[name].launch(t)
	}
	until(t, g, "ready", func(r readiness) bool { return r.Ready && r.Age < unheard })
	f.agree(t)
}

// unheard is how many seconds without a leader make a member unready.
const unheard = 5

// TestClusterFull fills the disks of voters: an order that another node has taken does not enter,
// and a voter with room leads as soon as there is one.
func TestClusterFull(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	x := f.traders["g"][0]
	send := func() int {
		t.Helper()
		i := x.draw(t)
		x.sent = append(x.sent, i)
		status, text, err := x.post(i)
		if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s %v", status, text, err)
		}
		return status
	}
	if f.agree(t); send() != http.StatusOK {
		t.Fatal("refused with room")
	}
	roomy := map[string][]string{}
	for _, name := range []string{"a", "b", "c"} {
		p := f.nodes[name]
		roomy[name] = p.flags
		p.flags = append(slices.Clone(p.flags), "--disk-reserve", "1024TiB")
		p.stop(t)
	}
	for name := range roomy {
		f.nodes[name].launch(t)
	}
	for name := range roomy {
		f.nodes[name].await(t)
	}
	f.agree(t)
	before, err := standing(f.nodes["g"])
	if err != nil {
		t.Fatal(err)
	}
	if send() != http.StatusServiceUnavailable {
		t.Error("an order has entered, although no voter has room")
	}
	if after, err := standing(f.nodes["g"]); err != nil || after.Sequence != before.Sequence {
		t.Errorf("Sequence %d, then %d: %v", before.Sequence, after.Sequence, err)
	}
	c := f.nodes["c"]
	c.flags = roomy["c"]
	c.stop(t)
	c.start(t)
	for end := time.Now().Add(patience); f.agree(t) != "c"; {
		if time.Now().After(end) {
			t.Fatalf("the only voter with room does not lead\n%s", f.logs())
		}
	}
	if send() != http.StatusOK {
		t.Error("refused although the leader has room")
	}
	f.check(t)
}

// TestPeersWithoutCluster: what has no effect is not taken for one that has.
func TestPeersWithoutCluster(t *testing.T) {
	out, err := exec.Command(buildNode(t), "serve", "--data", t.TempDir(), "--peers",
		"b@127.0.0.1:1").CombinedOutput()
	exit, is := err.(*exec.ExitError)
	if !is || exit.ExitCode() != 2 || !strings.Contains(string(out), "--peers has no effect") {
		t.Errorf("%v %s", err, out)
	}
}

// TestClusterChange promotes the gateway and removes a voter under load: no order gets another
// answer than one that holds, the removed one is refused, and the promoted one counts for a
// majority and leads like any voter.
func TestClusterChange(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	leader := f.agree(t)
	out := "a"
	if leader == out {
		out = "b"
	}
	order := func(what, name string) error {
		p := f.nodes[leader]
		o := client.Operator{Admin: p.admin, Data: p.data}
		_, err := o.Post("/admin/cluster/"+what, map[string]string{"node": name}, time.Minute)
		return err
	}
	if err := order("promote", "nobody"); err == nil || !strings.Contains(err.Error(), "no member") {
		t.Errorf("a stranger's promotion: %v", err)
	}
	if err := order("remove", leader); err == nil || !strings.Contains(err.Error(), "leads") {
		t.Errorf("the leader's removal: %v", err)
	}
	b, pause := f.burst(t, out, func() {
		for _, step := range [][2]string{{"promote", "g"}, {"remove", out}} {
			if err := order(step[0], step[1]); err != nil {
				t.Errorf("%v: %v", step, err)
			}
		}
		f.nodes[out].kill(t)
	})
	t.Logf("%d acknowledged, %d refused, %d unknown, %v without writes", len(b.acks), b.refused,
		b.unknown, pause.Round(time.Millisecond))
	removed := f.nodes[out]
	delete(f.nodes, out)
	f.names = slices.DeleteFunc(f.names, func(name string) bool { return name == out })
	for _, x := range f.traders[out] { // what it took is looked up at another node
		x.Host = f.traders["g"][0].Host
	}
	delete(f.traders, out)
	waitFor(t, "g hears of its vote and of three members, after the leader", func() bool {
		s, err := standing(f.nodes["g"])
		return err == nil && len(s.Nodes) == 3 && s.Role != role.Gateway
	})
	// Of the three voters one goes: without g's vote there would be no majority.
	for range 2 {
		was := f.agree(t)
		if b, _ := f.burst(t, was, func() { f.nodes[was].kill(t) }); len(b.acks) == 0 {
			t.Error("nothing acknowledged")
		}
		f.agree(t)
		f.nodes[was].start(t)
	}
	f.agree(t)
	f.check(t)
	removed.launch(t)
	if said := expectEnd(t, removed); !strings.Contains(said, "removed from the cluster") {
		t.Error(said)
	}
	if t.Failed() {
		t.Log(f.logs())
	}
}

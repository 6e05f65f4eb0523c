package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
	"clobd/cmd/clobd/role"
	"clobd/ingress/auth"
	"clobd/scripts/setting"
)

// fleet is the nodes of a cluster, with traders at each.
type fleet struct {
	*world
	names    []string
	nodes    map[string]*process
	traders  map[string][]*actor
	pace     time.Duration // between two orders of a trader
	examined map[*actor]int
	mesh     *mesh // nil: the nodes reach each other without anything between them
}

// newFleet makes and starts a cluster of voters a, b and c and the gateway g, with three markets.
func newFleet(t *testing.T, perNode int) *fleet {
	t.Helper()
	return newFleetOf(t, perNode, 3)
}

// newFleetOf is newFleet with so many markets, and flags for all nodes.
func newFleetOf(t *testing.T, perNode, markets int, flags ...string) *fleet {
	t.Helper()
	f, seed := makeFleet(t, markets, flags...)
	f.begin(t, perNode, seed)
	return f
}

// makeFleet makes the folders of a cluster. Nothing runs yet.
func makeFleet(t *testing.T, markets int, flags ...string) (f *fleet, seed uint64) {
	t.Helper()
	seed = setting.Seed(t, uint64(time.Now().UnixNano()))
	folder, binary := t.TempDir(), buildNode(t)
	catalog := filepath.Join(folder, "catalog.jsonl")
	f = &fleet{names: []string{"a", "b", "c", "g"}, nodes: map[string]*process{},
		traders: map[string][]*actor{}, examined: map[*actor]int{},
		world: &world{rand: rand.New(rand.NewPCG(seed, 0)), tokens: writeCatalog(t, catalog, markets)}}
	init := []string{"cluster", "init"}
	for _, name := range f.names {
		address := freeAddress(t)
		p := newProcess(t, binary, filepath.Join(folder, name), append([]string{"--catalog", catalog,
			"--limits", "off", "--cluster", name + "@" + address}, flags...)...)
		f.nodes[name] = p
		switch name {
		case "a":
			init = append(init, "--data", p.data, "--cluster", name+"@"+address)
		case "g":
			init = append(init, "--gateways", name+"@"+address+"="+p.data)
		default:
			init = append(init, "--peers", name+"@"+address+"="+p.data)
		}
	}
	if out, err := exec.Command(binary, init...).CombinedOutput(); err != nil {
		t.Fatalf("cluster init: %v\n%s", err, out)
	}
	return f, seed
}

// begin starts the nodes of a fleet that was made, and gives each its traders.
func (f *fleet) begin(t *testing.T, perNode int, seed uint64) {
	t.Helper()
	for _, name := range f.names {
		f.nodes[name].launch(t)
	}
	for _, name := range f.names {
		f.nodes[name].await(t)
	}
	f.agree(t)
	n := uint64(0)
	for _, name := range f.names {
		for range perNode {
			n++
			x := newTrader(t, "http://"+f.nodes[name].listen, f.tokens, rand.New(rand.NewPCG(seed, n)))
			x.lost, x.door = f.nodes[name].lost.Load, name
			f.nodes["a"].fund(t, auth.Checksum(x.Signer.Address), fmt.Sprint(wealth))
			f.traders[name] = append(f.traders[name], x)
			f.world.traders = append(f.world.traders, x)
		}
	}
}

// standing is how a node sees the cluster.
func standing(p *process) (s role.Standing, err error) {
	answer, err := http.Get("http://" + p.admin + "/cluster")
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	return s, json.NewDecoder(answer.Body).Decode(&s)
}

// agree waits until all nodes that run know the same leader and show the same, and returns the
// leader's name.
func (f *fleet) agree(t *testing.T) string {
	t.Helper()
	var all []role.Standing
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		all = all[:0]
		for name, p := range f.nodes {
			if p.cmd == nil {
				continue
			} else if p.lost.Load() {
				t.Fatalf("%s has ended by itself\n%s", name, f.logs())
			}
			if s, err := standing(p); err == nil {
				all = append(all, s)
			}
		}
		same := len(all) > 0 && all[0].Leader != "" &&
			int(all[0].Sequence) > len(f.world.tokens)/2 // the markets are listed
		for i := range all {
			same = same && all[i].Leader == all[0].Leader && all[i].Term == all[0].Term &&
				all[i].Sequence == all[0].Sequence
		}
		if same {
			return all[0].Leader
		}
	}
	t.Fatalf("the nodes do not agree: %+v\n%s", all, f.logs())
	return ""
}

// check looks every order up at the node where it was sent, and compares the books of all nodes
// with all orders.
func (f *fleet) check(t *testing.T) {
	t.Helper()
	levels := map[string]float64{}
	verify(t, f.all(), levels)
	for _, name := range f.names {
		f.node = f.nodes[name]
		f.books(t, levels)
	}
}

func (f *fleet) logs() string {
	var b strings.Builder
	for _, name := range f.names {
		fmt.Fprintf(&b, "%s:\n%s\n", name, f.nodes[name].log.String())
	}
	return b.String()
}

// TestClusterKill kills the node that leads under load at all four nodes. No order that any of them
// acknowledged is lost, writes go on without it, and it catches up when it starts again.
func TestClusterKill(t *testing.T) {
	f := newFleet(t, 2)
	var l toll
	for range setting.Size(t, 5, 2) {
		leader := f.agree(t)
		b, pause := f.strike(t, leader, func(b *burst) {
			f.nodes[leader].kill(t)
			b.goesOn(t, time.Now(), leader)
		})
		l.note(t, leader+" killed", b, pause)
		f.agree(t)
		f.nodes[leader].start(t)
		f.examine(t)
	}
	f.examineAll(t)
	t.Logf("figures: kills=%d %s", len(l.pauses), l.figures(f))
	l.within(t, 800*time.Millisecond, 2500*time.Millisecond)
}

// TestClusterHandOver hands the lead over under load, on request and because the node that leads is
// stopped. Nobody who sends to another node is left without an answer, or is refused twice.
func TestClusterHandOver(t *testing.T) {
	f := newFleet(t, 2)
	var l, stopped toll
	for range setting.Size(t, 5, 2) {
		leader := f.agree(t)
		p := f.nodes[leader]
		b, pause := f.burst(t, "", func() {
			o := client.Operator{Admin: p.admin, Data: p.data}
			if _, err := o.Post("/admin/cluster/step-down", map[string]string{}, time.Minute); err != nil {
				t.Error(err)
			}
		})
		if l.note(t, leader+" stepped down", b, pause); f.agree(t) == leader {
			t.Errorf("%s leads after it has stepped down", leader)
		}
		f.examine(t)
		leader = f.agree(t)
		p = f.nodes[leader]
		b, pause = f.burst(t, leader, func() { p.stop(t) })
		stopped.note(t, leader+" stopped", b, pause)
		f.nodes[leader].start(t)
		f.examine(t)
	}
	f.examineAll(t)
	t.Logf("figures: asked=%d %s stopped_median_ms=%d stopped_max_ms=%d", len(l.pauses), l.figures(f),
		median(stopped.pauses).Milliseconds(), slices.Max(stopped.pauses).Milliseconds())
	if l.unknown+stopped.unknown > 0 {
		t.Errorf("%d and %d orders have an unknown outcome", l.unknown, stopped.unknown)
	}
	if asked() && l.failed+stopped.failed > 0 {
		t.Errorf("%d and %d orders were refused twice", l.failed, stopped.failed)
	}
	l.within(t, 100*time.Millisecond, 100*time.Millisecond)
	stopped.within(t, 100*time.Millisecond, 100*time.Millisecond)
}

// TestClusterMinority ends two of three voters: reads go on, and writes are refused by a word of
// their own, for they did not happen. With two voters they go on.
func TestClusterMinority(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	leader := f.agree(t)
	var others []string
	for _, name := range []string{"a", "b", "c"} {
		if name != leader {
			others = append(others, name)
		}
	}
	x := f.traders["g"][0]
	i := x.draw(t)
	if status, text, err := x.post(i); status != http.StatusOK || err != nil {
		t.Fatalf("%d %s %v", status, text, err)
	}
	f.nodes[leader].kill(t)
	f.nodes[others[0]].kill(t)
	refused := false
	for end := time.Now().Add(patience); !refused && time.Now().Before(end); {
		late := x.draw(t)
		x.sent = append(x.sent, late)
		status, text, err := x.post(late)
		if err != nil || status == http.StatusOK {
			t.Fatalf("an order without a majority: %d %s %v", status, text, err)
		}
		refused = status == http.StatusServiceUnavailable && strings.Contains(text, `"no_leader"`)
	}
	if !refused {
		t.Error("no order was refused for want of a leader")
	}
	if r, known, err := x.lookup(i); err != nil || !known || r.ID != i.id.Hex() {
		t.Errorf("read without a leader: %+v %v %v", r, known, err)
	}
	f.nodes[leader].start(t)
	f.agree(t)
	next := x.draw(t)
	if status, text, err := x.post(next); status != http.StatusOK || err != nil {
		t.Errorf("with two voters again: %d %s %v", status, text, err)
	}
	f.nodes[others[0]].start(t)
	f.agree(t)
}

// TestClusterFolders: what belongs to a member is not opened as the folder of a node that is alone,
// and not as another member's.
func TestClusterFolders(t *testing.T) {
	t.Parallel()
	binary, folder := buildNode(t), t.TempDir()
	data := filepath.Join(folder, "a")
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary, args...).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out)
	}
	serve := func(flags ...string) string {
		return run(append([]string{"serve", "--data", data, "--listen", freeAddress(t), "--admin",
			freeAddress(t)}, flags...)...)
	}
	run("cluster", "init", "--data", data, "--cluster", "a@"+freeAddress(t))
	for _, c := range []struct{ got, want string }{
		{serve(), "is the folder of a cluster's member"},
		{serve("--cluster", "b@"+freeAddress(t)), "is the folder of a, and --cluster names b"},
		{run("cluster", "init", "--data", data, "--cluster", "a@"+freeAddress(t)), "a member already"},
		{run("cluster", "init", "--data", filepath.Join(folder, "b"), "--cluster", "a@x:1", "--peers",
			"b@x:2="+filepath.Join(folder, "c")), "2 voters"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("not %q:\n%s", c.want, c.got)
		}
	}
	passport := filepath.Join(data, "cluster", "member.json")
	text, err := os.ReadFile(passport)
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`"journal": "[^"]*`).ReplaceAll(text, []byte(`"journal": "123`))
	if err := os.WriteFile(passport, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := serve("--cluster", "a@"+freeAddress(t)); !strings.Contains(said,
		"the papers of a member whose cluster has the journal 123") {
		t.Errorf("the journal of another cluster: %s", said)
	}
	if info, err := os.Stat(filepath.Join(data, "cluster", "ca.key")); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("the authority's key: %v %v", info, err)
	}
}

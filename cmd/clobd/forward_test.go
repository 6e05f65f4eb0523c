//go:build !race && !audit

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress"
	"clobd/ingress/auth"
	"clobd/scripts/setting"
)

// TestForwarded gives a cluster's leader as many orders as it takes. The gateway is in this process
// and has no door: orders that a node has journaled once, with their signatures, enter behind where
// the door would be, so that neither HTTP nor checks of signatures keep the leader waiting. Each
// order is acknowledged, and all nodes come to the same Sequence. Figures: how long the leader
// computes for an order, how many Commands a frame has, and what part of the leader's work is its
// index and its follower. CLOBD_SIZE is how many requests of 15 orders each of 64 traders sends.
func TestForwarded(t *testing.T) {
	setting.Full(t, "thousands of orders")
	size := setting.Size(t, 20, 1)
	var bundles [][]engine.Command
	var before [][]engine.Command // what makes wallets and keys
	if !t.Run("record", func(t *testing.T) { before, bundles = recordOrders(t, size) }) {
		return
	}
	f, _ := makeFleet(t, 1, "--faucet", forwardGift)
	for _, name := range f.names[:3] {
		f.nodes[name].launch(t)
	}
	g := openMember(t, f.nodes["g"])
	leader := f.nodes[f.agree(t)]
	was, err := standing(leader)
	if err != nil {
		t.Fatal(err)
	}
	underOne(t, leader, was.Term, len(before)-enterBundles(t, g, before, 1))
	percent := leader.watched(t)
	first, begun := leader.tally(t), time.Now()
	orders := enterBundles(t, g, bundles, 3000/mostOrders)
	took, last := time.Since(begun), leader.tally(t)
	f.agree(t)
	is := underOne(t, leader, was.Term, 64*size*mostOrders-orders)
	for end := time.Now().Add(patience); uint64(g.Board.Sequence()) != uint64(is.Sequence); {
		if time.Sleep(10 * time.Millisecond); time.Now().After(end) {
			t.Fatalf("the gateway is at Sequence %d, the leader at %d", g.Board.Sequence(), is.Sequence)
		}
	}
	grown := func(what string) float64 { return last[what] - first[what] }
	t.Logf("figures: orders=%d per_second=%.0f leader_us=%.1f index_and_follower=%s%% "+
		"commands_per_frame=%.1f commit_ms=%.1f", orders, float64(orders)/took.Seconds(),
		1e6*grown("process_cpu_seconds_total")/float64(orders), percent(),
		grown("clobd_sequencer_commands_total")/grown("clobd_sequencer_frames_total"),
		1e3*grown("clobd_cluster_commit_seconds_sum")/grown("clobd_cluster_commit_seconds_count"))
}

// recordOrders lets a node journal orders, and returns the Commands of clients before the first
// order, and the orders of each request.
func recordOrders(t *testing.T, size int) (before, bundles [][]engine.Command) {
	d := openDesk(t, 64)
	d.post(t, mostOrders, size)
	d.stop()
	j, err := (&offline{Data: d.data}).open(true)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	err = j.Frames(1, func(f *engine.Frame) bool {
		for _, c := range f.Commands {
			c.Proof = bytes.Clone(c.Proof)
			switch last := len(bundles) - 1; {
			case c.Kind == engine.Deposit, c.Kind == engine.SetKey, c.Kind == engine.Link:
				before = append(before, []engine.Command{c})
			case c.Kind != engine.Place: // the node's own
			case last >= 0 && len(bundles[last]) < mostOrders && bundles[last][0].Owner == c.Owner:
				bundles[last] = append(bundles[last], c)
			default:
				bundles = append(bundles, []engine.Command{c})
			}
		}
		return true
	})
	if err != nil || len(bundles) < size*64 {
		t.Fatalf("%d requests: %v", len(bundles), err)
	}
	return before, bundles
}

const (
	mostOrders  = 15        // of a request
	forwardGift = "1000000" // of the faucet
)

// openMember starts a member in this process, which ends with the test, and returns how Commands
// enter there.
func openMember(t *testing.T, p *process) (door ingress.Options) {
	t.Helper()
	flag := func(name string) string { return p.flags[slices.Index(p.flags, name)+1] }
	c := &serveCommand{Data: p.data, Listen: p.listen, Admin: p.admin, Catalog: flag("--catalog"),
		Faucet: forwardGift, Durability: "fsync", CheckpointInterval: time.Hour,
		CheckpointCommands: 1 << 40, ChainID: auth.ChainTest, Limits: "off", CORSOrigin: "*",
		Sockets: 16, SocketsPerAddress: 16, IOUring: "off", Lanes: "on", LogLevel: "error",
		Cluster: flag("--cluster"), Priority: 1}
	s, err := c.settings()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{settings: s, metrics: prometheus.NewRegistry(), doorMetrics: prometheus.NewRegistry(),
		failed: make(chan error, 8), led: make(chan struct{}, 1)}
	n.watches = newStopwatches(n.metrics)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(patience); !n.ready.Load(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the member is not ready")
		}
	}
	door.Board = n.role.Board
	n.role.Supply(&door)
	return door
}

// enterBundles enters the bundles, as many at a time as there are senders, and returns how many
// Commands were acknowledged. After a Command that was refused or failed, it enters no more.
func enterBundles(t *testing.T, d ingress.Options, bundles [][]engine.Command, senders int) int {
	t.Helper()
	var next, taken atomic.Int64
	var over atomic.Bool
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(bundles)) && !over.Load(); i = next.Add(1) - 1 {
				calls := make([]*sequencer.Call, len(bundles[i]))
				if err := d.EnterAll(bundles[i], calls); err != nil {
					t.Logf("bundle %d: %v", i, err)
					over.Store(true)
					return
				}
				for _, call := range calls {
					if r, err := call.Wait(); err != nil || r.Reject != 0 {
						t.Logf("bundle %d: %v, reject %v", i, err, r.Reject)
						over.Store(true)
						continue
					}
					taken.Add(1)
				}
			}
		})
	}
	group.Wait()
	return int(taken.Load())
}

// underOne fails the test if Commands are missing while the same member leads. A change of leader
// may lose them, and would mix the figures of two leaders: underOne skips the test then.
func underOne(t *testing.T, leader *process, term uint64, missing int) role.Standing {
	t.Helper()
	is, err := standing(leader)
	switch {
	case err != nil:
		t.Fatal(err)
	case is.Term != term:
		t.Skipf("another leader, of term %d after %d: the machine is too busy", is.Term, term)
	case missing != 0:
		t.Fatalf("%d Commands were not acknowledged", missing)
	}
	return is
}

// tally reads the metrics that have no labels.
func (p *process) tally(t *testing.T) map[string]float64 {
	t.Helper()
	_, text := get(t, p.admin, "/metrics")
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] = v
		}
	}
	return all
}

// watched profiles the node for two seconds from now on. The function that it returns waits for the
// profile, and tells how many percent of it are work of the index and of the follower.
func (p *process) watched(t *testing.T) (percent func() string) {
	t.Helper()
	got := make(chan string, 1)
	go func() {
		defer close(got)
		got <- p.asOperator(t, "/debug/pprof/profile?seconds=2")
	}()
	return func() string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "profile")
		if err := os.WriteFile(file, []byte(<-got), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "tool", "pprof", "-top", "-nodefraction=0", "-focus",
			`history\.\(\*Index\)|journal\.\(\*Follower\)`, file).CombinedOutput()
		found := ofProfile.FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(found[1])
	}
}

var ofProfile = regexp.MustCompile(`accounting for \S+ ([0-9.]+)% of`)

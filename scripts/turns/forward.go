package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
)

// forwarded measures what an order costs that a gateway takes and a voter orders: CPU time of each
// of four processes, the leader's apart by what it does, bytes between them, and how long it takes.
// All of them, and whoever sends, share the machine and its disk.
func forwarded(work, tree string) error {
	binary := filepath.Join(work, "clobd")
	if err := run(tree, "go", "build", "-o", binary, "./cmd/clobd"); err != nil {
		return err
	}
	nodes, err := startFour(binary, work)
	defer func() {
		for _, n := range nodes {
			n.stop()
		}
	}()
	if err != nil {
		return err
	}
	g := nodes[3]
	for _, load := range []struct {
		what           string
		senders, lists int
		pace           time.Duration // between two orders of a sender; 0: none
		at             *loaded
	}{
		{"lists of 15 through the gateway, 64 connections", 64, 15, 0, g},
		{"single orders through the gateway, 64 connections", 64, 1, 0, g},
		{"single orders through the gateway, half of that", 32, 1, 32 * time.Millisecond, g},
		{"single orders through the gateway, 1 connection", 1, 1, 0, g},
		{"single orders at the leader, 1 connection", 1, 1, 0, nil},
	} {
		if err := load4(nodes, load.at, load.what, load.senders, load.lists, load.pace); err != nil {
			return err
		}
	}
	return nil
}

// startFour starts voters a, b and c and the gateway g.
func startFour(binary, work string) (nodes []*loaded, err error) {
	names, init := []string{"a", "b", "c", "g"}, []string{"cluster", "init"}
	var places []string
	for _, name := range names {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		data, place := filepath.Join(work, name, "data"), name+"@"+port
		places = append(places, place)
		if err := os.MkdirAll(filepath.Join(work, name), 0o700); err != nil {
			return nil, err
		}
		switch name {
		case "a":
			init = append(init, "--data", data, "--cluster", place)
		case "g":
			init = append(init, "--gateways", place+"="+data)
		default:
			init = append(init, "--peers", place+"="+data)
		}
	}
	if out, err := exec.Command(binary, init...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cluster init: %w: %s", err, out)
	}
	for i, name := range names {
		n, err := launch(binary, filepath.Join(work, name), option{
			flags: []string{"--cluster", places[i]}})
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	for i, n := range nodes {
		n.salt.Store(uint64(i) << 32) // the traders are the same everywhere
		if err := n.prepare(); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

// figures are what a node has counted.
type figures struct {
	cpu               time.Duration
	leads             bool
	commands, frames  float64
	waited, committed float64 // seconds from append to commit, and of how many frames
	sent              float64
}

func (n *loaded) figures() (f figures, err error) {
	if f.cpu, err = n.used(); err != nil {
		return f, err
	}
	answer, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		return f, err
	}
	defer answer.Body.Close()
	for s := bufio.NewScanner(answer.Body); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), " ")
		v, _ := strconv.ParseFloat(value, 64)
		switch name, _, _ := strings.Cut(name, "{"); name {
		case "clobd_cluster_leads":
			f.leads = v == 1
		case "clobd_sequencer_commands_total":
			f.commands = v
		case "clobd_sequencer_frames_total":
			f.frames = v
		case "clobd_cluster_commit_seconds_sum":
			f.waited = v
		case "clobd_cluster_commit_seconds_count":
			f.committed = v
		case "clobd_cluster_sent_bytes_total":
			f.sent += v
		}
	}
	return f, nil
}

// load4 loads one of four nodes, nil: the one that leads, and prints what each has used.
func load4(nodes []*loaded, at *loaded, what string, senders, list int, pace time.Duration) error {
	before := make([]figures, len(nodes))
	leader := -1
	for i, n := range nodes {
		var err error
		if before[i], err = n.figures(); err != nil {
			return err
		}
		if before[i].leads {
			leader = i
		}
	}
	if leader < 0 {
		return errors.New("no node leads")
	}
	if at == nil {
		at = nodes[leader]
	}
	ctx, cancel := context.WithTimeout(context.Background(), forwardTurn)
	defer cancel()
	profile := make(chan error, 1)
	file := filepath.Join(filepath.Dir(nodes[leader].data), "profile")
	go func() { profile <- nodes[leader].profile(file, int(forwardTurn.Seconds())-1) }()
	times, err := at.lists(ctx, senders, list, pace)
	if err = errors.Join(err, <-profile); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // followers and indexes come to the end
	orders := float64(len(times) * list)
	slices.Sort(times)
	fmt.Printf("%s: %.0f orders/s, p50 %v, p99 %v\n", what, orders/forwardTurn.Seconds(),
		times[len(times)/2].Round(10*time.Microsecond), times[len(times)*99/100].Round(10*time.Microsecond))
	for i, n := range nodes {
		f, err := n.figures()
		if err != nil {
			return err
		}
		fmt.Printf("  %-10s %6.1f µs CPU an order, %5.0f bytes of messages sent an order", names4(i, leader),
			float64((f.cpu-before[i].cpu).Microseconds())/orders, (f.sent-before[i].sent)/orders)
		if i == leader {
			fmt.Printf(", %.1f Commands a frame, %.2f ms from append to commit",
				(f.commands-before[i].commands)/(f.frames-before[i].frames),
				1e3*(f.waited-before[i].waited)/(f.committed-before[i].committed))
		}
		fmt.Println()
	}
	return shares(file)
}

const forwardTurn = 8 * time.Second

func names4(i, leader int) string {
	switch {
	case i == leader:
		return "leader"
	case i == 3:
		return "gateway"
	}
	return "follower"
}

// profile writes a CPU profile of a node, by its own word for operators.
func (n *loaded) profile(file string, seconds int) error {
	token, err := os.ReadFile(filepath.Join(n.data, "admin.token"))
	if err != nil {
		return err
	}
	q, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d",
		n.admin, seconds), nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = to.ReadFrom(answer.Body)
	return errors.Join(err, to.Close())
}

// shares prints what share of the leader's CPU time its parts have.
func shares(file string) error {
	for _, part := range []struct{ name, focus string }{
		{"index", `history\.\(\*Index\)|history\.\(\*folder\)`},
		{"follower and spare", `journal\.\(\*Follower\)|ApplyFrame`},
		{"the way of a frame", `sequencer\.\(\*Sequencer\)|raft\.|relay\.`},
		{"Pebble, of all", `pebble`},
		{"collector", `gcBgMarkWorker|bgsweep|gcAssist`},
	} {
		out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=1", "-focus", part.focus,
			file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "% of ") && strings.Contains(line, "accounting for") {
				fmt.Printf("  leader, %s: %s", part.name, line)
			}
		}
	}
	return nil
}

// lists lets so many senders place orders, in lists if they have more than one, and returns how long
// each request took.
func (n *loaded) lists(ctx context.Context, senders, list int, pace time.Duration) (
	[]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	failed := make([]error, senders)
	var group sync.WaitGroup
	var first atomic.Int64
	for i := range senders {
		group.Go(func() {
			c := n.traders[i%len(n.traders)]
			next := time.Now().Add(pace * time.Duration(first.Add(1)) / time.Duration(senders))
			for ctx.Err() == nil {
				if pace > 0 {
					time.Sleep(time.Until(next))
					next = next.Add(pace)
				}
				took, err := n.placeList(c, list)
				if err != nil {
					failed[i] = err
					return
				}
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	err := errors.Join(failed...)
	if err == nil && len(all) == 0 {
		err = errors.New("no order was placed")
	}
	return all, err
}

// placeList places orders in one request.
func (n *loaded) placeList(c *trader.Client, list int) (took time.Duration, err error) {
	path, body := "/orders", []byte("[")
	for i := range list {
		salt := n.salt.Add(1)
		token, _ := engine.ParseToken(optionTokens[salt%2])
		one, _, err := c.Sign(trader.Limit{Token: token, Price: 5000, Size: 5 * engine.Unit, Type: "GTC",
			Salt: salt})
		if err != nil {
			return 0, err
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, one...)
	}
	if body = append(body, ']'); list == 1 {
		path, body = "/order", body[1:len(body)-1]
	}
	var answer fasthttp.Response
	begun := time.Now()
	err = c.Do(http.MethodPost, path, body, &answer)
	if took = time.Since(begun); err == nil && (answer.StatusCode() != http.StatusOK ||
		strings.Contains(string(answer.Body()), `"success":false`)) {
		err = fmt.Errorf("POST %s: %d %.200s", path, answer.StatusCode(), answer.Body())
	}
	return took, err
}

package main

import (
	"bufio"
	"cmp"
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
	for _, load := range []burden{
		{"lists of 15 through the gateway, 64 connections", 64, 15, 0, g},
		{"single orders through the gateway, 64 connections", 64, 1, 0, g},
		{"single orders through the gateway, half of that", 32, 1, 32 * time.Millisecond, g},
		{"single orders through the gateway, 1 connection", 1, 1, 0, g},
		{"single orders at the leader, 1 connection", 1, 1, 0, nil},
	} {
		if err := load.lay(nodes); err != nil {
			return err
		}
	}
	alone, err := startLoaded(binary, filepath.Join(work, "alone"), option{})
	if err != nil {
		return err
	}
	defer alone.stop()
	return compareBooks(g, alone)
}

// compareBooks reads a book of the gateway and of a node alone in turns, 16 connections each.
func compareBooks(g, alone *loaded) error {
	costs, rates := map[*loaded][]float64{}, map[*loaded][]float64{}
	medians := map[*loaded][]float64{}
	for round := range 8 {
		turn := []*loaded{g, alone}
		if round%2 == 1 {
			slices.Reverse(turn)
		}
		for _, n := range turn {
			before, err := n.used()
			if err != nil {
				return err
			}
			times, err := n.books(16, bookTurn)
			if err != nil {
				return err
			}
			after, err := n.used()
			if err != nil {
				return err
			}
			slices.Sort(times)
			costs[n] = append(costs[n], float64((after-before).Microseconds())/float64(len(times)))
			rates[n] = append(rates[n], float64(len(times))/bookTurn.Seconds())
			medians[n] = append(medians[n], float64(times[len(times)/2].Microseconds()))
		}
	}
	for n, name := range map[*loaded]string{g: "gateway", alone: "node alone"} {
		fmt.Printf("GET /book, %s: %.0f a second, p50 %.0f µs, %.1f µs CPU each\n", name,
			middle(rates[n]), middle(medians[n]), middle(costs[n]))
	}
	return nil
}

// middle is the median.
func middle(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

const bookTurn = 700 * time.Millisecond

// books reads a book on so many connections.
func (n *loaded) books(readers int, length time.Duration) (all []time.Duration, err error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	end := time.Now().Add(length)
	for range readers {
		group.Go(func() {
			request, answer := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			request.SetRequestURI("http://" + n.public + "/book?token_id=" + optionTokens[0])
			var mine []time.Duration
			var failed error
			for begun := time.Now(); begun.Before(end) && failed == nil; begun = time.Now() {
				failed = n.traders[0].Host.Do(request, answer)
				if failed == nil && answer.StatusCode() != http.StatusOK {
					failed = fmt.Errorf("GET /book: %d", answer.StatusCode())
				}
				mine = append(mine, time.Since(begun))
			}
			mu.Lock()
			all, err = append(all, mine...), errors.Join(err, failed)
			mu.Unlock()
		})
	}
	group.Wait()
	return all, err
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

// tallied is what a node has counted.
type tallied struct {
	cpu               time.Duration
	leads             bool
	commands, frames  float64
	waited, committed float64 // seconds from append to commit, and of how many frames
	sent              float64
}

func (n *loaded) tallied() (f tallied, err error) {
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

// burden is a load of one of four nodes.
type burden struct {
	what          string
	senders, list int
	pace          time.Duration // between two orders of a sender; 0: none
	at            *loaded       // nil: the one that leads
}

// lay loads the node, and prints what each of the four has used.
func (b *burden) lay(nodes []*loaded) error {
	before := make([]tallied, len(nodes))
	leader := -1
	for i, n := range nodes {
		var err error
		if before[i], err = n.tallied(); err != nil {
			return err
		}
		if before[i].leads {
			leader = i
		}
	}
	if leader < 0 {
		return errors.New("no node leads")
	}
	at := cmp.Or(b.at, nodes[leader])
	ctx, cancel := context.WithTimeout(context.Background(), forwardTurn)
	defer cancel()
	profile := make(chan error, 1)
	file := filepath.Join(filepath.Dir(nodes[leader].data), "profile")
	go func() { profile <- nodes[leader].profile(file, int(forwardTurn.Seconds())-1) }()
	times, err := at.lists(ctx, b)
	if err = errors.Join(err, <-profile); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // followers and indexes come to the end
	orders := float64(len(times) * b.list)
	slices.Sort(times)
	fmt.Printf("%s: %.0f orders/s, p50 %v, p99 %v\n", b.what, orders/forwardTurn.Seconds(),
		times[len(times)/2].Round(10*time.Microsecond),
		times[len(times)*99/100].Round(10*time.Microsecond))
	for i, n := range nodes {
		f, err := n.tallied()
		if err != nil {
			return err
		}
		fmt.Printf("  %-10s %6.1f µs CPU and %5.0f bytes of messages sent an order", part(i, leader),
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

const forwardTurn = 7 * time.Second

func part(i, leader int) string {
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
		{"index", `history\.\(\*Index\)`},
		{"follower", `journal\.\(\*Follower\)`},
		{"commands of others", `relay\.|fellow\.serve`},
		{"matcher, appender, committer", `sequencer\.\(\*Sequencer\)\.`},
		{"agreement and its messages", `raft\.\(\*`},
		{"Pebble's own goroutines", `LogWriter\)\.flushLoop|pebble.*\.compact|pebble.*\.flush1`},
		{"collector of memory", `gcBgMarkWorker|bgsweep|gcAssist`},
	} {
		out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0",
			"-focus", part.focus, file).CombinedOutput()
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

// lists lets the senders place orders, and returns how long each request took.
func (n *loaded) lists(ctx context.Context, b *burden) ([]time.Duration, error) {
	senders, pace := b.senders, b.pace
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
				took, err := n.placeList(c, b.list)
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
)

// option is what the third of three nodes of one binary has.
type option struct {
	flags  []string
	scrape bool    // its metrics are read once a second
	voter  bool    // it is the only voter of a cluster
	most   float64 // limit of its CPU time per order by that of the others; 0: none
}

func options() map[string]option {
	return map[string]option{
		"scrape": {scrape: true, most: 1.02},
		// What the code of a cluster costs without another member: orders go through the agreement.
		"cluster": {voter: true, most: 1.10},
		"trace":   {flags: []string{"--trace-slow", "1h"}}, // it records all the time and writes never
	}
}

const (
	optionTurn  = 4 * time.Second
	optionStart = time.Minute
	optionChain = 80002
	traders     = 16
	// tick is the unit of /proc/PID/stat: 1/100 s on every Linux that Go runs on.
	tick = 10 * time.Millisecond
)

// optionTokens are the two tokens of the one market.
var optionTokens = [2]string{"70000000001", "80000000001"}

const optionCatalog = `{"id":"1","slug":"one","title":"One?","active":true,"closed":false,` +
	`"archived":false,"markets":[{"id":"1","slug":"one","question":"One?","conditionId":` +
	`"0x0000000000000000000000000000000000000000000000000000000000000001","outcomes":` +
	`"[\"Yes\", \"No\"]","clobTokenIds":"[\"70000000001\", \"80000000001\"]","active":true,` +
	`"closed":false,"archived":false,"negRisk":false,"enableOrderBook":true,"acceptingOrders":true,` +
	`"orderPriceMinTickSize":0.01,"orderMinSize":5}]}` + "\n"

// optionTurns measures what an option costs: three nodes of one binary, two of them without the
// option, are loaded in turns.
func optionTurns(work string, count int, name, tree string) error {
	o, known := options()[name]
	if !known {
		return fmt.Errorf("there is no option %q", name)
	}
	binary := filepath.Join(work, "clobd")
	if err := run(tree, "go", "build", "-o", binary, "./cmd/clobd"); err != nil {
		return err
	}
	var nodes []*loaded
	defer func() {
		for _, n := range nodes {
			n.stop()
		}
	}()
	for i, with := range []option{{}, {}, o} {
		n, err := startLoaded(binary, filepath.Join(work, strconv.Itoa(i)), with)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
		if _, err := n.turn(time.Second); err != nil { // warm: tables of signers, spare logs
			return err
		}
	}
	var all rounds
	costs := map[*loaded]*[]float64{nodes[0]: &all.old, nodes[1]: &all.again, nodes[2]: &all.new}
	for round := range count {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, count)
		for _, n := range order(round, nodes...) {
			cost, err := n.turn(optionTurn)
			if err != nil {
				return err
			}
			*costs[n] = append(*costs[n], cost)
		}
	}
	const figure = "order CPU, µs"
	slower := write(os.Stdout, []string{figure}, map[string]*rounds{figure: &all})
	v := all.judge()
	switch {
	case o.most == 0:
		return nil
	case v.ratio > o.most:
		fmt.Printf("%s: ratio %.3f is above %.2f\n", name, v.ratio, o.most)
		return errSlower
	case slower:
		fmt.Printf("%s: slower, and within %.2f\n", name, o.most)
	default:
		fmt.Printf("%s: ratio %.3f is within %.2f\n", name, v.ratio, o.most)
	}
	return nil
}

// loaded is a running node with traders who have money.
type loaded struct {
	option
	data          string
	cmd           *exec.Cmd
	public, admin string // HOST:PORT
	traders       []*trader.Client
	salt          atomic.Uint64
}

// startLoaded starts a node with one market in a folder of its own, and waits until it is ready.
func startLoaded(binary, folder string, o option) (*loaded, error) {
	if o.voter {
		address, err := freePort()
		if err != nil {
			return nil, err
		}
		out, err := exec.Command(binary, "cluster", "init", "--data", filepath.Join(folder, "data"),
			"--cluster", "a@"+address).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("cluster init: %w: %s", err, out)
		}
		o.flags = append(o.flags, "--cluster", "a@"+address)
	}
	n, err := launch(binary, folder, o)
	if err != nil {
		return nil, err
	}
	if err := n.prepare(); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

// launch starts a node with one market in a folder of its own.
func launch(binary, folder string, o option) (*loaded, error) {
	n := &loaded{option: o, data: filepath.Join(folder, "data")}
	var err error
	if n.public, err = freePort(); err == nil {
		n.admin, err = freePort()
	}
	catalog := filepath.Join(folder, "catalog.jsonl")
	err = errors.Join(err, os.MkdirAll(folder, 0o700),
		os.WriteFile(catalog, []byte(optionCatalog), 0o600))
	if err != nil {
		return nil, err
	}
	n.cmd = exec.Command(binary, append([]string{"serve", "--data", n.data,
		"--listen", n.public, "--admin", n.admin, "--catalog", catalog, "--faucet", "100000000",
		"--limits", "off", "--disk-ballast", "0", "--disk-reserve", "0", "--log-level", "error"},
		o.flags...)...)
	n.cmd.Stderr, n.cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return n, n.cmd.Start()
}

// prepare waits until the node is ready, and makes its traders.
func (n *loaded) prepare() error {
	for end := time.Now().Add(optionStart); n.read("/readyz") != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("a node is not ready after %v", optionStart)
		}
	}
	for i := range byte(traders) {
		c, err := trader.NewClient("http://"+n.public, optionChain, [32]byte{30: 5, 31: i + 1})
		if err == nil {
			err = c.Derive()
		}
		if err != nil {
			return err
		}
		n.traders = append(n.traders, c)
	}
	return nil
}

func (n *loaded) stop() {
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	_ = n.cmd.Wait()
}

// read reads a page of the admin listener to its end.
func (n *loaded) read(path string) error {
	answer, err := http.Get("http://" + n.admin + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err = io.Copy(io.Discard, answer.Body); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	return err
}

// turn loads the node for some time, each trader with one order after the other, and returns the
// node's CPU time per order in microseconds.
func (n *loaded) turn(length time.Duration) (micros float64, err error) {
	before, err := n.used()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var done atomic.Int64
	failed := make([]error, traders+1)
	var group sync.WaitGroup
	for i, c := range n.traders {
		group.Go(func() { failed[i] = n.trade(ctx, c, &done) })
	}
	if n.scrape {
		group.Go(func() { failed[traders] = n.scrapes(ctx) })
	}
	group.Wait()
	after, err := n.used()
	if err = errors.Join(append(failed, err)...); err == nil && done.Load() == 0 {
		err = errors.New("no order was placed")
	}
	if err != nil {
		return 0, err
	}
	return float64((after - before).Microseconds()) / float64(done.Load()), nil
}

// scrapes reads the metrics at once and then once a second, until ctx is done.
func (n *loaded) scrapes(ctx context.Context) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		if err := n.read("/metrics"); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-second.C:
		}
	}
}

// trade places orders until ctx is done: both outcomes are bought at half a dollar in turns, so
// that orders meet and mint, and no book grows.
func (n *loaded) trade(ctx context.Context, c *trader.Client, done *atomic.Int64) error {
	var answer fasthttp.Response
	for ctx.Err() == nil {
		salt := n.salt.Add(1)
		token, _ := engine.ParseToken(optionTokens[salt%2])
		body, _, err := c.Sign(trader.Limit{Token: token, Price: 5000, Size: 5 * engine.Unit, Type: "GTC",
			Salt: salt})
		if err == nil {
			err = c.Do(http.MethodPost, "/order", body, &answer)
		}
		if err == nil && answer.StatusCode() != http.StatusOK {
			err = fmt.Errorf("POST /order: %d %s", answer.StatusCode(), answer.Body())
		}
		if err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}

// used is the CPU time that the node has had.
func (n *loaded) used() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold spaces
	words := strings.Fields(rest)
	if len(words) < 13 {
		return 0, fmt.Errorf("/proc/PID/stat: %q", text)
	}
	user, err := strconv.ParseInt(words[11], 10, 64)
	system, more := strconv.ParseInt(words[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err, more)
}

// freePort returns an address that nobody listens at.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

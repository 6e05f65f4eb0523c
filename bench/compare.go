package bench

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/auth"
)

// Comparison says what is measured beside what. What is "orders" (signed durable orders, against
// the naive exchange) or "book" (GET /book, against a bare answer of the same bytes).
type Comparison struct {
	What        string
	Rounds      int
	Duration    time.Duration
	Connections int
	Seed        uint64
	Node        string // the node's binary
	Self        string // the binary that can serve the baseline
	Commit      string // what the binaries were built from, for the report
}

// Side is one side's rounds, in operations per second, and its CPU time per operation in µs.
type Side struct {
	Name      string    `json:"name"`
	Rates     []float64 `json:"operations_per_second"`
	CPUMicros []float64 `json:"cpu_micros_per_operation"`
	P50Micros []float64 `json:"p50_micros"`
	P99Micros []float64 `json:"p99_micros"`
}

// Compared is the result: node and baseline, round by round, and the ratio of the median rates.
type Compared struct {
	Conditions  Conditions `json:"conditions"`
	What        string     `json:"what"`
	Loop        string     `json:"loop"`
	Seed        uint64     `json:"seed"`
	Connections int        `json:"connections"`
	Seconds     float64    `json:"seconds_per_round"`
	Node        Side       `json:"node"`
	Baseline    Side       `json:"baseline"`
	Ratio       float64    `json:"ratio_of_median_rates"`
	Checked     string     `json:"checked"`
}

func median(values []float64) float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	return s[len(s)/2]
}

// WriteText prints the comparison for people.
func (c *Compared) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %.2f times the baseline (median of %d interleaved rounds of %.1f s, "+
		"%d connections, closed loop, seed %d)\n", c.What, c.Ratio, len(c.Node.Rates), c.Seconds,
		c.Connections, c.Seed)
	for _, s := range []*Side{&c.Node, &c.Baseline} {
		fmt.Fprintf(w, "  %-28s %7.0f/s (%.0f to %.0f)  CPU %.1f µs  p50 %.0f µs  p99 %.0f µs\n",
			s.Name, median(s.Rates), slices.Min(s.Rates), slices.Max(s.Rates),
			median(s.CPUMicros), median(s.P50Micros), median(s.P99Micros))
	}
	m := &c.Conditions
	fmt.Fprintf(w, "  machine: %s, %d cores shared by server and load, %s, Linux %s, commit %s\n",
		m.CPU, m.Cores, m.Go, m.Kernel, m.Commit)
	fmt.Fprintf(w, "  floor: bare 4 KB write+fdatasync p50 %.0f µs; longest hiccup %.1f ms\n",
		m.FsyncMicros, m.HiccupMillis)
	fmt.Fprintf(w, "  checked: %s\n", c.Checked)
}

// Compare runs the rounds in turn: node, baseline, node, baseline …
func Compare(ctx context.Context, c Comparison) (*Compared, error) {
	dir, err := os.MkdirTemp("", "clobench")
	if err != nil {
		return nil, fmt.Errorf("make folder for the comparison: %w", err)
	}
	defer os.RemoveAll(dir)
	out := &Compared{Conditions: NewConditions(dir, c.Commit), What: c.What, Loop: "closed", Seed: c.Seed,
		Connections: c.Connections, Seconds: c.Duration.Seconds()}
	watch := newHiccups()
	if c.What == "book" {
		err = compareBook(ctx, c, out, dir)
	} else {
		err = compareOrders(ctx, c, out, dir)
	}
	out.Conditions.HiccupMillis = watch.Stop()
	if err != nil {
		return nil, err
	}
	out.Ratio = median(out.Node.Rates) / median(out.Baseline.Rates)
	return out, nil
}

// startPeer starts a baseline as a process of its own.
func startPeer(ctx context.Context, c Comparison, args ...string) (*child, error) {
	p := &child{}
	var err error
	if p.listen, err = freePort(); err != nil {
		return nil, err
	}
	args = append([]string{"peer"}, append(args, "--listen", p.listen)...)
	if err := p.start(ctx, c.Self, args); err != nil {
		return nil, err
	}
	if err := p.wait(ctx, "http://"+p.listen+"/ready"); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// add appends one round.
func (s *Side) add(operations int64, took, cpu time.Duration, l Latency) {
	n := float64(max(operations, 1))
	s.Rates = append(s.Rates, float64(operations)/took.Seconds())
	s.CPUMicros = append(s.CPUMicros, float64(cpu.Microseconds())/n)
	s.P50Micros = append(s.P50Micros, l.P50)
	s.P99Micros = append(s.P99Micros, l.P99)
}

// compareOrders posts the same signed orders to both sides.
func compareOrders(ctx context.Context, c Comparison, out *Compared, dir string) error {
	w, err := WorkloadNamed("place")
	if err != nil {
		return err
	}
	file, market, err := benchCatalog(dir, w)
	if err != nil {
		return err
	}
	node, err := startNode(ctx, c.Node, dir, "--catalog", file, "--limits", "off",
		"--log-level", "error")
	if err != nil {
		return err
	}
	defer node.end()
	peer, err := startPeer(ctx, c, "naive", "--path", filepath.Join(dir, "naive"))
	if err != nil {
		return err
	}
	defer peer.end()
	out.Node.Name, out.Baseline.Name = "node, fsync before answer", "naive, fsync before answer"
	clients, err := traders("http://"+node.listen, c.Seed)
	if err != nil {
		return err
	}
	if err := fund(node.admin, node.token, clients, market); err != nil {
		return err
	}
	var all []*httpCaller
	for round := -1; round < c.Rounds; round++ { // the first round only warms up
		ops, _ := Generate(w, c.Seed+uint64(round), 0, int(c.Duration.Seconds()*25_000))
		requests, err := sign(ops, clients, market, uint64(round+2)<<40)
		if err != nil {
			return err
		}
		for _, side := range []*Side{&out.Node, &out.Baseline} {
			server := node
			if side == &out.Baseline {
				server = peer
			}
			callers := aim(server, ops, requests, c.Connections)
			err := orderRound(side, server, callers, c.Duration)
			if err != nil {
				return fmt.Errorf("%s: %w", side.Name, err)
			}
			if server == node {
				all = append(all, callers...)
			}
		}
	}
	dropWarmup(&out.Node, &out.Baseline)
	return out.checkNode(node, peer, all)
}

func dropWarmup(sides ...*Side) {
	for _, s := range sides {
		s.Rates, s.CPUMicros = s.Rates[1:], s.CPUMicros[1:]
		s.P50Micros, s.P99Micros = s.P50Micros[1:], s.P99Micros[1:]
	}
}

// aim deals the requests out to connections of one server.
func aim(server *child, ops []Op, requests []signed, connections int) []*httpCaller {
	aimed := slices.Clone(requests)
	clients := map[*Client]*Client{}
	for i := range aimed {
		from := aimed[i].client
		if clients[from] == nil {
			clients[from] = from.at(server.listen)
		}
		aimed[i].client = clients[from]
	}
	return deal(ops, aimed, connections)
}

// orderRound is one side's turn.
func orderRound(s *Side, server *child, callers []*httpCaller, d time.Duration) error {
	cpu := server.cpu()
	took := driveAll(callers, d)
	cpu = server.cpu() - cpu
	var report Report
	report.addHTTP(callers, took, cpu)
	s.add(report.Operations-report.Refused, took, cpu, report.ServiceMicros)
	if report.Failure != "" {
		return errors.New(report.Failure)
	}
	return nil
}

// at is the same trader with the same key at another server.
func (c *Client) at(addr string) *Client {
	other := *c
	other.host = &fasthttp.HostClient{Addr: addr, MaxConns: 512, ReadTimeout: 15 * time.Second,
		WriteTimeout: 15 * time.Second, MaxIdemponentCallAttempts: 1}
	return &other
}

// checkNode stops both sides and replays the node's journal.
func (out *Compared) checkNode(node, peer *child, callers []*httpCaller) error {
	if err := node.stop(); err != nil {
		return err
	}
	if err := peer.stop(); err != nil {
		return err
	}
	report := Report{Seed: out.Seed}
	if err := replayNode(&report, node.dir, callers); err != nil {
		return err
	}
	if report.Failure != "" {
		return fmt.Errorf("%s", report.Failure)
	}
	out.Checked = report.Checked
	return nil
}

// compareBook reads one book of 50 levels a side from both.
func compareBook(ctx context.Context, c Comparison, out *Compared, dir string) error {
	w, err := WorkloadNamed("place")
	if err != nil {
		return err
	}
	file, market, err := benchCatalog(dir, w)
	if err != nil {
		return err
	}
	node, err := startNode(ctx, c.Node, dir, "--catalog", file, "--limits", "off",
		"--log-level", "error")
	if err != nil {
		return err
	}
	defer node.end()
	path, body, err := fillBook(node, market, c.Seed)
	if err != nil {
		return err
	}
	saved := filepath.Join(dir, "book.json")
	if err := os.WriteFile(saved, body, 0o644); err != nil {
		return fmt.Errorf("save book: %w", err)
	}
	peer, err := startPeer(ctx, c, "bare", "--path", saved)
	if err != nil {
		return err
	}
	defer peer.end()
	out.Node.Name = fmt.Sprintf("node, %d bytes", len(body))
	out.Baseline.Name = fmt.Sprintf("bare fasthttp, %d bytes", len(body))
	for round := -1; round < c.Rounds; round++ {
		if err := c.bookRound(&out.Node, node, path, body); err != nil {
			return err
		}
		if err := c.bookRound(&out.Baseline, peer, path, body); err != nil {
			return err
		}
	}
	dropWarmup(&out.Node, &out.Baseline)
	out.Checked = "every answer has the same bytes on both sides"
	if err := node.stop(); err != nil {
		return err
	}
	return peer.stop()
}

// fillBook rests 49 levels a side and returns the path of the book and what it answers.
func fillBook(node *child, market [2]engine.Token, seed uint64) (string, []byte, error) {
	clients, err := traders("http://"+node.listen, seed)
	if err != nil {
		return "", nil, err
	}
	if err := fund(node.admin, node.token, clients[:1], market); err != nil {
		return "", nil, err
	}
	c := clients[0]
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	for i := 1; i < 100; i++ {
		l := Limit{Token: market[0], Price: engine.Price(i * 100), Type: "GTC", Salt: uint64(i),
			Size: engine.Size(5+i) * engine.Unit}
		if i == 50 {
			continue
		}
		if i > 50 {
			l.Side = engine.Sell
		}
		body, _, err := c.Sign(l)
		if err != nil {
			return "", nil, err
		}
		if err := c.Do(http.MethodPost, "/order", body, resp); err != nil {
			return "", nil, fmt.Errorf("fill book: %w", err)
		}
		if resp.StatusCode() != 200 {
			return "", nil, fmt.Errorf("fill book: status %d: %s", resp.StatusCode(), resp.Body())
		}
	}
	path := "/book?token_id=" + market[0].String()
	body, err := c.Get(path)
	return path, body, err
}

// bookRound reads the book over all connections until the time is up and compares every answer.
func (c *Comparison) bookRound(s *Side, server *child, path string, want []byte) error {
	client := &fasthttp.HostClient{Addr: server.listen, MaxConns: c.Connections}
	var wait sync.WaitGroup
	var total, wrong atomic.Int64
	recs := make([]recorder, c.Connections)
	cpu, start := server.cpu(), time.Now()
	for i := range recs {
		recs[i] = newRecorder()
		wait.Go(func() {
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.SetRequestURI(path)
			req.SetHost(server.listen)
			for time.Since(start) < c.Duration {
				at := time.Now()
				err := client.Do(req, resp)
				if err != nil || string(resp.Body()) != string(want) {
					wrong.Add(1)
					return
				}
				recs[i].record(time.Since(at))
				total.Add(1)
			}
		})
	}
	wait.Wait()
	s.add(total.Load(), time.Since(start), server.cpu()-cpu, merge(recs))
	if wrong.Load() > 0 {
		return fmt.Errorf("%s: %d connections got another answer", s.Name, wrong.Load())
	}
	return nil
}

// ServePeer serves a baseline until ctx is done: "naive" with its database in the folder path, or
// "bare", which answers GET /book with the contents of the file path.
func ServePeer(ctx context.Context, what, listen, path string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if what == "bare" {
		return serveBare(ctx, ln, path)
	}
	separator := auth.Domains(chain)[0].Separator()
	n, err := NewNaive(path, separator)
	if err != nil {
		return fmt.Errorf("domain %s: %w", hex.EncodeToString(separator[:4]), err)
	}
	served := make(chan error, 1)
	go func() { served <- n.Serve(ln) }()
	select {
	case <-ctx.Done():
		return n.Close()
	case err := <-served:
		return err
	}
}

// serveBare answers /book through the same router with the same header and nothing else.
func serveBare(ctx context.Context, ln net.Listener, file string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	routes := router.New()
	routes.GET("/book", func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.Response.SetBodyRaw(body)
	})
	routes.GET("/ready", func(*fasthttp.RequestCtx) {})
	s := &fasthttp.Server{Handler: routes.Handler, NoDefaultServerHeader: true}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case <-ctx.Done():
		return s.Shutdown()
	case err := <-served:
		return err
	}
}

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/journal"
)

// chain is the chain that bench traders sign for: the node's default.
const chain = 80002

// signed is one request of level L3, made before the clock runs: only its digest, which covers the
// time, is made when it is sent.
type signed struct {
	client *Client
	method string
	body   []byte
	id     engine.OrderID
}

// traders makes the bench's wallets at url; their keys come from the seed.
func traders(url string, seed uint64) ([]*Client, error) {
	rng := rand.New(rand.NewPCG(seed, 0x74726164))
	out := make([]*Client, Traders)
	for i := range out {
		var key [32]byte
		for k := range key {
			key[k] = byte(rng.Uint32())
		}
		c, err := NewClient(url, chain, key)
		if err != nil {
			return nil, err
		}
		if err := c.Derive(); err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// fund gives every trader collateral and both tokens of the market.
func fund(admin, token string, clients []*Client, market [2]engine.Token) error {
	for _, c := range clients {
		wallet := c.Signer.Address.Hex()
		err := adminPost(admin, token, "/admin/fund",
			map[string]string{"wallet": wallet, "amount": "10000000"})
		if err != nil {
			return err
		}
		for _, t := range market {
			err := adminPost(admin, token, "/admin/fund",
				map[string]string{"wallet": wallet, "amount": "1000000", "token": t.String()})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// benchCatalog writes a catalog with one market of the workload's tick into dir.
func benchCatalog(dir string, w Workload) (file string, tokens [2]engine.Token, err error) {
	tokens = [2]engine.Token{hashed("token 0", 0), hashed("token 1", 0)}
	condition := engine.Condition(hashed("condition", 0))
	ids, _ := json.Marshal([]string{tokens[0].String(), tokens[1].String()})
	event := map[string]any{"id": "1", "title": "Bench", "slug": "bench", "markets": []any{
		map[string]any{"id": "1", "question": "Is it fast?", "slug": "is-it-fast",
			"conditionId": condition.Hex(), "clobTokenIds": string(ids),
			"outcomes": `["Yes", "No"]`, "active": true, "closed": false, "archived": false,
			"enableOrderBook": true, "acceptingOrders": true, "orderMinSize": 5,
			"orderPriceMinTickSize": json.Number(w.Tick.String())}}}
	file = filepath.Join(dir, "catalog.json")
	b, err := json.Marshal([]any{event})
	if err != nil {
		return "", tokens, fmt.Errorf("encode catalog: %w", err)
	}
	return file, tokens, os.WriteFile(file, b, 0o644)
}

// sign makes the requests of the operations on all cores. salt keeps the orders of rounds apart.
func sign(ops []Op, clients []*Client, market [2]engine.Token, salt uint64) ([]signed, error) {
	out := make([]signed, len(ops))
	workers := runtime.NumCPU()
	failures := make(chan error, workers)
	for w := range workers {
		go func() {
			for i := w; i < len(ops); i += workers {
				op := &ops[i]
				if op.Cancel {
					continue
				}
				c := clients[op.Trader]
				body, id, err := c.Sign(Limit{Token: market[op.Outcome], Side: op.Side,
					Price: op.Price, Size: op.Size, Type: "GTC", Salt: salt + uint64(i)})
				if err != nil {
					failures <- err
					return
				}
				out[i] = signed{c, http.MethodPost, body, id}
			}
			failures <- nil
		}()
	}
	for range workers {
		if err := <-failures; err != nil {
			return nil, err
		}
	}
	for i := range ops {
		if op := &ops[i]; op.Cancel {
			id := out[op.Target].id
			out[i] = signed{clients[op.Trader], http.MethodDelete, CancelBody(id), id}
		}
	}
	return out, nil
}

// httpCaller is one connection's closed loop.
type httpCaller struct {
	caller
	requests []signed
}

func (c *httpCaller) run(until func() bool) {
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	for i := range c.requests {
		r := &c.requests[i]
		for {
			if until() {
				return
			}
			start := time.Now()
			if err := r.client.Do(r.method, "/order", r.body, resp); err != nil {
				c.err = fmt.Errorf("%s /order: %w", r.method, err)
				return
			}
			if resp.StatusCode() == http.StatusServiceUnavailable {
				c.busy++
				time.Sleep(time.Millisecond)
				continue
			}
			c.rec.record(time.Since(start))
			if !c.count(r, resp) {
				return
			}
			break
		}
	}
}

// count counts an answer. Anything but 200 ends the caller and fails the run: every order is good,
// and a cancel of an order that is gone is answered with 200 too.
func (c *httpCaller) count(r *signed, resp *fasthttp.Response) bool {
	if resp.StatusCode() != 200 {
		c.err = fmt.Errorf("%s /order: status %d: %s", r.method, resp.StatusCode(), resp.Body())
		return false
	}
	c.acked++
	if r.method == http.MethodPost {
		c.placed = append(c.placed, r.id)
	}
	return true
}

// deal hands requests out to n connections by trader, so that a cancel follows its order.
func deal(ops []Op, requests []signed, n int) []*httpCaller {
	callers := make([]*httpCaller, min(n, Traders))
	for i := range callers {
		callers[i] = &httpCaller{caller: caller{rec: newRecorder()}}
	}
	for i := range requests {
		c := callers[int(ops[i].Trader)%len(callers)]
		c.requests = append(c.requests, requests[i])
	}
	return callers
}

// driveAll runs all connections at once until the time is up, or to their end if it is 0.
func driveAll(callers []*httpCaller, d time.Duration) time.Duration {
	start := time.Now()
	until := func() bool { return d > 0 && time.Since(start) > d }
	var wait sync.WaitGroup
	for _, c := range callers {
		wait.Go(func() { c.run(until) })
	}
	wait.Wait()
	return time.Since(start)
}

// runHTTP measures the node as a process of its own, from the signed request to its answer.
func runHTTP(ctx context.Context, r Run, report *Report, dir string) error {
	w := r.Workload
	if w.Books != 1 {
		return fmt.Errorf("level L3 measures workloads of one book")
	}
	file, market, err := benchCatalog(dir, w)
	if err != nil {
		return err
	}
	var node *child
	if r.URL == "" {
		node, err = startNode(ctx, r.Node, dir, "--catalog", file, "--limits", "off",
			"--durability", durability(r.Async), "--log-level", "error")
		if err != nil {
			return err
		}
		defer node.end()
		r.URL, r.Admin, r.Token = "http://"+node.listen, node.admin, node.token
	} else {
		market = r.Market
	}
	clients, err := traders(r.URL, r.Seed)
	if err != nil {
		return err
	}
	if err := fund(r.Admin, r.Token, clients, market); err != nil {
		return err
	}
	const prefill = 1000
	ops, _ := Generate(w, r.Seed, prefill, int(r.Duration.Seconds()*30_000))
	requests, err := sign(ops, clients, market, uint64(time.Now().UnixNano())&(1<<52-1))
	if err != nil {
		return err
	}
	warm := deal(ops[:prefill], requests[:prefill], r.Connections)
	driveAll(warm, 0)
	report.Warmup = prefill
	for _, c := range warm {
		if c.err != nil {
			return fmt.Errorf("warm-up: %w", c.err)
		}
	}
	callers := deal(ops[prefill:], requests[prefill:], r.Connections)
	cpu := nodeCPU(node)
	took := driveAll(callers, r.Duration)
	cpu = nodeCPU(node) - cpu
	report.addHTTP(callers, took, cpu)
	if node == nil {
		report.Checked = "every order answered with 200, and no other answer; " +
			"the node is not ours to stop and replay"
		report.Durability = "as the node says on its /readyz"
		return nil
	}
	if err := node.stop(); err != nil {
		return err
	}
	return replayNode(report, node.dir, append(warm, callers...))
}

func nodeCPU(node *child) time.Duration {
	if node == nil {
		return 0
	}
	return node.cpu()
}

// addHTTP adds up what the connections counted.
func (report *Report) addHTTP(callers []*httpCaller, took, cpu time.Duration) {
	var recs []recorder
	for _, c := range callers {
		recs = append(recs, c.rec)
		report.Acknowledged += c.acked
		report.Refused += c.refused
		report.Busy += c.busy
		if c.err != nil {
			report.Errors++
			report.Failure = c.err.Error()
		}
	}
	report.Operations = report.Acknowledged
	report.Connections = len(callers)
	report.Seconds = took.Seconds()
	report.ServiceMicros = merge(recs)
	if n := float64(report.Operations); n > 0 {
		report.Rate = n / took.Seconds()
		report.CPUMicros = float64(cpu.Nanoseconds()) / 1e3 / n
	}
}

// replayNode replays the journal that a stopped node left and looks for every acknowledged order.
func replayNode(report *Report, dir string, callers []*httpCaller) error {
	j, err := journal.Open(journal.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer j.Close()
	placed := map[engine.OrderID]bool{}
	x := engine.NewExchange(report.Seed)
	_, err = j.Recover(x, func(f *engine.Frame) error {
		report.scan(f, placed)
		return nil
	})
	if err != nil {
		report.Failure = "replay: " + err.Error()
		return nil
	}
	report.Digest = fmt.Sprintf("%016x", uint64(x.Digest()))
	report.Checked = "the node's journal replays, digests equal frame by frame; " +
		"every acknowledged order is in it"
	for _, c := range callers {
		report.missing(c.placed, placed)
	}
	return nil
}

// scan counts a replayed frame.
func (report *Report) scan(f *engine.Frame, placed map[engine.OrderID]bool) {
	for i := range f.Commands {
		if f.Commands[i].Kind == engine.Place {
			placed[f.Commands[i].ID] = true
		}
		for _, e := range f.EventsOf(i) {
			if e.Kind == engine.Filled {
				report.Filled++
			}
		}
	}
}

// missing fails the report if an acknowledged order is not in the journal.
func (report *Report) missing(acknowledged []engine.OrderID, placed map[engine.OrderID]bool) {
	for _, id := range acknowledged {
		if !placed[id] {
			report.Failure = "acknowledged order " + id.Hex() + " is not in the journal"
		}
	}
}

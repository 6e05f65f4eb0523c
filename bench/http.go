package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
)

// chain is the chain that bench traders sign for: the node's default.
const chain = 80002

// signed is one request of level L3, made before the clock runs. Only its HMAC, which covers the
// time, is computed when it is sent.
type signed struct {
	client *trader.Client
	method string
	body   []byte
	id     engine.OrderID
}

// traders makes the bench's wallets at url; their keys come from the seed.
func traders(ctx context.Context, url string, seed uint64) ([]*trader.Client, error) {
	rng := rand.New(rand.NewPCG(seed, 0x74726164))
	out := make([]*trader.Client, Traders)
	for i := range out {
		var key [32]byte
		for k := range key {
			key[k] = byte(rng.Uint32())
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c, err := trader.NewClient(url, chain, key)
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

// fund gives every trader collateral and both tokens of the markets: several traders at once,
// because each gift waits for its sync.
func (d desk) fund(ctx context.Context, clients []*trader.Client, markets [][2]engine.Token) error {
	tellers := make(chan struct{}, 16)
	problems := make([]error, len(clients))
	var wait sync.WaitGroup
	for i, c := range clients {
		tellers <- struct{}{}
		wait.Go(func() {
			problems[i] = d.endow(ctx, c.Signer.Address.Hex(), markets)
			<-tellers
		})
	}
	wait.Wait()
	return errors.Join(problems...)
}

// endow gives one wallet collateral and both tokens of the markets.
func (d desk) endow(ctx context.Context, wallet string, markets [][2]engine.Token) error {
	gifts := []map[string]string{{"wallet": wallet, "amount": "10000000"}}
	for _, pair := range markets {
		for _, t := range pair {
			gifts = append(gifts,
				map[string]string{"wallet": wallet, "amount": "1000000", "token": t.String()})
		}
	}
	for _, gift := range gifts {
		if err := d.post(ctx, "/admin/fund", gift); err != nil {
			return err
		}
	}
	return nil
}

// benchCatalog writes a catalog with so many markets of the workload's tick into dir.
func benchCatalog(dir string, w Workload, markets int) (
	file string, tokens [][2]engine.Token, err error) {
	list := make([]any, markets)
	for i := range list {
		pair := [2]engine.Token{Hashed("token 0", i), Hashed("token 1", i)}
		tokens = append(tokens, pair)
		condition, name := engine.Condition(Hashed("condition", i)), strconv.Itoa(i+1)
		ids, _ := json.Marshal([]string{pair[0].String(), pair[1].String()})
		list[i] = map[string]any{"id": name, "question": "Is it fast?", "slug": "is-it-fast-" + name,
			"conditionId": condition.Hex(), "clobTokenIds": string(ids),
			"outcomes": `["Yes", "No"]`, "active": true, "closed": false, "archived": false,
			"enableOrderBook": true, "acceptingOrders": true, "orderMinSize": 5,
			"orderPriceMinTickSize": json.Number(w.Tick.String())}
	}
	event := map[string]any{"id": "1", "title": "Bench", "slug": "bench", "markets": list}
	file = filepath.Join(dir, "catalog.json")
	b, err := json.Marshal([]any{event})
	if err != nil {
		return "", tokens, fmt.Errorf("encode catalog: %w", err)
	}
	return file, tokens, os.WriteFile(file, b, 0o644)
}

// signing holds the traders that sign and their markets, by Op.Book. salt keeps the orders of
// different rounds apart.
type signing struct {
	clients []*trader.Client
	markets [][2]engine.Token
	salt    uint64
}

// sign makes the requests of the operations on all cores.
func (s *signing) sign(ctx context.Context, ops []Op) ([]signed, error) {
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
				c := s.clients[op.Trader]
				body, id, err := c.Sign(trader.Limit{Token: s.markets[op.Book][op.Outcome], Side: op.Side,
					Price: op.Price, Size: op.Size, Type: "GTC", Salt: s.salt + uint64(i)})
				if err = cmp.Or(err, ctx.Err()); err != nil {
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
			out[i] = signed{s.clients[op.Trader], http.MethodDelete, trader.CancelBody(id), id}
		}
	}
	return out, nil
}

// lanes are n clients of addr that keep one connection each and never open another.
func lanes(addr string, n int) []*fasthttp.HostClient {
	out := make([]*fasthttp.HostClient, n)
	for i := range out {
		out[i] = &fasthttp.HostClient{Addr: addr, MaxConns: 1, ReadTimeout: answerTime,
			WriteTimeout: answerTime, MaxIdemponentCallAttempts: 1, NoDefaultUserAgentHeader: true}
	}
	return out
}

func hangUp(lanes []*fasthttp.HostClient) {
	for _, lane := range lanes {
		lane.CloseIdleConnections()
	}
}

// deal distributes requests to the lanes by trader, so that a cancel follows its order. A lane is
// one connection for all of its traders.
func deal(ops []Op, requests []signed, lanes []*fasthttp.HostClient) *crew {
	hands := make([][]signed, len(lanes))
	at := map[*trader.Client]*trader.Client{}
	for i, r := range requests {
		k := int(ops[i].Trader) % len(lanes)
		if at[r.client] == nil {
			same := *r.client
			same.Host = lanes[k]
			at[r.client] = &same
		}
		r.client = at[r.client]
		hands[k] = append(hands[k], r)
	}
	c := &crew{}
	for _, hand := range hands {
		c.join(func(n *counts, until func() bool) { n.request(hand, until) })
	}
	return c
}

// request is one connection's closed loop.
func (n *counts) request(requests []signed, until func() bool) {
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	for ; n.next < len(requests); n.next++ {
		r := &requests[n.next]
		for {
			if until() {
				return
			}
			start := time.Now()
			if err := r.client.Do(r.method, "/order", r.body, resp); err != nil {
				n.err = fmt.Errorf("%s /order: %w", r.method, err)
				return
			}
			if resp.StatusCode() == http.StatusServiceUnavailable {
				n.busy++
				time.Sleep(time.Millisecond)
				continue
			}
			n.rec.Record(time.Since(start))
			if !n.answered(r, resp) {
				return
			}
			break
		}
	}
}

// answered counts an answer. Any status but 200 ends the caller and fails the run. So does an order
// without success, because every order is valid. A cancel of an order that is gone also gets 200;
// it is counted as refused.
func (n *counts) answered(r *signed, resp *fasthttp.Response) bool {
	placed := r.method == http.MethodPost
	if resp.StatusCode() != 200 ||
		placed && !bytes.Contains(resp.Body(), []byte(`"success":true`)) {
		n.err = fmt.Errorf("%s /order: status %d: %s", r.method, resp.StatusCode(), resp.Body())
		return false
	}
	n.acked++
	if placed {
		n.placed = append(n.placed, r.id)
	} else if bytes.Contains(resp.Body(), []byte(`"canceled":[]`)) {
		n.refused++
	}
	return true
}

// target is the node that L3 measures: the run's own, or somebody else's.
type target struct {
	url    string
	desk   desk
	market [][2]engine.Token // one
	own    *child            // nil: somebody else's
}

// target starts a node, or takes the one that was named, and reads its conditions.
func (t *trial) target(ctx context.Context) (*target, error) {
	to := &target{url: t.URL, desk: desk{t.Admin, t.Token}, market: [][2]engine.Token{t.Market}}
	conditions := &t.report.Conditions
	if t.URL == "" {
		file, market, err := benchCatalog(t.dir, t.Workload, 1)
		if err != nil {
			return nil, err
		}
		to.own, err = startNode(ctx, t.Node, t.dir, "--catalog", file, "--durability",
			durability(t.Async))
		if err != nil {
			return nil, err
		}
		to.url, to.desk, to.market = "http://"+to.own.addr, to.own.desk, market
	} else {
		conditions.Data = &Disk{Dir: unknown, Filesystem: unknown, Device: unknown, Options: unknown}
	}
	var err error
	if conditions.Node, err = to.desk.conditions(ctx); err != nil {
		to.end()
		return nil, err
	}
	if to.own != nil {
		conditions.Node.Started, conditions.Node.Cgo = true, cgoIn(t.Node)
	}
	t.report.Durability = conditions.Node.Durability
	return to, nil
}

func (to *target) end() {
	if to.own != nil {
		to.own.end()
	}
}

// clock reads the CPU time of the node's process. For somebody else's node it reads the node's
// metrics, which include all other work of that node.
func (to *target) clock(ctx context.Context) clock {
	if to.own != nil {
		return to.own.cpu
	}
	return func() (time.Duration, error) { return to.desk.cpu(ctx) }
}

// runHTTP measures the node as a process of its own, from the signed request to its answer.
func (t *trial) runHTTP(ctx context.Context) error {
	to, err := t.target(ctx)
	if err != nil {
		return err
	}
	defer to.end()
	clients, err := traders(ctx, to.url, t.Seed)
	if err != nil {
		return err
	}
	if err := to.desk.fund(ctx, clients, to.market); err != nil {
		return err
	}
	const prefill = 1000
	ops, _, err := generate(ctx, t.Workload, t.Seed, [2]int{prefill, t.operations()})
	if err != nil {
		return err
	}
	s := signing{clients, to.market, uint64(time.Now().UnixNano()) & (1<<52 - 1)}
	requests, err := s.sign(ctx, ops)
	if err != nil {
		return err
	}
	lanes := lanes(clients[0].Host.Addr, t.Connections)
	defer hangUp(lanes)
	warm := deal(ops[:prefill], requests[:prefill], lanes)
	warm.drive(ctx, 0)
	first, _ := warm.sum()
	if first.err != nil {
		return fmt.Errorf("warm-up: %w", first.err)
	}
	t.report.Warmup, t.placed = prefill, first.placed
	work := deal(ops[prefill:], requests[prefill:], lanes)
	if err := t.measureTurns(ctx, work, to.clock(ctx)); err != nil {
		return err
	}
	if to.own == nil {
		t.report.Digest = unknown
		t.report.Checked = "every order answered with 200 and success, and no other answer; " +
			"the node is not ours to stop and replay"
		return nil
	}
	if err := to.own.stop(); err != nil {
		return err
	}
	return t.replayNode(ctx, to.own.dir)
}

// replayNode replays the journal that a stopped node left and looks for every acknowledged order.
func (t *trial) replayNode(ctx context.Context, dir string) error {
	r := t.report
	x := engine.NewExchange(r.Seed)
	seen, err := replayFolder(ctx, dir, x)
	if seen == nil {
		return err
	}
	if err != nil {
		r.Failure = "replay: " + err.Error()
		return nil
	}
	r.Filled = &seen.fills
	r.Digest = fmt.Sprintf("%016x", uint64(x.Digest()))
	r.Checked = "the node's journal replays, digests equal frame by frame; " +
		"every acknowledged order is in it"
	r.missing(t.placed, seen)
	return nil
}

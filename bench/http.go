package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// chain is the chain that bench traders sign for: the node's default.
const chain = 80002

// signed is one request of level L3, made before the clock runs, but for its HMAC, which covers the
// time: package lean says when.
type signed struct {
	client  *trader.Client
	method  string
	body    []byte
	id      engine.OrderID
	path    string // of a read
	private bool   // the read is authenticated
	quote   bool   // the read is of a price, which an empty side of the book has not
}

// traders makes the bench's wallets at url; their keys come from the seed.
func traders(ctx context.Context, url string, seed uint64) ([]*trader.Client, error) {
	return tradersOf(ctx, url, seed, workload.Traders)
}

// signing holds the traders that sign and their markets, by Op.Book. salt keeps the orders of
// different rounds apart.
type signing struct {
	clients []*trader.Client
	markets [][2]engine.Token
	salt    uint64
	low     bool         // the threads that sign are at nice 19: a load runs beside them
	spent   atomic.Int64 // ns of CPU time that they took
}

// sign makes the requests of the operations on all cores.
func (s *signing) sign(ctx context.Context, ops []workload.Op) ([]signed, error) {
	out := make([]signed, len(ops))
	workers := runtime.NumCPU()
	failures := make(chan error, workers)
	for w := range workers {
		go func() {
			if s.low {
				defer s.lower()()
			}
			for i := w; i < len(ops); i += workers {
				op := &ops[i]
				c := s.clients[op.Trader]
				if op.Read != 0 {
					out[i] = s.read(op)
				}
				if op.Cancel || op.Read != 0 {
					continue
				}
				kind := "GTC"
				if op.FAK {
					kind = "FAK"
				}
				body, id, err := c.Sign(trader.Limit{Token: s.markets[op.Book][op.Outcome], Side: op.Side,
					Price: op.Price, Size: op.Size, Type: kind, Salt: s.salt + uint64(i)})
				if err = cmp.Or(err, ctx.Err()); err != nil {
					failures <- err
					return
				}
				out[i] = signed{client: c, method: http.MethodPost, body: body, id: id}
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
		switch op := &ops[i]; {
		case op.All != 0: // playHTTP makes it
		case op.Cancel:
			id := out[op.Target].id
			out[i] = signed{client: s.clients[op.Trader], method: http.MethodDelete,
				body: trader.CancelBody(id), id: id}
		}
	}
	return out, nil
}

// lower gives this goroutine a thread of its own, at the lowest priority. The thread ends with the
// goroutine; what is returned counts its CPU time.
func (s *signing) lower() func() {
	runtime.LockOSThread() // and never unlocked
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), 19)
	return func() {
		var u syscall.Rusage
		if syscall.Getrusage(rusageThread, &u) == nil {
			s.spent.Add(u.Utime.Nano() + u.Stime.Nano())
		}
	}
}

const rusageThread = 1 // RUSAGE_THREAD, which package syscall has no name for

// read is the request of an operation that reads.
func (s *signing) read(op *workload.Op) signed {
	r := signed{client: s.clients[op.Trader], method: http.MethodGet, path: "/data/orders",
		private: true}
	of := map[workload.Read]string{workload.ReadBook: "book", workload.ReadPrice: "price",
		workload.ReadMidpoint: "midpoint"}[op.Read]
	if of != "" {
		r.path, r.private = readPaths[of]+s.markets[op.Book][op.Outcome].String(), false
		r.quote = op.Read != workload.ReadBook
	}
	return r
}

// target is the node that L3 measures: the run's own, or somebody else's.
type target struct {
	url    string
	desk   desk
	market [][2]engine.Token // by Op.Book
	own    *child            // nil: somebody else's
}

// target starts a node, or takes the one that was named, and reads its conditions.
func (t *trial) target(ctx context.Context) (*target, error) {
	to := &target{url: t.URL, desk: desk{t.Admin, t.Token}, market: [][2]engine.Token{t.Market}}
	conditions := &t.report.Conditions
	if t.URL == "" {
		file, market, err := t.catalog()
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
	if t.Keys != nil {
		t.report.Durability = unknown
		return to, nil // admit asks its public listener
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
	return func() (time.Duration, error) {
		if to.desk.addr == "" {
			return 0, errors.New("the node's CPU time is known to its operator only")
		}
		return to.desk.cpu(ctx)
	}
}

// runHTTP measures the node as a process of its own, from the signed request to its answer.
func (t *trial) runHTTP(ctx context.Context) (err error) {
	if t.Data != "" {
		return t.playHTTP(ctx)
	}
	to, err := t.target(ctx)
	if err != nil {
		return err
	}
	defer to.end()
	const prefill = 1000
	warm := max(t.Workload.Warmup(prefill), t.Warmup)
	ops, _, err := t.Workload.Draw(ctx, t.Seed, warm, t.operations())
	if err != nil {
		return err
	}
	clients, err := t.admit(ctx, to, ops)
	if err != nil {
		return err
	}
	if t.Keys != nil {
		defer func() { err = errors.Join(err, leave(clients)) }()
	}
	s := signing{clients: clients, markets: to.market,
		salt: uint64(time.Now().UnixNano()) & (1<<52 - 1)}
	requests, err := s.sign(ctx, ops)
	if err != nil {
		return err
	}
	addr := clients[0].Host.Addr
	if err := t.warmUp(ctx, addr, ops[:warm], requests[:warm]); err != nil {
		return err
	}
	work := newVolley(addr, t.Connections)
	work.deal(ops[warm:], requests[warm:])
	if err := t.fireObserved(ctx, to, work, clients[0]); err != nil {
		return err
	}
	switch {
	case to.own != nil:
		l := newBookkeeper()
		for i := range ops {
			if op := &ops[i]; !op.Cancel && op.Read == 0 {
				l.drawn[requests[i].id] = op
			}
		}
		return t.audit(ctx, to, clients, l)
	case t.Keys != nil:
		return t.confirmAll(ctx, clients)
	}
	t.report.Digest = unknown
	t.report.Checked = "every order answered with 200 and success, and no other answer; " +
		"the node is not ours to stop and replay"
	return nil
}

// admit makes the wallets of the run and sees to their funds.
func (t *trial) admit(ctx context.Context, to *target, ops []workload.Op) (
	[]*trader.Client, error) {
	if t.Keys == nil {
		clients, err := traders(ctx, to.url, t.Seed)
		if err != nil {
			return nil, err
		}
		return clients, to.desk.give(ctx, stakes(clients, to.market, t.Workload.Trades))
	}
	clients, err := clientsOf(ctx, to.url, cmp.Or(t.Chain, chain), t.Keys)
	if err != nil {
		return nil, err
	}
	t.report.Conditions.Node = publicly(clients[0])
	need := needs(ops, len(clients))
	for i := range ops {
		ops[i].Trader %= uint16(len(clients))
	}
	return clients, provide(ctx, clients, to.market[0], need)
}

// fireObserved sends the volley while the node's metrics are read, and while an audience listens if
// the workload has one.
func (t *trial) fireObserved(ctx context.Context, to *target, v *volley, c *trader.Client) error {
	var hall *listeners // nil: nobody listens
	if t.Workload.Name == listening {
		var err error
		if hall, err = t.gather(ctx, c, to.market[0], v); err != nil {
			return err
		}
		defer hall.hall.End()
	}
	seen := observe(ctx, to.desk, nil)
	err := t.fireTurns(ctx, v, to.clock(ctx))
	seen.end(ctx, t.report)
	if err == nil && hall != nil {
		err = hall.hear(t.report)
	}
	return err
}

// confirmAll asks the node, as their owners may, for all orders that it has acknowledged.
func (t *trial) confirmAll(ctx context.Context, clients []*trader.Client) error {
	r, lost := t.report, 0
	for _, c := range clients {
		n, err := confirm(ctx, c, t.placedBy[c.Address])
		if err != nil {
			return fmt.Errorf("look for the acknowledged orders: %w", err)
		}
		lost += n
	}
	r.Digest = unknown
	r.Checked = fmt.Sprintf("the node tells their owners of each of the %d acknowledged orders "+
		"(POST /data/orders); it is not ours to stop and replay", len(t.placed))
	if lost > 0 {
		r.Failure = fmt.Sprintf("the node does not know %d of %d acknowledged orders", lost, len(t.placed))
	}
	return nil
}

// warmUp sends the first operations of a run, over connections of their own.
func (t *trial) warmUp(ctx context.Context, addr string, ops []workload.Op,
	requests []signed) error {
	warm := newVolley(addr, t.Connections)
	warm.deal(ops, requests)
	m, err := warm.Run(ctx)
	if err == nil && m.Failed > 0 {
		err = errors.New(m.Failure)
	}
	if err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	t.report.Warmup = len(ops)
	t.keep(warm, m)
	return nil
}

// replayNode replays the journal that a stopped node left and looks for every acknowledged order.
func (t *trial) replayNode(ctx context.Context, dir string) error {
	return t.replayInto(ctx, dir, nil)
}

// replayInto is replayNode, and enters the journal into the accounts of l unless that is nil.
func (t *trial) replayInto(ctx context.Context, dir string, l *bookkeeper) error {
	r := t.report
	x := engine.NewExchange(r.Seed)
	seen := newReplay()
	seen.bookkeeper = l
	seen, err := seen.folder(ctx, dir, x)
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

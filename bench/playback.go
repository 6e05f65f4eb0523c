package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// catalog writes the catalog of the run's own node.
func (t *trial) catalog() (file string, tokens [][2]engine.Token, err error) {
	if t.score == nil {
		return benchCatalog(t.dir, t.Workload, t.Workload.Books)
	}
	for i := range t.score.Listings {
		tokens = append(tokens, t.score.Listings[i].Tokens)
	}
	file, err = writeCatalog(t.dir, t.score.Listings)
	return file, tokens, err
}

// playHTTP is L3 of a replay: the recorded orders, signed again by bench wallets, over HTTP to a
// fresh node with the recorded markets.
func (t *trial) playHTTP(ctx context.Context) (err error) {
	if t.score, err = workload.ReadScore(ctx, t.Data); err != nil {
		return err
	}
	s := t.score
	to, err := t.target(ctx)
	if err != nil {
		return err
	}
	defer to.end()
	clients, err := tradersOf(ctx, to.url, t.Seed, len(s.Stakes))
	if err != nil {
		return err
	}
	gifts := giftsOf(s, func(i int) string { return clients[i].Signer.Address.Hex() })
	if err := to.desk.give(ctx, gifts); err != nil {
		return err
	}
	signing := signing{clients: clients, markets: to.market,
		salt: uint64(time.Now().UnixNano()) & (1<<52 - 1)}
	requests, err := signing.sign(ctx, s.Ops)
	if err != nil {
		return err
	}
	for i := range s.Ops {
		if op := &s.Ops[i]; op.All != 0 {
			requests[i] = sweep(s, op, clients[op.Trader])
		}
	}
	work := newVolley(clients[0].Host.Addr, t.Connections)
	work.deal(s.Ops, requests)
	if t.Pace > 0 {
		work.Due = s.Paced(t.Pace)
		t.report.Loop, t.report.Arrivals = "open", fmt.Sprintf("as recorded, times %g", t.Pace)
	}
	if err := t.fireObserved(ctx, to, work, nil); err != nil {
		return err
	}
	if err := to.own.stop(); err != nil {
		return err
	}
	if err := t.replayNode(ctx, to.own.dir); err != nil || t.report.Failure != "" {
		return err
	}
	t.report.Checked += "; not played as recorded: " + s.Left()
	if t.Connections > 1 || t.report.Operations != int64(len(s.Ops)) {
		return nil
	}
	return t.sameEnd(ctx, to.own.dir)
}

// sameEnd compares what the node's journal ends with, and what the same operations in the same
// order end with on an Exchange alone: they came over one connection.
func (t *trial) sameEnd(ctx context.Context, dir string) error {
	want, had := t.score.Play(), workload.Tally{}
	err := workload.Recorded(ctx, dir, func(f *engine.Frame) bool {
		for i := range f.Commands {
			had.Add(f.EventsOf(i))
		}
		return true
	})
	if err != nil {
		return err
	}
	if had.Fills != want.Fills || had.Volume != want.Volume || had.Live != want.Live {
		t.report.Failure = fmt.Sprintf("the node ended with %d fills of %s shares and %d resting orders; "+
			"the same operations on an Exchange alone with %d of %s and %d", had.Fills, had.Volume,
			had.Live, want.Fills, want.Volume, want.Live)
	}
	t.report.Checked += "; fills, volume and resting orders equal to those of an Exchange alone"
	return nil
}

// sweep is the request of a cancel of many orders.
func sweep(s *workload.Score, op *workload.Op, c *trader.Client) signed {
	r := signed{client: c, method: http.MethodDelete, path: "/cancel-all"}
	if op.All == workload.AllOrders {
		return r
	}
	r.path = "/cancel-market-orders"
	named := map[string]string{"asset_id": s.Listings[op.Book].Tokens[op.Outcome].String()}
	if op.All == workload.AllInMarket {
		named = map[string]string{"market": s.Listings[op.Book].Condition.Hex()}
	}
	r.body, _ = json.Marshal(named) // a map of strings
	return r
}

// tradersOf makes n of the bench's wallets at url; their keys come from the seed.
func tradersOf(ctx context.Context, url string, seed uint64, n int) ([]*trader.Client, error) {
	keys := rand.New(rand.NewPCG(seed, 0x74726164))
	out := make([][32]byte, n)
	for i := range out {
		var key [32]byte
		for k := range key {
			key[k] = byte(keys.Uint32())
		}
		out[i] = key
	}
	return clientsOf(ctx, url, chain, out)
}

package bench

import (
	"context"
	"fmt"

	"clobd/bench/trader"
	"clobd/bench/workload"
)

// batch prepares rounds that post the same kind of signed orders to one node, in lists and one by
// one. Each side has orders of its own, because an order is taken once.
func (k *contest) batch(ctx context.Context, w workload.Workload,
	clients []*trader.Client) func(int) (loads, error) {
	k.out.Node.Name = fmt.Sprintf("POST /orders of %d", workload.ListSize)
	k.out.Baseline.Name = "POST /order, one by one"
	return func(round int) (loads, error) {
		var ops [2][]workload.Op
		var requests [2][]signed
		for i := range ops {
			n := max(int(k.Duration.Seconds()*k.perSecond), 4*workload.ListSize*len(clients))
			var err error
			if ops[i], err = k.draw(ctx, w, 2*round+i, n); err != nil {
				return nil, err
			}
			s := signing{clients: clients, markets: k.markets, salt: uint64(2*round+i+4) << 40}
			if requests[i], err = s.sign(ctx, ops[i]); err != nil {
				return nil, err
			}
		}
		return func(s *Side) *volley {
			v := newVolley(s.server.addr, k.Connections)
			if s == &k.out.Baseline {
				v.deal(ops[1], requests[1])
			} else {
				v.dealLists(ops[0], requests[0])
			}
			return v
		}, nil
	}
}

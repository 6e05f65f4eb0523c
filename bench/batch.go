package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
)

// listSize is how many orders a POST /orders has: the most that the node takes.
const listSize = 15

// batch prepares rounds that post the same kind of signed orders to one node, in lists and one by
// one. Each side has orders of its own, because an order is taken once.
func (k *contest) batch(ctx context.Context, w Workload, clients []*trader.Client) func(int) (
	workload, error) {
	k.out.Node.Name = fmt.Sprintf("POST /orders of %d", listSize)
	k.out.Baseline.Name = "POST /order, one by one"
	return func(round int) (workload, error) {
		var ops [2][]Op
		var requests [2][]signed
		for i := range ops {
			n := max(int(k.Duration.Seconds()*k.perSecond), 16*listSize*len(clients))
			var err error
			if ops[i], err = k.draw(ctx, w, 2*round+i, n); err != nil {
				return nil, err
			}
			s := signing{clients: clients, markets: k.markets, salt: uint64(2*round+i+4) << 40}
			if requests[i], err = s.sign(ctx, ops[i]); err != nil {
				return nil, err
			}
		}
		return func(s *Side, lanes []*fasthttp.HostClient) *crew {
			if s == &k.out.Baseline {
				return deal(ops[1], requests[1], lanes)
			}
			return dealLists(ops[0], requests[0], lanes)
		}, nil
	}
}

// list is one POST /orders.
type list struct {
	client *trader.Client
	body   []byte
	orders []signed
}

// dealLists hands requests out to the lanes as lists, each of one trader.
func dealLists(ops []Op, requests []signed, lanes []*fasthttp.HostClient) *crew {
	var open [Traders]*list
	hands := make([][]*list, len(lanes))
	for i := range requests {
		of := ops[i].Trader
		l := open[of]
		if l == nil {
			same := *requests[i].client
			same.Host = lanes[int(of)%len(lanes)]
			l = &list{client: &same, body: []byte{'['}}
			open[of] = l
		}
		if len(l.orders) > 0 {
			l.body = append(l.body, ',')
		}
		l.body = append(l.body, requests[i].body...)
		if l.orders = append(l.orders, requests[i]); len(l.orders) == listSize {
			l.body = append(l.body, ']')
			k := int(of) % len(lanes)
			hands[k], open[of] = append(hands[k], l), nil
		}
	}
	c := &crew{}
	for _, hand := range hands {
		c.join(func(n *counts, until func() bool) { n.post(hand, until) })
	}
	return c
}

// post is one connection's closed loop of lists.
func (n *counts) post(lists []*list, until func() bool) {
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	for i := 0; i < len(lists) && !until(); {
		l := lists[i]
		start := time.Now()
		if err := l.client.Do(http.MethodPost, "/orders", l.body, resp); err != nil {
			n.err = fmt.Errorf("POST /orders: %w", err)
			return
		}
		if resp.StatusCode() == http.StatusServiceUnavailable {
			n.busy++
			time.Sleep(time.Millisecond)
			continue
		}
		n.rec.Record(time.Since(start))
		if good := bytes.Count(resp.Body(), []byte(`"success":true`)); resp.StatusCode() != 200 ||
			good != len(l.orders) {
			n.err = fmt.Errorf("POST /orders: status %d: %s", resp.StatusCode(), resp.Body())
			return
		}
		for _, r := range l.orders {
			n.placed = append(n.placed, r.id)
		}
		n.acked += int64(len(l.orders))
		i++
	}
}

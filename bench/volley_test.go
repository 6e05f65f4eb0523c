package bench

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/bench/lean"
	"clobd/bench/workload"
	"clobd/engine"
)

// mixed are operations of two traders: lists of orders and of cancels, orders that never rest, and
// all reads.
func mixed() []workload.Op {
	var ops []workload.Op
	buy := func(trader uint16, list uint32) {
		ops = append(ops, workload.Op{Trader: trader, List: list, Side: engine.Buy, Price: 3000,
			Size: 10 * engine.Unit})
	}
	for range workload.ListSize + 2 { // more than one request takes
		buy(0, 1)
	}
	buy(1, 1) // another trader's
	buy(1, 0)
	buy(1, 0)
	for i := range uint32(3) {
		ops = append(ops, workload.Op{Cancel: true, Target: i, List: 2})
	}
	ops = append(ops, workload.Op{Cancel: true, Target: 0, List: 3},
		workload.Op{Cancel: true, Target: 5, List: 3},
		workload.Op{Cancel: true, Target: 17, Trader: 1})
	for r := workload.ReadBook; r <= workload.ReadOrders; r++ {
		ops = append(ops, workload.Op{Read: r, Trader: 1})
	}
	// Nobody sells: the first finds nothing. The second sells into the bids.
	ops = append(ops, workload.Op{FAK: true, Trader: 1, Side: engine.Buy, Price: 4000,
		Size: 10 * engine.Unit},
		workload.Op{FAK: true, Trader: 1, Side: engine.Sell, Price: 3000, Size: 10 * engine.Unit})
	return ops
}

// TestVolley sends operations of all kinds to a node, and looks at what it took.
func TestVolley(t *testing.T) {
	n, err := newInside()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	}()
	clients, err := traders(t.Context(), "http://"+n.addr, 1)
	if err != nil {
		t.Fatal(err)
	}
	market := workload.Tokens(0)
	commands := []engine.Command{{Kind: engine.List, Listing: &engine.Listing{
		Condition: workload.Hashed("condition", 0), Tokens: market, Group: 1, Tick: 100, MinSize: engine.Unit,
		Open: true}}}
	for _, c := range clients[:2] {
		commands = append(commands,
			engine.Command{Kind: engine.Deposit, Address: c.Signer.Address, Cash: workload.TraderCash},
			engine.Command{Kind: engine.Deposit, Address: c.Signer.Address, Market: 1,
				Size: workload.TraderShares})
	}
	for _, c := range commands {
		if err := n.submit(c); err != nil {
			t.Fatal(err)
		}
	}
	ops := mixed()
	s := signing{clients: clients, markets: [][2]engine.Token{market}, salt: 1}
	requests, err := s.sign(t.Context(), ops)
	if err != nil {
		t.Fatal(err)
	}
	v := newVolley(n.addr, 1)
	v.deal(ops, requests)
	var sent []string
	var sizes []int
	for _, r := range v.Requests {
		sent = append(sent, v.Routes[r.Route].Method)
		sizes = append(sizes, len(r.IDs))
	}
	if !slices.Equal(sizes, []int{15, 2, 1, 1, 1, 3, 2, 1, 0, 0, 0, 0, 1, 1}) ||
		sent[4] != http.MethodPost || sent[5] != http.MethodDelete || sent[8] != http.MethodGet {
		t.Fatalf("%v of %v operations", sent, sizes)
	}
	m, err := v.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Refused were the second cancel of order 0, the midpoint of a book without asks, and the FAK that
	// found nothing.
	if m.Failed != 0 || m.Good != 14 || m.Acked != 32 || m.Refused != 3 {
		t.Errorf("%+v", m)
	}
	if placed := v.placed(m); len(placed) != 22 || placed[0] != requests[0].id {
		t.Errorf("%d orders were placed", len(placed))
	}
	lists := newVolley(n.addr, 2)
	lists.dealLists(ops[:workload.ListSize+1], requests[:workload.ListSize+1])
	if len(lists.Requests) != 1 || len(lists.Requests[0].IDs) != workload.ListSize {
		t.Errorf("%d lists", len(lists.Requests))
	}
	again := reads(n.addr, readPaths["book"]+market[0].String(), 2, []byte("no book"))
	again.Duration = 1e8
	if m, err := again.Run(t.Context()); err != nil || m.Good != 0 || m.Failed == 0 {
		t.Errorf("another answer was taken: %+v, %v", m, err)
	}
}

// TestTake puts what came of a load into a report.
func TestTake(t *testing.T) {
	n, err := newInside()
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	v := reads(n.addr, "/time", 2, nil)
	v.Duration, v.Rate = 150*time.Millisecond, 200
	var m *lean.Measured
	for try := 1; m == nil || m.Unsent > 0; try++ { // a busy machine gives up what is too late
		v.Duration *= 2
		if m, err = v.Run(t.Context()); err != nil || m.Failed > 0 || try == 6 {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	sent := int64(v.Duration.Seconds() * v.Rate)
	r := &Report{}
	r.take(m)
	g := r.Generator
	if r.Acknowledged != sent || r.CorrectedMicros == nil || r.CorrectedMicros.P50 <= 0 ||
		r.Rate <= 0 || g.Processes != 1 || g.CPUMicros <= 0 || g.Share <= 0 || g.LateMicros.Max <= 0 ||
		len(r.Timeline) == 0 || r.Histograms["service"] == "" || r.Histograms["corrected"] == "" ||
		r.EndedBy != endedByTime {
		t.Errorf("%+v, %+v", r, g)
	}
	p := paced(200, v.Duration, m)
	if p.Sent != sent || p.Achieved > 201 || p.CorrectedMicros != *r.CorrectedMicros ||
		p.Histograms["service"] == "" || p.Histograms["corrected"] == "" {
		t.Errorf("%+v", p)
	}
	r = &Report{}
	if r.take(&lean.Measured{Service: m.Service, Corrected: m.Corrected, Late: m.Late, Failed: 2,
		Failure: "status 400"}); r.Errors != 2 || r.Failure != "status 400" || r.EndedBy == endedByTime {
		t.Errorf("%+v", r)
	}
	r = &Report{}
	if r.take(&lean.Measured{Service: m.Service, Corrected: m.Corrected, Late: m.Late, Busy: 7,
		Full: true}); !strings.Contains(r.Failure, "no operation was acknowledged; the node was busy 7") {
		t.Errorf("nothing but 503: %q", r.Failure)
	}
}

package history

import (
	"testing"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// wildly makes a maker that uses all there is: every order type and end, wallets of other owners,
// fees, markets that stop, and takers that sweep.
func wildly(m *maker) *maker {
	for i := range m.script {
		if l := m.script[i].Listing; l != nil && i%2 == 0 {
			l.Fee = engine.Fee{Rate: 200, Exponent: 1}
		}
	}
	for w := 5; w <= makerWallets; w++ { // 5 and 6 are traded for by 1, 7 and 8 by 2
		m.script = append(m.script, engine.Command{Kind: engine.Link,
			Address: engine.Address{19: byte(w)}, Holder: engine.Address{19: byte((w - 3) / 2)}})
	}
	for w := range engine.WalletNo(makerWallets) {
		m.script = append(m.script, engine.Command{Kind: engine.SetPrevention, Wallet: w + 1,
			Prevention: engine.Prevention(w % 4)})
	}
	m.draw = (*maker).wild
	return m
}

// ownerOf is who trades for a wallet, more often than not.
func (m *maker) ownerOf(w engine.WalletNo) engine.WalletNo {
	if w < 5 || m.r.IntN(4) == 0 {
		return w
	}
	return (w - 3) / 2
}

// wild draws a Command.
func (m *maker) wild() engine.Command {
	if m.r.IntN(40) == 0 {
		m.now += engine.Time(m.r.IntN(400))
	}
	market := engine.MarketNo(1 + m.r.IntN(makerMarkets))
	w := engine.WalletNo(1 + m.r.IntN(makerWallets))
	switch n := m.r.IntN(1000); {
	case n < 150 && len(m.live) > 0:
		i := m.r.IntN(len(m.live))
		id := m.live[i]
		m.live[i] = m.live[len(m.live)-1]
		m.live = m.live[:len(m.live)-1]
		return engine.Command{Kind: engine.Cancel, ID: id, Owner: m.orders[id].Owner}
	case n < 155:
		return engine.Command{Kind: engine.CancelAll, Wallet: w, Owner: m.ownerOf(w),
			Reason: engine.ByOwner, Market: market * engine.MarketNo(m.r.IntN(2))}
	case n < 158:
		return engine.Command{Kind: engine.CancelAll, Wallet: w, Reason: engine.ByOperator}
	case n < 160:
		return engine.Command{Kind: engine.CancelAll, Wallet: w, Owner: m.ownerOf(w),
			Reason: engine.Timeout, Only: engine.OnlyKey, Key: uint32(w) * 7}
	case n < 190:
		return engine.Command{Kind: engine.Advance}
	case n < 194:
		state := []engine.MarketState{engine.Open, engine.Open, engine.Paused, engine.Closed}
		return engine.Command{Kind: engine.SetState, Market: market, State: state[m.r.IntN(4)]}
	case n < 205: // none stays paused or closed for long
		return engine.Command{Kind: engine.SetState, Market: market, State: engine.Open}
	case n == 205 && m.r.IntN(4) == 0:
		return engine.Command{Kind: engine.Resolve, Market: makerMarkets, Price: 10_000, ID: m.id()}
	case n < 208:
		return engine.Command{Kind: engine.SplitTokens, Market: market, Wallet: w, Size: engine.Unit,
			ID: m.id()}
	}
	return m.wildOrder(market, w)
}

// wildOrder draws a Place.
func (m *maker) wildOrder(market engine.MarketNo, w engine.WalletNo) engine.Command {
	size, price := int64(5+m.r.IntN(20))*engine.Unit, int64(46+m.r.IntN(10)*2)
	c := engine.Command{Kind: engine.Place, Side: engine.Side(m.r.IntN(2)),
		Outcome: engine.Outcome(m.r.IntN(2)), Market: market, Wallet: w, Owner: m.ownerOf(w),
		Key: uint32(w)*7 + uint32(m.r.IntN(2)), Seen: m.head.Sequence, ID: m.id()}
	c.Proof = c.ID[:1]
	switch m.r.IntN(10) {
	case 0, 1:
		c.Type, size = engine.FAK, size*int64(1+m.r.IntN(8))
	case 2:
		c.Type, size = engine.FOK, size*int64(1+m.r.IntN(4))
	case 3:
		c.Type = engine.GTD
		c.Expiry = makerTime + engine.Time(m.head.Frame) + m.now + engine.Time(1+m.r.IntN(300))
	case 4:
		c.PostOnly = true
	}
	if c.Type < engine.FOK && m.r.IntN(2) == 0 { // rests more often than not
		price = 40 + 2*int64(m.r.IntN(4)) + int64(c.Side)*14
	}
	c.Size, c.Cash = engine.Size(size), engine.Cash(size*price/100)
	if len(m.live) > 0 && m.r.IntN(6) == 0 {
		id := m.live[m.r.IntN(len(m.live))]
		c.Wallet, c.Owner = m.orders[id].Wallet, m.orders[id].Owner
		c.Replace(id)
	}
	return c
}

// mustPast asks for the order as if it came again: it gets its first answer, brought up to date.
func mustPast(t *testing.T, h *History, o *OrderRow, first engine.Receipt) {
	t.Helper()
	want := first
	if o.Reject == engine.Accepted {
		want.Status, want.Making, want.Taking = o.Status, o.Making, o.Taking
		want.Remaining, want.Reason = max(o.Size-o.Matched, 0), o.Reason
	}
	got, known, _, err := h.Past(o.ID)
	if err != nil || !known || got != want {
		t.Fatalf("%v %v\n%+v, want\n%+v", known, err, got, want)
	}
	if first.Status != engine.Live && got != first {
		t.Fatalf("never rested, but\n%+v became\n%+v", first, got)
	}
}

// TestWildIndexEqualsTheModel: whatever touches an order, its row says so, and nothing is left out
// that can end one.
func TestWildIndexEqualsTheModel(t *testing.T) {
	j, m := newJournal(t, vfs.NewMem(), 22)
	defer shut(t, j)
	wildly(m)
	x, stop := run(t, j, Options{})
	defer func() { stop() }()
	for range 4 {
		m.write(t, j, 40, 50)
		mustEqual(t, x, m)
		stop()
		x, stop = run(t, j, Options{})
	}
	reasons, rejects := make(map[engine.Reason]int), make(map[engine.Reject]int)
	over, fees := 0, 0
	if x.fold.at.orders != uint64(len(m.orders)) {
		t.Errorf("%d rows are counted, want %d", x.fold.at.orders, len(m.orders))
	}
	for id, o := range m.orders {
		reasons[o.Reason]++
		rejects[o.Reject]++
		if o.Matched > o.Size {
			over++
		}
		if o.Fee > 0 {
			fees++
		}
		mustPast(t, x.History, o, m.first[id])
	}
	for why := engine.Reason(0); why <= engine.MarketResolved; why++ {
		if reasons[why] == 0 {
			t.Errorf("no order ended for reason %d", why)
		}
	}
	for _, why := range []engine.Reject{engine.RejectFOK, engine.RejectFAK, engine.RejectCrosses} {
		if rejects[why] == 0 {
			t.Errorf("no order was refused for reason %d", why)
		}
	}
	if over == 0 || fees == 0 || m.replaced == 0 {
		t.Errorf("%d budgets bought more than they had to, %d fees were paid, %d orders replaced", over,
			fees, m.replaced)
	}
}

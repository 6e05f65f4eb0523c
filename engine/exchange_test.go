package engine

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestRecordSizes: records fill whole cache lines. An order has two lines, and at most 160 bytes
// with its entry in the table, which is at least three eighths full once it has grown. A Command
// and two words, the content of a ring slot, have three.
func TestRecordSizes(t *testing.T) {
	for name, c := range map[string][2]uintptr{
		"order":    {unsafe.Sizeof(order{}), 128},
		"account":  {unsafe.Sizeof(account{}), 64},
		"position": {unsafe.Sizeof(position{}), 64},
		"id":       {unsafe.Offsetof(order{}.id), 64},
		"vault":    {unsafe.Offsetof(market{}.vault), 120}, // fetchMarket knows it
		"link":     {unsafe.Sizeof(link{}), 8},             // fetchNear of bench/matching knows it
		"request":  {unsafe.Sizeof(request{}), 64},
		"Command":  {unsafe.Sizeof(Command{}), 3*64 - 2*8},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d bytes, want %d", name, c[0], c[1])
		}
	}
	if cells := uintptr(8 * 8 / 3); unsafe.Sizeof(order{})+cells > 160 {
		t.Errorf("an order takes more than 160 bytes")
	}
}

// open fills a market with n orders of a wallet that do not cross, at one price.
func (s *stage) open(w WalletNo, market MarketNo, n int) (rejected Reject) {
	return s.repeat(n, Command{Wallet: w, Market: market, Size: Lot, Cash: 1000})
}

// repeat places n orders like c, until one is rejected.
func (s *stage) repeat(n int, c Command) (rejected Reject) {
	c.Kind, c.Owner = Place, c.Wallet
	for range n {
		c.Seen = s.seq
		binary.BigEndian.PutUint64(c.ID[:], uint64(s.seq+1))
		events := s.apply(c)
		if e := events[len(events)-1]; e.Kind == Rejected {
			return e.Reject
		}
	}
	return Accepted
}

func TestLimits(t *testing.T) {
	if auditing {
		t.Skip("an audit after each of 75,000 orders takes too long")
	}
	s := newStage(16, 100, 100)
	for w := 1; w <= 8; w++ {
		s.apply(Command{Kind: Deposit, Address: Address{byte(w)}, Cash: MaxAmount})
	}
	for w := WalletNo(1); w <= 6; w++ {
		if no := s.open(w, 1, MaxWalletOrders); no != Accepted {
			t.Fatalf("wallet %d: rejected %d", w, no)
		}
	}
	if no := s.open(1, 2, 1); no != RejectWalletOrders {
		t.Errorf("one order more for a wallet: %d", no)
	}
	if no := s.open(7, 1, MaxMarketOrders-6*MaxWalletOrders); no != Accepted {
		t.Fatalf("filling the market: %d", no)
	}
	if no := s.open(8, 1, 1); no != RejectMarketOrders {
		t.Errorf("one order more in a market: %d", no)
	}
	if no := s.open(8, 2, 1); no != Accepted {
		t.Errorf("an order elsewhere: %d", no)
	}
	if err := audit(s.x); err != nil {
		t.Error(err)
	}
	freed := s.apply(Command{Kind: Cancel, Owner: 1, ID: s.all[12].ID})
	if no := s.open(1, 1, 1); freed[0].Kind != Cancelled || no != Accepted {
		t.Errorf("after a cancel: %+v, %d", freed, no)
	}
}

// TestFullMarket: the size of a level with MaxMarketOrders orders of MaxOrder does not overflow.
// The full market accepts orders that empty it, and no others.
func TestFullMarket(t *testing.T) {
	if auditing {
		t.Skip("an audit after each of 65,536 orders takes too long")
	}
	const size = MaxOrder / Lot * Lot
	s := newStage(16, 1)
	for w := 1; w <= 8; w++ {
		s.apply(Command{Kind: Deposit, Address: Address{byte(w)}, Cash: MaxAmount})
	}
	s.apply(Command{Kind: Deposit, Address: Address{8}, Market: 1, Size: Unit})
	bid := Command{Market: 1, Size: MaxOrder, Cash: Cost(MaxOrder, 1)}
	for left := MaxMarketOrders; left > 0; left -= min(left, MaxWalletOrders) {
		bid.Wallet++
		if no := s.repeat(min(left, MaxWalletOrders), bid); no != Accepted {
			t.Fatalf("wallet %d: rejected %d", bid.Wallet, no)
		}
	}
	bid.Wallet = 8
	over := bid
	over.Size++
	if no := s.repeat(1, over); no != RejectAmount {
		t.Errorf("more than the largest order: %d", no)
	}
	if no := s.repeat(1, bid); no != RejectMarketOrders {
		t.Errorf("one order more: %d", no)
	}
	book := &s.x.markets.known(1).book
	check := func(what string, orders int, sum Size) {
		t.Helper()
		if l := book.Level(1); int(book.Orders) != orders || l.Size != sum {
			t.Errorf("%s: %d orders, %d; want %d, %d", what, book.Orders, l.Size, orders, sum)
		}
		if err := audit(s.x); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("full", MaxMarketOrders, MaxMarketOrders*size)
	ask := Command{Wallet: 8, Market: 1, Side: Sell, Size: Lot, Cash: 2}
	if no := s.repeat(1, ask); no != RejectMarketOrders {
		t.Errorf("one that does not cross: %d", no)
	}
	ask.Cash = 1
	if no := s.repeat(1, ask); no != Accepted {
		t.Errorf("one that crosses: %d", no)
	}
	check("filled in part", MaxMarketOrders, MaxMarketOrders*size-Lot)
	s.apply(Command{Kind: Cancel, Owner: 1, ID: s.all[len(s.all)-MaxMarketOrders].ID})
	mint := Command{Wallet: 8, Market: 1, Outcome: 1, Size: 3 * Unit}
	mint.Cash = Cost(mint.Size, PriceOne-1)
	if no := s.repeat(1, mint); no != Accepted {
		t.Errorf("one of the other token that crosses: %d", no)
	}
	check("minted", MaxMarketOrders-1, (MaxMarketOrders-1)*size-Lot-3*Unit)
}

// TestMaxSupply: deposits stop where balances could overflow.
func TestMaxSupply(t *testing.T) {
	s := newStage(16, 100)
	rejected := 0
	for i := range MaxSupply/MaxAmount + 2 {
		c := Command{Kind: Deposit, Address: Address{byte(i % 3), 1}, Cash: MaxAmount}
		if i%2 == 1 {
			c.Market, c.Size = 1, MaxAmount
		}
		if e := s.apply(c)[0]; e.Kind == Rejected && e.Reject == RejectAmount {
			rejected++
		}
	}
	if rejected != 2 {
		t.Errorf("%d deposits rejected, want 2", rejected)
	}
	if err := audit(s.x); err != nil {
		t.Error(err)
	}
}

// TestAuditFinds breaks one thing at a time.
func TestAuditFinds(t *testing.T) {
	for name, damage := range map[string]func(x *Exchange){
		"cash":      func(x *Exchange) { x.accounts.at(1).cash.total++ },
		"reserve":   func(x *Exchange) { x.accounts.at(1).cash.held++ },
		"token":     func(x *Exchange) { x.positions.at(1).tokens[1].total-- },
		"vault":     func(x *Exchange) { x.markets.known(1).vault++ },
		"external":  func(x *Exchange) { x.external++ },
		"level":     func(x *Exchange) { x.markets.known(1).book.Level(10).Size += Lot },
		"remaining": func(x *Exchange) { x.orders.at(2).remaining += Lot },
		"queue":     func(x *Exchange) { x.queues.Links.At(2).Prev = 0 },
		"best":      func(x *Exchange) { x.markets.known(1).book.Best[Buy]-- },
		"set":       func(x *Exchange) { x.markets.known(1).book.pages[0].set |= 2 },
		"summary":   func(x *Exchange) { x.markets.known(1).book.summary[0] = 0 },
		"list":      func(x *Exchange) { x.orders.at(2).mineNext = 0 },
		"open":      func(x *Exchange) { x.accounts.at(1).open++ },
		"id":        func(x *Exchange) { x.orders.at(1).tag++ },
		"ring":      func(x *Exchange) { x.orders.at(1).ring++ },
		"digest":    func(x *Exchange) { x.digest++ },
		"state":     func(x *Exchange) { x.markets.known(1).state = Unopened },
		"owner":     func(x *Exchange) { x.accounts.at(1).owner = 1 },
		"banned":    func(x *Exchange) { x.accounts.at(1).mode = CancelOnly },
		"prevent":   func(x *Exchange) { x.accounts.at(1).prevention = ExpireBoth },
		"mode":      func(x *Exchange) { x.mode = PostOnly },
		"post-only": func(x *Exchange) { x.markets.known(1).mode = PostOnly },
		"fees":      func(x *Exchange) { x.fees, x.external = x.fees+1, x.external-1 },
		"min":       func(x *Exchange) { x.markets.known(1).min++ },
		"fee":       func(x *Exchange) { x.markets.known(1).fee.Rate++ },
		"rules":     func(x *Exchange) { x.markets.known(1).minBuy++ },
		"group":     func(x *Exchange) { x.markets.known(1).group++ },
		"condition": func(x *Exchange) { x.markets.conditions = newTable() },
		"tokens":    func(x *Exchange) { x.markets.tokens = newTable() },
		"payout":    func(x *Exchange) { x.markets.known(2).payout++ },
		"short":     func(x *Exchange) { x.markets.known(2).vault--; x.external++ },
		"expiry":    func(x *Exchange) { x.orders.at(4).expiry++ },
		"timer":     func(x *Exchange) { x.timers.disarm(&x.orders, x.orders.at(4)) },
		"timers":    func(x *Exchange) { x.timers.n = 0 },
		"key":       func(x *Exchange) { x.orders.at(1).key++ },
		"nobody":    func(x *Exchange) { x.orders.at(0).timer++ },
		"beat":      func(x *Exchange) { x.beats[1][0].timeout++ },
		"twice":     func(x *Exchange) { x.beats[1] = append(x.beats[1], x.beats[1][0]) },
		"rank":      func(x *Exchange) { x.markets.known(1).book.rank++ },
		"stated":    func(x *Exchange) { x.markets.known(1).stated = true },
		"gone":      func(x *Exchange) { x.requests.gone++ },
		"beats":     func(x *Exchange) { delete(x.beats, 1) },
		"request":   func(x *Exchange) { x.requests.all.at(1).amount++ },
		"when":      func(x *Exchange) { x.requests.all.at(1).at++ },
		"requests":  func(x *Exchange) { x.requests.forget(); x.requests.all.used++ },
	} {
		s := newStage(16, 100, 100)
		s.fund(1000*Unit, 1000*Unit)
		s.open(1, 1, 3)
		s.repeat(1, Command{Wallet: 1, Market: 1, Type: GTD, Expiry: 1000, Size: Lot, Cash: 1000})
		s.apply(Command{Kind: Resolve, Market: 2, Price: 3333})
		s.apply(Command{Kind: Arm, Owner: 1, Key: 7, Expiry: 1000})
		s.apply(Command{Kind: SplitTokens, Market: 1, Wallet: 1, Owner: 1, Size: 1, ID: OrderID{9}})
		if err := audit(s.x); err != nil {
			t.Fatal(err)
		}
		damage(s.x)
		if audit(s.x) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// TestBook finds the best levels across pages and words of the finest ladder, against a plain scan.
func TestBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queues
		book := NewBook(10_000, &q)
		middle := rapid.IntRange(1, 9999).Draw(t, "middle")
		live := map[uint16]uint32{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			index := uint16(rapid.IntRange(1, 9999).Draw(t, "index"))
			if rapid.Bool().Draw(t, "near") {
				index = uint16(min(max(middle+int(index%200)-100, 1), 9999))
			}
			if h := live[index]; h != 0 {
				book.Remove(h, uint32(index), Lot)
				delete(live, index)
			} else {
				side := Sell
				if int(index) < middle {
					side = Buy
				}
				live[index] = book.Rest(uint32(index), side, Lot)
			}
			bid, ask := uint32(0), book.ticks
			for index := range live {
				if int(index) < middle {
					bid = max(bid, uint32(index))
				} else {
					ask = min(ask, uint32(index))
				}
			}
			if book.Best != [2]uint32{bid, ask} {
				t.Fatalf("best %v, want %d %d", book.Best, bid, ask)
			}
		}
	})
}

package history

import (
	"cmp"
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"clobd/engine"
	"clobd/journal"
)

const (
	modelWallets = 8
	modelOwner   = engine.WalletNo(3) // trades for wallets 5 and 6, too
	modelStart   = engine.Time(1_700_000_000_000)
)

// expectation makes frames of every Command there is, in markets with fees that trade, resolve and
// pay out, and keeps beside them what a plain reader of the Events would: exact averages, all live
// orders in one list, all prices minute by minute.
type expectation struct {
	x    *engine.Exchange
	r    *rand.Rand
	head engine.Head
	now  engine.Time
	ids  uint64

	listed   []engine.Listing
	payout   map[engine.MarketNo]engine.Price
	live     []*expectedOrder
	tokens   map[expectedToken]*expectedPosition
	cash     map[engine.WalletNo]int64 // paid in, less paid out, with collected fees
	fees     engine.Cash               // taken in all
	external map[engine.MarketNo]*[2]engine.Size
	outside  map[expectedToken]int64  // value of what came from outside, less what went there
	linked   map[engine.WalletNo]bool // to worldOwner
	took     int64                    // fees collected
	volume   map[engine.MarketNo]int64
	sold     map[engine.MarketNo][]expectedSale
	trades   map[engine.MarketNo]uint64
	last     map[engine.MarketNo]engine.Price // of outcome 0
	points   map[engine.MarketNo]map[engine.Time]uint32
	kinds    map[engine.EventKind]int
	settled  map[engine.Settlement]int
}

type expectedOrder struct {
	id     engine.OrderID
	market engine.MarketNo
	wallet engine.WalletNo
	owner  engine.WalletNo
	bid    bool // of outcome 0
	price  engine.Price
}

// expectedSale is what a taker paid or got.
type expectedSale struct {
	at   engine.Time
	cash int64
}

type expectedToken struct {
	wallet  engine.WalletNo
	market  engine.MarketNo
	outcome engine.Outcome
}

// expectedPosition is a position by the book: cost and profit are exact fractions.
type expectedPosition struct {
	size, bought              int64
	cost, realized            *big.Rat
	paid, got, fees, redeemed int64
	taken, made               int64
	parted                    int64 // how often something left
}

func newExpectation(seed uint64) *expectation {
	return &expectation{x: engine.NewExchange(seed), r: rand.New(rand.NewPCG(seed, 77)),
		now:      modelStart,
		payout:   make(map[engine.MarketNo]engine.Price),
		tokens:   make(map[expectedToken]*expectedPosition),
		cash:     make(map[engine.WalletNo]int64),
		external: make(map[engine.MarketNo]*[2]engine.Size),
		outside:  make(map[expectedToken]int64),
		linked:   map[engine.WalletNo]bool{modelOwner: true},
		volume:   make(map[engine.MarketNo]int64),
		sold:     make(map[engine.MarketNo][]expectedSale),
		trades:   make(map[engine.MarketNo]uint64),
		last:     make(map[engine.MarketNo]engine.Price),
		points:   make(map[engine.MarketNo]map[engine.Time]uint32),
		kinds:    make(map[engine.EventKind]int),
		settled:  make(map[engine.Settlement]int),
	}
}

func worldAddress(w engine.WalletNo) engine.Address { return engine.Address{19: byte(w)} }

// id draws an id that was never used.
func (w *expectation) id() engine.OrderID {
	w.ids++
	var id engine.OrderID
	binary.BigEndian.PutUint64(id[:], w.r.Uint64())
	binary.BigEndian.PutUint64(id[24:], w.ids)
	return id
}

// command draws the next Command. The first ones make wallets 1 to worldWallets, in order.
func (w *expectation) command() engine.Command {
	if n := w.ids; n < modelWallets {
		return engine.Command{Kind: engine.Deposit, ID: w.id(),
			Address: worldAddress(engine.WalletNo(n + 1)), Cash: 500 * engine.Unit}
	}
	if len(w.listed) == 0 {
		c := engine.Command{ID: w.id()}
		w.list(&c)
		return c
	}
	wallet := engine.WalletNo(1 + w.r.IntN(modelWallets))
	n := len(w.listed)
	no := engine.MarketNo(max(1, n-2) + w.r.IntN(min(n, 3)))
	c := engine.Command{ID: w.id(), Wallet: wallet, Owner: wallet, Market: no,
		Outcome: engine.Outcome(w.r.IntN(2)), Address: worldAddress(wallet)}
	if (wallet == 5 || wallet == 6) && w.r.IntN(2) == 0 {
		c.Owner = modelOwner
	}
	switch x := w.r.IntN(100); {
	case x < 58:
		w.order(&c)
	case x < 74 && len(w.live) > 0:
		o := w.live[w.r.IntN(len(w.live))]
		return engine.Command{Kind: engine.Cancel, ID: o.id, Owner: o.owner}
	case x < 84:
		c.Kind = engine.SplitTokens + engine.Kind(w.r.IntN(2))
		c.Size = engine.Size(1 + w.r.IntN(30*engine.Unit))
	case x < 88:
		c.Kind = engine.RedeemTokens
		c.Market = engine.MarketNo(1 + w.r.IntN(n))
	default:
		w.operator(&c)
	}
	return c
}

// order draws a Place.
func (w *expectation) order(c *engine.Command) {
	c.Kind, c.Side, c.Type = engine.Place, engine.Side(w.r.IntN(2)), engine.OrderType(w.r.IntN(4))
	c.Address = engine.Address{}
	if len(w.live) > 0 && w.r.IntN(8) == 0 {
		o := w.live[w.r.IntN(len(w.live))]
		c.Wallet, c.Owner = o.wallet, o.owner
		c.Replace(o.id)
	}
	c.Seen, c.Key = w.head.Sequence, uint32(w.r.IntN(2))
	c.Size = engine.Size(1+w.r.IntN(1500)) * engine.Lot
	c.Cash = engine.Cost(c.Size, engine.Price(100*(30+w.r.IntN(41))))
	switch w.r.IntN(6) {
	case 0:
		c.Cash = engine.Cost(c.Size, engine.Price(100*(1+w.r.IntN(99))))
	case 1:
		c.PostOnly = c.Type <= engine.GTD
	}
	if c.Type == engine.GTD {
		c.Expiry = w.now + engine.Time(1+w.r.IntN(600_000))
	}
}

// operator draws what is rarer.
func (w *expectation) operator(c *engine.Command) {
	c.Wallet = 0
	switch w.r.IntN(12) {
	case 0, 1:
		c.Kind, c.Market, c.Cash = engine.Deposit, 0, engine.Cash(1+w.r.IntN(90*engine.Unit))
	case 2:
		c.Kind, c.Size = engine.Deposit, engine.Size(1+w.r.IntN(20*engine.Unit))
	case 3:
		c.Kind, c.Market, c.Cash = engine.Withdraw, 0, engine.Cash(1+w.r.IntN(60*engine.Unit))
	case 4:
		c.Kind, c.Size = engine.Withdraw, engine.Size(1+w.r.IntN(20*engine.Unit))
	case 5:
		c.Kind, c.Cash = engine.Collect, engine.Cash(1+w.r.IntN(engine.Unit/5))
	case 6:
		c.Kind, c.Address = engine.Link, worldAddress(engine.WalletNo(5+w.r.IntN(2)))
		c.Holder = worldAddress(modelOwner)
	case 7:
		if w.r.IntN(3) == 0 {
			w.list(c)
		}
	case 8:
		if w.r.IntN(5) == 0 {
			c.Kind, c.Price = engine.Resolve, engine.Price(w.r.IntN(4)*3333)
		} else {
			c.Kind, c.State = engine.SetState, engine.Open+engine.MarketState(w.r.IntN(3)*w.r.IntN(2))
		}
	case 9:
		c.Kind, c.Wallet = engine.CancelAll, engine.WalletNo(1+w.r.IntN(modelWallets))
		c.Reason, c.Owner, c.Market = engine.ByOperator, 0, c.Market*engine.MarketNo(w.r.IntN(2))
	case 10:
		c.Kind, c.Wallet = engine.SetPrevention, engine.WalletNo(1+w.r.IntN(modelWallets))
		c.Prevention = engine.Prevention(w.r.IntN(4))
	case 11:
		c.Kind = engine.SetState // opened again, mostly
		c.State = engine.Open
	}
}

// list draws a new market, or new rules for one.
func (w *expectation) list(c *engine.Command) {
	l := engine.Listing{Tick: 100, Open: true,
		Fee: engine.Fee{Rate: uint16(w.r.IntN(3) * 441), Exponent: uint8(1 + w.r.IntN(2))}}
	if c.Kind = engine.List; len(w.listed) > 0 && w.r.IntN(2) == 0 {
		l = w.listed[c.Market-1]
		c.Kind, l.Tick = engine.Adjust, []engine.Price{100, 50, 10}[w.r.IntN(3)]
	} else {
		binary.BigEndian.PutUint64(l.Condition[:], w.ids)
		binary.BigEndian.PutUint64(l.Tokens[0][:], w.ids)
		binary.BigEndian.PutUint64(l.Tokens[1][8:], w.ids)
	}
	c.Listing = &l
}

// frame makes the next frame, of n Commands.
func (w *expectation) frame(n int) *engine.Frame {
	w.now += engine.Time(w.r.IntN(20_000))
	if w.r.IntN(40) == 0 {
		w.now += engine.Time(w.r.IntN(8 * 3_600_000))
	}
	f := &engine.Frame{Engine: engine.Version, Epoch: 1, No: w.head.Frame + 1,
		First: w.head.Sequence + 1, Time: w.now}
	if f.No == 1 {
		n = modelWallets + 2 // nothing random before all wallets are there
	}
	for i := range n {
		c := w.command()
		if due := w.x.Due(); due != 0 && due <= w.now {
			c = engine.Command{Kind: engine.Advance}
		}
		seq, at := f.First+engine.Sequence(i), len(f.Events)
		f.Commands = append(f.Commands, c)
		f.Events = w.x.Apply(&c, seq, f.Time, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
		w.note(&c, seq, f.Events[at:])
	}
	f.Digest = w.x.Digest()
	f.Encode(w.head.Hash)
	w.head = f.Head()
	w.price()
	return f
}

// write appends and waits for frames of n Commands each.
func (w *expectation) write(t testing.TB, j *journal.Journal, frames, n int) {
	t.Helper()
	for range frames {
		f := w.frame(n)
		if err := j.Append(f); err != nil {
			t.Fatal(err)
		}
		if err := j.Wait(f.No); err != nil {
			t.Fatal(err)
		}
	}
}

// token is a position, made if it is new.
func (w *expectation) token(wallet engine.WalletNo, m engine.MarketNo,
	o engine.Outcome) *expectedPosition {
	k := expectedToken{wallet, m, o}
	if w.tokens[k] == nil {
		w.tokens[k] = &expectedPosition{cost: new(big.Rat), realized: new(big.Rat)}
	}
	return w.tokens[k]
}

// change moves tokens in (size above 0) or out, for cash paid or got, and a fee.
func (p *expectedPosition) change(size, cash, fee int64) {
	p.fees += fee
	if size >= 0 {
		p.size, p.bought, p.paid = p.size+size, p.bought+size, p.paid+cash+fee
		p.cost.Add(p.cost, big.NewRat(cash+fee, 1))
		return
	}
	part := new(big.Rat).Mul(p.cost, big.NewRat(-size, p.size))
	p.cost.Sub(p.cost, part)
	p.realized.Add(p.realized, new(big.Rat).Sub(big.NewRat(cash-fee, 1), part))
	p.size, p.got, p.parted = p.size+size, p.got+cash-fee, p.parted+1
}

// note reads the Events of a Command.
func (w *expectation) note(c *engine.Command, seq engine.Sequence, events []engine.Event) {
	for i := range events {
		e := &events[i]
		w.kinds[e.Kind]++
		size := int64(e.Size)
		halves := [2]int64{size / 2, size - size/2}
		switch e.Kind {
		case engine.Listed:
			if int(e.Market) > len(w.listed) {
				w.listed = append(w.listed, *c.Listing)
				w.external[e.Market] = &[2]engine.Size{}
			}
		case engine.Deposited, engine.Withdrawn:
			w.move(e, halves)
		case engine.Split, engine.Merged:
			if e.Kind == engine.Merged {
				size = -size
			}
			w.token(e.Wallet, e.Market, 0).change(size, halves[0], 0)
			w.token(e.Wallet, e.Market, 1).change(size, halves[1], 0)
		case engine.Redeemed:
			first := e.Args[0] * int64(w.payout[e.Market]) / 10_000
			for o, paid := range [2]int64{first, size - first} {
				if e.Args[o] > 0 {
					p := w.token(e.Wallet, e.Market, engine.Outcome(o))
					p.change(-e.Args[o], paid, 0)
					p.redeemed += paid
				}
			}
		case engine.Collected:
			w.cash[e.Wallet] += size
			w.took += size
		case engine.Linked:
			w.linked[e.Wallet] = true
		case engine.Resolved:
			w.payout[e.Market] = e.Price
		case engine.Filled:
			w.fill(c, e)
		case engine.Cancelled:
			w.drop(e.Order)
		case engine.Placed:
			o := &expectedOrder{id: c.ID, market: c.Market, wallet: c.Wallet, owner: c.Owner,
				price: e.Price, bid: (c.Side == engine.Buy) == (c.Outcome == 0)}
			if c.Outcome == 1 {
				o.price = 10_000 - o.price
			}
			w.live = append(w.live, o)
		}
	}
	if c.Kind == engine.Place {
		r := engine.ReceiptOf(c, seq, w.now, events)
		w.trades[c.Market] += uint64(r.Trades)
		cash := r.Taking
		if c.Side == engine.Buy {
			cash = r.Making
		}
		w.volume[c.Market] += cash
		w.sold[c.Market] = append(w.sold[c.Market], expectedSale{w.now, cash})
	}
}

// move reads what came from outside, or went there.
func (w *expectation) move(e *engine.Event, halves [2]int64) {
	size, k := int64(e.Size), expectedToken{e.Wallet, e.Market, e.Outcome}
	if e.Kind == engine.Withdrawn {
		size = -size
	}
	if e.Market == 0 {
		w.cash[e.Wallet] += size
		return
	}
	w.token(e.Wallet, e.Market, e.Outcome).change(size, halves[e.Outcome], 0)
	if size > 0 { // the outside gets the complement
		w.outside[k] += halves[e.Outcome]
		w.external[e.Market][e.Outcome^1] += e.Size
	} else {
		w.outside[k] -= halves[e.Outcome]
		w.external[e.Market][e.Outcome] += e.Size
	}
}

// fill reads one fill.
func (w *expectation) fill(c *engine.Command, e *engine.Event) {
	w.settled[e.Settlement]++
	size, price := int64(e.Size), int64(e.Price)
	for i, party := range []struct {
		wallet  engine.WalletNo
		outcome engine.Outcome
		side    engine.Side
		fee     int64
	}{{e.Wallet, e.Outcome, e.Side, 0}, {c.Wallet, c.Outcome, c.Side, int64(e.Fee)}} {
		own := price
		if party.outcome != e.Outcome {
			own = 10_000 - price
		}
		cash, p := size*own/10_000, w.token(party.wallet, c.Market, party.outcome)
		if party.side == engine.Buy {
			p.change(size, cash, party.fee)
		} else {
			p.change(-size, cash, party.fee)
		}
		if i == 0 {
			p.made += cash
		} else {
			p.taken += cash
		}
	}
	w.fees += e.Fee
	if w.last[c.Market] = e.Price; e.Outcome == 1 {
		w.last[c.Market] = 10_000 - e.Price
	}
	if e.Remaining == 0 {
		w.drop(e.Order)
	}
}

// drop forgets an order that rests no more.
func (w *expectation) drop(id engine.OrderID) {
	w.live = slices.DeleteFunc(w.live, func(o *expectedOrder) bool { return o.id == id })
}

// price notes what every market's price is now, if it differs from what it was.
func (w *expectation) price() {
	for no := engine.MarketNo(1); int(no) <= len(w.listed); no++ {
		var bids, asks []engine.Price
		for _, o := range w.live {
			if o.market == no && o.bid {
				bids = append(bids, o.price)
			} else if o.market == no {
				asks = append(asks, o.price)
			}
		}
		twice, known := 2*uint32(w.last[no]), w.last[no] != 0
		if len(bids) > 0 && len(asks) > 0 {
			twice, known = uint32(slices.Max(bids))+uint32(slices.Min(asks)), true
		}
		if p, over := w.payout[no]; over {
			twice, known = 2*uint32(p), true
		}
		if w.points[no] == nil {
			w.points[no] = make(map[engine.Time]uint32)
		}
		if was, is := w.at(no, w.now); known && (!is || was != twice) {
			w.points[no][w.now/60_000*60_000] = twice
		}
	}
}

// at is the price of a market at the end of the minute of a time.
func (w *expectation) at(no engine.MarketNo, now engine.Time) (twice uint32, known bool) {
	best := engine.Time(-1)
	for at, p := range w.points[no] {
		if at <= now && at > best {
			best, twice, known = at, p, true
		}
	}
	return twice, known
}

// probe asks the engine for what a wallet has: the refusal of a withdrawal that nobody can afford
// says it.
func (w *expectation) probe(t *testing.T, wallet engine.WalletNo, m engine.MarketNo,
	o engine.Outcome) (
	total, held int64) {
	t.Helper()
	c := engine.Command{Kind: engine.Withdraw, Address: worldAddress(wallet), Market: m, Outcome: o,
		Cash: engine.MaxAmount, Size: engine.MaxAmount}
	events := w.x.Apply(&c, w.head.Sequence, w.now, nil)
	if len(events) != 1 || events[0].Reject != engine.RejectBalance {
		t.Fatalf("the engine answers %+v", events)
	}
	return events[0].Args[0], events[0].Args[1]
}

// holders are all who hold a token, the largest first.
func (w *expectation) holders(m engine.MarketNo, o engine.Outcome) (all []Holder) {
	for k, p := range w.tokens {
		if k.market == m && k.outcome == o && p.size > 0 {
			all = append(all, Holder{k.wallet, engine.Size(p.size)})
		}
	}
	slices.SortFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Wallet, b.Wallet))
	})
	return all
}

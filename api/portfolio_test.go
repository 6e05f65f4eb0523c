package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clobd/api/wire"
	"clobd/engine"
)

// investors is a node with wallets that trade at random, and beside it what a plain reader of the
// Events would know of them: exact averages, one list of acts, how many pairs there are.
type investors struct {
	*script
	r       *rand.Rand
	names   []string
	tokens  map[ownedToken]*plainPosition
	acts    []plainDeed
	supply  map[engine.MarketNo][2]int64
	payout  map[engine.MarketNo]int64
	last    map[engine.MarketNo]int64 // price of outcome 0 in the last trade
	settles map[engine.Settlement]int
	kinds   map[engine.EventKind]int
	ids     int
}

type ownedToken struct {
	wallet  engine.WalletNo
	market  engine.MarketNo
	outcome engine.Outcome
}

// plainPosition is a position by the book: average cost without fees, as an exact fraction.
type plainPosition struct {
	size, bought, boughtCash int64
	fees                     int64 // paid for it so far
	cost, realized           *big.Rat
	traded                   bool
}

type plainDeed struct {
	wallet     engine.WalletNo
	kind, side string
	size, cash int64
	taker      bool
}

const investorMarkets = 4

func newInvestors(t *testing.T, seed uint64) *investors {
	n := &investors{
		script: newScript(t), r: rand.New(rand.NewPCG(seed, 4)),
		names:  []string{"ann", "ben", "cid", "dee", "eve", "fay"},
		tokens: map[ownedToken]*plainPosition{}, supply: map[engine.MarketNo][2]int64{},
		payout: map[engine.MarketNo]int64{}, last: map[engine.MarketNo]int64{},
		settles: map[engine.Settlement]int{}, kinds: map[engine.EventKind]int{},
	}
	for m := range investorMarkets {
		l := listing(m+1, 100)
		l.Fee = engine.Fee{Rate: uint16(150 * m), Exponent: 1}
		n.do(engine.Command{Kind: engine.List, Listing: l})
	}
	for _, name := range n.names {
		n.do(engine.Command{Kind: engine.Deposit, Address: trader(name), Cash: 100_000 * engine.Unit})
		n.wallets[name], _ = n.board.Directory.Wallet(trader(name))
	}
	n.do(engine.Command{Kind: engine.Link, Address: trader("fay"), Holder: trader("eve")})
	n.node.run()
	return n
}

// step runs one random Command and notes what happened.
func (n *investors) step() {
	name := n.names[n.r.IntN(len(n.names))]
	wallet := n.wallets[name]
	market := engine.MarketNo(1 + n.r.IntN(investorMarkets))
	n.ids++
	n.now += engine.Time(n.r.IntN(1500))
	c := engine.Command{Wallet: wallet, Owner: wallet, Market: market,
		ID: orderID(fmt.Sprint("i", n.ids)), Size: engine.Size(1+n.r.IntN(60_000)) * 1000}
	if owner := n.board.Directory.Owner(wallet); owner != 0 {
		c.Owner = owner
	}
	switch at := n.r.IntN(1000); {
	case at < 60:
		c.Kind = engine.SplitTokens
	case at < 90:
		c.Kind = engine.MergeTokens
	case at < 130:
		c.Kind = engine.RedeemTokens
	case at < 132:
		c = engine.Command{Kind: engine.Resolve, Market: market, ID: c.ID,
			Price: engine.Price([]int{0, 2500, 3333, 10_000}[n.r.IntN(4)])}
	default:
		o, side := engine.Outcome(n.r.IntN(2)), engine.Side(n.r.IntN(2))
		price := engine.Price(100 * (40 + n.r.IntN(21)))
		id, owner := c.ID, c.Owner
		c = place("", wallet, quote{market, o, side, 500 + n.r.IntN(4000), price})
		c.ID, c.Owner = id, owner
		if n.r.IntN(3) == 0 {
			c.Type = engine.FAK
		}
	}
	events := n.do(c)
	for i := range events {
		n.note(&c, &events[i])
	}
}

// token is a position, made if it is new.
func (n *investors) token(w engine.WalletNo, m engine.MarketNo, o engine.Outcome) *plainPosition {
	k := ownedToken{w, m, o}
	if n.tokens[k] == nil {
		n.tokens[k] = &plainPosition{cost: new(big.Rat), realized: new(big.Rat)}
	}
	return n.tokens[k]
}

// change moves tokens in, or out if size is below 0, for cash.
func (p *plainPosition) change(size, cash int64) {
	switch {
	case size > 0:
		p.bought, p.boughtCash = p.bought+size, p.boughtCash+cash
		p.cost.Add(p.cost, big.NewRat(cash, 1))
	case size < 0:
		part := new(big.Rat).Mul(p.cost, big.NewRat(-size, p.size))
		p.cost.Sub(p.cost, part)
		p.realized.Add(p.realized, part.Sub(big.NewRat(cash, 1), part))
	}
	p.size += size
}

// note reads one Event.
func (n *investors) note(c *engine.Command, e *engine.Event) {
	n.kinds[e.Kind]++
	size := int64(e.Size)
	switch e.Kind {
	case engine.Filled:
		n.fill(c, e)
	case engine.Split, engine.Merged:
		kind := "SPLIT"
		n.acts = append(n.acts, plainDeed{e.Wallet, kind, "", size, size, false})
		if e.Kind == engine.Merged {
			n.acts[len(n.acts)-1].kind = "MERGE"
			size = -size
		}
		n.issue(e.Market, size)
		for o := range engine.Outcome(2) {
			n.token(e.Wallet, e.Market, o).change(size, int64(half(o, e.Size)))
		}
	case engine.Redeemed:
		first := e.Args[0] * n.payout[e.Market] / 10_000
		s := n.supply[e.Market]
		n.supply[e.Market] = [2]int64{s[0] - e.Args[0], s[1] - e.Args[1]}
		n.token(e.Wallet, e.Market, 0).change(-e.Args[0], first)
		n.token(e.Wallet, e.Market, 1).change(-e.Args[1], size-first)
		n.acts = append(n.acts, plainDeed{e.Wallet, "REDEEM", "", e.Args[0] + e.Args[1], size, false})
	case engine.Resolved:
		n.payout[e.Market] = int64(e.Price)
	}
}

// half is what tokens of a pair are worth: an odd base unit goes to outcome 1.
func half(o engine.Outcome, size engine.Size) engine.Size {
	if o == 0 {
		return size / 2
	}
	return size - size/2
}

// issue makes so many pairs.
func (n *investors) issue(m engine.MarketNo, pairs int64) {
	s := n.supply[m]
	n.supply[m] = [2]int64{s[0] + pairs, s[1] + pairs}
}

// fill reads one fill. The taker's parts at one price are one trade.
func (n *investors) fill(c *engine.Command, e *engine.Event) {
	n.settles[e.Settlement]++
	switch e.Settlement {
	case engine.Mint:
		n.issue(e.Market, int64(e.Size))
	case engine.Merge:
		n.issue(e.Market, -int64(e.Size))
	}
	if n.last[e.Market] = int64(e.Price); e.Outcome == 1 {
		n.last[e.Market] = 10_000 - int64(e.Price)
	}
	for i, party := range []struct {
		wallet  engine.WalletNo
		outcome engine.Outcome
		side    engine.Side
	}{{e.Wallet, e.Outcome, e.Side}, {c.Wallet, c.Outcome, c.Side}} {
		own := int64(e.Price)
		if party.outcome != e.Outcome {
			own = 10_000 - own
		}
		size, p := int64(e.Size), n.token(party.wallet, e.Market, party.outcome)
		cash := size * own / 10_000
		d := plainDeed{party.wallet, "TRADE", wire.SideText(party.side), size, cash, i == 1}
		p.traded = true
		if i == 1 {
			p.fees += int64(e.Fee)
		}
		if party.side == engine.Sell {
			size = -size
		}
		p.change(size, cash)
		n.acts = append(n.acts, d)
	}
}

// price is what a token is worth, in 1/20,000.
func (n *investors) price(m engine.MarketNo, o engine.Outcome) int64 {
	first, known := 2*n.last[m], n.last[m] != 0
	s := n.board.Condition(n.board.Directory.Market(m).Condition)
	if bid, ask := s.Best(0); bid != 0 && ask != 0 {
		first, known = int64(bid+ask), true
	}
	if p, over := n.payout[m]; over {
		first, known = 2*p, true
	}
	if o == 1 && known {
		return 20_000 - first
	}
	return first
}

// worth is what a token of a position is worth: what was paid for it, if nobody says more.
func (n *investors) worth(k ownedToken, p *plainPosition) float64 {
	price := n.price(k.market, k.outcome)
	_, over := n.payout[k.market]
	switch {
	case price != 0 || over:
		return float64(price) / 20_000
	case p.size == 0:
		return float64(p.boughtCash) / float64(p.bought)
	}
	cost, _ := p.cost.Float64()
	return cost / float64(p.size)
}

// wirePosition is what the answers hold of a position.
type wirePosition struct {
	ProxyWallet, Asset, ConditionID                          string
	Size, AvgPrice, InitialValue, CurrentValue, CashPnl      float64
	PercentPnl, TotalBought, RealizedPnl, PercentRealizedPnl float64
	CurPrice                                                 float64
	Redeemable, Mergeable                                    bool
	OutcomeIndex                                             int
	Timestamp                                                int64
}

// fetch asks for a path and reads the answer.
func fetch[T any](n *investors, path string) (answer T) {
	n.t.Helper()
	status, body := n.get(path)
	if status != 200 {
		n.t.Fatalf("%s: %d %s", path, status, body)
	}
	n.must(json.Unmarshal(body, &answer))
	return answer
}

// near insists that a figure is what it should be, but for rounding.
func (n *investors) near(what string, got, want, by float64) {
	n.t.Helper()
	if math.Abs(got-want) > by+1e-9*math.Abs(want) {
		n.t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// cent is how far a rounded amount may be off: a half, and what partings lost of the average.
const cent = 0.0051

// checkPosition compares one position, of which f counts the base units.
func (n *investors) checkPosition(k ownedToken, p *plainPosition, w *wirePosition) {
	n.t.Helper()
	const unit = 1e6
	what := fmt.Sprintf("%+v %+v", k, *w)
	size, price := float64(p.size)/unit, n.worth(k, p)
	cost, _ := p.cost.Float64()
	realized, _ := p.realized.Float64()
	cost, realized = cost/unit, (realized-float64(p.fees))/unit
	n.near(what+" size", w.Size, size, 0)
	n.near(what+" bought", w.TotalBought, float64(p.bought)/unit, 0)
	n.near(what+" price", w.CurPrice, price, 5.1e-6) // an average that was paid has more digits
	n.near(what+" realized", w.RealizedPnl, realized, cent)
	n.near(what+" rate", w.PercentRealizedPnl, 100*realized/(float64(p.bought)/unit), cent+0.02)
	if p.size == 0 {
		n.near(what+" average", w.AvgPrice, float64(p.boughtCash)/float64(p.bought), 2e-6)
		n.near(what+" profit", w.CashPnl, w.RealizedPnl, 0)
		n.near(what+" gain", w.PercentPnl, w.PercentRealizedPnl, 0)
		n.near(what+" rest", w.InitialValue+w.CurrentValue, 0, 0)
		return
	}
	n.near(what+" average", w.AvgPrice, cost/size, 2e-6+1e-4/size)
	n.near(what+" initial", w.InitialValue, cost, cent)
	n.near(what+" current", w.CurrentValue, size*price, cent)
	n.near(what+" profit", w.CashPnl, w.CurrentValue-w.InitialValue, 1e-6)
	if cost > 1 {
		n.near(what+" gain", w.PercentPnl, 100*(size*price-cost)/cost, cent+0.01)
	}
	_, over := n.payout[k.market]
	other := n.token(k.wallet, k.market, k.outcome^1)
	if w.Redeemable != over || w.Mergeable != (!over && other.size > 0) {
		n.t.Fatalf("%s: flags", what)
	}
}

// check compares all answers about one wallet with what is known of it.
func (n *investors) check(name string) {
	n.t.Helper()
	wallet, user := n.wallets[name], "user="+trader(name).Hex()
	open := fetch[[]wirePosition](n, "/positions?sizeThreshold=0&limit=500&"+user)
	closed := fetch[[]wirePosition](n, "/closed-positions?limit=50&"+user)
	value, markets := 0.0, map[engine.MarketNo]bool{}
	seen := 0
	for k, p := range n.tokens {
		if k.wallet != wallet || p.bought == 0 {
			continue
		}
		if p.traded {
			markets[k.market] = true
		}
		seen++
		value += float64(p.size) / 1e6 * n.worth(k, p)
		list := open
		if p.size == 0 {
			list = closed
		}
		id := n.board.Directory.Market(k.market).Condition.Hex()
		i := slices.IndexFunc(list, func(w wirePosition) bool {
			return w.ConditionID == id && w.OutcomeIndex == int(k.outcome)
		})
		if i < 0 {
			n.t.Fatalf("%+v %+v is in no list", k, *p)
		}
		n.checkPosition(k, p, &list[i])
	}
	if len(open)+len(closed) != seen {
		n.t.Fatalf("%d positions and %d closed ones, want %d", len(open), len(closed), seen)
	}
	if !slices.IsSortedFunc(closed, func(a, b wirePosition) int {
		return cmp.Compare(b.RealizedPnl, a.RealizedPnl)
	}) {
		n.t.Fatal("closed positions are not sorted by profit")
	}
	worth := fetch[[]struct{ Value float64 }](n, "/value?"+user)
	n.near("value", worth[0].Value, value, cent)
	if got := fetch[struct{ Traded int }](n, "/traded?"+user); got.Traded != len(markets) {
		n.t.Fatalf("traded in %d markets, want %d", got.Traded, len(markets))
	}
	n.checkActs(wallet, user)
}

// checkActs compares the activity of a wallet, and its trades. A taker's fills at one price are
// one row there, so that only sums are compared with those.
func (n *investors) checkActs(wallet engine.WalletNo, user string) {
	n.t.Helper()
	type sum struct{ size, cash float64 }
	want, got := map[string]sum{}, map[string]sum{}
	for _, d := range n.acts {
		if d.wallet == wallet {
			key := fmt.Sprint(d.kind, d.side)
			s := want[key]
			want[key] = sum{s.size + float64(d.size)/1e6, s.cash + float64(d.cash)/1e6}
		}
	}
	type actRow struct {
		Type, Side     string
		Size, USDCSize float64
		Timestamp      int64
	}
	for offset := 0; ; offset += 300 {
		page := fetch[[]actRow](n, fmt.Sprintf("/activity?limit=300&offset=%d&%s", offset, user))
		for i, d := range page {
			s := got[d.Type+d.Side]
			got[d.Type+d.Side] = sum{s.size + d.Size, s.cash + d.USDCSize}
			if i > 0 && d.Timestamp > page[i-1].Timestamp {
				n.t.Fatal("activity is not in order")
			}
		}
		if len(page) < 300 {
			break
		}
	}
	for key, s := range want {
		n.near(key+" size", got[key].size, s.size, 1e-5)
		n.near(key+" cash", got[key].cash, s.cash, 1e-5)
	}
	if len(got) != len(want) {
		n.t.Fatalf("activity of %v, want %v", got, want)
	}
	size, parts := 0.0, fetch[[]actRow](n, "/trades?takerOnly=false&limit=10000&"+user)
	for _, d := range parts {
		size += d.Size
	}
	n.near("trades", size, want["TRADEBUY"].size+want["TRADESELL"].size, 1e-4)
}

// checkSupply: what all wallets have of a token is what there is of it, and of both as much.
func (n *investors) checkSupply() {
	n.t.Helper()
	for m := engine.MarketNo(1); m <= investorMarkets; m++ {
		id := n.board.Directory.Market(m).Condition.Hex()
		groups := fetch[[]struct {
			Token   string
			Holders []struct{ Amount float64 }
		}](n, "/holders?minBalance=0&limit=500&market="+id)
		var sums [2]float64
		for o, g := range groups {
			if g.Token != fmt.Sprintf("%s:%d", id, o) {
				n.t.Fatalf("token %s", g.Token)
			}
			for _, h := range g.Holders {
				sums[o] += h.Amount
			}
			n.near(g.Token, sums[o], float64(n.supply[m][o])/1e6, 1e-6)
		}
		payout, over := n.payout[m]
		if !over {
			n.near(id, sums[0], sums[1], 1e-6)
		}
		owed := max(sums[0], sums[1])
		if over {
			owed = (sums[0]*float64(payout) + sums[1]*float64(10_000-payout)) / 10_000
		}
		interest := fetch[[]struct {
			Market string
			Value  float64
		}](n, "/oi?market="+id)
		if interest[0].Market != id {
			n.t.Fatalf("open interest of %s, want %s", interest[0].Market, id)
		}
		n.near("open interest", interest[0].Value, owed, 2e-6)
		n.checkStanding(m, id)
	}
}

// checkStanding: a market's positions are those that its wallets are told of.
func (n *investors) checkStanding(m engine.MarketNo, id string) {
	n.t.Helper()
	type standingRow struct {
		ProxyWallet                         string
		Size, AvgPrice, CurrPrice, TotalPnl float64
		CurrentValue, CashPnl, RealizedPnl  float64
		OutcomeIndex                        int
	}
	groups := fetch[[]struct{ Positions []standingRow }](n,
		"/v1/market-positions?status=OPEN&limit=500&market="+id)
	rows := map[string]standingRow{}
	for _, g := range groups {
		for i, p := range g.Positions {
			if i > 0 && p.TotalPnl > g.Positions[i-1].TotalPnl+2*cent {
				n.t.Fatalf("not sorted by profit: %+v", g.Positions)
			}
			rows[fmt.Sprint(p.ProxyWallet, p.OutcomeIndex)] = p
		}
	}
	for _, name := range n.names {
		own := fetch[[]wirePosition](n,
			"/positions?sizeThreshold=0&limit=500&market="+id+"&user="+trader(name).Hex())
		for _, w := range own {
			key := fmt.Sprint(w.ProxyWallet, w.OutcomeIndex)
			p := rows[key]
			if p.Size != w.Size || p.AvgPrice != w.AvgPrice || p.CurrPrice != w.CurPrice ||
				p.CurrentValue != w.CurrentValue || p.CashPnl != w.CashPnl ||
				p.RealizedPnl != w.RealizedPnl {
				n.t.Fatalf("market %d: %+v, want %+v", m, p, w)
			}
			delete(rows, key)
		}
	}
	if len(rows) > 0 {
		n.t.Fatalf("market %d: nobody has %+v", m, rows)
	}
}

// TestPortfolios: random histories, and every answer about every wallet is what a plain portfolio
// says.
func TestPortfolios(t *testing.T) {
	kinds, settles := map[engine.EventKind]int{}, map[engine.Settlement]int{}
	for seed := range uint64(4) {
		n := newInvestors(t, seed)
		for range 6 {
			for range 120 {
				n.step()
			}
			if !n.index.History.Await(n.head.Sequence, time.Minute) {
				t.Fatal("the index lags")
			}
			for _, name := range n.names {
				n.check(name)
			}
			n.checkSupply()
		}
		for k, v := range n.kinds {
			kinds[k] += v
		}
		for k, v := range n.settles {
			settles[k] += v
		}
	}
	for _, k := range []engine.EventKind{engine.Filled, engine.Split, engine.Merged, engine.Redeemed,
		engine.Resolved} {
		if kinds[k] < 5 {
			t.Errorf("only %d Events of kind %d", kinds[k], k)
		}
	}
	if min(settles[engine.Transfer], settles[engine.Mint], settles[engine.Merge]) < 20 {
		t.Errorf("settlements: %v", settles)
	}
}

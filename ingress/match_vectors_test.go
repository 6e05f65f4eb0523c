package ingress

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/ingress/form"
)

// pit is a house for orders of other people's tests: each case has a market and wallets of its own.
type pit struct {
	*house
	t     *testing.T
	cases int
	salt  uint64
	fresh *engine.Listing // of this case
}

func newPit(t *testing.T) *pit { return &pit{house: newHouse(t, nil), t: t} }

// open lists the market of the next case.
func (p *pit) open(tick engine.Price, fee engine.Fee) {
	p.t.Helper()
	p.cases++
	l := engine.Listing{Group: 1, Tick: tick, Open: true, Fee: fee,
		Tokens: [2]engine.Token{{29: 9, 30: byte(p.cases), 31: 1}, {29: 9, 30: byte(p.cases), 31: 2}}}
	l.Condition = engine.Condition(l.Tokens[0])
	p.submit(engine.Command{Kind: engine.List, Listing: &l})
	p.fresh = &l
}

// who is a wallet of this case.
func (p *pit) who(name string) *auth.Signer { return trader(fmt.Sprint(name, p.cases)) }

// outcome is the number of a token by the name that other people's tests give it.
func outcome(token string) int { return map[string]int{"YES": 0, "NO": 1}[token] }

// give pays an asset, USDC or an outcome, into a wallet.
func (p *pit) give(name, asset string, amount int64) {
	p.t.Helper()
	if amount == 0 {
		return
	}
	c := engine.Command{Kind: engine.Deposit, Address: p.who(name).Address, Cash: engine.Cash(amount)}
	if asset != "USDC" {
		m, _, _ := p.board.Directory.Token(p.fresh.Tokens[0])
		c.Cash, c.Market, c.Size = 0, m.No, engine.Size(amount)
		c.Outcome = engine.Outcome(outcome(asset))
	}
	p.submit(c)
}

// terms are an order as other people's tests state it: amounts in base units.
type terms struct {
	Account, Side, Token string
	Maker                int64 `json:"makerAmount"`
	Taker                int64 `json:"takerAmount"`
}

// UnmarshalJSON reads an object, or [side, token, makerAmount, takerAmount].
func (o *terms) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, &[]any{&o.Side, &o.Token, &o.Maker, &o.Taker})
	}
	type plain terms
	return json.Unmarshal(text, (*plain)(o))
}

// post signs an order and sends it.
func (p *pit) post(o terms, kind string) string {
	p.t.Helper()
	p.salt++
	who := p.who(o.Account)
	token := p.fresh.Tokens[outcome(o.Token)]
	x := auth.Order{Version: 2, Maker: who.Address, Signer: who.Address, Token: token,
		Salt: auth.WordOf(p.salt), Timestamp: auth.WordOf(testNow * 1000),
		MakerAmount: uint64(o.Maker), TakerAmount: uint64(o.Taker)}
	x.Side, _ = form.Side(o.Side)
	signature, _, err := who.SignOrder(&x, &auth.Domains(testChain)[0])
	if err != nil {
		p.t.Fatal(err)
	}
	zeros := "0x" + strings.Repeat("0", 64)
	return p.call(who.Address, "POST", "/order", fmt.Sprintf(`{"order":{"salt":%d,"maker":"%s",`+
		`"signer":"%s","tokenId":"%s","makerAmount":"%d","takerAmount":"%d","side":"%s",`+
		`"signatureType":0,"timestamp":"%d","metadata":"%s","builder":"%s","signature":"0x%x"},`+
		`"owner":"%s","orderType":"%s"}`, p.salt, who.Address.Hex(), who.Address.Hex(),
		token.String(), o.Maker, o.Taker, o.Side, testNow*1000, zeros, zeros, signature,
		p.keyring.KeyID(who.Address, 0), kind))
}

var toldBalance = regexp.MustCompile(`balance: (\d+), sum`)

// balance is what a wallet has of an asset. An order for more than anybody has is refused with it.
func (p *pit) balance(name, asset string) int64 {
	p.t.Helper()
	const much = 10_000_000 * engine.Unit
	o := terms{Account: name, Side: "SELL", Token: asset, Maker: much, Taker: much / 2}
	if asset == "USDC" {
		o.Side, o.Token, o.Maker, o.Taker = "BUY", "YES", much/2, much
	}
	answer := p.post(o, "GTC")
	told := toldBalance.FindStringSubmatch(answer)
	if told == nil {
		p.t.Fatalf("%s of %s: %s", asset, name, answer)
	}
	n, _ := strconv.ParseInt(told[1], 10, 64)
	return n
}

// traded is what the answer to an order says was given and got, in base units.
func traded(t *testing.T, answer string) (making, taking int64) {
	t.Helper()
	body := answer[max(strings.Index(answer, "\n{"), 0):] // behind the header lines
	var r struct{ MakingAmount, TakingAmount string }
	if err := json.Unmarshal([]byte(body), &r); err != nil || !strings.HasPrefix(answer, "200\n") {
		t.Fatalf("it is no result: %s", answer)
	}
	return units(t, r.MakingAmount), units(t, r.TakingAmount)
}

// units is a decimal in base units.
func units(t *testing.T, text string) int64 {
	t.Helper()
	if text == "" {
		return 0
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r.Mul(r, big.NewRat(engine.Unit, 1)).Num().Int64()
}

// TestPublishedFees: a taker pays what other people's tests compute, rounded to five decimals, in a
// market with their schedule.
func TestPublishedFees(t *testing.T) {
	type feeCase struct {
		Rate, Price, Fee, Shares, Contracts json.Number
		Exponent                            uint8
	}
	var all struct {
		Kuest struct {
			Base  []feeCase
			Split []any `json:"operator_split"`
			Round []any `json:"rounding"`
		} `json:"fees_kuest"`
		Client struct{ Cases []feeCase } `json:"fees_polymarket_client"`
	}
	readVectors(t, &all, "vectors.json")
	p, n := newPit(t), tally{}
	for _, c := range append(all.Kuest.Base, all.Client.Cases...) {
		rate := units(t, c.Rate.String()) / 100 // basis points
		p.open(1, engine.Fee{Rate: uint16(rate), Exponent: c.Exponent})
		size := units(t, c.Shares.String()+c.Contracts.String())
		cost := size / engine.Unit * units(t, c.Price.String())
		p.give("maker", "YES", size)
		p.give("taker", "USDC", 1000*engine.Unit)
		for _, o := range []terms{{"maker", "SELL", "YES", size, cost}, {"taker", "BUY", "YES", cost, size}} {
			if got := p.post(o, "GTC"); !strings.HasPrefix(got, "200\n") {
				t.Fatalf("%+v: %s: %s", c, o.Side, got)
			}
		}
		steps, _ := new(big.Rat).SetString(c.Fee.String())
		steps.Mul(steps, big.NewRat(100_000, 1)).Add(steps, big.NewRat(1, 2))
		want := new(big.Int).Quo(steps.Num(), steps.Denom()).Int64() * 10
		paid := 1000*engine.Unit - p.balance("taker", "USDC") - cost
		if earned := p.balance("maker", "USDC"); paid != want || earned != cost {
			t.Errorf("%+v: the taker paid %d, want %d; the maker got %d of %d", c, paid, want, earned, cost)
		}
		n["fees paid"]++
	}
	n["skipped: a share for operators on top: a market here has one schedule"] = len(all.Kuest.Split)
	n["skipped: roundings of a bare number: fees are of a fill"] = len(all.Kuest.Round)
	n["skipped: the formula of the first contract, without figures: no schedule has it"] = 1
	n.report(t)
}

// TestPublishedMatches: a taker gives and gets what a settlement contract's tests state.
func TestPublishedMatches(t *testing.T) {
	var all struct {
		Matching []struct {
			Test, Result string
			Taker, Maker *terms
			Makes        int64  `json:"taker_makes"`
			Takes        int64  `json:"taker_takes"`
			Receives     *int64 `json:"taker_receives"`
			Fee          int64  `json:"maker_fee"`
		}
	}
	readVectors(t, &all, "vectors.json")
	p, n := newPit(t), tally{}
	for _, c := range all.Matching {
		switch {
		case c.Fee != 0:
			n["skipped: fees that an operator picks for each match, of makers too"]++
			continue
		case c.Taker == nil:
			n["skipped: stated without orders"]++
			continue
		}
		p.open(1, engine.Fee{})
		c.Taker.Account, c.Maker.Account = "taker", "maker"
		for _, o := range []*terms{c.Taker, c.Maker} {
			p.give(o.Account, map[string]string{"BUY": "USDC", "SELL": o.Token}[o.Side], o.Maker)
		}
		if got := p.post(*c.Maker, "GTC"); !strings.Contains(got, `"status":"live"`) {
			t.Fatalf("%s: the maker: %s", c.Test, got)
		}
		got := p.post(*c.Taker, "FAK")
		if c.Result != "" {
			if !strings.Contains(got, `"code":"fak_unfilled"`) {
				t.Errorf("%s: %s", c.Test, got)
			}
			n["that do not meet"]++
			continue
		}
		if c.Receives != nil {
			c.Makes, c.Takes = c.Taker.Maker, *c.Receives
		}
		if making, taking := traded(t, got); making != c.Makes || taking != c.Takes {
			t.Errorf("%s: gave %d and got %d, want %d and %d", c.Test, making, taking, c.Makes, c.Takes)
		}
		n["matches"]++
	}
	n.report(t)
}

// TestPublishedMarketOrders: orders with the amounts that clients compute for the market meet
// nobody where nobody quotes, and somebody who quotes their price to the last lot.
func TestPublishedMarketOrders(t *testing.T) {
	p, n := newPit(t), tally{}
	for _, a := range readPublished(t).Market {
		tick, _ := form.Price(a.Tick)
		price, _ := form.Price(a.Price)
		maker, _ := strconv.ParseInt(a.Maker, 10, 64)
		taker, _ := strconv.ParseInt(a.Taker, 10, 64)
		order := terms{"taker", a.Side, "YES", maker, taker}
		shares := max(maker, taker) // what costs less than 1 is more of it
		lots := (shares + int64(engine.Lot) - 1) / int64(engine.Lot) * int64(engine.Lot)
		cost := lots / int64(engine.PriceOne) * int64(price)
		quote := terms{"maker", "SELL", "YES", lots, cost}
		if a.Side == "SELL" {
			quote = terms{"maker", "BUY", "YES", cost, lots}
		}
		p.open(tick, engine.Fee{})
		for _, o := range []terms{order, quote} {
			p.give(o.Account, map[string]string{"BUY": "USDC", "SELL": "YES"}[o.Side], o.Maker)
		}
		if got := p.post(order, "FAK"); !strings.Contains(got, `"code":"fak_unfilled"`) {
			t.Errorf("%+v: %s", a, got)
		}
		if got := p.post(quote, "GTC"); !strings.Contains(got, `"status":"live"`) {
			t.Fatalf("%+v: %s", a, got)
		}
		making, taking := traded(t, p.post(order, "FAK"))
		filled := shares / int64(engine.Lot) * int64(engine.Lot)
		paid := filled / int64(engine.PriceOne) * int64(price)
		if a.Side == "SELL" {
			filled, paid = paid, filled
		}
		if making != paid || taking != filled {
			t.Errorf("%+v: gave %d and got %d, want %d and %d", a, making, taking, paid, filled)
		}
		n["market orders that met nobody, then somebody"]++
	}
	n.report(t)
}

// settlement is what a settlement contract's test does and states.
type settlement struct {
	ID         string
	Taker      terms
	Makers     []terms
	TakerFill  int64   `json:"taker_fill"`
	MakerFills []int64 `json:"maker_fills"`
	TakerFee   int64   `json:"taker_fee"`
	MakerFees  []int64 `json:"maker_fees"`
	Initial    []struct {
		Account, Asset string
		Amount         int64
	}
	Expect struct {
		Reverts  string
		Absolute []struct {
			Account, Asset string
			Amount         int64
		} `json:"balances_absolute"`
		Delta []struct {
			Account, Asset string
			Amount         int64
		} `json:"balances_delta_since_checkpoint"`
	}
}

// unfit says why orders cannot state a settlement, "" if they can.
func (s *settlement) unfit() string {
	fees := s.TakerFee
	for _, fee := range s.MakerFees {
		fees += fee
	}
	switch {
	case fees != 0:
		return "fees that an operator picks for each match"
	case s.Expect.Reverts != "" && s.Expect.Reverts != "NotCrossing":
		return "an operator's mistake, " + s.Expect.Reverts + ": matches are made by the node"
	}
	for i, m := range s.Makers {
		if i < len(s.MakerFills) && s.MakerFills[i] != m.Maker && i < len(s.Makers)-1 {
			return "a part of an order that an operator picks"
		}
		if m.Taker == 0 || m.Maker == 0 || s.Taker.Taker == 0 {
			return "an order without a price"
		}
	}
	return ""
}

// TestSettlements: whoever posts the orders of a settlement has in the end what its test states.
func TestSettlements(t *testing.T) {
	var list []settlement
	readVectors(t, &list, "scenarios", "settlement.json")
	p, n := newPit(t), tally{}
	for i := range list {
		s := &list[i]
		if why := s.unfit(); why != "" {
			n["skipped: "+why]++
			continue
		}
		p.open(1, engine.Fee{})
		for _, d := range s.Initial {
			p.give(d.Account, d.Asset, d.Amount)
		}
		if len(s.Initial) == 0 { // what the orders sell and no more
			for _, o := range append(s.Makers, s.Taker) {
				p.give(o.Account, map[string]string{"BUY": "USDC", "SELL": o.Token}[o.Side], o.Maker)
			}
		}
		refused := ""
		for _, m := range s.Makers {
			if got := p.post(m, "GTC"); !strings.HasPrefix(got, "200\n") {
				refused = got
			}
		}
		if refused != "" {
			t.Errorf("%s: %s", s.ID, refused)
			continue
		}
		before := map[string]int64{}
		for _, b := range s.Expect.Delta {
			before[b.Account+b.Asset] = p.balance(b.Account, b.Asset)
		}
		got := p.post(s.Taker, "FAK")
		if s.Expect.Reverts != "" && !strings.Contains(got, `"code":"fak_unfilled"`) ||
			s.Expect.Reverts == "" && !strings.HasPrefix(got, "200\n") {
			t.Errorf("%s: %s", s.ID, got)
			continue
		}
		for _, b := range s.Expect.Absolute {
			if has := p.balance(b.Account, b.Asset); has != b.Amount {
				t.Errorf("%s: %s has %d %s, want %d", s.ID, b.Account, has, b.Asset, b.Amount)
			}
		}
		for _, b := range s.Expect.Delta {
			if has := p.balance(b.Account, b.Asset) - before[b.Account+b.Asset]; has != b.Amount {
				t.Errorf("%s: %s got %d %s, want %d", s.ID, b.Account, has, b.Asset, b.Amount)
			}
		}
		n["settlements"]++
	}
	n.report(t)
}

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/cmd/cli"
	"clobd/engine"
	"clobd/ingress/auth"
)

// investor is a trader who reads what the node says of his positions.
type investor struct {
	*actor
	t    *testing.T
	salt uint64
}

// do sends a request, reads the answer into a value, and returns its headers X-Fee and X-Sequence.
func (x *investor) do(q question, into any) (fee string, sequence uint64) {
	x.t.Helper()
	var answer fasthttp.Response
	if err := x.Do(q.method, q.path, q.body, &answer); err != nil {
		x.t.Fatal(err)
	}
	if err := json.Unmarshal(answer.Body(), into); err != nil || answer.StatusCode() != http.StatusOK {
		x.t.Fatalf("%s %s: %d %s", q.method, q.path, answer.StatusCode(), answer.Body())
	}
	sequence, _ = strconv.ParseUint(string(answer.Header.Peek("X-Sequence")), 10, 64)
	return string(answer.Header.Peek("X-Fee")), sequence
}

// trade places an order for shares of the first token at a price in cents, and insists on the fee
// that it is told. A book and the list of orders, read then, tell no older Sequence.
func (x *investor) trade(side engine.Side, shares, price int, fee string) {
	x.t.Helper()
	token := x.outcomes[0].token
	no, _ := engine.ParseToken(token)
	x.salt++
	body, _, err := x.Sign(trader.Limit{Token: no, Side: side, Type: "GTC", Salt: x.salt,
		Price: engine.Price(100 * price), Size: engine.Size(shares) * engine.Unit})
	if err != nil {
		x.t.Fatal(err)
	}
	var result struct{ Fee string }
	told, written := x.do(question{http.MethodPost, "/order", body}, &result)
	if told != fee || result.Fee != fee || written == 0 {
		x.t.Errorf("%d at %d: fee %q, %q, Sequence %d; want %q", shares, price, told, result.Fee,
			written, fee)
	}
	for _, path := range []string{"/book?token_id=" + token, "/data/orders"} {
		var any map[string]any
		if _, read := x.do(question{http.MethodGet, path, nil}, &any); read < written {
			x.t.Errorf("%s is of Sequence %d after %d", path, read, written)
		}
	}
}

// has insists on the figures of the one position that a list has of an outcome.
func (x *investor) has(path string, outcome int, want string) {
	x.t.Helper()
	var list []struct {
		OutcomeIndex                                                                 int
		Size, InitialValue, CurrentValue, CashPnl, PercentPnl, RealizedPnl, CurPrice float64
		Redeemable                                                                   bool
	}
	x.do(question{http.MethodGet, path + "user=" + x.Address, nil}, &list)
	got := ""
	for _, p := range list {
		if p.OutcomeIndex == outcome {
			got = fmt.Sprint(p.Size, p.InitialValue, p.CurrentValue, p.CashPnl, p.PercentPnl, p.RealizedPnl,
				p.CurPrice, p.Redeemable)
		}
	}
	if got != want {
		x.t.Errorf("%s of outcome %d: %q, want %q", path, outcome, got, want)
	}
}

// TestPortfolio: the real node, from a split to the redemption. Each figure was worked out by hand:
// size, initialValue, currentValue, cashPnl, percentPnl, realizedPnl, curPrice, redeemable.
func TestPortfolio(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 0, 1)
	var both [2]*investor
	for i := range both {
		x := newTrader(t, "http://"+w.node.listen, w.tokens, rand.New(rand.NewPCG(26, uint64(i))))
		w.node.fund(t, auth.Checksum(x.Signer.Address), "1000")
		both[i] = &investor{x, t, 0}
	}
	ann, bob := both[0], both[1]
	condition := fmt.Sprintf("0x%064x", 1)
	operator := func(words ...string) {
		w.node.expect(t, cli.Done, append(words, "--data", w.node.data, "--admin", w.node.admin,
			"--market", condition))
	}
	operator("adjust", "--fee", "100^1")

	var done struct{ Success bool }
	ann.do(question{http.MethodPost, "/split",
		[]byte(`{"conditionId":"` + condition + `","amount":"100"}`)}, &done)
	// Nobody has traded yet: worth what was paid.
	ann.has("/positions?", 0, "100 50 50 0 0 0 0.5 false")
	ann.trade(engine.Sell, 40, 60, "")
	// bob takes 40 at 0.60: 40 × 0.01 × 0.24 = 0.096. ann made 40 × (0.60 − 0.50) = 4.
	bob.trade(engine.Buy, 40, 60, "0.096")
	ann.has("/positions?", 0, "60 30 36 6 20 4 0.6 false")
	bob.has("/positions?", 0, "40 24 24 0 0 -0.1 0.6 false")
	// bob sells 10 of them to ann at 0.50, as the taker: 10 × 0.01 × 0.25 = 0.025.
	// −1 − 0.096 − 0.025 = −1.121. His 30 cost 18 and are worth 15.
	ann.trade(engine.Buy, 10, 50, "")
	bob.trade(engine.Sell, 10, 50, "0.025")
	bob.has("/positions?", 0, "30 18 15 -3 -16.67 -1.12 0.5 false")
	// ann has 60 at 0.50 and 10 at 0.50.
	ann.has("/positions?", 0, "70 35 35 0 0 4 0.5 false")
	// Between a bid of 0.40 and an ask of 0.70: 0.55.
	ann.trade(engine.Buy, 10, 40, "")
	ann.trade(engine.Sell, 10, 70, "")
	bob.has("/positions?", 0, "30 18 16.5 -1.5 -8.33 -1.12 0.55 false")

	operator("resolve", "--payouts", "0,1")
	bob.has("/positions?redeemable=true&", 0, "30 18 0 -18 -100 -1.12 0 true")
	bob.has("/positions?redeemable=false&", 0, "30 18 0 -18 -100 -1.12 0 true")
	ann.has("/positions?redeemable=true&", 1, "100 50 100 50 100 0 1 true")
	var worth []struct{ Value float64 }
	if bob.do(question{http.MethodGet, "/value?user=" + bob.Address, nil}, &worth); worth[0].Value != 0 {
		t.Errorf("bob has %v", worth)
	}
	if ann.do(question{http.MethodGet, "/value?user=" + ann.Address, nil}, &worth); worth[0].Value != 100 {
		t.Errorf("ann has %v", worth)
	}
	for _, x := range both {
		x.do(question{http.MethodPost, "/redeem", []byte(`{"conditionId":"` + condition + `"}`)}, &done)
		x.has("/positions?sizeThreshold=0&", 0, "")
	}
	// −1.121 − 18 = −19.121 on 40 shares: −47.80 %. 4 − 35 = −31 on 110: −28.18 %.
	bob.has("/closed-positions?", 0, "0 0 0 -19.12 -47.8 -19.12 0 false")
	ann.has("/closed-positions?", 0, "0 0 0 -31 -28.18 -31 0 false")
	ann.has("/closed-positions?", 1, "0 0 0 50 50 50 1 false")
}

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/auth"
)

// freshMarkets is how many pairs of traders write and read at once, each in a market of its own, so
// that every one of them knows what his next read has to say.
const freshMarkets = 16

// freshGift is the collateral of a trader in units, far more than he can spend.
const freshGift = 1_000_000

// duo is two traders with a market of their own: one rests orders, the other takes some of them.
type duo struct {
	t            *testing.T
	r            *rand.Rand
	maker, taker *actor
	outcome      outcome
	live         []*intent // the maker's
	spent        [2]int    // by maker and taker, in cents
	stale        int
}

// sign makes a BUY at a price in cents.
func (d *duo) sign(x *actor, token string, price int) *intent {
	i := &intent{trader: x, token: token, price: price, shares: 5 + d.r.IntN(4)}
	no, ok := engine.ParseToken(token)
	if !ok {
		d.t.Fatalf("token %s", token)
	}
	var err error
	i.body, i.id, err = x.Sign(trader.Limit{Token: no, Side: engine.Buy, Type: "GTC",
		Price: engine.Price(price * int(engine.PriceOne) / 100),
		Size:  engine.Size(i.shares) * engine.Unit, Salt: d.r.Uint64() >> 12})
	if err != nil {
		d.t.Fatal(err)
	}
	return i
}

// question is a request that must succeed, and is answered with JSON.
type question struct {
	method, path string
	body         []byte
}

// ask sends it and reads the answer into a value. A 503 means that it was not taken in: the node is
// busy, or the index has not come to the last write; a 504 that an order was, and the index has not
// come to it.
func (d *duo) ask(x *actor, q question, into any) {
	status, text, err := x.exchange(q.method, q.path, q.body)
	for end := time.Now().Add(patience); err == nil && time.Now().Before(end) &&
		(status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout); {
		time.Sleep(20 * time.Millisecond)
		status, text, err = x.exchange(q.method, q.path, q.body)
	}
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		d.t.Errorf("%s %s: %v", q.method, q.path, err)
	}
}

// write sends an order and returns its status.
func (d *duo) write(i *intent) string {
	var answer struct{ Status string }
	d.ask(i.trader, question{http.MethodPost, "/order", i.body}, &answer)
	return answer.Status
}

// want compares what a read said.
func (d *duo) want(read string, i *intent, got, want any) {
	if got != want {
		d.stale++
		d.t.Errorf("STALE: %s of order %s says %v, want %v", read, i.id.Hex(), got, want)
	}
}

// status reads the record of an order.
func (d *duo) status(i *intent) string {
	var r record
	d.ask(i.trader, question{http.MethodGet, "/data/order/" + i.id.Hex(), nil}, &r)
	return r.Status
}

// listed reports whether the live orders of the maker have this one.
func (d *duo) listed(i *intent) bool {
	var page struct{ Data []record }
	d.ask(i.trader, question{http.MethodGet, "/data/orders", nil}, &page)
	for _, r := range page.Data {
		if r.ID == i.id.Hex() {
			return true
		}
	}
	return false
}

// rest places an order that nobody takes.
func (d *duo) rest() {
	i := d.sign(d.maker, d.outcome.token, 1+d.r.IntN(30))
	d.want("the answer", i, d.write(i), "live")
	d.live = append(d.live, i)
	switch d.r.IntN(3) {
	case 0:
		d.want("the record", i, d.status(i), "LIVE")
	case 1:
		d.want("the list", i, d.listed(i), true)
	default:
		d.want("the book", i, d.booked(i), d.resting(i.price))
	}
}

// cancel ends an order.
func (d *duo) cancel() {
	at := d.r.IntN(len(d.live))
	i := d.live[at]
	d.live[at] = d.live[len(d.live)-1]
	d.live = d.live[:len(d.live)-1]
	var done struct{ Canceled []string }
	d.ask(d.maker, question{http.MethodDelete, "/order", trader.CancelBody(i.id)}, &done)
	d.want("the cancellation", i, len(done.Canceled), 1)
	switch d.r.IntN(4) {
	case 0:
		d.want("the record", i, d.status(i), "CANCELED")
	case 1:
		d.want("the list", i, d.listed(i), false)
	case 2:
		d.want("the same order again", i, d.write(i) == "live", false)
	default:
		d.want("the book", i, d.booked(i), d.resting(i.price))
	}
}

// trade lets the taker fill an order of the maker, whole: both buy, which makes pairs.
func (d *duo) trade() {
	rests := d.sign(d.maker, d.outcome.token, 40+d.r.IntN(20))
	d.want("the answer", rests, d.write(rests), "live")
	takes := d.sign(d.taker, d.outcome.other, 100-rests.price)
	for takes.shares != rests.shares {
		takes = d.sign(d.taker, d.outcome.other, 100-rests.price)
	}
	d.want("the answer", takes, d.write(takes), "matched")
	d.spent[0] += rests.price * rests.shares
	d.spent[1] += takes.price * takes.shares
	switch d.r.IntN(5) {
	case 4:
		d.balance(d.r.IntN(2), takes)
	case 0:
		d.want("the record", rests, d.status(rests), "MATCHED")
	case 1:
		d.want("the record", takes, d.status(takes), "MATCHED")
	case 2:
		d.want("the same order again", rests, d.write(rests), "matched")
	default:
		x := []*actor{d.maker, d.taker}[d.r.IntN(2)]
		var page struct {
			Data []struct {
				Taker string `json:"taker_order_id"`
			}
		}
		if d.ask(x, question{http.MethodGet, "/data/trades", nil}, &page); len(page.Data) == 0 {
			d.want("the list of trades", takes, "nothing", "a trade")
			return
		}
		d.want("the newest trade", takes, page.Data[0].Taker, takes.id.Hex())
	}
}

// balance reads the collateral of the maker or the taker after a trade.
func (d *duo) balance(k int, after *intent) {
	var answer struct{ Balance string }
	d.ask([]*actor{d.maker, d.taker}[k], question{path: "/balance-allowance?asset_type=COLLATERAL",
		method: http.MethodGet}, &answer)
	want := freshGift*engine.Unit - d.spent[k]*engine.Unit/100
	d.want("the balance", after, answer.Balance, strconv.Itoa(want))
}

// booked is how many shares the book has at the price of an order.
func (d *duo) booked(i *intent) float64 {
	text, err := i.trader.Get("/book?token_id=" + i.token)
	var book struct {
		Bids []struct{ Price, Size string }
	}
	if err == nil {
		err = json.Unmarshal(text, &book)
	}
	if err != nil {
		d.t.Errorf("book: %v", err)
	}
	for _, level := range book.Bids {
		if price, _ := strconv.ParseFloat(level.Price, 64); int(price*100+0.5) == i.price {
			size, _ := strconv.ParseFloat(level.Size, 64)
			return size
		}
	}
	return 0
}

// resting is how many shares should be there.
func (d *duo) resting(price int) (shares float64) {
	for _, i := range d.live {
		if i.price == price {
			shares += float64(i.shares)
		}
	}
	return shares
}

// TestReadYourWrites: through the door of the real node, on a real disk, whatever was acknowledged
// is in the very next answer, whichever route gives it, while others write.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	rounds := 10_000
	if testing.Short() {
		rounds = 1_600
	}
	folder := t.TempDir()
	tokens := writeCatalog(t, folder+"/catalog.jsonl", freshMarkets)
	node := newProcess(t, buildNode(t), folder, "--catalog", folder+"/catalog.jsonl",
		"--limits", "off")
	node.start(t)
	duos := make([]*duo, freshMarkets)
	for n := range duos {
		d := &duo{t: t, r: rand.New(rand.NewPCG(8, uint64(n))), outcome: tokens[2*n]}
		for _, x := range []**actor{&d.maker, &d.taker} {
			*x = newTrader(t, "http://"+node.listen, tokens, d.r)
			node.fund(t, auth.Checksum((*x).Signer.Address), strconv.Itoa(freshGift))
		}
		duos[n] = d
	}
	var left atomic.Int64
	left.Store(int64(rounds))
	var group sync.WaitGroup
	began := time.Now()
	for _, d := range duos {
		group.Go(func() {
			for left.Add(-1) >= 0 && d.stale == 0 && !t.Failed() {
				switch k := d.r.IntN(5); {
				case len(d.live) > 60, k < 2 && len(d.live) > 0:
					d.cancel()
				case k == 2:
					d.trade()
				default:
					d.rest()
				}
			}
		})
	}
	group.Wait()
	if left.Load() > 0 {
		t.Errorf("%d pairs of a write and a read are left", left.Load())
	}
	t.Logf("%d pairs of a write and a read in %v", rounds, time.Since(began).Round(time.Millisecond))
	node.stop(t)
	if text := node.log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the node complains:\n%s", text)
	}
}

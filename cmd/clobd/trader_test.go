package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/scripts/openapi"
)

// intent is an order that was sent, and what is known about it.
type intent struct {
	id       engine.OrderID
	trader   *actor
	token    string
	price    int // in cents
	shares   int
	body     []byte
	answered bool // with 200: it is durable, whatever happens next
	unknown  bool // so the node said in time: it may be durable, or not
	canceled bool // so the node said: it is over, whatever happens next
	matched  float64
	filled   float64 // as a node showed it last
}

// actor is one wallet with its key and connections of its own. It belongs to one goroutine at a
// time.
type actor struct {
	*trader.Client
	t        testing.TB
	outcomes []outcome
	rand     *rand.Rand
	sent     []*intent
	// manner is the query of its readings, "" or one that begins with a question mark; carried is true
	// if what it sends may be on its way to another node when its own is gone.
	manner  string
	carried bool
	lost    func() bool // its node has ended by itself
	door    string      // what its node is called in a cluster
}

// newTrader makes a wallet drawn from r and derives its API key.
func newTrader(t *testing.T, url string, tokens []outcome, r *rand.Rand) *actor {
	t.Helper()
	var key [32]byte
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	client, err := trader.NewClient(url, auth.ChainTest, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Derive(); err != nil {
		t.Fatal(err)
	}
	return &actor{Client: client, t: t, outcomes: tokens, rand: r,
		lost: func() bool { return false }}
}

// draw signs a BUY of a random outcome, 5 to 20 shares at 0.30 to 0.70: about half of them meet a
// BUY of the other outcome, which mints a pair.
func (x *actor) draw(t *testing.T) *intent {
	t.Helper()
	i := &intent{trader: x, token: x.outcomes[x.rand.IntN(len(x.outcomes))].token,
		price: 30 + x.rand.IntN(41), shares: 5 + x.rand.IntN(16)}
	token, ok := engine.ParseToken(i.token)
	if !ok {
		t.Fatalf("token %s", i.token)
	}
	var err error
	i.body, i.id, err = x.Sign(trader.Limit{Token: token, Side: engine.Buy, Type: "GTC",
		Price: engine.Price(i.price * int(engine.PriceOne) / 100),
		Size:  engine.Size(i.shares) * engine.Unit, Salt: x.rand.Uint64() >> 12})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// exchange sends a request. An error means that no answer came.
func (x *actor) exchange(method, path string, body []byte) (int, []byte, error) {
	answer := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(answer)
	if err := x.Do(method, path, body, answer); err != nil {
		return 0, nil, err
	}
	body = append([]byte(nil), answer.Body()...)
	a := openapi.Answer{Method: method, Target: path, Status: answer.StatusCode(), Body: body,
		ContentType: string(answer.Header.ContentType()), Header: http.Header{}}
	if a.Status == http.StatusOK {
		a.Dialect = "POLY_"
	}
	for name, value := range answer.Header.All() {
		a.Header.Add(string(name), string(value))
	}
	conform(x.t, &a)
	return a.Status, body, nil
}

// post sends a signed order. With status 0 no answer came; another error is a wrong answer.
func (x *actor) post(i *intent) (status int, text string, err error) {
	status, body, err := x.exchange(http.MethodPost, "/order", i.body)
	i.unknown = i.unknown || status == http.StatusGatewayTimeout
	if err != nil || status != http.StatusOK {
		return status, string(body), err
	}
	var result struct{ OrderID, TakingAmount string }
	if err := json.Unmarshal(body, &result); err != nil {
		return status, string(body), err
	}
	if result.OrderID != i.id.Hex() {
		return status, string(body), fmt.Errorf("orderID %s, signed %s", result.OrderID, i.id.Hex())
	}
	i.answered = true
	if result.TakingAmount != "" {
		i.matched, err = strconv.ParseFloat(result.TakingAmount, 64)
	}
	return status, string(body), err
}

// postAll sends several orders as one. Of each it is noted whether it was taken, or may have been.
func (x *actor) postAll(all []*intent) (status int, text string, err error) {
	var bodies [][]byte
	for _, i := range all {
		bodies = append(bodies, i.body)
	}
	body := append(append([]byte("["), bytes.Join(bodies, []byte(","))...), ']')
	status, body, err = x.exchange(http.MethodPost, "/orders", body)
	for _, i := range all {
		i.unknown = i.unknown || status == http.StatusGatewayTimeout
	}
	if err != nil || status != http.StatusOK {
		return status, string(body), err
	}
	var results []struct {
		Success                         bool
		OrderID, TakingAmount, ErrorMsg string
	}
	if err := json.Unmarshal(body, &results); err != nil || len(results) != len(all) {
		return status, string(body), fmt.Errorf("%d results of %d orders: %v", len(results), len(all), err)
	}
	for n, r := range results {
		if !r.Success {
			all[n].unknown = all[n].unknown || strings.Contains(r.ErrorMsg, "its outcome is unknown")
			continue // told: not now
		}
		if all[n].answered = true; r.OrderID != all[n].id.Hex() {
			return status, string(body), fmt.Errorf("order %d of a bundle: %s", n, r.OrderID)
		}
		if r.TakingAmount != "" {
			if all[n].matched, err = strconv.ParseFloat(r.TakingAmount, 64); err != nil {
				return status, string(body), err
			}
		}
	}
	return status, string(body), nil
}

// postAgain is post of an order that was acknowledged before: until the node is not busy, and its
// index can tell what became of it. An answer that did not come in the client's time is asked for
// again: the same order is no second one.
func (x *actor) postAgain(i *intent) (status int, text string, err error) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		status, text, err = x.post(i)
		again := lateAnswer(err) || err == nil &&
			(refused(status, err) || status == http.StatusGatewayTimeout)
		if !again || time.Now().After(end) {
			return status, text, err
		}
	}
}

// cancel takes an order back, and notes if the node says so. If no answer comes in the client's
// time it asks again: the order is canceled then, by this or by the one before.
func (x *actor) cancel(i *intent) (status int, text string, err error) {
	var body []byte
	late := false
	for end := time.Now().Add(patience); ; late = true {
		status, body, err = x.exchange(http.MethodDelete, "/order", trader.CancelBody(i.id))
		if !lateAnswer(err) || time.Now().After(end) {
			break
		}
	}
	if err != nil || status != http.StatusOK {
		return status, string(body), err
	}
	var answer struct{ Canceled []string }
	err = json.Unmarshal(body, &answer)
	i.canceled = i.canceled || slices.Contains(answer.Canceled, i.id.Hex())
	if late && !i.canceled {
		_, told, _ := x.exchange(http.MethodGet, "/data/order/"+i.id.Hex(), nil)
		i.canceled = bytes.Contains(told, []byte(`"status":"CANCELED"`))
	}
	return status, string(body), err
}

// record is what the node says about an order.
type record struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Token    string `json:"asset_id"`
	Price    string `json:"price"`
	Original string `json:"original_size"`
	Matched  string `json:"size_matched"`
}

// lookup reads an order back; false if the node does not know it. An index that is not there yet
// says so with 503, and is asked again; so is a node that starts again by itself.
func (x *actor) lookup(i *intent) (record, bool, error) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		status, body, err := x.exchange(http.MethodGet, "/data/order/"+i.id.Hex()+x.manner, nil)
		switch {
		case (err != nil || refused(status, err)) && time.Now().Before(end):
			continue // not yet, or a connection from before the restart
		case err != nil:
			return record{}, false, err
		case status == http.StatusNotFound:
			return record{}, false, nil
		case status != http.StatusOK:
			return record{}, false, fmt.Errorf("status %d: %s", status, body)
		}
		var r record
		return r, true, json.Unmarshal(body, &r)
	}
}

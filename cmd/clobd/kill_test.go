package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/ingress/auth"
	"clobd/scripts/setting"
)

// world is a node, the traders that load it, and every order they ever sent.
type world struct {
	node    *process
	tokens  []outcome
	traders []*actor
	rand    *rand.Rand
}

// newWorld starts a node on a fresh data folder, with funded traders. The seed decides what is sent
// and when the node is ended; how far it is then is up to the machine. CLOBD_SEED sets it.
func newWorld(t *testing.T, traders int) *world {
	t.Helper()
	return newWorldOf(t, traders, 3)
}

// newWorldOf is newWorld with so many markets, and further flags of the node.
func newWorldOf(t *testing.T, traders, markets int, flags ...string) *world {
	t.Helper()
	seed := setting.Seed(t, uint64(time.Now().UnixNano()))
	folder := t.TempDir()
	catalog := filepath.Join(folder, "catalog.jsonl")
	w := &world{rand: rand.New(rand.NewPCG(seed, 0)), tokens: writeCatalog(t, catalog, markets)}
	flags = append([]string{"--catalog", catalog, "--limits", "off"}, flags...)
	w.node = newProcess(t, buildNode(t), folder, flags...)
	w.node.start(t)
	for n := range traders {
		r := rand.New(rand.NewPCG(seed, uint64(n)+1))
		x := newTrader(t, "http://"+w.node.listen, w.tokens, r)
		w.node.fund(t, auth.Checksum(x.Signer.Address), "1000000")
		w.traders = append(w.traders, x)
	}
	return w
}

// round is what the traders of a load have been told so far.
type round struct {
	stopped      atomic.Bool
	told         atomic.Int64 // requests that were answered
	acknowledged atomic.Int64 // orders
}

// roundLeast is how many answers or acknowledged orders a round has at least, however little a slow
// machine does in its time.
const roundLeast = 12

// load lets every trader post orders, each on its own connection. After a random 20 to 150 ms, and
// not before enough of them were acknowledged, end is called, and the traders stop. It returns what
// was sent in this round.
func (w *world) load(t *testing.T, end func()) []*intent {
	t.Helper()
	return w.loadUntil(t, end, func(r *round) bool { return r.acknowledged.Load() >= roundLeast })
}

// loadMuch is load of so many frames that those in the middle of the largest table share no block
// with the last ones, which a start reads.
func (w *world) loadMuch(t *testing.T, end func()) {
	t.Helper()
	w.loadUntil(t, end, func(r *round) bool { return r.acknowledged.Load() >= 500 })
}

// loadUntil is load with another notion of enough; nil: whatever it has come to.
func (w *world) loadUntil(t *testing.T, end func(), enough func(*round) bool) []*intent {
	t.Helper()
	var r round
	var group sync.WaitGroup
	from := make([]int, len(w.traders))
	for n, x := range w.traders {
		from[n] = len(x.sent)
		group.Go(func() { x.flood(t, &r) })
	}
	gone := make(chan struct{})
	go func() {
		group.Wait()
		close(gone)
	}()
	time.Sleep(time.Duration(20+w.rand.IntN(131)) * time.Millisecond)
	for late := time.After(patience); enough != nil && !enough(&r); {
		select {
		case <-gone: // the node is
			enough = nil
		case <-late:
			t.Errorf("%d answers, %d orders acknowledged: the load is no load", r.told.Load(),
				r.acknowledged.Load())
			enough = nil
		case <-time.After(time.Millisecond):
		}
	}
	end()
	r.stopped.Store(true)
	<-gone
	var sent []*intent
	for n, x := range w.traders {
		sent = append(sent, x.sent[from[n]:]...)
	}
	return sent
}

// flood sends orders, bundles of them and cancels until told to stop, or until no answer comes:
// then the node is gone, and the order may or may not be there later. Only the first one may meet a
// connection from before a restart. A refusal other than "not now", or "nobody knows", is an error
// of the test, for every order is good.
func (x *actor) flood(t *testing.T, r *round) {
	for first := true; !r.stopped.Load(); first = false {
		from, status := len(x.sent), 0
		var text string
		var err error
		i := x.draw(t)
		switch n := x.rand.IntN(10); {
		case n == 0 && len(x.sent) > 0:
			i = x.sent[x.rand.IntN(len(x.sent))]
			status, text, err = x.cancel(i)
		case n == 1:
			bundle := []*intent{i, x.draw(t), x.draw(t)}
			x.sent = append(x.sent, bundle...)
			status, text, err = x.postAll(bundle)
		default:
			x.sent = append(x.sent, i)
			status, text, err = x.post(i)
		}
		r.acknowledged.Add(int64(answered(x.sent[from:])))
		switch {
		case err != nil && status == 0 && first:
			continue
		case err != nil && status == 0:
			return
		case err != nil:
			t.Errorf("order %s: %v: %s", i.id.Hex(), err, text)
			return
		case status != http.StatusOK && status != http.StatusServiceUnavailable &&
			status != http.StatusTooEarly && status != http.StatusTooManyRequests &&
			status != http.StatusGatewayTimeout:
			t.Errorf("order %s: %d %s", i.id.Hex(), status, text)
			return
		}
		r.told.Add(1)
	}
}

// verify finds every acknowledged order of the list with the right size, and adds what rests to
// levels. It returns how many turned up of which nothing had been said.
func verify(t *testing.T, sent []*intent, levels map[string]float64) (found int) {
	t.Helper()
	for _, i := range sent {
		r, known, err := i.trader.lookup(i)
		if err != nil {
			t.Fatalf("look up %s: %v", i.id.Hex(), err)
		}
		if !known {
			if i.answered {
				t.Errorf("LOST: order %s was acknowledged and is not there", i.id.Hex())
			}
			continue
		}
		if !i.answered && !i.unknown {
			found++
		}
		matched := i.compare(t, &r)
		i.filled = matched
		if r.Status == "LIVE" {
			levels[fmt.Sprintf("%s@%d", i.token, i.price)] += float64(i.shares) - matched
		}
	}
	return found
}

// compare holds the node's record against what was signed and acknowledged.
func (i *intent) compare(t *testing.T, r *record) (matched float64) {
	t.Helper()
	matched, err := strconv.ParseFloat(r.Matched, 64)
	price, priceErr := strconv.ParseFloat(r.Price, 64)
	if err != nil || priceErr != nil {
		t.Fatalf("order %s: %+v", i.id.Hex(), r)
	}
	same := r.ID == i.id.Hex() && r.Token == i.token && r.Original == strconv.Itoa(i.shares) &&
		int(price*100+0.5) == i.price
	if !same {
		t.Errorf("order %s: sent %d shares of %s at 0.%d, the node has %+v",
			i.id.Hex(), i.shares, i.token, i.price, r)
	}
	if matched < i.matched || matched > float64(i.shares) {
		t.Errorf("order %s: %g shares matched, %g acknowledged, %d signed",
			i.id.Hex(), matched, i.matched, i.shares)
	}
	if i.canceled && r.Status != "CANCELED" {
		t.Errorf("LOST: order %s was canceled, and is %s", i.id.Hex(), r.Status)
	}
	switch r.Status {
	case "LIVE", "CANCELED":
	case "MATCHED":
		if matched != float64(i.shares) {
			t.Errorf("order %s: MATCHED with %g of %d shares", i.id.Hex(), matched, i.shares)
		}
	default:
		t.Errorf("order %s: status %q", i.id.Hex(), r.Status)
	}
	return matched
}

// books compares every book with the orders that rest: each level must be the sum of what was sent
// and nothing else, so nothing is there that nobody sent.
func (w *world) books(t *testing.T, levels map[string]float64) {
	t.Helper()
	seen := map[string]float64{}
	for _, o := range w.tokens {
		answer, err := w.node.public.Get("http://" + w.node.listen + "/book?token_id=" + o.token)
		if err != nil {
			t.Fatal(err)
		}
		var book struct {
			Bids []struct{ Price, Size string }
		}
		err = json.NewDecoder(answer.Body).Decode(&book)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("book of %s: %d %v", o.token, answer.StatusCode, err)
		}
		// Every order is a BUY: the bids of a token are the orders for it, and its asks are those
		// for the other outcome again.
		for _, l := range book.Bids {
			price, _ := strconv.ParseFloat(l.Price, 64)
			size, _ := strconv.ParseFloat(l.Size, 64)
			seen[fmt.Sprintf("%s@%d", o.token, int(price*100+0.5))] = size
		}
	}
	for name, size := range levels {
		if seen[name] != size {
			t.Errorf("level %s: the orders sum to %g, the book says %g", name, size, seen[name])
		}
	}
	for name, size := range seen {
		if _, sent := levels[name]; !sent {
			t.Errorf("level %s: %g shares that nobody sent", name, size)
		}
	}
}

// all is every order that was ever sent.
func (w *world) all() []*intent {
	var all []*intent
	for _, x := range w.traders {
		all = append(all, x.sent...)
	}
	return all
}

// resend posts an acknowledged order again: it is the same order, not a second one.
func (w *world) resend(t *testing.T, round []*intent) {
	t.Helper()
	for _, i := range round {
		if !i.answered {
			continue
		}
		before := i.matched
		status, text, err := i.trader.postAgain(i)
		if err != nil || status != http.StatusOK {
			t.Errorf("order %s sent again: %d %s %v", i.id.Hex(), status, text, err)
		}
		if i.matched < before {
			t.Errorf("order %s sent again: %g shares matched, before %g", i.id.Hex(), i.matched, before)
		}
		return
	}
}

// answered counts the acknowledged orders.
func answered(sent []*intent) (n int) {
	for _, i := range sent {
		if i.answered {
			n++
		}
	}
	return n
}

// TestKill ends the node with SIGKILL at random moments under load. After each restart every
// order that was acknowledged is there, and nothing that was not sent.
func TestKill(t *testing.T) {
	t.Parallel()
	newWorld(t, 4).kills(t, 20)
}

// kills loads the node and kills it, as often as CLOBD_SIZE says or else usual. Before each kill
// something may have to come.
func (w *world) kills(t *testing.T, usual int, before ...func()) {
	t.Helper()
	cycles := setting.Size(t, usual, 2)
	for cycle := 1; cycle <= cycles; cycle++ {
		round := w.load(t, func() {
			for _, come := range before {
				come()
			}
			w.node.kill(t)
		})
		started := time.Now()
		w.node.start(t)
		ready := time.Since(started)
		found := verify(t, round, map[string]float64{})
		w.resend(t, round)
		t.Logf("cycle %d: %d sent, %d acknowledged, %d of the others found, ready after %v",
			cycle, len(round), answered(round), found, ready.Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("the node's log:\n%s", w.node.log.String())
		}
	}
	levels := map[string]float64{}
	all := w.all()
	verify(t, all, levels)
	w.books(t, levels)
	t.Logf("figures: cycles=%d sent=%d acknowledged=%d lost=0", cycles, len(all), answered(all))
	if answered(all) < 10*cycles {
		t.Errorf("%d orders acknowledged in %d cycles: the load was no load", answered(all), cycles)
	}
}

// TestStop ends the node with SIGTERM under load: it exits 0, what it acknowledged is there after
// the next start, and a request that got no answer changed nothing.
func TestStop(t *testing.T) {
	t.Parallel()
	rounds := setting.Size(t, 5, 1)
	w := newWorld(t, 4)
	for n := 1; n <= rounds; n++ {
		round := w.load(t, func() { w.node.stop(t) })
		w.node.start(t)
		if found := verify(t, round, map[string]float64{}); found > 0 {
			t.Errorf("round %d: %d orders were taken and never answered", n, found)
		}
		t.Logf("round %d: %d sent, %d acknowledged", n, len(round), answered(round))
	}
	levels := map[string]float64{}
	verify(t, w.all(), levels)
	w.books(t, levels)
	t.Logf("figures: rounds=%d sent=%d acknowledged=%d lost=0 ambiguous=0", rounds, len(w.all()),
		answered(w.all()))
}

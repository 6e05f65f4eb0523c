package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/scripts/setting"
)

// A history is what four traders asked the node and were told, in one market, while it was paused
// and killed. It is good if there is one order of all the requests, each between its beginning and
// its end, in which a plain book would have given the same answers.
//
// A request whose connection was lost may have happened or not, but no later than that: the node
// that had it is dead by then. Which of the two is asked for in the end, when everything is quiet.
// A request that timed out may have happened at any time after it was sent, or never.

// deed is a request of a history.
type deed struct {
	kind  string // post, cancel, read, book
	id    engine.OrderID
	first bool // it buys the first of the two outcomes
	price int  // in cents of its own outcome
	size  int  // in shares
}

// told is its answer.
type told struct {
	unknown bool
	late    bool   // unknown, and it may happen later
	matched int    // post, read: shares so far
	status  string // read: LIVE, MATCHED, CANCELED; "" is not found
	done    bool   // cancel: it was canceled by this request
	levels  string // book
}

// pledge is an order in the model. All orders are BUYs, half of them of the other outcome, so that
// each fill makes a pair.
type pledge struct {
	id       engine.OrderID
	first    bool
	canceled bool
	price    int
	size     int
	matched  int
}

// status is what the node calls it.
func (p *pledge) status() string {
	switch {
	case p.canceled:
		return "CANCELED"
	case p.matched == p.size:
		return "MATCHED"
	}
	return "LIVE"
}

// plainBook is the model: a list of all orders, in the order of their arrival.
func plainBook() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []pledge(nil) },
		Step: func(state, in, out any) (bool, any) {
			return step(state.([]pledge), in.(deed), out.(told))
		},
		Equal: func(a, b any) bool { return slices.Equal(a.([]pledge), b.([]pledge)) },
		Hash: func(state any) uint64 {
			h := fnv.New64a()
			for _, p := range state.([]pledge) {
				fmt.Fprintln(h, p.id[:4], p.matched, p.canceled)
			}
			return h.Sum64()
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
	}
}

// step reports whether a deed may be answered so, and what the book is after it.
func step(book []pledge, d deed, out told) (bool, []pledge) {
	at := slices.IndexFunc(book, func(p pledge) bool { return p.id == d.id })
	switch {
	case d.kind == "book":
		return out.levels == levels(book), book
	case d.kind == "read" && at < 0:
		return out.status == "", book
	case d.kind == "read":
		p := &book[at]
		return out.status == p.status() && out.matched == p.matched, book
	case d.kind == "cancel":
		if at < 0 || book[at].status() != "LIVE" {
			return out.unknown || !out.done, book
		}
		after := slices.Clone(book)
		after[at].canceled = true
		return out.unknown || out.done, after
	case at >= 0: // posted again: the same order
		return out.unknown || out.matched == book[at].matched, book
	}
	after := meet(slices.Clone(book), d)
	return out.unknown || out.matched == after[len(after)-1].matched, after
}

// meet matches a new order with the best prices, the oldest first, and lets the rest rest.
func meet(book []pledge, d deed) []pledge {
	p := pledge{id: d.id, first: d.first, price: d.price, size: d.size}
	for p.matched < p.size {
		best := -1
		for i := range book {
			o := &book[i]
			if o.first != p.first && o.status() == "LIVE" && o.price+p.price >= 100 &&
				(best < 0 || o.price > book[best].price) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		n := min(p.size-p.matched, book[best].size-book[best].matched)
		book[best].matched += n
		p.matched += n
	}
	return append(book, p)
}

// levels are the sums of what rests, as text: the bids of the two outcomes, best first.
func levels(book []pledge) string {
	sums := [2][101]int{}
	for i := range book {
		if p := &book[i]; p.status() == "LIVE" {
			sums[side(p.first)][p.price] += p.size - p.matched
		}
	}
	text := ""
	for _, sum := range sums {
		for price := 100; price > 0; price-- {
			if sum[price] > 0 {
				text += fmt.Sprintf("%d@%d ", sum[price], price)
			}
		}
		text += "/ "
	}
	return text
}

// side is the number of an outcome.
func side(first bool) int {
	if first {
		return 0
	}
	return 1
}

// recorder writes a history down. Everybody may use it.
type recorder struct {
	market outcome
	start  time.Time
	late   time.Time // nobody begins anything after it

	mutex      sync.Mutex
	operations []porcupine.Operation
	orders     map[engine.OrderID]*intent
}

// note writes down a deed that began at a time and ended now, or never if it may yet happen. A
// reading without an answer says nothing.
func (r *recorder) note(client int, d deed, begun time.Duration, out told) {
	end := int64(time.Since(r.start))
	if out.unknown && (d.kind == "read" || d.kind == "book") {
		return
	}
	if out.late {
		end = math.MaxInt64
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.operations = append(r.operations, porcupine.Operation{ClientId: client, Input: d,
		Call: int64(begun), Output: out, Return: end})
}

// refused says that a request did not reach the engine: nobody listens, or "not now".
func refused(status int, err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || err == nil &&
		(status == http.StatusServiceUnavailable || status == http.StatusTooEarly ||
			status == http.StatusTooManyRequests)
}

// act lets a trader do so many random things that reach the engine; fewer if the node takes none.
func (x *actor) act(t *testing.T, r *recorder, client, most int) {
	x.outcomes = []outcome{r.market}
	if client%2 == 1 { // nobody meets himself
		x.outcomes[0] = outcome{r.market.other, r.market.token}
	}
	var mine []*intent
	for noted := 0; noted < most && time.Now().Before(r.late) && !x.lost(); {
		time.Sleep(time.Duration(x.rand.IntN(3000)) * time.Microsecond)
		k := x.rand.IntN(10)
		if k < 5 || len(mine) == 0 {
			mine = append(mine, x.draw(t))
			r.remember(mine[len(mine)-1])
		}
		i := mine[len(mine)-1]
		if k >= 5 {
			i = mine[x.rand.IntN(len(mine))]
		}
		d := deed{kind: "post", id: i.id, first: client%2 == 0, price: i.price, size: i.shares}
		do := x.posts
		switch {
		case k >= 9:
			d, do = deed{kind: "book"}, func(t *testing.T, _ *intent) (told, bool) { return x.books(t, r) }
		case k >= 8:
			d, do = deed{kind: "read", id: i.id}, x.reads
		case k >= 6:
			d, do = deed{kind: "cancel", id: i.id}, x.cancels
		}
		begun := time.Since(r.start)
		out, sent := do(t, i)
		if sent {
			r.note(client, d, begun, out)
			noted++
		}
		if !sent || out.unknown {
			x.wake()
		}
	}
}

// wake waits until the node answers, on a connection that is none of before, or is lost.
func (x *actor) wake() {
	for end := time.Now().Add(patience); time.Now().Before(end) && !x.lost(); {
		time.Sleep(2 * time.Millisecond)
		if status, _, err := x.exchange(http.MethodGet, "/data/orders", nil); err == nil &&
			status == http.StatusOK {
			return
		}
	}
}

// remember keeps an order, for it to be looked up in the end.
func (r *recorder) remember(i *intent) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.orders == nil {
		r.orders = map[engine.OrderID]*intent{}
	}
	r.orders[i.id] = i
}

// settled are the operations once what had no answer was looked up: what is not there, or was not
// canceled, did not happen. It returns how many had no answer.
func (r *recorder) settled(t *testing.T) (kept []porcupine.Operation, open int) {
	t.Helper()
	canceled := map[engine.OrderID]bool{} // somebody was told
	posts := map[engine.OrderID]int{}
	for _, o := range r.operations {
		switch d := o.Input.(deed); {
		case d.kind == "post":
			posts[d.id]++
		case d.kind == "cancel" && o.Output.(told).done:
			canceled[d.id] = true
		}
	}
	for _, o := range r.operations {
		d, out := o.Input.(deed), o.Output.(told)
		if !out.unknown {
			kept = append(kept, o)
			continue
		}
		open++
		if out.late {
			kept = append(kept, o)
			continue
		}
		i := r.orders[d.id]
		found, known, err := i.trader.lookup(i)
		if err != nil {
			t.Fatalf("look up %s: %v", i.id.Hex(), err)
		}
		if known && (d.kind == "post" || found.Status == "CANCELED" && !canceled[d.id]) {
			if d.kind == "cancel" || posts[d.id] > 1 { // perhaps it was another one
				o.Return = math.MaxInt64
			}
			kept = append(kept, o)
		}
	}
	return kept, open
}

// lateAnswer says that nobody waited any longer for an answer: the node may live.
func lateAnswer(err error) bool {
	var timeout interface{ Timeout() bool } // fasthttp's is no net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestLateAnswer: what the traders' client says when its time is up is no lost connection.
func TestLateAnswer(t *testing.T) {
	if !lateAnswer(fasthttp.ErrTimeout) || lateAnswer(syscall.ECONNRESET) || lateAnswer(nil) {
		t.Error("taken for each other")
	}
}

// posts posts an order, perhaps again; false says that it did not reach the engine.
func (x *actor) posts(t *testing.T, i *intent) (told, bool) {
	status, text, err := x.post(i)
	switch {
	case refused(status, err):
		return told{}, false
	case status == 0, status == http.StatusGatewayTimeout:
		return told{unknown: true, late: x.carried || status != 0 || lateAnswer(err)}, true
	case err != nil, status != http.StatusOK:
		t.Errorf("order %s: %d %s %v", i.id.Hex(), status, text, err)
	}
	return told{matched: int(i.matched + 0.5)}, true
}

// cancels cancels an order.
func (x *actor) cancels(t *testing.T, i *intent) (told, bool) {
	body := fmt.Appendf(nil, `{"orderID":"%s"}`, i.id.Hex())
	status, text, err := x.exchange(http.MethodDelete, "/order", body)
	switch {
	case refused(status, err):
		return told{}, false
	case err != nil, status == http.StatusGatewayTimeout:
		return told{unknown: true, late: x.carried || status != 0 || lateAnswer(err)}, true
	case status != http.StatusOK:
		t.Errorf("cancel %s: %d %s", i.id.Hex(), status, text)
	}
	var answer struct{ Canceled []string }
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Errorf("cancel %s: %s: %v", i.id.Hex(), text, err)
	}
	return told{done: slices.Contains(answer.Canceled, i.id.Hex())}, true
}

// reads reads an order back.
func (x *actor) reads(t *testing.T, i *intent) (told, bool) {
	status, text, err := x.exchange(http.MethodGet, "/data/order/"+i.id.Hex()+x.manner, nil)
	switch {
	case err != nil, refused(status, err):
		return told{}, false
	case status == http.StatusNotFound:
		return told{}, true
	case status != http.StatusOK:
		t.Errorf("read %s: %d %s", i.id.Hex(), status, text)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Errorf("read %s: %s: %v", i.id.Hex(), text, err)
	}
	matched, err := strconv.ParseFloat(r.Matched, 64)
	if err != nil {
		t.Errorf("read %s: %s: %v", i.id.Hex(), text, err)
	}
	return told{status: r.Status, matched: int(matched + 0.5)}, true
}

// books reads the book: its asks are the bids for the other outcome.
func (x *actor) books(t *testing.T, r *recorder) (told, bool) {
	path := "/book?token_id=" + r.market.token
	if x.manner != "" {
		path += "&" + x.manner[1:]
	}
	status, text, err := x.exchange(http.MethodGet, path, nil)
	if err != nil || refused(status, err) {
		return told{}, false
	}
	var book struct {
		Bids, Asks []struct{ Price, Size string }
	}
	if err := json.Unmarshal(text, &book); err != nil || status != http.StatusOK {
		t.Errorf("book: %d %s %v", status, text, err)
	}
	var resting []pledge
	add := func(first bool, price, size string) {
		p, _ := strconv.ParseFloat(price, 64)
		n, _ := strconv.ParseFloat(size, 64)
		cents := int(100*p + 0.5)
		if !first {
			cents = 100 - cents
		}
		resting = append(resting, pledge{first: first, price: cents, size: int(n + 0.5)})
	}
	for _, l := range book.Bids {
		add(true, l.Price, l.Size)
	}
	for _, l := range book.Asks {
		add(false, l.Price, l.Size)
	}
	return told{levels: levels(resting)}, true
}

// disturb kills the node and starts it again, or holds it still for a while.
func (w *world) disturb(t *testing.T) string {
	time.Sleep(time.Duration(5+w.rand.IntN(40)) * time.Millisecond)
	if w.rand.IntN(3) > 0 {
		w.node.kill(t)
		w.node.start(t)
		return "kill"
	}
	pause := time.Duration(10+w.rand.IntN(90)) * time.Millisecond
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := w.node.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
	}
	return "pause"
}

// TestHistories records what traders are told while the node is killed and paused, and looks for an
// order of the requests that explains every answer.
func TestHistories(t *testing.T) {
	t.Parallel()
	histories := setting.Size(t, 10, 2)
	w := newWorldOf(t, 4, histories)
	operations, open, kills, undecided := 0, 0, 0, 0
	// One deadline for all of them, in which each has many times what it takes.
	most := patience + time.Duration(histories)*patience/10
	late := time.Now().Add(most)
	for n := range histories {
		if time.Now().After(late) {
			t.Fatalf("%d of %d histories in %v", n, histories, most)
		}
		r := &recorder{market: w.tokens[2*n], late: late}
		for _, x := range w.traders {
			x.wake()
		}
		r.start = time.Now()
		var group sync.WaitGroup
		for client, x := range w.traders {
			group.Go(func() { x.act(t, r, client, 16) })
		}
		for range 1 + w.rand.IntN(2) {
			if w.disturb(t) == "kill" {
				kills++
			}
		}
		group.Wait()
		kept, lost := r.settled(t)
		operations, open = operations+len(r.operations), open+lost
		if !judge(t, n, kept, late) {
			undecided++
		}
		if t.Failed() {
			return
		}
		if undecided > histories/20 {
			t.Fatalf("%d of %d histories were not decided in time", undecided, n+1)
		}
	}
	t.Logf("figures: histories=%d operations=%d unanswered=%d kills=%d undecided=%d", histories,
		operations, open, kills, undecided)
	if operations < 20*histories {
		t.Errorf("%d operations in %d histories: they say little", operations, histories)
	}
}

// judge checks one history, and tells what contradicts itself in one that nothing explains. False
// says that there was not enough time until late: many requests that may have happened at any time
// make many orders.
func judge(t *testing.T, n int, operations []porcupine.Operation, late time.Time) bool {
	t.Helper()
	most := max(time.Second, min(patience/3, time.Until(late))) // 0 would be without an end
	result := porcupine.CheckOperationsTimeout(plainBook(), operations, most)
	if result != porcupine.Illegal {
		return result == porcupine.Ok
	}
	lines := []string{fmt.Sprintf("history %d is %s: nothing explains the last answer", n, result)}
	for _, o := range contradiction(operations) {
		lines = append(lines, line(&o))
	}
	t.Errorf("%s\nof %d requests", strings.Join(lines, "\n"), len(operations))
	return true
}

// isRefused reports whether it is known within some seconds that nothing explains a history.
func isRefused(operations []porcupine.Operation) bool {
	const most = 5 * time.Second
	return porcupine.CheckOperationsTimeout(plainBook(), operations, most) == porcupine.Illegal
}

// contradiction is the part of a refused history that ends with the first answer which contradicts
// those before, without most of what changed nothing.
func contradiction(operations []porcupine.Operation) []porcupine.Operation {
	all := slices.SortedFunc(slices.Values(operations), func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Return, b.Return)
	})
	n := sort.Search(len(all)-1, func(n int) bool { return isRefused(before(all, all[n].Return)) })
	left := before(all, all[n].Return)
	for i := len(left) - 2; i >= 0; i-- {
		d, out := left[i].Input.(deed), left[i].Output.(told)
		if d.kind == "post" || d.kind == "cancel" && (out.done || out.unknown) {
			continue
		}
		if fewer := slices.Delete(slices.Clone(left), i, i+1); isRefused(fewer) {
			left = fewer
		}
	}
	return left
}

// before is what was known of a history at a time, in the order of the answers; what had no answer
// by then is last but for the last answer.
func before(operations []porcupine.Operation, end int64) (known []porcupine.Operation) {
	var open []porcupine.Operation
	for _, o := range operations {
		d, out := o.Input.(deed), o.Output.(told)
		switch {
		case o.Call > end:
		case o.Return <= end:
			known = append(known, o)
		case d.kind == "post" || d.kind == "cancel":
			out.unknown = true
			o.Output, o.Return = out, math.MaxInt64
			open = append(open, o)
		}
	}
	last := len(known) - 1
	return append(append(slices.Clone(known[:last]), open...), known[last])
}

// line is an operation as text.
func line(o *porcupine.Operation) string {
	d, out := o.Input.(deed), o.Output.(told)
	end := fmt.Sprintf("%9.3f", float64(o.Return)/1e6)
	if o.Return == math.MaxInt64 {
		end = "        ?"
	}
	text := fmt.Sprintf("%9.3f to %s ms, client %d: ", float64(o.Call)/1e6, end, o.ClientId)
	switch d.kind {
	case "book":
		return text + "book: " + out.levels
	case "read":
		return text + fmt.Sprintf("read %x: %q, matched %d", d.id[:2], out.status, out.matched)
	case "cancel":
		text += fmt.Sprintf("cancel %x: done=%v", d.id[:2], out.done)
	default:
		text += fmt.Sprintf("post %x first=%v %d@%d: matched %d", d.id[:2], d.first, d.size, d.price,
			out.matched)
	}
	if out.unknown {
		text += ", nobody knows"
	}
	return text
}

// TestJudge: the model finds answers that nothing explains.
func TestJudge(t *testing.T) {
	a, b, c := engine.OrderID{1}, engine.OrderID{2}, engine.OrderID{3}
	at := func(call, end int64, d deed, out told) porcupine.Operation {
		return porcupine.Operation{Input: d, Output: out, Call: call, Return: end}
	}
	buy := deed{kind: "post", id: a, first: true, price: 60, size: 10}
	meets := deed{kind: "post", id: b, price: 45, size: 6}
	late := deed{kind: "post", id: c, price: 50, size: 10}
	for name, h := range map[string]struct {
		operations []porcupine.Operation
		good       bool
	}{
		"a fill": {[]porcupine.Operation{at(0, 1, buy, told{}), at(2, 3, meets, told{matched: 6}),
			at(4, 5, deed{kind: "read", id: a}, told{status: "LIVE", matched: 6}),
			at(6, 7, deed{kind: "book"}, told{levels: "4@60 / / "})}, true},
		"a lost order": {[]porcupine.Operation{at(0, 1, buy, told{}),
			at(2, 3, deed{kind: "read", id: a}, told{})}, false},
		"an order that comes back": {[]porcupine.Operation{at(0, 1, buy, told{}),
			at(2, 3, deed{kind: "cancel", id: a}, told{done: true}),
			at(4, 5, meets, told{matched: 6})}, false},
		"one order twice": {[]porcupine.Operation{at(0, 1, buy, told{}), at(2, 3, late, told{matched: 10}),
			at(4, 5, buy, told{})}, false},
		"no answer, and it happened later": {[]porcupine.Operation{
			at(0, math.MaxInt64, buy, told{unknown: true}), at(2, 3, deed{kind: "read", id: a}, told{}),
			at(4, 5, meets, told{matched: 6})}, true},
		"no answer, and it never happened": {[]porcupine.Operation{
			at(0, math.MaxInt64, buy, told{unknown: true}), at(4, 5, meets, told{})}, true},
		"both at once": {[]porcupine.Operation{at(0, 5, buy, told{matched: 6}),
			at(1, 4, meets, told{matched: 0})}, true},
		"both missed": {[]porcupine.Operation{at(0, 5, buy, told{}), at(1, 4, meets, told{})}, false},
	} {
		result := porcupine.CheckOperations(plainBook(), h.operations)
		if result != h.good {
			t.Errorf("%s: %v", name, result)
		}
	}
}

// TestContradiction: of a refused history what led to the contradiction is told, and nothing else.
func TestContradiction(t *testing.T) {
	a, b := engine.OrderID{1}, engine.OrderID{2}
	at := func(call, end int64, d deed, out told) porcupine.Operation {
		return porcupine.Operation{Input: d, Output: out, Call: call, Return: end}
	}
	buy := deed{kind: "post", id: a, first: true, price: 60, size: 10}
	meets := deed{kind: "post", id: b, price: 45, size: 6}
	read, book := deed{kind: "read", id: a}, deed{kind: "book"}
	var lines []string
	for _, o := range contradiction([]porcupine.Operation{at(0, 1, buy, told{}),
		at(2, 3, book, told{levels: "10@60 / / "}), at(4, 40, meets, told{matched: 6}),
		at(5, 9, read, told{status: "LIVE", matched: 6}),
		at(10, 11, read, told{status: "LIVE"}), at(12, 13, book, told{levels: "10@60 / / "})}) {
		lines = append(lines, line(&o))
	}
	want := []string{"post 0100 first=true 10@60: matched 0", "read 0100: \"LIVE\", matched 6",
		"post 0200 first=false 6@45: matched 6, nobody knows", "read 0100: \"LIVE\", matched 0"}
	if !slices.EqualFunc(lines, want, strings.HasSuffix) {
		t.Errorf("told:\n%s", strings.Join(lines, "\n"))
	}
}

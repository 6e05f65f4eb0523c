package ops

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/auth"
)

const (
	// fireTime is how long after a stall begins its alert may need.
	fireTime = 15 * time.Second
	// calmTime is how long after its end the alert may go on.
	calmTime = 30 * time.Second
	// dataTime is how long a fresh node may need until every expression has data.
	dataTime = 30 * time.Second
	// lateIndex is the lag of the index, in Commands, beyond which a node warns.
	lateIndex = 20_000
)

// demoToken is a token of the demo catalog.
const demoToken = "35263113354378275961127750085197586402039788513316889322517161777186976249322"

// TestLive lets a real Prometheus look at two real nodes. One is well, and must have all data and
// no alert. The disk, the matcher and the index of the other one are stalled, its ring is filled,
// and its door is attacked. Then three more are a cluster, and lose their majority.
func TestLive(t *testing.T) {
	if os.Getenv(required) == "" {
		t.Skip("SKIPPED: it takes a minute and a Prometheus: scripts/ops.sh runs it")
	}
	well, ill := newNode(t, build(t)), newNode(t, buildStalling(t))
	freeze := ill.ownDisk(t)
	well.start(t)
	ill.start(t)
	machine := freePort(t)
	run(t, tool(t, "prometheus-node-exporter"), []string{"--web.listen-address=" + machine})
	members := newCluster(t, well.binary)
	w := watch(t, machine, append(members, well, ill)...)
	well.load(t)
	t.Run("expressions", func(t *testing.T) { w.judge(t, well) })
	t.Run("disk", func(t *testing.T) { w.stallDisk(t, ill, freeze) })
	t.Run("matcher and ring", func(t *testing.T) { w.stallMatcher(t, ill) })
	t.Run("index", func(t *testing.T) { w.stallIndex(t, ill) })
	t.Run("door", func(t *testing.T) { w.attack(t, ill) })
	t.Run("cluster", func(t *testing.T) { w.judgeCluster(t, members) })
	for _, s := range w.fired(t, well) {
		t.Errorf("%s was firing for the node that was well", s)
	}
}

// judge waits until each expression of the dashboards has data, and each series of the rules is
// there. A rule itself has no data while all is well.
func (w *watcher) judge(t *testing.T, n *observed) {
	fill := strings.NewReplacer("$job", "clobd", "$instance", n.admin, "$node_job", "node",
		"$__rate_interval", "8s")
	pending := queries(t)
	read := readRules(t)
	for _, r := range read {
		for _, s := range seriesOf(r.expr) {
			pending = append(pending, expression{r.name, s})
		}
	}
	count := len(pending)
	empty := func(e expression) bool { return len(w.query(t, fill.Replace(e.text))) == 0 }
	for end := time.Now().Add(dataTime); time.Now().Before(end); time.Sleep(time.Second) {
		pending = slices.DeleteFunc(pending, func(e expression) bool { return !empty(e) })
		if !slices.ContainsFunc(pending, func(e expression) bool { return excused(e.text) == "" }) {
			break
		}
	}
	excuses := map[string]bool{}
	for _, e := range pending {
		if why := excused(e.text); why == "" {
			t.Errorf("%s has no data: %s", e.where, fill.Replace(e.text))
		} else {
			t.Logf("empty: %s: %s", e.where, why)
			excuses[why] = true
		}
	}
	for name, why := range absent() {
		if !excuses[why] {
			t.Errorf("%s is there: strike it off the list of what is absent", name)
		}
	}
	for _, r := range read {
		w.query(t, r.expr)
	}
	for i := range read {
		read[i].expr = ""
	}
	if got := w.rules(t); !slices.Equal(got, read) {
		t.Errorf("Prometheus reads %+v\nand this test %+v", got, read)
	}
	t.Logf("figures: expressions=%d with_data=%d rules=%d", count, count-len(pending), len(read))
}

// fires waits for an alert since the moment of its cause.
func (w *watcher) fires(t *testing.T, name string, n *observed, since time.Time) {
	t.Helper()
	within(t, fireTime-time.Since(since), name+" fires", func() bool { return w.firing(t, name, n) })
	t.Logf("figures: alert=%s fired_after_ms=%d", name, time.Since(since).Milliseconds())
}

// calms waits until alerts are over.
func (w *watcher) calms(t *testing.T, n *observed, names ...string) {
	t.Helper()
	for _, name := range names {
		within(t, calmTime, name+" is over", func() bool { return !w.firing(t, name, n) })
	}
}

// stallDisk freezes the disk of a node that trades.
func (w *watcher) stallDisk(t *testing.T, n *observed, freeze func(*testing.T) func()) {
	thaw, begun := freeze(t), time.Now()
	w.fires(t, "ClobdDiskStalled", n, begun)
	n.says(t, http.StatusServiceUnavailable, "clobd_journal_oldest_unsynced_seconds",
		"disk stalled for ")
	if w.firing(t, "ClobdMatcherStalled", n) {
		t.Error("the matcher is blamed for the disk")
	}
	thaw()
	w.calms(t, n, "ClobdDiskStalled")
	if slices.Contains(w.fired(t, n), "ClobdMatcherStalled") {
		t.Error("the matcher was blamed for the disk")
	}
	within(t, calmTime, "the node is ready again", func() bool {
		return n.get(t, "/readyz").status == http.StatusOK
	})
}

// stallMatcher lets the matcher of a node stand still, and then sends until the ring is full.
func (w *watcher) stallMatcher(t *testing.T, n *observed) {
	c := n.trader(t, 2)
	if err := os.WriteFile(n.stall, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	defer os.Remove(n.stall)
	w.fires(t, "ClobdMatcherStalled", n, begun)
	n.says(t, http.StatusServiceUnavailable, "clobd_sequencer_stalled_seconds", "matcher stalled for ")
	if w.firing(t, "ClobdDiskStalled", n) {
		t.Error("the disk is blamed for the matcher")
	}
	before := n.sequence(t)
	full := n.fill(t, c)
	w.fires(t, "ClobdRingFull", n, full)
	n.says(t, http.StatusServiceUnavailable, "clobd_sequencer_busy_total", "the ring was full")
	if after := n.sequence(t); after != before {
		t.Errorf("readyz: the Sequence moved from %d to %d", before, after)
	}
	if err := os.Remove(n.stall); err != nil {
		t.Fatal(err)
	}
	w.calms(t, n, "ClobdMatcherStalled", "ClobdRingFull")
	within(t, calmTime, "the node goes on", func() bool { return n.sequence(t) > before })
}

// stallIndex lets the index of a node stand still while it trades, which its matcher does not mind.
func (w *watcher) stallIndex(t *testing.T, n *observed) {
	c := n.trader(t, 3)
	if err := os.WriteFile(n.stall+indexSide, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(n.stall + indexSide)
	begun := n.sequence(t)
	n.quote(t, c)
	within(t, startTime, "more commands than the index may lag by", func() bool {
		return n.sequence(t) > begun+lateIndex
	})
	n.says(t, http.StatusOK, "clobd_index_lag_commands", "the index lags ")
	if err := os.Remove(n.stall + indexSide); err != nil {
		t.Fatal(err)
	}
	within(t, calmTime, "the index has caught up", func() bool {
		a := n.get(t, "/page.json")
		return a.status == http.StatusOK && !strings.Contains(a.body, `"the index lags `)
	})
}

// attack asks without a key, again and again.
func (w *watcher) attack(t *testing.T, n *observed) {
	begun := time.Now()
	for range 4 {
		go repeat(t, 10*time.Millisecond, func() {
			_, _, _ = fasthttp.GetTimeout(nil, "http://"+n.public+"/data/orders", answerTime)
		})
	}
	w.fires(t, "ClobdDoorAttacked", n, begun)
	n.says(t, http.StatusOK, "clobd_http_requests_total", "the door is attacked")
}

// says waits until /readyz has a status, and tells of a metric with words: as a reason or as a
// warning. The operator's page must be told the same.
func (n *observed) says(t *testing.T, status int, metric, words string) {
	t.Helper()
	type symptom struct{ What, Metric string }
	type readiness struct{ Reasons, Warnings []symptom }
	tells := func(r *readiness) bool {
		return slices.ContainsFunc(append(r.Reasons, r.Warnings...),
			func(s symptom) bool { return s.Metric == metric && strings.Contains(s.What, words) })
	}
	within(t, answerTime, "readyz and the page tell of "+metric, func() bool {
		var told readiness
		var page struct{ Readyz readiness }
		a, shown := n.get(t, "/readyz"), n.get(t, "/page.json")
		if err := errors.Join(json.Unmarshal([]byte(a.body), &told),
			json.Unmarshal([]byte(shown.body), &page)); err != nil {
			t.Fatalf("%v: %d %s, %d %s", err, a.status, a.body, shown.status, shown.body)
		}
		return a.status == status && tells(&told) && shown.status == http.StatusOK && tells(&page.Readyz)
	})
}

// sequence is what /readyz says.
func (n *observed) sequence(t *testing.T) uint64 {
	t.Helper()
	var told struct{ Sequence uint64 }
	if a := n.get(t, "/readyz"); json.Unmarshal([]byte(a.body), &told) != nil {
		t.Fatalf("readyz: %d %s", a.status, a.body)
	}
	return told.Sequence
}

// fill enters cancels of unknown orders, 1,000 in a request, until the node has no room for more.
// It returns when the first one was refused, and goes on until the test ends.
func (n *observed) fill(t *testing.T, c *trader.Client) time.Time {
	t.Helper()
	refused := make(chan time.Time, 1)
	go repeat(t, 100*time.Millisecond, func() {
		ids := make([]string, 1000)
		for i := range ids {
			var id [32]byte
			_, _ = rand.Read(id[:])
			ids[i] = "0x" + hex.EncodeToString(id[:])
		}
		body, _ := json.Marshal(ids)
		go func() {
			var resp fasthttp.Response
			err := c.Do(http.MethodDelete, "/orders", body, &resp)
			if err == nil && resp.StatusCode() == http.StatusServiceUnavailable {
				select {
				case refused <- time.Now():
				default:
				}
			}
		}()
	})
	select {
	case at := <-refused:
		return at
	case <-time.After(fireTime):
		t.Fatal("the ring does not get full")
	}
	return time.Time{}
}

// quote places lists of orders and cancels them, again and again until the test ends.
func (n *observed) quote(t *testing.T, c *trader.Client) {
	t.Helper()
	token, _ := engine.ParseToken(demoToken)
	var salt atomic.Uint64
	for range 4 {
		go repeat(t, 0, func() {
			var list [15]json.RawMessage
			for i := range list {
				list[i], _, _ = c.Sign(trader.Limit{Token: token, Price: 100, Size: 5 * engine.Unit,
					Type: "GTC", Salt: salt.Add(1)})
			}
			body, _ := json.Marshal(list)
			var resp fasthttp.Response
			_ = c.Do(http.MethodPost, "/orders", body, &resp)
			_ = c.Do(http.MethodDelete, "/cancel-all", nil, &resp)
		})
	}
}

// repeat calls f again and again until the test ends.
func repeat(t *testing.T, pause time.Duration, f func()) {
	for t.Context().Err() == nil {
		f()
		time.Sleep(pause)
	}
}

// trader makes a trader with paper money.
func (n *observed) trader(t *testing.T, key byte) *trader.Client {
	t.Helper()
	c, err := trader.NewClient("http://"+n.public, 80002, [32]byte{30: 7, 31: key})
	if err == nil {
		err = c.Derive()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// load adds to the bots what they do not do: a caller without a key, a subscriber that goes on from
// a Sequence, and orders on a socket.
func (n *observed) load(t *testing.T) {
	t.Helper()
	if a := ask(t, "http://"+n.public+"/data/orders"); a.status != http.StatusUnauthorized {
		t.Fatalf("without a key: %d %s", a.status, a.body)
	}
	run(t, n.binary, []string{"tail", "--url", "http://" + n.public, "--market", demoToken,
		"--from", strconv.FormatUint(n.sequence(t), 10)})
	c := n.trader(t, 1)
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+n.public+"/ws/trade", nil) //nolint:bodyclose // 101
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	r := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: "GET",
		Path: "/ws/trade"}
	if err := c.Trio.Sign(&r); err != nil {
		t.Fatal(err)
	}
	login := map[string]string{"apiKey": r.Key, "passphrase": r.Passphrase, "timestamp": r.Timestamp,
		"signature": r.Signature}
	if status := request(t, ws, "login", login); status != http.StatusOK {
		t.Fatalf("log in: %d", status)
	}
	token, _ := engine.ParseToken(demoToken)
	salt := uint64(0)
	go repeat(t, 50*time.Millisecond, func() {
		salt++
		body, _, err := c.Sign(trader.Limit{Token: token, Price: 100, Size: 5 * engine.Unit,
			Type: "GTC", Salt: salt})
		if err == nil {
			request(t, ws, "order.place", json.RawMessage(body))
		}
	})
}

// request sends a request on a socket and returns the status of the answer, 0 if none came.
func request(t *testing.T, ws *websocket.Conn, method string, params any) int {
	if err := ws.WriteJSON(map[string]any{"id": 1, "method": method, "params": params}); err != nil {
		return 0
	}
	var a struct{ Status int }
	_ = ws.SetReadDeadline(time.Now().Add(answerTime))
	if err := ws.ReadJSON(&a); err != nil {
		return 0
	}
	return a.Status
}

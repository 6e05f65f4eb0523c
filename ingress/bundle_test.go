package ingress

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/ingress/head"
)

// block keeps the disk from syncing until the returned function is called, and fills the pipeline:
// nothing that is entered from then on is answered. The end of the test calls it too: a house whose
// disk hangs could never be closed, and a test that fails there would never end.
func (h *house) block() (release func()) {
	h.gate <- struct{}{}
	release = sync.OnceFunc(func() { <-h.gate })
	h.t.Cleanup(release)
	return release
}

// results reads the answer to POST /orders.
func results(t *testing.T, got string) []map[string]any {
	t.Helper()
	_, body, _ := strings.Cut(got, "[")
	body, _, _ = strings.Cut("["+body, "\n")
	var list []map[string]any
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	return list
}

// TestBundleBusy: a list finds no room, and none of it has entered.
func TestBundleBusy(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	release := h.block()
	calls := h.clog()
	got := h.runOrders(&words{[]string{"alice"}}, []string{"buy A 10 @ 0.40", "buy A 10 @ 0.41"})
	want := "503\nRetry-After: 1\n" +
		`{"error":"the exchange is busy, nothing was entered, send again","code":"busy"}` + "\n"
	if got != want {
		t.Errorf("got %s", got)
	}
	for _, path := range []string{"/cancel-all", "/cancel-market-orders", "/orders"} {
		body := `{"asset_id":"10"}`
		if path == "/orders" {
			body = `["0x` + strings.Repeat("1", 64) + `","0x` + strings.Repeat("2", 64) + `"]`
		}
		if got := h.runCall(&words{[]string{"alice", "DELETE", path}}, []string{body}); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	release()
	for _, call := range calls {
		_, _ = call.Wait()
	}
}

// TestBundleOutcomeUnknown: what has entered is never refused: the answer says that the outcome is
// unknown and under which ids to ask for it.
func TestBundleOutcomeUnknown(t *testing.T) { inBubble(t, testBundleOutcomeUnknown) }

func testBundleOutcomeUnknown(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	release := h.block()
	defer release()
	got := h.runOrders(&words{[]string{"alice"}}, []string{"buy A 10 @ 0.40 as=a1",
		"buy A 10 @ 0.41 corrupt", "buy A 10 @ 0.42 as=a3"})
	if want := `504` + "\n" + `{"error":"order timed out","code":"timeout","orders":["` +
		h.names["a1"].Hex() + `","` + h.names["a3"].Hex() + `"]}` + "\n"; got != want {
		t.Errorf("got %s", got)
	}
	for path, body := range map[string]string{
		"/cancel-all": "", "/cancel-market-orders": `{"asset_id":"10"}`,
		"/orders": `["` + h.names["a1"].Hex() + `","` + h.names["a3"].Hex() + `"]`,
	} {
		got := h.runCall(&words{[]string{"alice", "DELETE", path}}, []string{body})
		want := "504\n" +
			`{"error":"request timed out, its outcome is unknown","code":"timeout"}` + "\n"
		if got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestBundlePartlyUnknown: where some results are known they are told, and each of the others says
// that its outcome is unknown.
func TestBundlePartlyUnknown(t *testing.T) { inBubble(t, testBundlePartlyUnknown) }

func testBundlePartlyUnknown(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	defer h.block()()
	for _, dialect := range []string{"SVC_", "POLY_"} {
		fresh := "buy A 10 @ 0.42 as=a3 salt=" + fmt.Sprint(len(dialect))
		list := results(t, h.runOrders(&words{[]string{"alice", "dialect=" + dialect}},
			[]string{"buy A 10 @ 0.40", "buy A 10 @ 0.41 corrupt", fresh}))
		if r := list[0]; r["success"] != true || r["orderID"] != h.names["a1"].Hex() {
			t.Errorf("the one that was placed before: %v", r)
		}
		if r := list[1]; r["orderID"] != "" || r["errorMsg"] == "order timed out" {
			t.Errorf("the refused one: %v", r)
		}
		if r := list[2]; r["success"] != false || r["errorMsg"] != "order timed out" ||
			r["orderID"] != h.names["a3"].Hex() || r["status"] != "" {
			t.Errorf("the unknown one: %v", r)
		}
		if dialect == "POLY_" && (list[2]["orderHash"] != list[2]["orderID"] ||
			list[1]["orderHash"] != nil) {
			t.Errorf("hashes: %v", list)
		}
	}
}

// TestBundleClosed: a node that is going down takes no list.
func TestBundleClosed(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	if err := h.sequencer.Close(); err != nil {
		t.Fatal(err)
	}
	h.expect("orders alice\nbuy A 10 @ 0.40", "503\nRetry-After: 1\n"+
		`{"error":"the exchange is closing, nothing was entered","code":"closed",`+
		`"detail":"send it again once the node is back"}`+"\nstate same\n")
	h.expect("call alice DELETE /cancel-all", "503\nRetry-After: 1\n"+
		`{"error":"the exchange is closing, nothing was entered","code":"closed",`+
		`"detail":"send it again once the node is back"}`+"\nstate same\n")
}

// TestBundleIndexFails: without an index no list is taken.
func TestBundleIndexFails(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Past = func(engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			return engine.Receipt{}, false, 0, errors.New("broken")
		}
	})
	h.run([]string{"fund alice 100"})
	h.expect("orders alice\nbuy A 10 @ 0.40\nbuy A 10 @ 0.41", "503\nRetry-After: 1\n"+
		`{"error":"service not ready","code":"index","detail":"`+
		waitForIndex+`"}`+"\nstate same\n")
}

// TestBundleQuarantine: a Command that must not enter keeps only itself out.
func TestBundleQuarantine(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Quarantined = func(c *engine.Command) bool {
			return c.Kind == engine.Place && c.Cash == 4*engine.Unit
		}
	})
	h.run([]string{"fund alice 100"})
	list := results(t, h.runOrders(&words{[]string{"alice"}},
		[]string{"buy A 10 @ 0.40", "buy A 10 @ 0.41"}))
	if list[0]["errorMsg"] != "this request is quarantined" || list[0]["orderID"] != "" ||
		list[1]["success"] != true {
		t.Errorf("%v", list)
	}
}

// TestBundleBeforeTheIndex: a list with an order that only the engine knows yet.
func TestBundleBeforeTheIndex(t *testing.T) {
	var h *house
	h = newHouse(t, func(o *Options) {
		o.Await = func(engine.Sequence, time.Duration) bool {
			h.run([]string{"blind false"})
			return true
		}
	})
	h.run([]string{"fund alice 100"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	h.run([]string{"blind true"})
	list := results(t, h.runOrders(&words{[]string{"alice"}},
		[]string{"buy A 10 @ 0.40", "buy A 10 @ 0.41"}))
	if list[0]["success"] != true || list[0]["orderID"] != h.names["a1"].Hex() ||
		list[1]["success"] != true {
		t.Errorf("%v", list)
	}
}

// TestBundlePoolFull: signatures that find no place keep the whole list out.
func TestBundlePoolFull(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	p := h.server.pool
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	roomForOne(p)
	var joined sync.WaitGroup
	joined.Go(func() { _ = p.do(engine.Address{1}, func() {}) })
	awaitQueue(t, p, 1)
	h.expect("orders alice\nbuy A 10 @ 0.40\nbuy A 10 @ 0.41", "503\nRetry-After: 1\n"+
		`{"error":"the exchange is busy, nothing was entered, send again","code":"busy"}`+
		"\nstate same\n")
	release()
	joined.Wait()
}

// TestBundlesBesideEachOther: many callers send lists of the same orders; each is placed once and
// its neighbours in the journal are those of its list.
func TestBundlesBesideEachOther(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Workers = 4 })
	h.run([]string{"fund alice 1000"})
	var lines []string
	for i := range 8 {
		lines = append(lines, fmt.Sprintf("buy A 10 @ 0.%d salt=%d as=o%d", 10+i, i, i))
	}
	raws := make([]string, 6)
	for i := range raws { // signing keeps names: not beside each other
		var bodies []string
		for _, line := range lines {
			x, item := h.parseOrder(&words{strings.Fields("alice " + line)})
			bodies = append(bodies, h.orderBody(x, "alice", item))
		}
		w := rawRequest{method: "POST", path: "/orders", body: "[" + strings.Join(bodies, ",") + "]"}
		h.signed(&w, "alice", &words{})
		raws[i] = w.String()
	}
	var placed atomic.Int32
	var joined sync.WaitGroup
	for _, raw := range raws {
		joined.Go(func() {
			got := h.send(raw)
			if !strings.Contains(got, "X-Idempotent-Replay") {
				placed.Add(1)
			}
			for i, r := range results(t, got) {
				if r["success"] != true || r["orderID"] != h.names[fmt.Sprintf("o%d", i)].Hex() {
					t.Errorf("order %d: %v", i, r)
				}
			}
		})
	}
	joined.Wait()
	if placed.Load() != 1 {
		t.Errorf("%d lists were the first", placed.Load())
	}
	first := engine.Sequence(0)
	for i := range lines {
		r, known, _, err := h.past(h.names[fmt.Sprintf("o%d", i)])
		if first == 0 {
			first = r.Sequence
		}
		if !known || err != nil || r.Sequence != first+engine.Sequence(i) {
			t.Errorf("order %d at %d, the first at %d: %v", i, r.Sequence, first, err)
		}
	}
}

// TestLongBodies: lists may be longer than other bodies, and not without bound.
func TestLongBodies(t *testing.T) {
	h := newHouse(t, nil)
	for _, c := range []struct {
		method, path string
		size         int
		want         string
	}{
		{"POST", "/orders", head.ListBytes, "401\n"},
		{"POST", "/clob/orders?x=y", head.ListBytes, "401\n"},
		{"DELETE", "/orders", head.ListBytes, "401\n"},
		{"POST", "/orders", head.ListBytes + 1, "413\n"},
		{"POST", "/order", head.BodyBytes, "401\n"},
		{"POST", "/order", head.BodyBytes + 1, "413\n"},
		{"DELETE", "/order", head.BodyBytes + 1, "413\n"},
		{"POST", "/split", head.BodyBytes + 1, "413\n"},
		{"POST", "/orders/x", head.BodyBytes + 1, "413\n"},
	} {
		w := rawRequest{method: c.method, path: c.path, body: strings.Repeat("x", c.size)}
		if got := h.send(w.String()); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s of %d bytes: %.80s", c.method, c.path, c.size, got)
		}
	}
}

// FuzzSplitArray holds the values of a list against encoding/json's.
func FuzzSplitArray(f *testing.F) {
	for _, s := range []string{
		"", "[]", " [ ] ", "[1,2]", "[1,]", "[,1]", "[1 2]", `["a\"]",{"b":[1,{}]},null,true,-1e5]`,
		"[[[]]]", "{}", "null", "[1]x", "[", "[1", "[01]", `["\ud800"]`, "[1] ", "\t[\n1\r,\t2 ]",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Count(body, "[")+strings.Count(body, "{") >= scan.MaxNested {
			return // refused for its depth
		}
		var want []json.RawMessage
		err := json.Unmarshal([]byte(body), &want)
		got, count, ok := scan.Array(nil, body, 3)
		if null := strings.TrimSpace(body) == "null"; ok != (err == nil && !null) {
			t.Fatalf("%q: %v, encoding/json says %v", body, ok, err)
		}
		if !ok {
			return
		}
		if count != len(want) || len(got) != min(count, 3) {
			t.Fatalf("%q: %d of %d values, want %d", body, len(got), count, len(want))
		}
		for i := range got {
			if got[i] != string(want[i]) {
				t.Errorf("%q: value %d is %q, want %q", body, i, got[i], want[i])
			}
		}
	})
}

// BenchmarkPostOrders sends a list of fifteen again and again: everything of its way but the ring.
// An operation is one order, to be compared with BenchmarkPostOrder's.
func BenchmarkPostOrders(b *testing.B) {
	h := newHouse(b, func(o *Options) {
		o.Past = func(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			return engine.Receipt{Sequence: 1, Order: id, Status: engine.Live}, true, 1, nil
		}
		o.Workers = runtime.NumCPU()
	})
	h.submit(engine.Command{Kind: engine.Deposit, Address: trader("alice").Address, Cash: 1})
	var bodies []string
	for i := range maxBundle {
		x, item := h.parseOrder(&words{strings.Fields(fmt.Sprintf("alice buy A 10 @ 0.4 salt=%d", i))})
		bodies = append(bodies, h.orderBody(x, "alice", item))
	}
	w := rawRequest{method: "POST", path: "/orders", body: "[" + strings.Join(bodies, ",") + "]"}
	h.signed(&w, "alice", &words{})
	conn, err := h.listener.Dial()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	var r fasthttp.Response
	b.ReportAllocs()
	for i := 0; i < b.N; i += maxBundle {
		if _, err := io.WriteString(conn, w.String()); err != nil {
			b.Fatal(err)
		}
		if err := r.Read(in); err != nil || r.StatusCode() != 200 {
			b.Fatalf("%v %s", err, r.Body())
		}
	}
}

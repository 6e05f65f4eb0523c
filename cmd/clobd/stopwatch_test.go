package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"clobd/ingress/auth"
)

// TestStages: orders that were placed are in the count of each stage of their path.
func TestStages(t *testing.T) {
	w := newWorldOf(t, 1, 1)
	counts := func() map[string]float64 {
		_, text := get(t, w.node.admin, "/metrics")
		all := map[string]float64{}
		for line := range strings.Lines(text) {
			var n float64
			rest, found := strings.CutPrefix(line, `clobd_stage_seconds_count{stage="`)
			name, value, _ := strings.Cut(rest, `"} `)
			if _, err := fmt.Sscan(value, &n); found && err == nil {
				all[name] = n
			}
		}
		return all
	}
	before := counts()
	if len(before) != 9 || before["parse"] != 0 || before["verify"] != 0 {
		t.Errorf("before the first order: %v", before)
	}
	x := w.traders[0]
	const orders = 8 // one in four is timed
	for range orders {
		if status, text, err := x.post(x.draw(t)); err != nil || status != 200 {
			t.Fatalf("%d %s %v", status, text, err)
		}
	}
	waitFor(t, "the committer", func() bool { return counts()["publish"] > before["publish"] })
	after := counts()
	for _, stage := range []string{"parse", "authenticate", "verify", "wait", "match", "append", "sync",
		"publish", "answer"} {
		if after[stage] <= before[stage] {
			t.Errorf("%s: %v before the orders, %v after", stage, before[stage], after[stage])
		}
	}
	w.node.measures(t, fmt.Sprintf("clobd_sequencer_orders_total %d", orders))
	w.node.measures(t, "clobd_sequencer_wallets 1")
	w.node.measures(t, "clobd_sequencer_books 1")
	w.node.measures(t, `clobd_sequencer_rejects_total{code="balance"} 0`)
	w.node.measures(t, fmt.Sprintf(`clobd_build_info{go="%s",version="dev"} 1`, runtime.Version()))
	before = counts()
	socket := x.openOrders(t, w.node, nil)
	for n := range orders {
		if err := socket.ask(n, "order.place", json.RawMessage(x.draw(t).body)); err != nil {
			t.Fatal(err)
		}
		if a, err := socket.hear(); err != nil || a.Status != 200 {
			t.Fatalf("%+v %v", a, err)
		}
	}
	after = counts()
	for stage, want := range map[string]float64{"authenticate": 0, "parse": orders / 4,
		"verify": orders / 4, "answer": orders / 4} {
		if n := after[stage] - before[stage]; n != want {
			t.Errorf("%s: %v of %d orders on a socket were timed", stage, n, orders)
		}
	}
	before = counts()
	for n := range orders { // of an order that is not there: the answer takes time all the same
		none := map[string]string{"orderID": "0x" + strings.Repeat("0", 64)}
		err := socket.ask(n, "order.cancel", none)
		if a, heard := socket.hear(); err != nil || heard != nil || a.Status != 200 {
			t.Fatalf("%+v %v %v", a, err, heard)
		}
	}
	after = counts()
	if n := after["answer"] - before["answer"]; n != orders/4 || after["parse"] != before["parse"] {
		t.Errorf("%v of %d cancels on a socket were timed", n, orders)
	}
	w.node.stop(t)
}

// TestDebugStages: where the operator allows that, an order whose request asks for its stages is
// answered with them, in microseconds; they fit into the time that the request took.
func TestDebugStages(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 1, 1, "--debug-stages")
	x := w.traders[0]
	ask := func() (stages string, took time.Duration) {
		t.Helper()
		i := x.draw(t)
		signed := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10),
			Method: http.MethodPost, Path: "/order", Body: i.body}
		if err := x.Trio.Sign(&signed); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(signed.Method, "http://"+w.node.listen+signed.Path,
			bytes.NewReader(i.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"POLY_ADDRESS": x.Address,
			"POLY_API_KEY": signed.Key, "POLY_PASSPHRASE": signed.Passphrase,
			"POLY_TIMESTAMP": signed.Timestamp, "POLY_SIGNATURE": signed.Signature,
			"X-Debug-Stages": "1"} {
			r.Header[name] = []string{value}
		}
		began := time.Now()
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status)
		}
		return answer.Header.Get("X-Debug-Stages"), time.Since(began)
	}
	text, took := ask()
	sum, n := 0, 0
	for part := range strings.SplitSeq(text, ", ") {
		name, value, _ := strings.Cut(part, "=")
		micros, err := strconv.Atoi(value)
		if err != nil || micros < 0 {
			t.Errorf("%q", part)
		}
		if micros == 0 && name == "verify" {
			t.Error("it takes no time to verify")
		}
		sum, n = sum+micros, n+1
	}
	if n != 9 || time.Duration(sum)*time.Microsecond > took {
		t.Errorf("%d us of %v: %s", sum, took, text)
	}
	waitFor(t, "an order whose frame is durable after the committer waits", func() bool {
		text, _ := ask()
		return !strings.Contains(text, "sync=0,") && strings.Contains(text, "sync=")
	})
	w.node.stop(t)
	w.node.flags = slices.DeleteFunc(w.node.flags, func(f string) bool { return f == "--debug-stages" })
	w.node.start(t)
	if text, _ := ask(); text != "" {
		t.Errorf("an order is answered with its stages although nobody allows that: %s", text)
	}
	w.node.stop(t)
}

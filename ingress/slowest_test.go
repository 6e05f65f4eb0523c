package ingress

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/ingress/answer"
)

// TestSlowestWait: an order whose Receipt does not come in time is one of the slowest, over HTTP
// and on a socket, and all of its time is that of the stage wait.
func TestSlowestWait(t *testing.T) { inBubble(t, testSlowestWait) }

func testSlowestWait(t *testing.T) {
	var slowest answer.Slowest
	h := entrance{newHouse(t, func(o *Options) { o.Stages.Slowest = &slowest })}
	h.run([]string{"fund alice 100"})
	told := func(what string) {
		t.Helper()
		var want answer.Took
		want[slices.Index(answer.StageNames[:], "wait")] = patience
		if all := slowest.Last(time.Now()); len(all) != 1 || all[0].Stages != want ||
			all[0].Total != patience || all[0].Status != 504 || all[0].Sequence != 0 {
			t.Errorf("%s: %+v, want %v in wait alone", what, all, patience)
		}
		time.Sleep(time.Minute) // until it is forgotten
	}
	release := h.block()
	for n := 0; n < 4 && len(slowest.Last(time.Now())) == 0; n++ { // one request in four is timed
		w := rawRequest{method: "POST", path: "/order"}
		w.body, _ = h.order("alice", "buy A 10 @ 0.40", n)
		h.signed(&w, "alice", &words{})
		if got := h.send(w.String()); !strings.HasPrefix(got, "504\n") {
			t.Error(got)
		}
	}
	told("over HTTP")
	c := h.loggedIn("alice", nil)
	body, _ := h.order("alice", "buy A 10 @ 0.40", 9)
	if r := c.call("order.place", body); r.Status != 504 { // the first one on a socket is timed
		t.Error(r)
	}
	told("on a socket")
	release()
}

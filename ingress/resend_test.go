package ingress

import (
	"errors"
	"strings"
	"testing"
	"time"

	"clobd/engine"
)

// TestResendWithOtherWords: an order that is live is never refused for what stands beside the
// signed words when it is sent again; one that was never placed is.
func TestResendWithOtherWords(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	other := " condition=0xc1" + strings.Repeat("0", 62)
	for _, c := range []struct{ more, code string }{
		{other, "condition_mismatch"},
		{" max-age=x", "bad_max_age"},
		{" max-age=-1", "bad_max_age"},
		{" kind=GTD", "expiration"},
	} {
		got := h.run([]string{"order alice buy A 10 @ 0.40" + c.more})
		if !strings.HasPrefix(got, "200\nX-Idempotent-Replay: true\n") ||
			!strings.Contains(got, `"status":"live"`) {
			t.Errorf("%s: %s", c.more, got)
		}
		got = h.run([]string{"order alice buy A 10 @ 0.40 salt=99" + c.more})
		if !strings.HasPrefix(got, "400\n") || !strings.Contains(got, `"code":"`+c.code+`"`) {
			t.Errorf("never placed,%s: %s", c.more, got)
		}
	}
	list := results(t, h.runOrders(&words{[]string{"alice", "max-age=x"}},
		[]string{"buy A 10 @ 0.40", "buy A 10 @ 0.40 salt=99"}))
	if list[0]["success"] != true || list[0]["orderID"] != h.names["a1"].Hex() ||
		list[1]["success"] != false {
		t.Errorf("%v", list)
	}
}

// TestResendAfterCancel: an order that is sent again after its cancel was acknowledged is never
// told to be live: not by an index that catches up, and not by one that does not.
func TestResendAfterCancel(t *testing.T) {
	var h *house
	stuck := true
	h = newHouse(t, func(o *Options) {
		o.Await = func(seq engine.Sequence, _ time.Duration) bool {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			if !stuck {
				h.behind = 0
			}
			return h.behind == 0 || h.behind >= seq
		}
	})
	h.run([]string{"fund alice 1000"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	placed, _, _, err := h.past(h.names["a1"])
	if err != nil {
		t.Fatal(err)
	}
	h.run([]string{"cancel alice a1"})
	id := h.names["a1"].Hex()
	untold := `{"error":"order timed out","code":"index_lagging","orderID":"` + id + `"}`
	for _, more := range []string{"", " max-age=x"} {
		h.behind, stuck = placed.Sequence, true
		got := h.run([]string{"order alice buy A 10 @ 0.40" + more})
		if want := "504\n" + untold + "\nstate same\n"; got != want {
			t.Errorf("%q, an index that stands still: %s", more, got)
		}
		stuck = false
		got = h.run([]string{"order alice buy A 10 @ 0.40" + more})
		if !strings.HasPrefix(got, "200\nX-Idempotent-Replay: true\n") ||
			!strings.Contains(got, `"status":"unmatched"`) {
			t.Errorf("%q, an index that catches up: %s", more, got)
		}
	}
}

// TestResendBehindTheCluster: an order that is sent again to a node which knows less than another
// one has told is answered once it knows that, and as one of unknown state if nobody leads.
func TestResendBehindTheCluster(t *testing.T) {
	var h *house
	var told engine.Sequence
	var leaderless error
	asked := 0
	h = newHouse(t, func(o *Options) {
		o.Confirm = func(time.Duration) (engine.Sequence, error) {
			asked++
			return told, leaderless
		}
		past := o.Past
		o.Past = func(id engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			r, known, _, err := past(id)
			return r, known, h.board.Sequence(), err // nothing here knows more than the index
		}
		o.Await = func(seq engine.Sequence, _ time.Duration) bool {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			if told > 0 && seq >= told {
				h.behind = 0
			}
			return true
		}
	})
	h.run([]string{"fund alice 1000"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	placed, _, _, err := h.past(h.names["a1"])
	if err != nil {
		t.Fatal(err)
	}
	h.run([]string{"cancel alice a1"}) // by way of another node
	h.behind, told, leaderless = placed.Sequence, h.board.Sequence()+1, errors.New("no leader")
	for _, more := range []string{"", " max-age=x"} {
		if got := h.run([]string{"order alice buy A 10 @ 0.40" + more}); !strings.HasPrefix(got, "504\n") {
			t.Errorf("%q without a leader: %s", more, got)
		}
	}
	leaderless = nil
	for _, more := range []string{"", " max-age=x"} {
		h.behind = placed.Sequence
		got := h.run([]string{"order alice buy A 10 @ 0.40" + more})
		if !strings.HasPrefix(got, "200\nX-Idempotent-Replay: true\n") ||
			!strings.Contains(got, `"status":"unmatched"`) {
			t.Errorf("%q: %s", more, got)
		}
	}
	asked, h.behind = 0, placed.Sequence
	list := results(t, h.runOrders(&words{[]string{"alice"}},
		[]string{"buy A 10 @ 0.40", "buy A 10 @ 0.40 max-age=x", "buy A 10 @ 0.40"}))
	if len(list) != 3 || asked != 1 {
		t.Errorf("a list asked %d times: %v", asked, list)
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/engine"
	"clobd/ingress/auth"
)

// TestNotices: what the operator did to a trader is told to the trader, and still after a restart,
// when dropped notices are there again. What he did himself is not.
func TestNotices(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 0, 2)
	start := func(seed uint64) *investor {
		x := newTrader(t, "http://"+w.node.listen, w.tokens, rand.New(rand.NewPCG(28, seed)))
		w.node.fund(t, auth.Checksum(x.Signer.Address), "1000")
		return &investor{x, t, 0}
	}
	ann, bob := start(1), start(2)
	operator := func(word string, more ...string) {
		w.node.expect(t, cli.Done, append([]string{word, "--data", w.node.data, "--admin",
			w.node.admin, "--market", fmt.Sprintf("0x%064x", 1)}, more...))
	}
	type toldNotice struct {
		ID      uint64
		Type    int
		Payload struct{ Reason, Outcome string }
	}
	var list []toldNotice
	told := func(x *investor, want string) {
		t.Helper()
		list = nil
		x.do(question{http.MethodGet, "/notifications?signature_type=0", nil}, &list)
		var got []string
		for _, n := range list {
			got = append(got, fmt.Sprint(n.Type, n.Payload.Reason+n.Payload.Outcome))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	told(ann, "")
	ann.trade(engine.Buy, 20, 60, "")
	var canceled struct{ Canceled []string }
	ann.do(question{http.MethodDelete, "/cancel-all", nil}, &canceled)
	told(ann, "") // her own doing
	ann.trade(engine.Buy, 20, 40, "")
	told(bob, "")
	operator("close")
	told(ann, "1market_closedYes")
	operator("open")
	// bob buys the other outcome: a pair is made, and both have had a fill.
	ann.trade(engine.Buy, 10, 40, "")
	bob.outcomes = w.tokens[1:]
	bob.trade(engine.Buy, 10, 60, "0")
	operator("resolve", "--payouts", "0,1")
	// No wallet waits for a resolution: the index comes to it soon.
	for end := time.Now().Add(patience); len(list) < 3 && time.Now().Before(end); {
		ann.do(question{http.MethodGet, "/notifications", nil}, &list)
	}
	// An order names its own outcome, a trade that of the taker, bob.
	told(bob, "4No 2No")
	told(ann, "4No 2No 1market_closedYes")
	var dropped struct{ Deleted []uint64 }
	ids := fmt.Sprint(list[0].ID, ",", list[2].ID, ",", list[2].ID+4)
	ann.do(question{http.MethodDelete, "/notifications?ids=" + ids, nil}, &dropped)
	if len(dropped.Deleted) != 2 {
		t.Errorf("dropped %v of %s", dropped.Deleted, ids)
	}
	told(ann, "2No")
	told(bob, "4No 2No")
	w.node.kill(t)
	w.node.start(t)
	ann.Host.CloseIdleConnections()
	told(ann, "4No 2No 1market_closedYes")
}

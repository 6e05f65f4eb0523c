package ingress

import (
	"fmt"
	"strings"
	"testing"

	"clobd/engine"
)

// TestSequenceOfWrites: the answer to a write tells the Sequence of its Command, a repeated answer
// that of the first one, and an answer to what entered nothing that of what is shown.
func TestSequenceOfWrites(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	at := func() engine.Sequence { return h.board.Sequence() }
	tells := func(want engine.Sequence, lines ...string) {
		t.Helper()
		if got := h.run(lines); h.told != fmt.Sprint(want) {
			t.Errorf("%s: X-Sequence %q, want %d\n%s", lines[0], h.told, want, got)
		}
	}
	placed := at() + 1
	tells(placed, "order alice buy A 10 @ 0.40 as=a1")
	tells(placed+1, "order alice buy A 1000 @ 0.40")                                 // refused by the engine
	tells(placed, "order alice buy A 10 @ 0.40 as=a1")                               // a replay
	tells(placed+3, "orders alice", "buy A 10 @ 0.41 as=a2", "buy B 10 @ 0.3 as=a3") // the later of two
	tells(placed+4, "cancel alice a1")
	tells(placed+5, "call alice DELETE /cancel-all")
	tells(placed+6, "call alice POST /split", `{"amount":"10","conditionId":"`+
		h.market.Condition.Hex()+`"}`)
	tells(placed+6, "cancel nobody a1") // without an account nothing enters
	if h.told = ""; at() != placed+6 {
		t.Errorf("the board is at %d, want %d", at(), placed+6)
	}
	if got := h.run([]string{"order nobody buy A 10 @ 0.40"}); h.told != "" {
		t.Errorf("refused at the door: X-Sequence %q\n%s", h.told, got)
	}
}

// TestFeeTold: an order that took something is told what it paid on top; the first six keys of a
// result are all that SVC callers get.
func TestFeeTold(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	h.run([]string{"fund bob 1000"})
	rules := h.market
	rules.Fee = engine.Fee{Rate: 100, Exponent: 1}
	h.submit(engine.Command{Kind: engine.Adjust, Market: 1, Listing: &rules})
	has := func(dialect, header, member string, lines ...string) {
		t.Helper()
		if dialect != "" {
			lines[0] += " dialect=" + dialect
		}
		got := h.run(lines)
		if !strings.Contains(got, header) || !strings.Contains(got, member) ||
			header == "" && strings.Contains(got, "X-Fee") ||
			member == "" && strings.Contains(got, `"fee"`) {
			t.Errorf("%s: want %q and %q in\n%s", lines[0], header, member, got)
		}
	}
	has("", "", "", "order alice buy A 100 @ 0.40") // rests: makers pay nothing
	// 10 × 0.01 × 0.40 × 0.60 = 0.024
	has("", "X-Fee: 0.024\n", "", "order bob buy B 10 @ 0.60 salt=1")
	has("POLY_", "X-Fee: 0.024\n", `"fee":"0.024"`, "order bob buy B 10 @ 0.60 salt=2")
	has("KUEST_", "X-Fee: 0.024\n", `"fee":"0.024"`, "order bob buy B 10 @ 0.60 salt=3")
	has("POLY_", "X-Fee: 0.024\n", `"fee":"0.024"`, "order bob buy B 10 @ 0.60 salt=2") // a replay
	has("", "X-Fee: 0.048, 0\n", "", "orders bob", "buy B 20 @ 0.60 salt=4", "buy B 10 @ 0.30 salt=5")
	has("POLY_", "", "", "order bob buy B 10 @ 0.20 salt=6")
}

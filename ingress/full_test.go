package ingress

import (
	"strings"
	"testing"
)

// TestFull: a node without room takes what ends orders and what operators ask for; all else is told
// to come again, and was not entered. What was placed before has its result.
func TestFull(t *testing.T) {
	const full = "503\nRetry-After: 30\n" + `{"error":"Trading is currently cancel-only. New orders ` +
		`are not accepted, but cancels are allowed.","code":"cancel_only","retry_after_seconds":30}` + "\nstate same\n"
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100"})
	placed := h.run([]string{"order alice buy A 10 @ 0.40 salt=1"})
	h.server.Full(true)
	h.expect("order alice buy A 10 @ 0.41 salt=2", full)
	h.expect("orders alice\nbuy A 10 @ 0.41 salt=3\nbuy A 10 @ 0.42 salt=4", full)
	h.expect("call alice POST /split\n"+`{"conditionId":"0xc0`+strings.Repeat("0", 62)+
		`","amount":"10"}`, full)
	if again := h.run([]string{"order alice buy A 10 @ 0.40 salt=1"}); !strings.HasPrefix(again, "200") {
		t.Errorf("the same order again: %s, at first %s", again, placed)
	}
	if said := h.run([]string{"fund alice 100"}); strings.Contains(said, "503") {
		t.Errorf("the operator: %s", said)
	}
	if said := h.run([]string{"call alice DELETE /cancel-all"}); !strings.HasPrefix(said, "200") {
		t.Errorf("a cancel: %s", said)
	}
	h.server.Full(false)
	if said := h.run([]string{"order alice buy A 10 @ 0.41 salt=2"}); !strings.HasPrefix(said, "200") {
		t.Errorf("with room again: %s", said)
	}
}

package ingress

import (
	"strings"
	"testing"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/limits"
)

// TestForwarded: where the node that leads finds a window of an account full, the answer is that of
// a node whose own window is full, to the byte, and it counts as such. An order of which nothing is
// known can be sent again.
func TestForwarded(t *testing.T) {
	policy, err := limits.Parse("limit order-burst 2/10s\nlimit cancel-burst 1/10s\n" +
		"limit transfers 1/10s\nlimit keys 1/10s\nlimit cancel-all 1/10s\n")
	if err != nil {
		t.Fatal(err)
	}
	limited := func(o *Options) { o.Windows, o.Policy = limits.New(o.Now), policy }
	calls := sequencer.NewCalls(time.Hour)
	elsewhere := func(o *Options) {
		limited(o)
		refuse := func(c *engine.Command) *sequencer.Call {
			window := map[engine.Kind]uint8{engine.Place: 0, engine.Cancel: 2, engine.CancelAll: 2,
				engine.SplitTokens: 6, engine.SetKey: 7}[c.Kind]
			call := calls.Prepare(new(engine.Command), c)
			call.Answer(engine.Receipt{}, nil, &sequencer.LimitedError{Wait: 10100 * time.Millisecond,
				Window: window})
			return call
		}
		o.Enter = func(c *engine.Command) (*sequencer.Call, error) { return refuse(c), nil }
		o.EnterAll = func(commands []engine.Command, calls []*sequencer.Call) error {
			for i := range commands {
				calls[i] = refuse(&commands[i])
			}
			return nil
		}
	}
	id := strings.Repeat("1", 64)
	split := "call alice POST /split\n" + `{"conditionId":"0xc0` + strings.Repeat("0", 62) +
		`","amount":"10"}`
	for _, x := range []struct{ request, fills string }{
		{"order alice buy A 10 @ 0.40 salt=2",
			"orders alice\nbuy A 10 @ 0.40 salt=1\nbuy A 10 @ 0.40 salt=3"},
		{"orders alice\nbuy A 10 @ 0.40 salt=5\nbuy A 10 @ 0.41 salt=6",
			"orders alice\nbuy A 10 @ 0.40 salt=1\nbuy A 10 @ 0.40 salt=3"},
		{"cancel alice 0x" + id, "cancel alice 0x" + id},
		{"call alice DELETE /orders ids=1", "cancel alice 0x" + id},
		{split, split},
		{"call alice POST /auth/readonly-api-key", "call alice POST /auth/readonly-api-key"},
	} {
		own, other := newHouse(t, limited), newHouse(t, elsewhere)
		for _, h := range []*house{own, other} {
			h.run([]string{"fund alice 1000"})
		}
		if said := own.run(strings.Split(x.fills, "\n")); !strings.HasPrefix(said, "200") {
			t.Fatalf("%s: %s", x.fills, said)
		}
		want, got := own.run(strings.Split(x.request, "\n")), other.run(strings.Split(x.request, "\n"))
		if !strings.HasPrefix(want, "429\n") || !strings.Contains(want, "Retry-After: 11\n") {
			t.Fatalf("%s: %s", x.request, want)
		}
		// The door of the other one has counted the request itself before it was refused elsewhere.
		if got != want {
			t.Errorf("%s: full elsewhere:\n%s\nfull here:\n%s", x.request, got, want)
		}
		there, here := counted(t, other.server.metrics.limited), counted(t, own.server.metrics.limited)
		if there != here {
			t.Errorf("%s: %v refusals counted, here %v", x.request, there, here)
		}
	}
	h := newHouse(t, elsewhere)
	h.run([]string{"fund alice 1000"})
	if said := h.run([]string{"call alice DELETE /cancel-all"}); !strings.HasPrefix(said, "429\n") ||
		!strings.Contains(said, "Retry-After: 11\n") {
		t.Error(said)
	}
}

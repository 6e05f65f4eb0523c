package main

import (
	"math"
	"testing"

	"clobd/bench"
	"clobd/bench/budget"
	"clobd/scripts/setting"
)

// TestBudget divides the CPU time of a real node: the door and the work behind it show,
// and hardly anything is left over.
func TestBudget(t *testing.T) {
	setting.Full(t, "it profiles a loaded node for seconds")
	for _, lists := range []bool{false, true} {
		args := []string{"budget", "--rounds", "1", "--duration", "2s", "--connections", "8"}
		if lists {
			args = append(args, "--lists")
		}
		var r bench.Budgeted
		out := measure(t, &r, func() bool { return r.Seen > 0.5 }, args...)
		sum, took := 0.0, map[budget.Stage]float64{}
		for i := range r.Lines {
			sum += r.Lines[i].Micros
			took[r.Lines[i].Stage] = r.Lines[i].Micros
		}
		if math.Abs(sum-r.Micros) > 0.001*r.Micros || r.Lists != lists || r.Seen > 1.3 {
			t.Errorf("the lines add up to %v of %v µs, seen %v\n%s", sum, r.Micros, r.Seen, out)
		}
		door, behind := 0.0, 0.0
		for _, stage := range budget.Stages() {
			switch stage {
			case budget.SocketIn, budget.Parse, budget.Authenticate, budget.Decode, budget.Hash,
				budget.Signature, budget.Answer, budget.SocketOut:
				door += took[stage] / r.Micros
			case budget.Ring, budget.Match, budget.Encode, budget.Write, budget.Sync, budget.Fold,
				budget.Publish:
				behind += took[stage] / r.Micros
			}
		}
		if door < 0.1 || behind < 0.1 { // of some hundred samples
			t.Errorf("the door took %.2f, all behind it %.2f of an order\n%s", door, behind, out)
		}
		if took[budget.Rest] > 0.1*r.Micros {
			t.Errorf("no rule knows %v of %v µs\n%s", took[budget.Rest], r.Micros, out)
		}
		if r.Echo <= 0 || r.Echo > r.Micros || r.PerFrame < 1 || r.FrameBytes < 100 {
			t.Errorf("echo %v µs, %v orders a frame of %v bytes\n%s", r.Echo, r.PerFrame, r.FrameBytes, out)
		}
	}
}

package wallets

import (
	"testing"

	"clobd/engine"
	"clobd/engine/view"
)

// TestAppraisedTwice: the first price that a market gets between two looks counts for all figures
// of a position.
func TestAppraisedTwice(t *testing.T) {
	p := holding{market: &view.Market{State: engine.Open}, size: 10 * engine.Unit, cost: 4_000_000}
	p.appraise(0)
	if p.current() != 4_000_000 {
		t.Errorf("without a price: %d, want what was paid", p.current())
	}
	p.appraise(50_000)
	if p.price != 50_000 || p.current() != 5_000_000 {
		t.Errorf("at 0.50: price %d, worth %d", p.price, p.current())
	}
}

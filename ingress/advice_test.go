package ingress

import (
	"testing"

	"clobd/engine"
	"clobd/ingress/auth"
)

// TestExactly: a refused price is told as it was signed, as a fraction where it has no end.
func TestExactly(t *testing.T) {
	for _, c := range []struct {
		side          engine.Side
		making, taken uint64
		rounded       engine.Price
		want          string
	}{
		{engine.Buy, 4_050_000, 10_000_000, 4050, "Price (0.405) breaks"},
		{engine.Buy, 4_000_100, 10_000_000, 4000, "Price (0.40001) breaks"},
		{engine.Sell, 10_000_000, 4_000_100, 4000, "Price (0.40001) breaks"},
		{engine.Buy, 30, 1_000_000, 0, "Price (0.00003) breaks"},
		{engine.Buy, 1, 1_000_000_000_000, 0, "Price (0.000000000001) breaks"},
		{engine.Buy, 1, 10_000_000_000_000, 0, "Price (1/10000000000000) breaks"},
		{engine.Buy, 4_000_000, 7_010_000, 5706, "Price (4000000/7010000) breaks"},
		{engine.Sell, 3, engine.MaxAmount, 0, "Price (1125899906842624/3) breaks"},
	} {
		text := "Price (" + c.rounded.String() + ") breaks"
		o := &auth.Order{Side: c.side, MakerAmount: c.making, TakerAmount: c.taken}
		if got := exactly(text, c.rounded, o); got != c.want {
			t.Errorf("%d for %d: %q, want %q", c.making, c.taken, got, c.want)
		}
	}
}

package answer

import (
	"testing"

	"clobd/engine"
)

// offering returns the Command of an order that offers making in return for taken.
func offering(side engine.Side, making, taken uint64) *engine.Command {
	if side == engine.Sell {
		making, taken = taken, making
	}
	return &engine.Command{Side: side, Cash: engine.Cash(making), Size: engine.Size(taken)}
}

// TestExactly: a refused price is shown as it was signed, as a fraction if it has too many
// decimals.
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
		o := offering(c.side, c.making, c.taken)
		if got := exactly(text, c.rounded, o); got != c.want {
			t.Errorf("%d for %d: %q, want %q", c.making, c.taken, got, c.want)
		}
	}
}

// TestMisfit: the refusal of amounts whose quotient is no price on any tick names the cash for the
// nearest price, if there is one. A price on another tick gets no such refusal.
func TestMisfit(t *testing.T) {
	words := func(member, price, size, should, got string) string {
		return "invalid amounts, the " + member + " amount for a $" + price + " order of size " + size +
			" should be '" + should + "' but the value submited is '" + got + "'. Please check if you " +
			"are using the latest version of the 'clob-client' library"
	}
	for _, c := range []struct {
		side          engine.Side
		making, taken uint64
		tick          engine.Price
		want, better  string
	}{
		{engine.Sell, 19_690_000, 4_330_000, 100, words("taker", "0.22", "19.69", "4.3318", "4.33"),
			"sign a takerAmount of 4331800"},
		{engine.Buy, 4_000_000, 7_010_000, 100, words("maker", "0.57", "7.01", "3.9957", "4"),
			"sign a makerAmount of 3995700"},
		{engine.Buy, 4_000_002, 10_000_000, 100, words("maker", "0.4", "10", "4", "4.000002"),
			"sign a makerAmount of 4000000"},
		{engine.Buy, 4_000_002, 10_000_000, 25, words("maker", "0.4", "10", "4", "4.000002"),
			"sign a makerAmount of 4000000"},
		{engine.Buy, 4_050_000, 10_000_000, 100, "", ""},    // 0.405 is a price of another tick
		{engine.Buy, 30, 1_000_000, 100, "", ""},            // the nearest price is 0
		{engine.Sell, 10_000_000, 9_999_990, 100, "", ""},   // the nearest price is 1
		{engine.Sell, 3, engine.MaxAmount, 1, "", ""},       // the price is far above 1
		{engine.Buy, engine.MaxAmount, 1 << 46, 10, "", ""}, // the price is exactly 16
		{engine.Buy, 1 << 45, 1<<46 - 1, 1000, words("maker", "0.5", "70368744.177663",
			"35184372.088831", "35184372.088832"), "sign a makerAmount of 35184372088831"},
	} {
		o := offering(c.side, c.making, c.taken)
		if got, better := misfit(o, c.tick); got != c.want || better != c.better {
			t.Errorf("%d for %d: %q, %q\nwant %q, %q", c.making, c.taken, got, better, c.want, c.better)
		}
	}
}

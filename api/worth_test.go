package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// figures are those of a position, in the order in which the interface lists them.
type figures struct {
	size, average, initial, current, cash, gain, bought, realized, rate, price float64
	redeemable                                                                 bool
}

// worthCase is a position behind a history, with its figures.
type worthCase struct {
	what, history, who string
	outcome            int
	closed             bool
	want               figures
}

// worths were worked out by hand. Takers pay 1 % of shares × p × (1−p).
func worths() []worthCase {
	const (
		market = "list 1 tick=0.01 min=5 fee=100,1\ncash alice 1000\ncash bob 1000\n"
		// bob's split: 200 of each at 0.50. alice takes 100 A at 0.40: fee 100 × 0.01 × 0.24 = 0.24.
		bought = market + "split bob 1 200\nplace b1 bob sell 10 100 0.4\nplace a1 alice buy 10 100 0.4\n"
		// bob takes 40 of them at 0.50: fee 40 × 0.01 × 0.25 = 0.10, which is his.
		made = bought + "place a2 alice sell 10 40 0.5\nplace b2 bob buy 10 40 0.5\n"
		// alice takes bob's bid with 40: that fee is hers.
		taken = bought + "place b2 bob buy 10 40 0.5\nplace a2 alice sell 10 40 0.5\n"
	)
	return []worthCase{
		// Nobody quotes: worth what a pair cost, 0.50 each, and no loss of 100 %.
		{"split", market + "split alice 1 100", "alice", 1, false,
			figures{100, 0.5, 50, 50, 0, 0, 100, 0, 0, 0.5, false}},
		// One side of a book is no price either.
		{"one-sided", market + "split alice 1 100\nplace b1 bob buy 10 10 0.3", "alice", 0, false,
			figures{100, 0.5, 50, 50, 0, 0, 100, 0, 0, 0.5, false}},
		// Both are: (0.30 + 0.40) / 2 = 0.35, 100 × 0.35 − 50 = −15, −15 / 50 = −30 %.
		{"midpoint", market + "split alice 1 100\nplace b1 bob buy 10 10 0.3\n" +
			"place a1 alice sell 10 10 0.4", "alice", 0, false,
			figures{100, 0.5, 50, 35, -15, -30, 100, 0, 0, 0.35, false}},
		// The other outcome is at 0.65: 65 − 50 = 15.
		{"midpoint of the other", market + "split alice 1 100\nplace b1 bob buy 10 10 0.3\n" +
			"place a1 alice sell 10 10 0.4", "alice", 1, false,
			figures{100, 0.5, 50, 65, 15, 30, 100, 0, 0, 0.65, false}},
		// The last trade, 0.40, is what was paid. The fee is lost: −0.24, per 100 shares −0.24 %.
		{"bought", bought, "alice", 0, false,
			figures{100, 0.4, 40, 40, 0, 0, 100, -0.24, -0.24, 0.4, false}},
		// 60 left at 0.40 = 24, worth 60 × 0.50 = 30: 6, 25 %. 40 × (0.50 − 0.40) − 0.24 = 3.76.
		{"sold as the maker", made, "alice", 0, false,
			figures{60, 0.4, 24, 30, 6, 25, 100, 3.76, 3.76, 0.5, false}},
		// Her second fee: 4 − 0.24 − 0.10 = 3.66.
		{"sold as the taker", taken, "alice", 0, false,
			figures{60, 0.4, 24, 30, 6, 25, 100, 3.66, 3.66, 0.5, false}},
		// bob had 200 at 0.50, sold 100 at 0.40 (−10), bought 40 at 0.50 (fee 0.10): 140 at 0.50 = 70.
		// −10.10 of 240 shares = −4.21 %.
		{"the other side", made, "bob", 0, false,
			figures{140, 0.5, 70, 70, 0, 0, 240, -10.1, -4.21, 0.5, false}},
		// B wins: 60 A at 0.40 = 24 are lost, and can be given back for nothing.
		{"lost", made + "resolve 1 0", "alice", 0, false,
			figures{60, 0.4, 24, 0, -24, -100, 100, 3.76, 3.76, 0, true}},
		// Half each: 60 × 0.50 = 30.
		{"halved", made + "resolve 1 0.5", "alice", 0, false,
			figures{60, 0.4, 24, 30, 6, 25, 100, 3.76, 3.76, 0.5, true}},
		// A wins: 60 × (1 − 0.40) = 36 on 24 is 150 %.
		{"won", made + "resolve 1 1", "alice", 0, false,
			figures{60, 0.4, 24, 60, 36, 150, 100, 3.76, 3.76, 1, true}},
		// Given back for nothing: 3.76 − 24 = −20.24.
		{"redeemed for nothing", made + "resolve 1 0\nredeem alice 1", "alice", 0, true,
			figures{0, 0.4, 0, 0, -20.24, -20.24, 100, -20.24, -20.24, 0, false}},
		// 3.76 + 36 = 39.76.
		{"redeemed", made + "resolve 1 1\nredeem alice 1", "alice", 0, true,
			figures{0, 0.4, 0, 0, 39.76, 39.76, 100, 39.76, 39.76, 1, false}},
		// A split that was merged again: at 0.50 in and out. Nobody tells a price: what was paid.
		{"merged", market + "split alice 1 10\nmerge alice 1 10", "alice", 0, true,
			figures{0, 0.5, 0, 0, 0, 0, 10, 0, 0, 0.5, false}},
	}
}

// TestWorth: what the answers tell of positions is what was worked out by hand.
func TestWorth(t *testing.T) {
	for _, c := range worths() {
		t.Run(c.what, func(t *testing.T) {
			n := &investors{script: newScript(t)}
			n.node.run()
			for _, line := range strings.Split(strings.TrimSpace(c.history), "\n") {
				n.engine(&datadriven.TestData{}, strings.Fields(line), new(strings.Builder))
			}
			path := "/positions?sizeThreshold=0"
			if c.closed {
				path = "/closed-positions?limit=50"
			}
			n.must(awaited(n.index.History.Await(n.head.Sequence, time.Minute)))
			user := "&user=" + trader(c.who).Hex()
			got := figuresOf(t, fetch[[]wirePosition](n, path+user), c.outcome)
			if got != c.want {
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
			for _, flag := range []string{"redeemable", "mergeable"} {
				for _, p := range fetch[[]wirePosition](n, "/positions?sizeThreshold=0&"+flag+"=true"+user) {
					if p.OutcomeIndex == c.outcome && flag == "redeemable" && !c.want.redeemable ||
						flag == "mergeable" && (c.want.redeemable || c.closed) {
						t.Errorf("%s lists %+v", flag, p)
					}
				}
			}
			if c.want.redeemable {
				figuresOf(t, fetch[[]wirePosition](n, "/positions?redeemable=true"+user), c.outcome)
			}
		})
	}
}

func awaited(came bool) error {
	if !came {
		return fmt.Errorf("the index lags")
	}
	return nil
}

// figuresOf are those of the one position in a token.
func figuresOf(t *testing.T, list []wirePosition, outcome int) figures {
	t.Helper()
	for _, p := range list {
		if p.OutcomeIndex == outcome {
			return figures{p.Size, p.AvgPrice, p.InitialValue, p.CurrentValue, p.CashPnl, p.PercentPnl,
				p.TotalBought, p.RealizedPnl, p.PercentRealizedPnl, p.CurPrice, p.Redeemable}
		}
	}
	t.Fatalf("nothing of outcome %d in %+v", outcome, list)
	return figures{}
}

package history

import (
	"testing"

	"clobd/engine"
)

// TestCancelReasons: a row tells an owner's sweep of everything from one of a market and from a
// cancel by id, which the engine does not.
func TestCancelReasons(t *testing.T) {
	x := newPriceTest(t).x
	for i, c := range []struct {
		command engine.Command
		why     engine.Reason
		want    engine.Reason
	}{
		{engine.Command{Kind: engine.Cancel}, engine.ByOwner, engine.ByOwner},
		{engine.Command{Kind: engine.CancelAll}, engine.ByOwner, engine.ByOwnerAll},
		{engine.Command{Kind: engine.CancelAll, Market: 3}, engine.ByOwner, engine.ByOwnerMarket},
		{engine.Command{Kind: engine.CancelAll}, engine.Timeout, engine.Timeout},
		{engine.Command{Kind: engine.Place}, engine.SelfTrade, engine.SelfTrade},
		{engine.Command{Kind: engine.Place}, engine.ByOwner, engine.ByOwner}, // the order was replaced
	} {
		id, seq := engine.OrderID{31: byte(i + 1)}, engine.Sequence(10+2*i)
		place := engine.Command{Kind: engine.Place, ID: id, Market: 3, Wallet: 1, Owner: 1,
			Size: 5 * engine.Unit, Cash: engine.Unit}
		placed := engine.Event{Kind: engine.Placed, Market: 3, Wallet: 1, Owner: 1, Order: id,
			Price: 2000, Size: 5 * engine.Unit, Remaining: 5 * engine.Unit}
		if err := x.fold.command(&place, seq, 1, []engine.Event{placed}); err != nil {
			t.Fatal(err)
		}
		gone := engine.Event{Kind: engine.Cancelled, Market: 3, Wallet: 1, Owner: 1, Order: id,
			Reason: c.why, Remaining: 5 * engine.Unit}
		if err := x.fold.cancel(&c.command, &gone, 2); err != nil {
			t.Fatal(err)
		}
		if err := x.fold.commit(); err != nil {
			t.Fatal(err)
		}
		row, known, err := x.History.Order(id)
		if err != nil || !known || row.Status != engine.Canceled || row.Reason != c.want {
			t.Errorf("case %d: %v, %d of %+v, want %d", i, err, row.Reason, row, c.want)
		}
	}
}

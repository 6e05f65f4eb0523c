package history

import (
	"fmt"
	"testing"

	"clobd/engine"
)

// TestNotices: the newest come first, of the time and the owner that are asked for; what the owner
// did himself is none; the first notice of a day takes those away that nobody asks for any more.
func TestNotices(t *testing.T) {
	s := newPriceTest(t)
	x := s.x
	note := func(at engine.Time, seq engine.Sequence, events ...engine.Event) {
		t.Helper()
		for i := range events {
			if err := x.fold.notice(&events[i], stamp{seq, at}, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancelled := func(owner engine.WalletNo, why engine.Reason, id byte) engine.Event {
		return engine.Event{Kind: engine.Cancelled, Owner: owner, Market: 3, Reason: why,
			Order: engine.OrderID{id}, Price: 4000}
	}
	told := func(owner engine.WalletNo, since engine.Time, limit int, want string) {
		t.Helper()
		rows, err := x.History.Notices(owner, since, limit)
		got := ""
		for _, r := range rows {
			got += fmt.Sprint(r.Time, " ", r.Sequence, ".", r.Index, " ", r.Order[0], " ", r.Reason, " ",
				r.Market, " ", r.Payout, "; ")
		}
		if err != nil || got != want {
			t.Errorf("owner %d since %d: %q, want %q: %v", owner, since, got, want, err)
		}
	}
	commit := func() {
		t.Helper()
		if err := x.fold.commit(); err != nil {
			t.Fatal(err)
		}
	}
	told(7, 0, 9, "")
	const start = 20_000 * day
	note(start+day-1, 5, cancelled(7, engine.Expired, 1), cancelled(8, engine.Expired, 2),
		cancelled(7, engine.ByOwner, 3), cancelled(7, engine.ByOperator, 4))
	note(start+day, 6, engine.Event{Kind: engine.Resolved, Market: 9, Price: 2500})
	commit()
	note(start+2*day, 7, cancelled(7, engine.MarketClosed, 5))
	commit()
	first := fmt.Sprint(start+day-1, " 5.3 4 ", engine.ByOperator, " 3 0; ", start+day-1, " 5.0 1 ",
		engine.Expired, " 3 0; ")
	latest := fmt.Sprint(start+2*day, " 7.0 5 ", engine.MarketClosed, " 3 0; ")
	told(7, 0, 9, latest+first)
	told(7, start+day, 9, latest)
	told(7, 0, 1, latest)
	told(8, 0, 9, fmt.Sprint(start+day-1, " 5.1 2 ", engine.Expired, " 3 0; "))
	told(0, 0, 9, fmt.Sprint(start+day, " 6.0 0 0 9 0.25; "))
	told(9, 0, 9, "")
	note(start+3*day, 8, cancelled(8, engine.Timeout, 6)) // the first day is over
	commit()
	told(7, 0, 9, latest)
	told(0, 0, 9, fmt.Sprint(start+day, " 6.0 0 0 9 0.25; "))
	it, err := iterate(x.db, spaceNotice)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for ok := it.First(); ok; ok = it.Next() {
		kept++
	}
	if err := it.Close(); err != nil || kept != 3 {
		t.Errorf("%d notices are kept, want 3: %v", kept, err)
	}
}

package limits

import (
	"net/netip"
	"testing"
	"time"

	"clobd/engine"
)

// repeat is n Commands of a kind.
func repeat(n int, c engine.Command) (all []engine.Command) {
	for range n {
		all = append(all, c)
	}
	return all
}

// TestForwarded: what other doors let in counts in the windows that this door charges, as many as
// the Commands show, all of a bundle or none, and nobody else's.
func TestForwarded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	place, cancel := engine.Command{Kind: engine.Place}, engine.Command{Kind: engine.Cancel}
	replace := place
	replace.Replace(engine.OrderID{1})
	sweep := engine.Command{Kind: engine.CancelAll, Reason: engine.ByOwner}
	alice, bob, here := engine.Address{1}, engine.Address{2}, netip.MustParseAddr("192.0.2.1")
	w := New(func() time.Time { return now })
	take := func(a engine.Address, n int, c engine.Command, gateway uint64) (full string) {
		v := w.Forwarded(a, repeat(n, c), gateway)
		if v.Wait == 0 {
			return ""
		} else if v.Wait > 11*time.Second {
			t.Errorf("it waits %v", v.Wait)
		}
		if other := Full(v.Row, v.Wait); other.Name != v.Name || other.Left != 0 {
			t.Errorf("%+v elsewhere, here %+v", other, v)
		}
		return v.Name
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: full is %q, not %q", what, got, want)
		}
	}
	if v := w.Account(alice, Demand{OrderScope, 2390}); v.Wait > 0 {
		t.Fatal(v)
	}
	expect("a list that does not fit", take(alice, 11, place, 7), "order-burst")
	expect("one that does", take(alice, 10, place, 7), "")
	expect("one more", take(alice, 1, place, 0), "order-burst")
	if v := w.Account(alice, Demand{OrderScope, 1}); v.Wait == 0 {
		t.Error("this door has another count")
	}
	expect("another account", take(bob, 15, place, 7), "")
	expect("cancels beside a flood of orders", take(alice, 1000, cancel, 7), "")
	expect("a replacement counts twice", take(bob, 2385, replace, 0), "")
	expect("as an order", take(bob, 1, place, 0), "order-burst")
	expect("one without room", take(bob, 1, replace, 0), "order-burst")
	expect("it uses up no cancel", take(bob, 15, cancel, 0), "")
	expect("and as a cancel", take(bob, 1, cancel, 0), "cancel-burst")
	for name, c := range map[string]engine.Command{"transfers": {Kind: engine.SplitTokens},
		"keys": {Kind: engine.SetKey}} {
		expect(name, take(alice, 50, c, 7), "")
		expect(name, take(alice, 100, c, 7), name)
	}
	given := engine.Command{Kind: engine.SetKey, Revoke: true}
	expect("keys that are given up", take(alice, 100, given, 7), "")
	// A gateway that makes up cancels of carol: those of others go through, and her own here.
	carol := engine.Address{3}
	expect("a gateway's cancels", take(carol, 2400, cancel, 7), "")
	expect("too many of them", take(carol, 1, cancel, 7), "cancel-burst")
	expect("the next gateway's", take(carol, 1, cancel, 8), "")
	expect("a voter's", take(carol, 1400, cancel, 0), "")
	if v := w.Cancel(here, carol, 1000, false); v.Wait > 0 {
		t.Errorf("her own: %+v", v)
	}
	expect("voters count together", take(carol, 1, cancel, 0), "cancel-burst")
	expect("a sweep of many wallets goes on", take(carol, 512, sweep, 0), "")
	for range 49 {
		expect("sweeps", take(carol, 3, sweep, 0), "")
	}
	expect("too many sweeps", take(carol, 1, sweep, 0), "cancel-burst") // the shorter wait
	expect("sweeps of silent keys",
		take(carol, 5, engine.Command{Kind: engine.CancelAll, Reason: engine.Timeout}, 0), "")
	now = now.Add(11 * time.Second)
	expect("later", take(alice, 15, place, 7), "")
	expect("a window of a later program", Full(250, time.Second).Name, "unknown")
}

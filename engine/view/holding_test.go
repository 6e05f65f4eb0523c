package view

import (
	"slices"
	"testing"

	"clobd/engine"
)

// TestHoldings: an owner's wallets and keys are listed oldest first.
func TestHoldings(t *testing.T) {
	b, w := NewBoard(), newWorld(1)
	f := w.begin()
	f.deposit(1)
	link := func(wallet, owner engine.WalletNo) {
		f.add(engine.Command{Kind: engine.Link, Address: addressOf(wallet), Holder: addressOf(owner)},
			engine.Event{Kind: engine.Linked, Wallet: wallet, Owner: owner})
	}
	link(2, 1)
	link(1, 1)
	link(2, 1) // again
	set := func(number, class, revoked int64) {
		f.add(engine.Command{Kind: engine.SetKey, Owner: 1},
			engine.Event{Kind: engine.KeySet, Owner: 1, Args: [3]int64{number, class, revoked}})
	}
	arm := func(number, timeout int64) {
		f.add(engine.Command{Kind: engine.Arm, Owner: 1},
			engine.Event{Kind: engine.Armed, Owner: 1, Args: [3]int64{number, timeout}})
	}
	arm(9, 5000)
	set(7, 0, 0)
	set(3, 1, 0)
	set(0, 0, 0)
	w.seq = f.f.Last()
	b.Publish(f.f)
	f = w.begin()
	set(7, 0, 1)
	arm(7, 10_000)
	arm(9, 0)
	w.seq = f.f.Last()
	b.Publish(f.f)

	d := b.Directory
	if got := d.Owned(1, nil); !slices.Equal(got, []engine.WalletNo{2, 1}) {
		t.Errorf("owned %v", got)
	}
	want := []Key{
		{Number: 7, Revoked: true, Timeout: 10_000, Created: 1, Changed: 2},
		{Number: 0, Created: 1, Changed: 1},
	}
	if got := d.Keys(1, engine.TradingKey, nil); !slices.Equal(got, want) {
		t.Errorf("keys %+v", got)
	}
	if k, known := d.Key(1, engine.ReadOnlyKey, 3); !known || k.Revoked {
		t.Errorf("read-only key 3: %+v, %v", k, known)
	}
	if _, known := d.Key(1, engine.TradingKey, 9); known {
		t.Error("a key that was only armed is on record")
	}
	if n := len(d.owned[1].keys[engine.TradingKey]); n != 2 {
		t.Errorf("%d records: what is neither armed nor on record stays", n)
	}
	if len(d.Owned(2, nil)) != 0 || len(d.Keys(2, engine.TradingKey, nil)) != 0 {
		t.Error("wallet 2 has something")
	}
	armed := map[uint32]engine.Time{}
	d.Armed(func(owner engine.WalletNo, number uint32, timeout engine.Time) {
		armed[number+uint32(owner)*100] = timeout
	})
	if len(armed) != 1 || armed[107] != 10_000 {
		t.Errorf("armed %v", armed)
	}
}

// TestRevoked: Revoked reports a revoked trading key, and no longer after the key is restored.
func TestRevoked(t *testing.T) {
	b, w := NewBoard(), newWorld(1)
	f := w.begin()
	f.deposit(1)
	set := func(number, class, revoked int64) {
		f.add(engine.Command{Kind: engine.SetKey, Owner: 1},
			engine.Event{Kind: engine.KeySet, Owner: 1, Args: [3]int64{number, class, revoked}})
	}
	expect := func(number uint32, want bool) {
		t.Helper()
		w.seq = f.f.Last()
		b.Publish(f.f)
		f = w.begin()
		if got := b.Directory.Revoked(addressOf(1), number); got != want {
			t.Errorf("key %d revoked: %v, want %v", number, got, want)
		}
	}
	set(7, 0, 0)
	expect(7, false)
	set(3, 1, 1) // another class
	expect(3, false)
	set(7, 0, 1)
	set(7, 0, 1) // again
	expect(7, true)
	set(8, 0, 0)
	expect(8, false)
	if b.Directory.Revoked(addressOf(2), 7) {
		t.Error("a stranger's key is revoked")
	}
	set(7, 0, 0)
	expect(7, false)
	if n := b.Directory.revoked.Load(); n != 0 {
		t.Errorf("%d keys count as revoked", n)
	}
}

// TestWalletModes: the view knows which wallets are restricted.
func TestWalletModes(t *testing.T) {
	b, w := NewBoard(), newWorld(1)
	f := w.begin()
	f.deposit(1)
	set := func(m engine.Mode) {
		f.add(engine.Command{Kind: engine.SetMode, Wallet: 1, Mode: m},
			engine.Event{Kind: engine.ModeSet, Wallet: 1, Mode: m})
		w.seq = f.f.Last()
		b.Publish(f.f)
		f = w.begin()
		if got := b.Directory.WalletMode(1); got != m {
			t.Errorf("mode %d, want %d", got, m)
		}
	}
	set(engine.CancelOnly)
	set(engine.PostOnly)
	set(engine.Normal)
	if len(b.Directory.modes) != 0 || b.Directory.Mode() != engine.Normal {
		t.Errorf("modes %v, of all %d", b.Directory.modes, b.Directory.Mode())
	}
}

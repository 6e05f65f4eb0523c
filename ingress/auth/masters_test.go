package auth

import (
	"testing"
	"time"

	"clobd/engine"
)

// TestTwoMasters: keys of both secrets open, each with its own texts; new keys are of the newest,
// answers show those of the oldest; a secret that no longer lives opens nothing, nor does one
// that never did.
func TestTwoMasters(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	a := engine.Address{19: 5}
	first, second := [32]byte{1}, [32]byte{2}
	k := NewKeyring(first)
	old := k.Derive(a, 3)
	k.Use([]Master{{FirstMaster, &first}, {2, &second}})
	fresh := k.Derive(a, 3)
	if fresh.Passphrase[:2] != "02" || fresh.Key == old.Key || fresh.Secret == old.Secret {
		t.Errorf("the new key is %v, the old one %v", fresh, old)
	}
	if k.KeyID(a, 3) != old.Key || k.ID(engine.TradingKey, a, 3) != fresh.Key ||
		!k.Is(engine.TradingKey, a, 3, old.Key) || !k.Is(engine.TradingKey, a, 3, fresh.Key) {
		t.Error("the ids of two secrets are mixed up")
	}
	ask := func(trio Trio) error {
		r := &Request{Address: Checksum(a), Timestamp: "1800000000", Method: "GET",
			Path: "/data/orders"}
		if err := trio.Sign(r); err != nil {
			t.Fatal(err)
		}
		id, err := k.Authenticate(r, now)
		if err == nil && id != (Identity{a, 3}) {
			t.Errorf("identity %v", id)
		}
		return err
	}
	mixed := fresh
	mixed.Passphrase = "01" + fresh.Passphrase[2:] // of the other secret
	foreign := fresh
	foreign.Passphrase = "03" + fresh.Passphrase[2:] // of none
	if ask(old) != nil || ask(fresh) != nil || ask(mixed) != ErrKey || ask(foreign) != ErrKey {
		t.Errorf("two secrets: %v %v %v %v", ask(old), ask(fresh), ask(mixed), ask(foreign))
	}
	k.Use([]Master{{2, &second}})
	if ask(old) != ErrKey || ask(fresh) != nil || k.Is(engine.TradingKey, a, 3, old.Key) {
		t.Errorf("after the first: %v %v", ask(old), ask(fresh))
	}
}

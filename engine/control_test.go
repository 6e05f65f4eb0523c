package engine

import "testing"

// TestArmedKeys: an owner may have any number of keys, but at most MaxTradingKeys armed. An armed
// key may always get another timeout, or be disarmed.
func TestArmedKeys(t *testing.T) {
	s := newStage(16, 100)
	s.fund(Unit, 0)
	arm := func(owner WalletNo, key uint32, timeout Time, want Reject) {
		t.Helper()
		before := s.x.Digest()
		e := s.apply(Command{Kind: Arm, Owner: owner, Key: key, Expiry: timeout})[0]
		if e.Reject != want || (e.Kind == Armed) != (want == Accepted) {
			t.Errorf("key %d of %d: %+v", key, owner, e)
		}
		if want != Accepted && (s.x.Digest() != before || e.Args[0] != MaxTradingKeys) {
			t.Errorf("refused with %+v, digest %x, before %x", e, s.x.Digest(), before)
		}
	}
	for key := range uint32(MaxTradingKeys) {
		arm(1, key, 10_000, Accepted)
	}
	arm(1, MaxTradingKeys, 10_000, RejectKeys)
	arm(1, MaxTradingKeys, 0, Accepted) // it is not watched anyway
	arm(1, MaxTradingKeys, 10_000, RejectKeys)
	arm(1, 3, 5000, Accepted)
	arm(2, MaxTradingKeys, 10_000, Accepted)
	arm(1, 7, 0, Accepted)
	arm(1, MaxTradingKeys, 10_000, Accepted)
	arm(1, 7, 10_000, RejectKeys)
	if n := len(s.x.beats[1]) + len(s.x.beats[2]); n != MaxTradingKeys+1 {
		t.Errorf("%d keys are watched", n)
	}
	for key := range uint32(MaxTradingKeys + 1) {
		arm(1, key, 0, Accepted)
	}
	arm(2, MaxTradingKeys, 0, Accepted)
	if len(s.x.beats) != 0 {
		t.Errorf("left over: %+v", s.x.beats)
	}
	if err := audit(s.x); err != nil {
		t.Error(err)
	}
}

// TestKeyRotation: an owner can replace a key every day until MaxKeyRecords are on record. After
// that every key on record can still be revoked, and one more for each key that is restored.
func TestKeyRotation(t *testing.T) {
	s := newStage(16, 100)
	s.fund(Unit, 0)
	set := func(class KeyClass, key uint32, revoke bool, want Reject) {
		t.Helper()
		before := s.x.Digest()
		e := s.apply(Command{Kind: SetKey, Owner: 1, Class: class, Key: key, Revoke: revoke})[0]
		if e.Reject != want || (e.Kind == KeySet) != (want == Accepted) {
			t.Fatalf("class %d, key %d, revoke %v: %+v", class, key, revoke, e)
		}
		if want != Accepted && s.x.Digest() != before {
			t.Fatalf("class %d, key %d: refused, and the digest changed", class, key)
		}
	}
	for class := range keyClasses {
		for key := range uint32(MaxKeyRecords) {
			set(class, key, false, Accepted)
			if key >= 5 {
				set(class, key-5, true, Accepted)
			}
		}
		set(class, MaxKeyRecords, false, RejectKeyRecords)
		for key := range uint32(MaxKeyRecords) {
			set(class, key, true, Accepted)
		}
		set(class, MaxKeyRecords, false, RejectKeyRecords)
		set(class, MaxKeyRecords, true, RejectKeyRecords)
	}
	set(ReadOnlyKey, 5, false, RejectKeyGone)
	for key := range uint32(MaxTradingKeys) {
		set(TradingKey, key, false, Accepted)
		set(TradingKey, MaxKeyRecords+key, true, Accepted)
	}
	set(TradingKey, MaxTradingKeys, false, RejectKeys)
	set(TradingKey, 2*MaxKeyRecords, true, RejectKeyRecords)
	for key := range uint32(MaxTradingKeys) {
		set(TradingKey, key, true, Accepted)
	}
	if n := s.x.keys.all.used; n != 3*MaxKeyRecords+MaxTradingKeys {
		t.Errorf("%d keys on record", n)
	}
	if err := audit(s.x); err != nil {
		t.Error(err)
	}
}

// TestOnlyOfNoMeaning: Apply refuses a CancelAll with an unknown bit in Only, also in a replay.
func TestOnlyOfNoMeaning(t *testing.T) {
	for only := range Only(255) {
		s := newStage(16, 100)
		s.fund(100*Unit, 0)
		s.open(1, 1, 3)
		c := Command{Kind: CancelAll, Market: 1, Wallet: 1, Owner: 1, Reason: ByOwner, Only: only}
		r, back := reader{rest: appendCommand(nil, &c)}, Command{}
		if r.command(&back); r.bad || back.Only != only {
			t.Fatalf("%d is read back as %d", only, back.Only)
		}
		e := s.apply(c)
		if no := e[len(e)-1].Reject; (no == RejectType) != (only > OnlyToken|OnlyKey) {
			t.Errorf("%d: rejected %d", only, no)
		}
	}
}

package auth

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"sync"
	"testing"

	"clobd/engine"
)

// TestVerify signs each type of order for each row of every chain, and finds that row again.
func TestVerify(t *testing.T) {
	s := anvil(t)
	for _, chain := range []uint64{ChainMain, ChainTest, ChainLocal} {
		v := NewVerifier(Domains(chain))
		for i := range v.Domains {
			d := &v.Domains[i]
			for kind := TypeEOA; kind <= TypeWallet; kind++ {
				if d.structVersion() == 1 && kind == TypeWallet {
					continue
				}
				o := sample(s, d.structVersion(), kind)
				signature, id := sign(t, s, o, d)
				for range 2 { // once without a hint, once with
					got, err := v.Verify(o, signature, d.NegRisk)
					want := Verified{id, s.Address, i, d.Separator(), chain}
					if err != nil || got != want {
						t.Fatalf("%s type %d: %+v, %v", d, kind, got, err)
					}
				}
				if _, err := v.Verify(o, signature, !d.NegRisk); (err == nil) != d.Both {
					t.Errorf("%s type %d in the other kind of market: %v", d, kind, err)
				}
			}
		}
	}
}

// spoiledOrder is a wrong way to sign an order, and the reason why it is refused, if there is but
// one.
type spoiledOrder struct {
	name   string
	sign   func(*Order) []byte
	reason string
}

func spoiledOrders(t *testing.T, s *Signer) []spoiledOrder {
	normal, neg := domainOf(t, 2, false), domainOf(t, 2, true)
	domain := func(change func(*Domain)) func(*Order) []byte {
		d := *normal
		change(&d)
		return func(o *Order) []byte { b, _ := sign(t, s, o, &d); return b }
	}
	bend := func(change func([]byte) []byte) func(*Order) []byte {
		return func(o *Order) []byte { b, _ := sign(t, s, o, normal); return change(b) }
	}
	set := func(at int, scalar []byte) func(*Order) []byte {
		return bend(func(b []byte) []byte { copy(b[at:], scalar); return b })
	}
	zero := make([]byte, 32)
	n := curveOrder[:]
	above := append([]byte(nil), n...)
	above[31]++
	return []spoiledOrder{
		{"another chain", domain(func(d *Domain) { d.Chain = ChainMain }), ReasonSigner},
		{"another contract", domain(func(d *Domain) { d.Contract[3]++ }), ReasonSigner},
		{"another version", domain(func(d *Domain) { d.Version = "4" }), ReasonSigner},
		{"another name", domain(func(d *Domain) { d.Name += " " }), ReasonSigner},
		{"the neg-risk contract", domain(func(d *Domain) { *d = *neg }), ReasonSigner},
		{"v of 2", set(64, []byte{2}), ReasonV},
		{"v of 26", set(64, []byte{26}), ReasonV},
		{"v of 29", set(64, []byte{29}), ReasonV},
		{"v of a chain", set(64, []byte{37}), ReasonV},
		{"the other v", bend(func(b []byte) []byte { b[64] ^= 27 ^ 28; return b }), ReasonSigner},
		{"high s", bend(func(b []byte) []byte { return twin(b) }), ReasonHighS},
		{"r = 0", set(0, zero), ReasonR},
		{"s = 0", set(32, zero), ReasonS},
		{"r = n", set(0, n), ReasonR},
		{"r = n + 1", set(0, above), ReasonR},
		{"s = n", set(32, n), ReasonS},
		{"no signature", bend(func(b []byte) []byte { return nil }), ReasonLength},
		{"64 bytes", bend(func(b []byte) []byte { return b[:64] }), ReasonLength},
		{"66 bytes", bend(func(b []byte) []byte { return append(b, 0) }), ReasonLength},
		{"a flipped bit", bend(func(b []byte) []byte { b[40] ^= 1; return b }), ""},
		{"r of no point", set(0, append(make([]byte, 31), 5)), ReasonRecover},
		{"another signer", func(o *Order) []byte {
			c := *o
			c.Maker, c.Signer = other(t).Address, other(t).Address
			b, _ := sign(t, other(t), &c, normal)
			return b
		}, ReasonSigner},
	}
}

// TestVerifyRefuses tries all that may be wrong with a signature on orders of the plain types.
func TestVerifyRefuses(t *testing.T) {
	s := anvil(t)
	v := NewVerifier(Domains(ChainTest))
	cases := spoiledOrders(t, s)
	for _, kind := range []uint8{TypeEOA, TypeProxy, TypeSafe} {
		for _, c := range cases {
			o := sample(s, 2, kind)
			_, err := v.Verify(o, c.sign(o), false)
			var e *SignatureError
			if !errors.As(err, &e) {
				t.Errorf("type %d, %s: %v", kind, c.name, err)
				continue
			}
			if c.reason != "" && e.Reason != c.reason {
				t.Errorf("type %d, %s: %s, want %s", kind, c.name, e.Reason, c.reason)
			}
			_, id := sign(t, s, o, &e.Domain)
			if e.Hash != id || e.Tried < 1 || !strings.Contains(e.Error(), e.Reason) {
				t.Errorf("type %d, %s: hash %x of %s, tried %d", kind, c.name, e.Hash, &e.Domain, e.Tried)
			}
		}
	}
}

// twin is the other signature that the same nonce allows: n - s for s, and the other v.
func twin(b []byte) []byte {
	c := append([]byte(nil), b...)
	s := new(big.Int).SetBytes(b[32:64])
	s.Sub(new(big.Int).SetBytes(curveOrder[:]), s).FillBytes(c[32:64])
	c[64] ^= 27 ^ 28
	return c
}

func TestVerifyRefusesOrders(t *testing.T) {
	s := anvil(t)
	v := NewVerifier(Domains(ChainTest))
	for _, c := range []struct {
		name    string
		version uint8
		kind    uint8
		change  func(*Order)
		reason  string
	}{
		{"no struct version", 2, 0, func(o *Order) { o.Version = 0 }, ReasonVersion},
		{"struct version 3", 2, 0, func(o *Order) { o.Version = 3 }, ReasonVersion},
		{"the other struct", 2, 0, func(o *Order) { o.Version = 1 }, ReasonSigner},
		{"type 4", 2, 0, func(o *Order) { o.SignatureType = 4 }, ReasonType},
		{"type 255", 2, 0, func(o *Order) { o.SignatureType = 255 }, ReasonType},
		{"type 3 in V1", 1, 0, func(o *Order) { o.SignatureType = TypeWallet }, ReasonType},
		{"side 2", 2, 0, func(o *Order) { o.Side = 2 }, ReasonSide},
		{"maker of type 0 is not its signer", 2, 0, func(o *Order) { o.Maker = wallet }, ReasonMaker},
		{"signer of type 3 is the owner", 2, 3, func(o *Order) { o.Signer = s.Address }, ReasonMaker},
		{"type 0 as type 1", 2, 0, func(o *Order) { o.SignatureType = TypeProxy }, ReasonSigner},
		{"type 1 as type 2", 2, 1, func(o *Order) { o.SignatureType = TypeSafe }, ReasonSigner},
		{"the other side", 2, 0, func(o *Order) { o.Side ^= 1 }, ReasonSigner},
		{"another token", 2, 0, func(o *Order) { o.Token[31]++ }, ReasonSigner},
		{"a better price", 2, 0, func(o *Order) { o.TakerAmount-- }, ReasonSigner},
		{"another fee", 1, 0, func(o *Order) { o.FeeRate[31]++ }, ReasonSigner},
		{"another side of type 3", 2, 3, func(o *Order) { o.Side ^= 1 }, ReasonContents},
	} {
		o := sample(s, c.version, c.kind)
		signature, _ := sign(t, s, o, domainOf(t, c.version, false))
		c.change(o)
		var e *SignatureError
		if _, err := v.Verify(o, signature, false); !errors.As(err, &e) || e.Reason != c.reason {
			t.Errorf("%s: %v, want %s", c.name, err, c.reason)
		}
	}
	empty := NewVerifier(nil)
	var e *SignatureError
	if _, err := empty.Verify(sample(s, 2, 0), make([]byte, 65), false); !errors.As(err, &e) ||
		e.Reason != ReasonDomain || e.Error() != "order signature: no_domain" {
		t.Errorf("without domains: %v", err)
	}
}

func TestVerifyNestedRefuses(t *testing.T) {
	s, v := anvil(t), NewVerifier(Domains(ChainTest))
	o := sample(s, 2, TypeWallet)
	good, id := sign(t, s, o, domainOf(t, 2, false))
	for _, c := range []struct {
		name   string
		bend   func(b []byte) []byte
		reason string
	}{
		{"the inner signature alone", func(b []byte) []byte { return b[:65] }, ReasonLength},
		{"a byte less", func(b []byte) []byte { return b[:316] }, ReasonLength},
		{"a byte more", func(b []byte) []byte { return append(b, 0) }, ReasonLength},
		{"length of the string", func(b []byte) []byte { b[316]++; return b }, ReasonTypeString},
		{"high byte of that length", func(b []byte) []byte { b[315] = 1; return b }, ReasonTypeString},
		{"type string", func(b []byte) []byte { b[200] ^= 32; return b }, ReasonTypeString},
		{"separator", func(b []byte) []byte { b[70]++; return b }, ReasonDomain},
		{"contents", func(b []byte) []byte { b[100]++; return b }, ReasonContents},
		{"v", func(b []byte) []byte { b[64] = 29; return b }, ReasonV},
		{"high s", func(b []byte) []byte { return append(twin(b[:65]), b[65:]...) }, ReasonHighS},
		{"r of no point", func(b []byte) []byte {
			copy(b, make([]byte, 31))
			b[31] = 5
			return b
		}, ReasonRecover},
	} {
		var e *SignatureError
		_, err := v.Verify(o, c.bend(append([]byte(nil), good...)), false)
		if !errors.As(err, &e) || e.Reason != c.reason {
			t.Errorf("%s: %v, want %s", c.name, err, c.reason)
		}
		if e != nil && e.Domain == *domainOf(t, 2, false) && e.Hash != id {
			t.Errorf("%s: hash %x", c.name, e.Hash)
		}
	}
	// What another owner signs verifies too, as that owner's: the caller compares.
	forged, _ := sign(t, other(t), o, domainOf(t, 2, false))
	found, err := v.Verify(o, forged, false)
	if err != nil || found.Signer != other(t).Address || found.ID != id {
		t.Errorf("signed by another owner: %+v, %v", found, err)
	}
	// For another wallet of the same owner the signature is worth nothing.
	stolen := *o
	stolen.Maker[0]++
	stolen.Signer[0]++
	if _, err := v.Verify(&stolen, good, false); err == nil {
		t.Error("a wallet's signature counts for another wallet")
	}
}

// TestMalleability: of all the signatures that can be made of one, those that verify are of one
// order, with one id.
func TestMalleability(t *testing.T) {
	s, v := anvil(t), NewVerifier(Domains(ChainTest))
	o := sample(s, 2, TypeEOA)
	good, id := sign(t, s, o, domainOf(t, 2, false))
	accepted := 0
	for _, b := range [][]byte{good, twin(good)} {
		for v256 := range 256 {
			c := append([]byte(nil), b...)
			c[64] = byte(v256)
			found, err := v.Verify(o, c, false)
			if err != nil {
				continue
			}
			accepted++
			if found.ID != id {
				t.Errorf("v %d: a second id %x", v256, found.ID)
			}
		}
	}
	if accepted != 2 { // v of 0 or 1, and the same plus 27
		t.Errorf("%d forms accepted, want 2", accepted)
	}
}

func TestHint(t *testing.T) {
	s, v := anvil(t), NewVerifier(Domains(ChainTest))
	last := &v.Domains[len(v.Domains)-5] // the third exchange of its kind or later
	o := sample(s, last.structVersion(), TypeEOA)
	signature, _ := sign(t, s, o, last)
	slot := &v.hints[hintSlot(&s.Address)]
	if _, err := v.Verify(o, signature, last.NegRisk); err != nil || slot.Load() == 0 {
		t.Fatalf("%v, hint %d", err, slot.Load())
	}
	for _, wrong := range []uint32{0, 1, 2, 5, 6, 1000, 1<<32 - 1} {
		slot.Store(wrong)
		if _, err := v.Verify(o, signature, last.NegRisk); err != nil {
			t.Errorf("with a hint of %d: %v", wrong, err)
		}
	}
	if _, err := v.Verify(o, make([]byte, 65), last.NegRisk); err == nil {
		t.Error("an empty signature verifies")
	}
}

func TestFindAndRepeats(t *testing.T) {
	table := Domains(ChainTest)
	v := NewVerifier(append(table, table...))
	if len(v.ready[1][0]) != 5 || len(v.ready[0][1]) != 2 {
		t.Errorf("%d rows of V2, %d of V1 neg-risk", len(v.ready[1][0]), len(v.ready[0][1]))
	}
	for i := range table {
		if at, ok := v.Find(table[i].Separator()); !ok || at != i {
			t.Errorf("Find of row %d = %d, %v", i, at, ok)
		}
	}
	if _, ok := v.Find([32]byte{}); ok {
		t.Error("found a domain that is none")
	}
}

func TestVerifyConcurrently(t *testing.T) {
	s, v := anvil(t), NewVerifier(Domains(ChainTest))
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			d := v.Domains[2*i]
			o := sample(s, d.structVersion(), TypeEOA)
			o.Salt = WordOf(uint64(i))
			signature, id, err := s.SignOrder(o, &d)
			for range 20 {
				found, bad := v.Verify(o, signature, d.NegRisk)
				if err != nil || bad != nil || found.ID != id {
					t.Errorf("%d: %v, %v", i, err, bad)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestSigner(t *testing.T) {
	if got := Checksum(anvil(t).Address); got != anvilAddress {
		t.Errorf("address %s, want %s", got, anvilAddress)
	}
	above := curveOrder
	above[31]++
	for _, key := range [][32]byte{{}, curveOrder, above} {
		if _, err := NewSigner(key); err == nil {
			t.Errorf("key %x accepted", key)
		}
	}
	s, d := anvil(t), domainOf(t, 2, false)
	a, _ := sign(t, s, sample(s, 2, TypeEOA), d)
	b, _ := sign(t, s, sample(s, 2, TypeEOA), d)
	if !bytes.Equal(a, b) {
		t.Error("two signatures of one order")
	}
	for name, o := range map[string]*Order{
		"another signer": sample(other(t), 2, TypeEOA),
		"another struct": sample(s, 1, TypeEOA),
		"no struct":      sample(s, 0, TypeEOA),
		"another maker":  {Version: 2, Maker: wallet, Signer: s.Address},
	} {
		if _, _, err := s.SignOrder(o, d); err == nil {
			t.Errorf("signed an order with %s", name)
		}
	}
}

func FuzzSignature(f *testing.F) {
	s := anvil(f)
	v := NewVerifier(Domains(ChainTest))
	d := domainOf(f, 2, false)
	for kind := TypeEOA; kind <= TypeWallet; kind++ {
		b, _ := sign(f, s, sample(s, 2, kind), d)
		f.Add(b, kind)
		f.Add(twin(b), kind)
		f.Add(b[:64], kind)
	}
	f.Add([]byte{}, uint8(9))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		o := sample(s, 2, kind)
		want, err := v.Verify(o, b, false)
		if err != nil {
			return
		}
		if len(b) != SignatureSize && len(b) != NestedSize || want.ID == (engine.OrderID{}) {
			t.Errorf("accepted %x as %+v", b, want)
		}
	})
}

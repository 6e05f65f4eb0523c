package auth

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"clobd/scripts/setting"
)

// byLibrary is what recovery by the library alone says to an order.
func byLibrary(domains []Domain, o *Order, signature []byte, negRisk bool) (Verified, error) {
	v := NewVerifier(domains) // knows nobody, so a wallet's owner is recovered
	rows := v.rows(o, negRisk)
	t := trial{v: v, o: o, rows: rows, h: newHasher()}
	t.contents = t.h.order(o)
	if o.SignatureType == TypeWallet || o.refusal() != "" || t.h.load(signature) != "" {
		return v.Verify(o, signature, negRisk)
	}
	found, _, err := t.recovered()
	return found, err
}

// met reports whether v has a trace of s.
func met(v *Verifier, s *Signer) bool {
	slot := v.hot.newcomer(&s.Address)
	return slot.trace != nil && slot.address == s.Address
}

// TestNewcomers: what is wrong with an order is told of a stranger's and of a newcomer's as by the
// library, and good orders are accepted as by it: of every type, in every domain.
func TestNewcomers(t *testing.T) {
	domains := Domains(ChainTest)
	s := anvil(t)
	for kind := TypeEOA; kind <= TypeWallet; kind++ {
		same := func(name string, o *Order, signature []byte) {
			t.Helper()
			want, wantErr := byLibrary(domains, o, signature, false)
			v := NewVerifier(domains)
			for i := range 4 {
				if i == 2 { // now there is a trace, or there is one of another order
					visits(t, v, s, 1)
				}
				got, err := v.Verify(o, signature, false)
				if wantErr != nil && err != nil { // a hint may name another domain first
					got, err := *err.(*SignatureError), *wantErr.(*SignatureError)
					if got.Reason != err.Reason || got.Tried != err.Tried {
						t.Errorf("type %d, %s: %+v, want %+v", kind, name, got, err)
					}
				}
				if got != want || (err == nil) != (wantErr == nil) ||
					i < 2 && !reflect.DeepEqual(err, wantErr) {
					t.Errorf("type %d, %s: %+v, %v; want %+v, %v", kind, name, got, err, want, wantErr)
				}
			}
		}
		for _, c := range spoiledOrders(t, s) {
			if o := sample(s, 2, kind); kind != TypeWallet || c.name != "another signer" {
				same(c.name, o, c.sign(o))
			}
		}
		o := sample(s, 2, kind)
		for i := range domains {
			if d := &domains[i]; d.structVersion() == 2 {
				signature, _ := sign(t, s, o, d)
				same("row "+d.String(), o, signature)
			}
		}
		signature, _ := sign(t, s, o, domainOf(t, 2, false))
		for i := 0; i < len(signature); i += 5 {
			bent := append([]byte(nil), signature...)
			bent[i] ^= 1 << (i % 8)
			same(fmt.Sprintf("byte %d", i), o, bent)
		}
	}
}

// TestNewcomerSlots: the first order of a signer leaves a trace, a refused one leaves none, and a
// signer with the same slot takes it over. A slot in use keeps nobody from being verified.
func TestNewcomerSlots(t *testing.T) {
	v, s := NewVerifier(Domains(ChainTest)), anvil(t)
	o := sample(s, 2, TypeEOA)
	signature, _ := sign(t, s, o, &v.Domains[0])
	signature[40] ^= 1
	if _, err := v.Verify(o, signature, false); err == nil || met(v, s) {
		t.Errorf("refused: %v, met %v", err, met(v, s))
	}
	visits(t, v, s, 1)
	slot := v.hot.newcomer(&s.Address)
	if !met(v, s) {
		t.Fatal("no trace after the first order")
	}
	kept := slot.trace
	visits(t, v, s, 3)
	if slot.trace != kept {
		t.Error("a newcomer was recovered again")
	}
	neighbour := numbered(t, 0)
	for i := 1; v.hot.newcomer(&neighbour.Address) != slot; i++ {
		neighbour = numbered(t, i)
	}
	slot.RLock()
	visits(t, v, neighbour, 2)
	if met(v, neighbour) || !met(v, s) {
		t.Error("a slot in use was changed")
	}
	visits(t, v, s, 1)
	slot.RUnlock()
	slot.Lock()
	visits(t, v, s, 1)
	slot.Unlock()
	visits(t, v, neighbour, 1)
	if !met(v, neighbour) || met(v, s) {
		t.Error("the latest has no trace")
	}
	visits(t, v, s, 2)
	visits(t, v, neighbour, 2)
}

// TestNewcomerWallets: a deposit wallet's second order leaves a trace of its owner, and another
// owner is found.
func TestNewcomerWallets(t *testing.T) {
	v := NewVerifier(Domains(ChainTest))
	for i, s := range []*Signer{anvil(t), anvil(t), anvil(t), other(t), other(t), other(t), anvil(t)} {
		o := sample(s, 2, TypeWallet)
		signature, id := sign(t, s, o, &v.Domains[0])
		if found, err := v.Verify(o, signature, false); err != nil || found.ID != id ||
			found.Signer != s.Address {
			t.Fatalf("order %d: %+v, %v", i, found, err)
		}
		if want := i != 0 && i != 3; met(v, s) != want {
			t.Errorf("order %d: met %v", i, !want)
		}
	}
}

// TestNewcomersAtRandom verifies orders of eight signers, half of them damaged: CLOBD_SIZE orders,
// each as by the library. The verifier forgets everybody now and then.
func TestNewcomersAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(setting.Seed(t, 31), 31))
	size := setting.Size(t, 1500, 300)
	domains := []Domain{*domainOf(t, 2, false)} // one domain: no hint changes a refusal
	accepted, fresh := 0, NewVerifier(domains)
	v := NewVerifier(domains)
	for at := range size {
		if at%64 == 0 {
			v = NewVerifier(domains)
			v.hot.limit = 1
		}
		s := numbered(t, r.IntN(8))
		o := sample(s, 2, TypeEOA)
		o.Salt = WordOf(r.Uint64())
		signature, _ := sign(t, s, o, &domains[0])
		bent := r.IntN(2) == 0
		if bent {
			signature[r.IntN(len(signature))] ^= 1 << r.IntN(8)
		}
		got, err := v.Verify(o, signature, false)
		h := trial{v: fresh, o: o, rows: fresh.rows(o, false), h: newHasher()}
		h.contents = h.h.order(o)
		want, _, wantErr := Verified{}, 0, error(nil)
		if reason := h.h.load(signature); reason != "" {
			_, _, wantErr = h.fail(reason)
		} else {
			want, _, wantErr = h.recovered()
		}
		if got != want || !reflect.DeepEqual(err, wantErr) || !bent && err != nil {
			t.Fatalf("%x: %+v, %v; want %+v, %v", signature, got, err, want, wantErr)
		}
		if err == nil {
			accepted++
		}
	}
	t.Logf("%d of %d accepted", accepted, size)
}

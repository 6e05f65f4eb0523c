package auth

import (
	"testing"

	"clobd/ingress/auth/curve"
)

// allocs is testing.AllocsPerRun on a warm pool. A collection may empty the pool now and then, so
// the least of three counts.
func allocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 2 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}

func TestAllocations(t *testing.T) {
	s, v := anvil(t), NewVerifier(Domains(ChainTest))
	h := newHasher()
	h.digest[0] = 1
	if err := s.sign(h); err != nil {
		t.Fatal(err)
	}
	h.rs[64] -= 27
	most := allocs(func() { curve.Recover(&h.digest, &h.rs) }) // as many as the recovery alone
	for _, kind := range []uint8{TypeEOA, TypeProxy, TypeWallet} {
		o := sample(s, 2, kind)
		signature, _ := sign(t, s, o, domainOf(t, 2, false))
		if got := allocs(func() { _, _ = v.Verify(o, signature, false) }); got > most {
			t.Errorf("Verify type %d: %v allocations, want at most %v", kind, got, most)
		}
		found, err := v.Verify(o, signature, false)
		if err != nil {
			t.Fatal(err)
		}
		room := make([]byte, 0, proofMax)
		if got := allocs(func() { o.AppendProof(room, &found, signature) }); got > 0 {
			t.Errorf("AppendProof type %d: %v allocations", kind, got)
		}
	}
	k := NewKeyring(master)
	r, _ := request(t, k)
	forged := *r
	forged.Passphrase = r.Passphrase[:63] + "0"
	r.RawPath = "/clob/order"
	for name, r := range map[string]*Request{"true": r, "forged": &forged} {
		if got := allocs(func() { _, _ = k.Authenticate(r, noon) }); got > 0 {
			t.Errorf("Authenticate, %s: %v allocations", name, got)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	s := anvil(b)
	for _, c := range []struct {
		name string
		kind uint8
		row  int // of the table: the hint makes all of them the same
	}{
		{"type0", TypeEOA, 0}, {"type0-row4", TypeEOA, 4}, {"type1", TypeProxy, 0},
		{"type3", TypeWallet, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			v := NewVerifier(Domains(ChainTest))
			d := &v.Domains[c.row]
			o := sample(s, 2, c.kind)
			signature, id := sign(b, s, o, d)
			b.ReportAllocs()
			for b.Loop() {
				if found, err := v.Verify(o, signature, d.NegRisk); err != nil || found.ID != id {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerifyForged is what a stranger can make a node do with one bad order.
func BenchmarkVerifyForged(b *testing.B) {
	s, v := anvil(b), NewVerifier(Domains(ChainTest))
	o := sample(s, 2, TypeEOA)
	signature, _ := sign(b, s, o, &v.Domains[0])
	o.Salt[0]++
	for b.Loop() {
		if _, err := v.Verify(o, signature, false); err == nil {
			b.Fatal("a forged order verifies")
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	k := NewKeyring(master)
	for _, c := range []struct {
		name   string
		body   int
		forged bool // the passphrase, in its last digit
	}{{"body0", 0, false}, {"body0-forged", 0, true}, {"body900", 900, false}} {
		b.Run(c.name, func(b *testing.B) {
			r, trio := request(b, k)
			r.Body = make([]byte, c.body)
			if err := trio.Sign(r); err != nil {
				b.Fatal(err)
			}
			if c.forged {
				r.Passphrase = r.Passphrase[:63] + "x"
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Authenticate(r, noon); (err != nil) != c.forged {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDerive(b *testing.B) {
	k := NewKeyring(master)
	for b.Loop() {
		if k.Derive(wallet, 1).Key == "" {
			b.Fatal("no key")
		}
	}
}

func BenchmarkSignOrder(b *testing.B) {
	s, d := anvil(b), domainOf(b, 2, false)
	for name, kind := range map[string]uint8{"type0": TypeEOA, "type3": TypeWallet} {
		b.Run(name, func(b *testing.B) {
			o := sample(s, 2, kind)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.SignOrder(o, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStructHash(b *testing.B) {
	o, h := sample(anvil(b), 2, TypeEOA), newHasher()
	want := h.order(o)
	b.ReportAllocs()
	for b.Loop() {
		if h.order(o) != want {
			b.Fatal("another hash")
		}
	}
}

func BenchmarkProof(b *testing.B) {
	s, v := anvil(b), NewVerifier(Domains(ChainTest))
	o := sample(s, 2, TypeEOA)
	signature, _ := sign(b, s, o, &v.Domains[0])
	found, err := v.Verify(o, signature, false)
	if err != nil {
		b.Fatal(err)
	}
	room := make([]byte, 0, proofMax)
	for b.Loop() {
		p, err := ParseProof(o.AppendProof(room, &found, signature))
		if err != nil || p.Chain != found.Chain {
			b.Fatal(err)
		}
	}
}

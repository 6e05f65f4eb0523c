package auth

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// verifiers are a Verifier of each body, lanes first where the machine has them.
func verifiers(domains []Domain) []*Verifier {
	wide, plain := NewVerifier(domains), NewVerifier(domains)
	plain.WithoutLanes()
	return []*Verifier{wide, plain}
}

// mixed are orders of hot signers and strangers: every type, struct and domain, good signatures and
// spoiled ones.
func mixed(t *testing.T, domains []Domain, all []*Verifier, r *rand.Rand) (pool []Submission) {
	for i := range 12 {
		s := numbered(t, i)
		home := wallet
		home[0] = byte(i)
		for _, v := range all {
			if i < 9 {
				heat(v, s, home)
			}
		}
		for kind := TypeEOA; kind <= TypeWallet; kind++ {
			for version := uint8(1); version <= 2; version++ {
				d := &domains[r.IntN(len(domains))]
				if d.structVersion() != version || kind == TypeWallet && version == 1 {
					continue
				}
				o := sample(s, version, kind)
				if kind == TypeWallet {
					o.Maker, o.Signer = home, home
				}
				signature, _ := sign(t, s, o, d)
				pool = append(pool, Submission{Order: o, Signature: signature, NegRisk: d.NegRisk})
			}
		}
		for _, c := range spoiledOrders(t, s) {
			o := sample(s, 2, uint8(i)%4)
			pool = append(pool, Submission{Order: o, Signature: c.sign(o)})
		}
		o := sample(s, 2, TypeEOA)
		o.Version = 3
		pool = append(pool, Submission{Order: o, Signature: make([]byte, 65)})
	}
	return pool
}

// TestListsAsAlone verifies CLOBD_SIZE mixed orders in lists of 1 to 40. Each answer is that of a
// Verifier that knows nobody.
func TestListsAsAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(setting.Seed(t, 3), 3))
	size := setting.Size(t, 1500, 300)
	domains := Domains(ChainMain)
	cold, all := NewVerifier(domains), verifiers(domains)
	pool := mixed(t, domains, all, r)
	accepted := 0
	for at := 0; at < size; {
		list := make([]Submission, 1+r.IntN(40))
		for i := range list {
			list[i] = pool[r.IntN(len(pool))]
			if n := len(list[i].Signature); n > 0 && r.IntN(3) == 0 {
				list[i].Signature = slices.Clone(list[i].Signature)
				list[i].Signature[r.IntN(n)] ^= 1 << r.IntN(8)
			}
		}
		for _, v := range all {
			for i := range list {
				list[i].Verified, list[i].Err = Verified{Domain: 99}, nil
			}
			v.VerifyAll(list)
			accepted += asAlone(t, v, cold, list)
		}
		at += len(list)
	}
	t.Logf("%d accepted", accepted)
	if accepted == 0 {
		t.Error("nothing was accepted")
	}
}

// asAlone holds what v has found out against what cold finds, and returns how many are accepted.
func asAlone(t *testing.T, v, cold *Verifier, list []Submission) (accepted int) {
	for i := range list {
		s := &list[i]
		// Which domain a refusal names depends on what the signer signed for last.
		slot := hintSlot(&s.Order.Signer)
		cold.hints[slot].Store(v.hints[slot].Load())
		want, wantErr := cold.Verify(s.Order, s.Signature, s.NegRisk)
		if s.Verified != want || (s.Err == nil) != (wantErr == nil) ||
			s.Err != nil && s.Err.(*SignatureError).Reason != wantErr.(*SignatureError).Reason {
			t.Fatalf("lanes %v, %d of %d: %+v, %v; want %+v, %v", v.lanes, i, len(list), s.Verified,
				s.Err, want, wantErr)
		}
		if s.Err == nil {
			accepted++
		}
	}
	return accepted
}

// TestListsTell: a refusal in a list is to the last letter that of the order alone.
func TestListsTell(t *testing.T) {
	s := anvil(t)
	for _, v := range verifiers(Domains(ChainTest)) {
		heat(v, s, wallet)
		for kind := TypeEOA; kind <= TypeWallet; kind++ {
			var list []Submission
			for _, c := range spoiledOrders(t, s) {
				o := sample(s, 2, kind)
				list = append(list, Submission{Order: o, Signature: c.sign(o)})
			}
			v.VerifyAll(list)
			for i := range list {
				want, wantErr := v.Verify(list[i].Order, list[i].Signature, false)
				if list[i].Verified != want || !reflect.DeepEqual(list[i].Err, wantErr) {
					t.Errorf("lanes %v, type %d, %d: %+v, %v; want %+v, %v", v.lanes, kind, i,
						list[i].Verified, list[i].Err, want, wantErr)
				}
			}
		}
	}
}

// hotList is n good orders of so many hot signers in turn, of every type.
func hotList(t testing.TB, v *Verifier, n, signers int) []Submission {
	list := make([]Submission, n)
	for i := range list {
		s := numbered(t, i%signers)
		heat(v, s, wallet)
		o := sample(s, 2, uint8(i)%3)
		o.Salt = WordOf(uint64(i))
		signature, _ := sign(t, s, o, domainOf(t, 2, false))
		list[i] = Submission{Order: o, Signature: signature}
	}
	return list
}

// TestListsHeat: a stranger whose orders come in lists becomes hot as well.
func TestListsHeat(t *testing.T) {
	v, s := NewVerifier(Domains(ChainTest)), anvil(t)
	o := sample(s, 2, TypeEOA)
	signature, id := sign(t, s, o, domainOf(t, 2, false))
	list := make([]Submission, hotAfter+4)
	for i := range list {
		list[i] = Submission{Order: o, Signature: signature}
	}
	v.VerifyAll(list)
	for i := range list {
		if list[i].Err != nil || list[i].Verified.ID != id {
			t.Errorf("%d: %+v, %v", i, list[i].Verified, list[i].Err)
		}
	}
	if v.hot.find(&s.Address) == nil {
		t.Errorf("not hot after %d orders", len(list))
	}
}

// BenchmarkVerifyAll verifies 15 orders of hot signers in turns, one by one and as a list, and
// reports the median of the ratios to one by one without lanes.
func BenchmarkVerifyAll(b *testing.B) {
	for _, signers := range []int{1, 15} {
		b.Run(fmt.Sprint("signers", signers), func(b *testing.B) {
			var names []string
			var works []func()
			for _, v := range slices.Backward(verifiers(Domains(ChainTest))) {
				list := hotList(b, v, 15, signers)
				name := map[bool]string{false: "go", true: "lanes"}[v.lanes]
				names = append(names, name+"-alone", name+"-in-15")
				works = append(works, func() {
					for i := range list {
						list[i].verify(v)
					}
				}, func() { v.VerifyAll(list) })
			}
			ratios := make([][]float64, len(works))
			for b.Loop() {
				var first time.Duration
				for i, work := range works {
					start := time.Now()
					work()
					took := time.Since(start)
					if i == 0 {
						first = took
					}
					ratios[i] = append(ratios[i], float64(took)/float64(first))
				}
			}
			for i, all := range ratios {
				slices.Sort(all)
				b.ReportMetric(all[len(all)/2], names[i])
			}
		})
	}
}

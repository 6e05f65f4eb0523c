package curve

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// recovered is what Read and Key find, as Recover would say it.
func (c *Checker) recovered(t *Trace, digest *[32]byte, rs *[65]byte) ([]byte, bool) {
	var key [65]byte
	ok := c.Read(t, rs) && c.Key(t, digest, &key)
	return key[:], ok
}

// traces checks that a Trace of s recovers what recovery does, and that a Trace which another
// signature of its key left accepts s exactly if recovery finds that key.
func (s *suspect) traces(t *testing.T, c *Checker, old *Trace, key []byte) {
	t.Helper()
	want, wantOK := Recover(&s.digest, &s.rs)
	fresh := new(Trace)
	got, ok := c.recovered(fresh, &s.digest, &s.rs)
	if ok != wantOK || ok && string(got) != string(want) {
		t.Fatalf("%+v: %x %v, recovery finds %x %v", s, got, ok, want, wantOK)
	}
	if ok && !c.Follows(fresh, &s.digest, &s.rs) {
		t.Fatalf("%+v does not follow itself", s)
	}
	if is := wantOK && string(want) == string(key); c.Follows(old, &s.digest, &s.rs) != is {
		t.Fatalf("%+v: accepted %v, recovery finds %x %v", s, !is, want, wantOK)
	}
}

// TestTraces holds recovery by Traces, and what they accept, against recovery: CLOBD_SIZE
// signatures, of which half are damaged, by 16 signatures a Trace. One in 64 is recovered in pure
// Go, too.
func TestTraces(t *testing.T) {
	r := rand.New(rand.NewPCG(setting.Seed(t, 21), 21))
	size := setting.Size(t, 4000, 600)
	c, old := NewChecker(false), new(Trace)
	accepted := 0
	for at := 0; at < size; {
		var keys folk
		secret := bytesOf(bigOf([4]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}))
		keys.keys, keys.secrets = []*Key{nil}, [][32]byte{secret}
		public := Public(&secret)
		first, _ := keys.claim(t, r)
		if key, ok := c.recovered(old, &first.Digest, &first.RS); !ok || string(key) != string(public) {
			t.Fatalf("%x: %x %v, want %x", first.RS, key, ok, public)
		}
		for range 16 {
			m, _ := keys.claim(t, r)
			bent := m.damage(r)
			s := suspect{m.Digest, m.RS, public}
			s.traces(t, c, old, public)
			if c.Follows(old, &m.Digest, &m.RS) {
				accepted++
			} else if !bent {
				t.Fatalf("%+v refused", s)
			}
			if at%64 == 0 {
				key, ok := pureRecover(&m.Digest, &m.RS)
				if is := ok && string(key) == string(public); is == bent {
					t.Fatalf("%+v: pure Go finds %x %v", s, key, ok)
				}
			}
			at++
		}
	}
	t.Logf("%d of %d accepted", accepted, size)
}

// TestTracesAddAnything makes signatures by which a Trace's sums double a point, meet a point's
// opposite, or end at infinity, after traces of signatures that were made so, too.
func TestTracesAddAnything(t *testing.T) {
	c := NewChecker(false)
	factors := []*big.Int{big.NewInt(1), big.NewInt(-1), big.NewInt(2), big.NewInt(7),
		big.NewInt(-8), new(big.Int).Lsh(big.NewInt(1), 112), lambda(t)}
	infinite := 0
	for _, d := range []*big.Int{big.NewInt(1), big.NewInt(-1), big.NewInt(3), lambda(t)} {
		for _, b := range factors {
			opposite := new(big.Int).Mul(b, d)
			opposite.Mod(opposite.Neg(opposite), bigOrder)
			for _, a := range append([]*big.Int{new(big.Int), opposite}, factors[:4]...) {
				s, finite := forge(a, b, d)
				if !finite {
					infinite++
				}
				for _, e := range factors {
					other, good := forge(big.NewInt(5), e, d)
					old := new(Trace)
					key, ok := c.recovered(old, &other.digest, &other.rs)
					if !good || !ok || string(key) != string(other.key) {
						t.Fatalf("%v·Q, Q = %v·G: %x %v", e, d, key, ok)
					}
					s.traces(t, c, old, s.key)
					s.rs[64] ^= 1
					s.traces(t, c, old, s.key)
					s.rs[64] ^= 1
				}
			}
		}
	}
	if infinite < 10 {
		t.Error("too few exceptions met")
	}
}

// lambda is the number of the endomorphism: lambda·G has beta times the x of G, and the same y.
func lambda(t *testing.T) *big.Int {
	l, _ := new(big.Int).SetString(
		"5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72", 16)
	p, _ := times(l)
	g := generator()
	if g.x.mul(&g.x, &beta); p.x != g.x.normal() || p.y != g.y {
		t.Fatalf("lambda·G is %x", p)
	}
	return l
}

// TestSplit: both halves are below 2^128 and make up the number.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	l := lambda(t)
	for _, x := range edgy(r, bigOrder, 20_000) {
		v := new(big.Int).Mod(bigOf(x), bigOrder)
		k := scalar(limbsOf(v))
		h, j := k.split()
		sum := new(big.Int).Mul(signed(t, &j), l)
		sum.Add(sum, signed(t, &h)).Sub(sum, v)
		if sum.Mod(sum, bigOrder).Sign() != 0 {
			t.Fatalf("%x: %+v, %+v", x, h, j)
		}
		opposite := k.opposite()
		if zero := k.plus(&opposite); zero != (scalar{}) {
			t.Fatalf("%x and its opposite: %x", k, zero)
		}
	}
}

func signed(t *testing.T, h *half) *big.Int {
	v := bigOf(h.size)
	if v.BitLen() > 128 {
		t.Fatalf("%x is too large", v)
	}
	if h.minus {
		v.Neg(v)
	}
	return v
}

// TestTracesAllocate nothing.
func TestTracesAllocate(t *testing.T) {
	c, trace := NewChecker(false), new(Trace)
	s, _ := forge(big.NewInt(1<<40), big.NewInt(-7), big.NewInt(1<<50))
	var key [65]byte
	if got := allocs(func() {
		if !c.Read(trace, &s.rs) || !c.Key(trace, &s.digest, &key) ||
			!c.Follows(trace, &s.digest, &s.rs) {
			t.Error("refused")
		}
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// BenchmarkNewSigner takes three signatures of a new key, by Recover and by a Trace in turns. It
// reports the time of the Trace's first, of a later one, and of all three, each by that of as many
// recoveries: of the least times, which other load on the machine does not change, and of the
// medians.
func BenchmarkNewSigner(b *testing.B) {
	r := rand.New(rand.NewPCG(23, 23))
	c, trace := NewChecker(false), new(Trace)
	var recoveries, firsts, laters, all []float64
	for b.Loop() {
		var keys folk
		keys.keys = []*Key{nil}
		keys.secrets = [][32]byte{bytesOf(bigOf([4]uint64{r.Uint64(), r.Uint64(), r.Uint64()}))}
		var list [3]Assertion
		for i := range list {
			list[i], _ = keys.claim(b, r)
		}
		start := time.Now()
		for i := range list {
			if _, ok := Recover(&list[i].Digest, &list[i].RS); !ok {
				b.Fatal("not recovered")
			}
		}
		recovered := time.Now()
		if _, ok := c.recovered(trace, &list[0].Digest, &list[0].RS); !ok {
			b.Fatal("not traced")
		}
		first := time.Now()
		for i := range list[1:] {
			if !c.Follows(trace, &list[1+i].Digest, &list[1+i].RS) {
				b.Fatal("does not follow")
			}
		}
		end := time.Now()
		recoveries = append(recoveries, float64(recovered.Sub(start)))
		firsts = append(firsts, float64(first.Sub(recovered)))
		laters = append(laters, float64(end.Sub(first)))
		all = append(all, float64(end.Sub(recovered)))
	}
	for _, times := range [][]float64{recoveries, firsts, laters, all} {
		slices.Sort(times)
	}
	for name, at := range map[string]int{"least": 0, "median": len(all) / 2} {
		b.ReportMetric(recoveries[at]/3e3, name+"-µs-recovery")
		b.ReportMetric(3*firsts[at]/recoveries[at], name+"-first")
		b.ReportMetric(1.5*laters[at]/recoveries[at], name+"-later")
		b.ReportMetric(all[at]/recoveries[at], name+"-three")
	}
}

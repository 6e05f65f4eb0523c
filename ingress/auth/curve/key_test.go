package curve

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigOrder is the order of the curve.
var bigOrder = new(big.Int).SetBytes([]byte(orderBytes))

// bytesOf is v modulo the order, big endian.
func bytesOf(v *big.Int) (b [32]byte) {
	new(big.Int).Mod(v, bigOrder).FillBytes(b[:])
	return b
}

// times is k·G by another implementation, and false for infinity.
func times(k *big.Int) (point, bool) {
	b := bytesOf(k)
	if b == ([32]byte{}) {
		return point{}, false
	}
	return pointOf(Public(&b)), true
}

// affine is the point that s is.
func (s *sum) affine() point {
	var z element
	p := point{s.x, s.y}
	z = s.zz.inverse()
	p.x.mul(&p.x, &z)
	z = s.zzz.inverse()
	p.y.mul(&p.y, &z)
	return point{p.x.normal(), p.y.normal()}
}

// edges are numbers that make the digits of a comb of that width extreme.
func edges(width int) []*big.Int {
	var all []*big.Int
	one := big.NewInt(1)
	for i := range int64(4) {
		all = append(all, big.NewInt(i), new(big.Int).Sub(bigOrder, big.NewInt(i)))
	}
	for at := width; at < 256; at += width {
		power := new(big.Int).Lsh(one, uint(at))
		half := new(big.Int).Rsh(power, 1)
		for _, v := range []*big.Int{power, half} {
			all = append(all, v, new(big.Int).Add(v, one), new(big.Int).Sub(v, one),
				new(big.Int).Sub(bigOrder, v))
		}
	}
	// Every digit the greatest, the least, and such that a carry runs through all.
	for _, digit := range []int64{1 << (width - 1), 1<<(width-1) + 1, 1<<width - 1} {
		v := new(big.Int)
		for range combDigits(width) {
			v.Or(v.Lsh(v, uint(width)), big.NewInt(digit))
		}
		v.And(v, new(big.Int).Sub(new(big.Int).Lsh(one, 255), one))
		all = append(all, v)
	}
	return all
}

// TestComb holds k·P by combs of every width against another implementation.
func TestComb(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for width := 1; width <= 12; width++ {
		secret := big.NewInt(r.Int64())
		p, _ := times(secret)
		c := newComb(&p, width)
		numbers := edges(width)
		if width != keyWidth && width != baseWidth {
			r.Shuffle(len(numbers), func(i, j int) {
				numbers[i], numbers[j] = numbers[j], numbers[i]
			})
			numbers = numbers[:12]
		}
		for range 5 {
			numbers = append(numbers, bigOf([4]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}))
		}
		for _, k := range numbers {
			b := bytesOf(k)
			s := scalarOf(b[:])
			var got sum
			list := c.terms(nil, &s)
			got.total(list)
			want, finite := times(new(big.Int).Mul(new(big.Int).SetBytes(b[:]), secret))
			if got.finite != finite || finite && got.affine() != want {
				t.Errorf("width %d: %x·P is wrong", width, k)
			}
			if len(list) > combDigits(width) {
				t.Errorf("width %d: %x has %d terms", width, k, len(list))
			}
		}
	}
}

func TestScalar(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	all := edgy(r, bigOrder, 200)
	for _, x := range all {
		var b [32]byte
		a := scalarOf(bigOf(x).FillBytes(b[:]))
		if want := new(big.Int).Mod(bigOf(x), bigOrder); bigOf(a).Cmp(want) != 0 {
			t.Fatalf("%x modulo n = %x", x, a)
		}
		for _, y := range all {
			c := scalarOf(bigOf(y).FillBytes(b[:]))
			want := new(big.Int).Mul(bigOf(a), bigOf(c))
			var z scalar
			if z.mul(&a, &c); bigOf(z).Cmp(want.Mod(want, bigOrder)) != 0 {
				t.Fatalf("%x · %x = %x, want %x", a, c, z, want)
			}
		}
		for at := range 256 {
			want := new(big.Int).Rsh(bigOf(a), uint(at)).Uint64() & 0x7ff
			if got := a.window(at, 11); got != want {
				t.Fatalf("bits %d of %x: %x, want %x", at, a, got, want)
			}
		}
	}
}

// suspect is a signature, and the key that it may or may not be of.
type suspect struct {
	digest [32]byte
	rs     [65]byte
	key    []byte
}

// bodies are the Checkers of this machine: in Go alone, and in lanes if there are any.
func bodies(t testing.TB) []*Checker {
	t.Helper()
	all := []*Checker{NewChecker(false)}
	if c := NewChecker(true); c.lanes {
		return append(all, c)
	}
	t.Log("SKIPPED: the body in lanes, which this build or machine does not have")
	return all
}

// holds checks that every body accepts what recovery accepts, alone and in lists, by both
// implementations of recovery.
func (s *suspect) holds(t *testing.T, all []*Checker) bool {
	t.Helper()
	k := NewKey(s.key)
	got := all[0].signed(&k.multiples, &s.digest, &s.rs)
	key, ok := Recover(&s.digest, &s.rs)
	if want := ok && bytes.Equal(key, s.key); got != want {
		t.Errorf("%+v: accepted %v, recovery finds %x, %v", s, got, key, ok)
	}
	key, ok = pureRecover(&s.digest, &s.rs)
	if want := ok && bytes.Equal(key, s.key); got != want {
		t.Errorf("%+v: accepted %v, recovery in pure Go finds %x, %v", s, got, key, ok)
	}
	for _, c := range all {
		if alone := c.Signed(k, &s.digest, &s.rs); alone != got {
			t.Errorf("%+v: lanes %v: %v, want %v", s, c.lanes, alone, got)
		}
		for _, n := range []int{2, 8} {
			list := make([]Assertion, n)
			for i := range list {
				list[i] = Assertion{Key: k, Digest: s.digest, RS: s.rs, Signed: !got}
			}
			c.CheckAll(list)
			for i := range list {
				if list[i].Signed != got {
					t.Errorf("%+v: lanes %v: %d of %d: %v, want %v", s, c.lanes, i, n, !got, got)
				}
			}
		}
	}
	return got
}

// turn replaces s by n - s. With the other v too, that is the twin of the signature.
func (s *suspect) turn() {
	v := new(big.Int).SetBytes(s.rs[32:64])
	v.Sub(bigOrder, v).FillBytes(s.rs[32:64])
}

// TestCheckedAsRecovered damages good signatures in every part.
func TestCheckedAsRecovered(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	c := bodies(t)
	fill := func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	var last []byte
	accepted := 0
	for i := range 40 {
		var secret [32]byte
		var good suspect
		fill(secret[:])
		fill(good.digest[:])
		switch i {
		case 0: // Q = G
			secret = [32]byte{31: 1}
		case 1: // Q = -G
			secret = bytesOf(big.NewInt(-1))
		case 2:
			good.digest = [32]byte{} // no term of G
		case 3:
			good.digest = [32]byte([]byte(orderBytes)) // the same
		case 4:
			fill(good.digest[16:])
			copy(good.digest[:], orderBytes[:16]) // above the order
		}
		good.key = Public(&secret)
		if !pureSign(&good.digest, &secret, &good.rs) {
			t.Fatalf("no signature of %x", good.digest)
		}
		if !good.holds(t, c) {
			t.Errorf("refused %+v", good)
		}
		for _, bend := range []func(s *suspect){
			func(s *suspect) { s.rs[r.IntN(32)] ^= 1 << r.IntN(8) },
			func(s *suspect) { s.rs[32+r.IntN(32)] ^= 1 << r.IntN(8) },
			func(s *suspect) { s.rs[64] ^= 1 },
			func(s *suspect) { s.digest[r.IntN(32)] ^= 1 << r.IntN(8) },
			func(s *suspect) { s.turn(); s.rs[64] ^= 1 }, // high s: of the key
			func(s *suspect) { s.turn() },
			func(s *suspect) { fill(s.rs[1:64]) },
			func(s *suspect) { s.key = last },
		} {
			s := good
			if bend(&s); s.key != nil && s.holds(t, c) {
				accepted++
			}
		}
		last = good.key
	}
	if accepted != 40 { // the twins with a high s, which package auth keeps away
		t.Errorf("%d damaged signatures are still of the key, want 40", accepted)
	}
}

// forge makes a signature of which the check adds a·G + b·Q, where Q = d·G; the r is the x of that
// point, or of G if there is none.
func forge(a, b, d *big.Int) (suspect, bool) {
	secret := bytesOf(d)
	s := suspect{key: Public(&secret)}
	at := new(big.Int).Mul(b, d)
	p, finite := times(at.Add(at, a))
	if !finite {
		p = generator()
	}
	v := bigOf(p.x)
	r := bytesOf(v)
	v.Mul(v, new(big.Int).ModInverse(b, bigOrder))
	low := bytesOf(v)
	s.digest = bytesOf(v.Mul(v, a))
	copy(s.rs[:], r[:])
	copy(s.rs[32:], low[:])
	s.rs[64] = byte(p.y[0] & 1)
	return s, finite
}

// TestCheckAddsAnything makes signatures whose sums double a point, meet a point's opposite on the
// way, or end at infinity: nobody signs so by chance, but anybody may.
func TestCheckAddsAnything(t *testing.T) {
	c := bodies(t)
	var doubled, vanished, infinite int
	half := new(big.Int).Rsh(bigOrder, 1)
	factors := []*big.Int{big.NewInt(1), big.NewInt(-1), big.NewInt(2), big.NewInt(127),
		big.NewInt(64), big.NewInt(-128), new(big.Int).Lsh(big.NewInt(1), 77), half}
	for _, d := range []*big.Int{big.NewInt(1), big.NewInt(-1), big.NewInt(2), big.NewInt(-128),
		new(big.Int).ModInverse(big.NewInt(2), bigOrder)} {
		secret := bytesOf(d)
		q := pointOf(Public(&secret))
		table := newComb(&q, keyWidth)
		for _, b := range factors {
			opposite := new(big.Int).Mul(b, d)
			opposite.Mod(opposite.Neg(opposite), bigOrder)
			more := []*big.Int{new(big.Int), opposite, new(big.Int).Neg(opposite)}
			for _, a := range append(more, factors[:5]...) {
				s, finite := forge(a, b, d)
				if got := s.holds(t, c); got != finite {
					t.Errorf("%v·G + %v·Q, Q = %v·G: %v", a, b, d, got)
				}
				s.rs[64] ^= 1
				if s.holds(t, c) {
					t.Errorf("%v·G + %v·Q, Q = %v·G: either parity", a, b, d)
				}
				if !finite {
					infinite++
				}
				x, y := bytesOf(a), bytesOf(b)
				k, l := scalarOf(x[:]), scalarOf(y[:])
				twice, gone := exceptions(table.terms(c[0].base.terms(nil, &k), &l))
				doubled += twice
				vanished += gone
			}
		}
	}
	t.Logf("%d doubled on the way, %d vanished on the way, %d at the end", doubled, vanished, infinite)
	if doubled < 20 || vanished < 20 || infinite < 20 {
		t.Error("too few exceptions met")
	}
}

// exceptions counts the additions of a point to itself and to its opposite.
func exceptions(list []term) (twice, gone int) {
	var s sum
	for i := range list {
		before := s
		s.total(list[i : i+1])
		switch p := *list[i].point; {
		case !s.finite:
			gone++
		case before.finite && before.affine().x == p.x.normal():
			twice++
		}
	}
	return twice, gone
}

// allocs is testing.AllocsPerRun, the least of three.
func allocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 2 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}

// TestCheckAllocates nothing, and recovery by the C library the key alone.
func TestCheckAllocates(t *testing.T) {
	c := NewChecker(false)
	s, _ := forge(big.NewInt(1<<40), big.NewInt(-7), big.NewInt(1<<50))
	q := pointOf(s.key)
	table := newComb(&q, keyWidth)
	if got := allocs(func() { c.signed(&table, &s.digest, &s.rs) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
	most := 1.0 // the public key that the C library's binding returns
	if Recovery != "libsecp256k1" {
		most = 30
	}
	if got := allocs(func() { Recover(&s.digest, &s.rs) }); got > most {
		t.Errorf("recovery: %v allocations, want at most %v", got, most)
	}
}

// FuzzCheck holds the check by every body, and by traces, against recovery on whatever signature
// and key.
func FuzzCheck(f *testing.F) {
	c := bodies(f)
	f.Add(make([]byte, 32), make([]byte, 64), []byte{1}, uint8(0))
	f.Add([]byte(orderBytes), []byte(halfBytes), []byte{2}, uint8(1))
	f.Fuzz(func(t *testing.T, a, b, d []byte, bend uint8) {
		one := big.NewInt(1)
		x := new(big.Int).SetBytes(a)
		y := new(big.Int).SetBytes(b)
		z := new(big.Int).SetBytes(d)
		y.Add(y.Mod(y, new(big.Int).Sub(bigOrder, one)), one)
		z.Add(z.Mod(z, new(big.Int).Sub(bigOrder, one)), one)
		s, finite := forge(x, y, z)
		old := new(Trace)
		if other, good := forge(big.NewInt(5), big.NewInt(3), z); good {
			if _, ok := c[0].recovered(old, &other.digest, &other.rs); !ok {
				t.Fatalf("%x: nobody's", other.rs)
			}
			defer func() { s.traces(t, c[0], old, s.key) }()
		}
		if bend < 64 {
			s.rs[bend] ^= 1 << (bend % 8)
			if !InRange(s.rs[:32]) || !InRange(s.rs[32:64]) {
				s.rs[bend] ^= 1 << (bend % 8)
			}
		} else if s.holds(t, c) != finite {
			t.Errorf("%x·G + %x·Q, Q = %x·G: not as made", a, b, d)
		}
		s.holds(t, c)
	})
}

// BenchmarkComb makes the tables of a signer and of the generator.
func BenchmarkComb(b *testing.B) {
	q, _ := times(big.NewInt(99))
	b.Run("build", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			newComb(&q, keyWidth)
		}
	})
	b.Run("base", func(b *testing.B) {
		g := generator()
		for b.Loop() {
			newComb(&g, baseWidth)
		}
	})
}

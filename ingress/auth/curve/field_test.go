package curve

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func bigOf(x [4]uint64) *big.Int {
	v := new(big.Int)
	for i := 3; i >= 0; i-- {
		v.Or(v.Lsh(v, 64), new(big.Int).SetUint64(x[i]))
	}
	return v
}

// limbsOf is the inverse of bigOf for v below 2^256.
func limbsOf(v *big.Int) [4]uint64 {
	var b [32]byte
	return elementOf(v.FillBytes(b[:]))
}

// edgy are numbers of four limbs where carries run far, and random ones.
func edgy(r *rand.Rand, modulus *big.Int, n int) [][4]uint64 {
	var all [][4]uint64
	for _, limb := range []uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		all = append(all, [4]uint64{limb, limb, limb, limb}, [4]uint64{limb}, [4]uint64{3: limb})
	}
	for i := int64(-3); i <= 3; i++ {
		if v := new(big.Int).Add(modulus, big.NewInt(i)); v.BitLen() <= 256 {
			all = append(all, limbsOf(v))
		}
		half := new(big.Int).Rsh(modulus, 1)
		all = append(all, limbsOf(half.Add(half, big.NewInt(i))))
		top := new(big.Int).Lsh(big.NewInt(1), 256)
		if i < 0 {
			all = append(all, limbsOf(top.Add(top, big.NewInt(i))))
		}
	}
	for range n {
		x := [4]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
		for i := range x { // runs of ones and zeros
			switch r.IntN(6) {
			case 0:
				x[i] = 0
			case 1:
				x[i] = 1<<64 - 1
			case 2:
				x[i] >>= r.IntN(64)
			}
		}
		all = append(all, x)
	}
	return all
}

var fieldPrime, _ = new(big.Int).SetString(
	"fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f", 16)

// TestField holds the arithmetic of the field against math/big, on residues in every disguise.
func TestField(t *testing.T) {
	all := edgy(rand.New(rand.NewPCG(1, 1)), fieldPrime, 300)
	mod := func(v *big.Int) *big.Int { return v.Mod(v, fieldPrime) }
	for _, x := range all {
		a := bigOf(x)
		ex := element(x)
		same := func(name string, got *element, want *big.Int) {
			t.Helper()
			if n := got.normal(); bigOf(n).Cmp(mod(want)) != 0 || got.isZero() != (want.Sign() == 0) {
				t.Errorf("%s of %x: %x, want %x", name, x, n, want)
			}
		}
		same("normal", &ex, bigOf(x))
		var z element
		z.square(&ex)
		same("square", &z, new(big.Int).Mul(a, a))
		z.threeHalves(&ex)
		z.add(&z, &z)
		same("threeHalves, twice", &z, new(big.Int).Mul(a, big.NewInt(3)))
		root := ex.root()
		if z.square(&root); (z.normal() == ex.normal()) != (big.Jacobi(a, fieldPrime) >= 0) {
			t.Errorf("root of %x: %x", x, root)
		}
		for _, y := range all {
			b, ey := bigOf(y), element(y)
			z.mul(&ex, &ey)
			same("mul", &z, new(big.Int).Mul(a, b))
			z.add(&ex, &ey)
			same("add", &z, new(big.Int).Add(a, b))
			z.sub(&ex, &ey)
			same("sub", &z, new(big.Int).Sub(a, b))
			z.subTwice(&ey, &ex, &ey)
			same("subTwice", &z, new(big.Int).Neg(new(big.Int).Add(a, b)))
			z.subTwice(&ex, &ex, &ey)
			same("subTwice of itself", &z, new(big.Int).Mul(b, big.NewInt(-2)))
			z = ex
			z.mul(&z, &z) // in place
			same("mul in place", &z, new(big.Int).Mul(a, a))
		}
	}
}

func BenchmarkField(b *testing.B) {
	x := element{1, 2, 3, 4}
	y := element{1 << 63, 2 << 62, 3, 4 << 60}
	b.Run("mul", func(b *testing.B) {
		for b.Loop() {
			x.mul(&x, &y)
		}
	})
	b.Run("square", func(b *testing.B) {
		for b.Loop() {
			x.square(&x)
		}
	})
	b.Run("add", func(b *testing.B) {
		for b.Loop() {
			x.add(&x, &y)
		}
	})
	b.Run("sub", func(b *testing.B) {
		for b.Loop() {
			x.sub(&x, &y)
		}
	})
}

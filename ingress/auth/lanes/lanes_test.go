//go:build cgo && amd64

package lanes

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"testing"

	"golang.org/x/crypto/sha3"

	"clobd/scripts/setting"
)

var prime, _ = new(big.Int).SetString(
	"fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f", 16)

func skipWithout(t testing.TB) {
	if !Have() {
		t.Skip("SKIPPED: this processor has no AVX-512 IFMA, or the kernel does not keep its registers")
	}
}

func bigOf(x *Element) *big.Int {
	v := new(big.Int)
	for i := 3; i >= 0; i-- {
		v.Or(v.Lsh(v, 64), new(big.Int).SetUint64(x[i]))
	}
	return v
}

func elementOf(v *big.Int) (x Element) {
	var b [32]byte
	v.FillBytes(b[:])
	for i := range x {
		x[i] = binary.BigEndian.Uint64(b[24-8*i:])
	}
	return x
}

// edges are numbers at which carries run far: around 0, the prime, 2^256, and the limbs of 52 bits.
func edges() (all []Element) {
	one := big.NewInt(1)
	add := func(v *big.Int) {
		if v.Sign() >= 0 && v.BitLen() <= 256 {
			all = append(all, elementOf(v))
		}
	}
	for i := int64(-2); i <= 2; i++ {
		d := big.NewInt(i)
		add(d)
		for _, shift := range []uint{52, 104, 156, 208, 255, 256} {
			v := new(big.Int).Lsh(one, shift)
			add(new(big.Int).Add(v, d))
			add(new(big.Int).Add(new(big.Int).Sub(prime, v), d))
		}
		add(new(big.Int).Add(prime, d))
		add(new(big.Int).Add(new(big.Int).Rsh(prime, 1), d))
	}
	return all
}

// edgy is a number with runs of ones and zeros, also in single limbs of 52 bits.
func edgy(r *rand.Rand) Element {
	v := new(big.Int)
	for range 5 {
		limb := r.Uint64() >> 12
		switch r.IntN(8) {
		case 0:
			limb = 0
		case 1:
			limb = 1<<52 - 1
		case 2:
			limb = 1<<52 - 1 - limb>>40
		case 3:
			limb >>= 40
		}
		v.Or(v.Lsh(v, 52), new(big.Int).SetUint64(limb))
	}
	return elementOf(v.And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))))
}

// fieldWants is what lanes_field computes, not reduced.
func fieldWants(a, b *big.Int) [len(fieldResults{})]*big.Int {
	sub := func(x, y *big.Int) *big.Int { return new(big.Int).Sub(x, y) }
	mul := func(x, y *big.Int) *big.Int { return new(big.Int).Mul(x, y) }
	add := func(x, y *big.Int) *big.Int { return new(big.Int).Add(x, y) }
	d, e := sub(a, b), sub(b, a)
	x := sub(d, add(b, b))
	return [len(fieldResults{})]*big.Int{
		mul(a, b), mul(a, a), d, x, mul(d, d), mul(e, e), add(mul(d, e), mul(d, b)),
		mul(sub(b, x), sub(x, b)), add(mul(add(x, x), sub(a, x)), mul(x, add(a, x))),
		new(big.Int).Neg(a),
	}
}

// TestField holds the arithmetic of the lanes against math/big: all pairs of edges, and so many
// edgy pairs. Ten results of each pair are compared.
func TestField(t *testing.T) {
	skipWithout(t)
	size := setting.Size(t, 20_000, 4_000)
	r := rand.New(rand.NewPCG(setting.Seed(t, 1), 1))
	var pairs [Width]Point
	var out fieldResults
	lane, compared := 0, 0
	got, want := new(big.Int), new(big.Int)
	try := func(a, b Element) {
		if pairs[lane] = (Point{a, b}); lane < Width-1 {
			lane++
			return
		}
		lane = 0
		fieldOperations(&pairs, &out)
		for l := range pairs {
			for k, w := range fieldWants(bigOf(&pairs[l].X), bigOf(&pairs[l].Y)) {
				got.Mod(bigOf(&out[k][l]), prime)
				if want.Mod(w, prime); got.Cmp(want) != 0 {
					t.Fatalf("result %d of %x, %x: %x, want %x", k, pairs[l].X, pairs[l].Y, got, want)
				}
				compared++
			}
		}
	}
	for _, a := range edges() {
		for _, b := range edges() {
			try(a, b)
		}
	}
	for range size {
		try(edgy(r), edgy(r))
	}
	t.Logf("%d results compared", compared)
}

// TestKeccak holds the hashes of the lanes against another implementation.
func TestKeccak(t *testing.T) {
	skipWithout(t)
	r := rand.New(rand.NewPCG(2, 2))
	var m Messages
	for i := range 400 {
		blocks := 1 + i%MostBlocks
		var want [Width][32]byte
		for l := range m {
			size := (blocks-1)*BlockSize + r.IntN(BlockSize)
			for k := range m[l] {
				m[l][k] = byte(r.Uint32())
			}
			h := sha3.NewLegacyKeccak256()
			h.Write(m[l][:size])
			h.Sum(want[l][:0])
			clear(m[l][size : blocks*BlockSize])
			m[l][size] = 1
			m[l][blocks*BlockSize-1] |= 0x80
		}
		var got [Width][32]byte
		if Keccak(&m, blocks, &got); got != want {
			t.Fatalf("%d blocks: %x, want %x", blocks, got, want)
		}
	}
}

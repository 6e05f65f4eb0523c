package curve

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestInvert(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, modulus := range []*big.Int{fieldPrime, new(big.Int).SetBytes([]byte(orderBytes))} {
		m := newInverter(limbsOf(modulus))
		if got := m.invert([4]uint64{}); got != ([4]uint64{}) {
			t.Errorf("1/0 = %x", got)
		}
		for _, x := range edgy(r, modulus, 5000) {
			v := bigOf(x)
			if v.Mod(v, modulus).Sign() == 0 {
				continue
			}
			want := limbsOf(new(big.Int).ModInverse(v, modulus))
			if got := m.invert(limbsOf(v)); got != want {
				t.Fatalf("1/%x = %x, want %x modulo %x", v, got, want, modulus)
			}
		}
	}
}

func BenchmarkInvert(b *testing.B) {
	m := newInverter(limbsOf(fieldPrime))
	x := [4]uint64{1, 2, 3, 4}
	for b.Loop() {
		x = m.invert(x)
		x[0]++
	}
}

package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"clobd/engine"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLargestHolders compares the largest holders that largest picks with all of them, sorted. Many
// hold equally much.
func TestLargestHolders(t *testing.T) {
	j := open(t, journal.Options{Dir: "data", FS: vfs.NewMem(), Async: true})
	defer shut(t, j)
	x, err := openIndex(j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, x)
	r := rand.New(rand.NewPCG(1, 2))
	var all []Holder
	position := newPosition(0, 7)
	for _, no := range r.Perm(500) {
		w := Holder{engine.WalletNo(no + 1), engine.Size(1 + r.IntN(100))}
		position.tokens[1].Wallet, position.tokens[1].Size, position.listed[1] = w.Wallet, w.Size, 0
		if err := x.fold.ledger.list(&position, x.fold.batch); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	if err := x.db.Apply(x.fold.batch, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, compareHolders)
	for _, most := range []int{1, 2, 3, 41, 249, 250, 251, 499, 500, 501, 1 << 30} {
		got, whole, err := x.History.largest(token{7, 1}, most)
		want := all[:min(most, len(all))]
		if err != nil || !slices.Equal(got, want) || whole != (most >= len(all)) {
			t.Errorf("at most %d: %d holders, whole %v, %v", most, len(got), whole, err)
		}
		if other, _, _ := x.History.largest(token{7, 0}, most); len(other) > 0 {
			t.Errorf("at most %d of the other token: %v", most, other)
		}
	}
}

// BenchmarkFirstHolders reads the largest holders of a token that nobody has asked for before.
func BenchmarkFirstHolders(b *testing.B) {
	for _, holders := range []int{2000, 100_000} {
		if testing.Short() {
			holders /= 100
		}
		b.Run(fmt.Sprint(holders), func(b *testing.B) {
			j := open(b, journal.Options{Dir: b.TempDir(), Async: true})
			defer shut(b, j)
			x, err := openIndex(j, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer shut(b, x)
			r := rand.New(rand.NewPCG(1, 2))
			p := newPosition(0, 7)
			for no := range holders {
				p.tokens[0].Wallet, p.tokens[0].Size = engine.WalletNo(no+1), engine.Size(1+r.IntN(1<<30))
				p.listed[0] = 0
				if err := x.fold.ledger.list(&p, x.fold.batch); err != nil {
					b.Fatal(err)
				}
			}
			if err := x.db.Apply(x.fold.batch, pebble.NoSync); err != nil {
				b.Fatal(err)
			}
			if err := x.db.Flush(); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for range b.N {
				if _, _, err := x.History.largest(token{7, 0}, 41); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package view

import (
	"encoding/binary"
	"hash/maphash"
	"testing"

	"clobd/engine"
)

// TestHostileKeys inserts families of keys that an attacker may choose freely: equal but for a few
// bits, at either end, or in steps of a power of two. Under a random seed none may make long
// probes.
func TestHostileKeys(t *testing.T) {
	const n = 50_000
	families := map[string]func(i uint64) engine.Token{
		"first bytes": func(i uint64) (t engine.Token) {
			binary.BigEndian.PutUint64(t[:], i)
			return t
		},
		"last bytes": func(i uint64) (t engine.Token) {
			binary.BigEndian.PutUint64(t[24:], i)
			return t
		},
		"steps of 2^32": func(i uint64) (t engine.Token) {
			binary.LittleEndian.PutUint64(t[8:], i<<32)
			return t
		},
		"bits repeated": func(i uint64) (t engine.Token) {
			for at := 0; at < len(t); at += 8 {
				binary.LittleEndian.PutUint64(t[at:], i*0x0101010101)
			}
			return t
		},
		"paired words": func(i uint64) (t engine.Token) {
			binary.LittleEndian.PutUint64(t[:], i)
			binary.LittleEndian.PutUint64(t[8:], ^i)
			return t
		},
	}
	for name, key := range families {
		d := newDirectory(maphash.MakeSeed())
		for i := range uint64(n) {
			k := key(i)
			d.tokens.insert(d.hash(k[:]), uint32(i+1))
		}
		c := d.tokens.current.Load()
		total, worst := 0, 0
		for i := range c.words {
			w := c.words[i].Load()
			if w == 0 {
				continue
			}
			home := uint(uint32(w>>32) >> c.shift)
			probe := int((uint(i) - home) & uint(len(c.words)-1))
			total, worst = total+probe, max(worst, probe)
		}
		// At this load (50,000 keys in 131,072 cells) random keys need 0.31 steps on average.
		t.Logf("%s: %d cells, %.2f steps on average, %d at worst", name, len(c.words),
			float64(total)/n, worst)
		if total > 2*n || worst > 200 {
			t.Errorf("%s: %d steps for %d keys, worst %d", name, total, n, worst)
		}
		for i := range uint64(n) {
			k := key(i)
			if !holds(c, d.hash(k[:]), uint32(i+1)) {
				t.Fatalf("%s: key %d is lost", name, i)
			}
		}
	}
}

func holds(c *cells, hash, want uint32) bool {
	for ref, at := c.seek(hash, 0); ref != 0; ref, at = c.seek(hash, at) {
		if ref == want {
			return true
		}
	}
	return false
}

// TestSeeds makes two Boards disagree about where keys lie.
func TestSeeds(t *testing.T) {
	a, b, same := NewBoard(), NewBoard(), 0
	for no := range engine.MarketNo(1_000) {
		k := tokenOf(no, 0)
		if a.Directory.hash(k[:])>>24 == b.Directory.hash(k[:])>>24 {
			same++
		}
	}
	if same > 50 {
		t.Fatalf("%d of 1,000 keys have one home under two seeds", same)
	}
}

// TestCollisions finds references whose whole hash is equal, also where a run of cells wraps
// around.
func TestCollisions(t *testing.T) {
	for _, hash := range []uint32{0, 7, 1<<32 - 1} {
		var x table
		x.current.Store(newCells(2))
		for ref := uint32(1); ref <= 500; ref++ {
			x.insert(hash, ref)
			x.insert(hash^1, 1_000+ref)
		}
		c := x.current.Load()
		for ref := uint32(1); ref <= 500; ref++ {
			if !holds(c, hash, ref) || !holds(c, hash^1, 1_000+ref) || holds(c, hash, 1_000+ref) {
				t.Fatalf("hash %x reference %d", hash, ref)
			}
		}
		if holds(c, hash^2, 1) {
			t.Fatal("found under a hash that was never inserted")
		}
	}
}

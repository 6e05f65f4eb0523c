package engine

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// saved is a state as Save packs it.
func saved(t testing.TB, x *Exchange) [][]byte {
	t.Helper()
	var chunks [][]byte
	err := x.Save(func(chunk []byte) error {
		if len(chunk) > ChunkMax {
			t.Fatalf("a chunk of %d bytes", len(chunk))
		}
		chunks = append(chunks, bytes.Clone(chunk))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}

// giver returns the chunks one by one, as Load asks for them.
func giver(chunks [][]byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(chunks) == 0 {
			return nil, io.EOF
		}
		c := chunks[0]
		chunks = chunks[1:]
		return c, nil
	}
}

// reloaded loads a saved state, and checks that saving it again yields the same bytes.
func reloaded(t testing.TB, x *Exchange, seed uint64) *Exchange {
	t.Helper()
	chunks := saved(t, x)
	y, last, err := Load(seed, giver(chunks))
	if err != nil {
		t.Fatal(err)
	}
	if err := audit(y); err != nil {
		t.Fatal(err)
	}
	if y.Digest() != x.Digest() || last != x.last || y.Due() != x.Due() {
		t.Fatalf("after Sequence %d Digest %016x, due %d: it was %d, %016x, %d", last, y.Digest(),
			y.Due(), x.last, x.Digest(), x.Due())
	}
	if again := saved(t, y); !slices.EqualFunc(chunks, again, bytes.Equal) {
		t.Fatalf("after Sequence %d it saves other bytes than it was made of", last)
	}
	return y
}

// TestSaveAnywhere saves and loads after every few Commands of histories with every Kind and every
// Reject. Later Commands yield the same Events and Digest as without the save.
func TestSaveAnywhere(t *testing.T) {
	for seed := range dice(40) {
		d := seed
		w := newCrowd(d.below)
		w.begin()
		every := 1 + int(seed)%7
		for i := range 250 {
			w.step(t) // also applies it to the twin, and compares
			if i%every == 0 {
				w.twin = reloaded(t, w.twin, uint64(i))
			}
		}
	}
}

// TestSaveOfLongHistories is TestSaveAnywhere with long-lived orders and full rings.
func TestSaveOfLongHistories(t *testing.T) {
	for seed := range dice(24) {
		d, window := seed, []uint32{8, 100, Window}[seed%3]
		x := newExchange(uint64(seed), window)
		h := record(newDeck(d.below), x, 150, 1+int(seed)%9)
		y := newExchange(uint64(seed)+1, window)
		for i := range h.commands {
			if i%(3+int(seed)) == 0 {
				y = reloaded(t, y, uint64(i))
			}
			got := y.Apply(&h.commands[i], h.at(i), h.times[i], nil)
			if !slices.Equal(got, h.events[i]) || y.Digest() != h.digests[i] {
				t.Fatalf("seed %d, #%d: %s\n%s\nwant%s", seed, h.at(i), brief(&h.commands[i]),
					briefly(got), briefly(h.events[i]))
			}
		}
		if a, b := saved(t, x), saved(t, y); !slices.EqualFunc(a, b, bytes.Equal) {
			t.Fatalf("seed %d: one that was loaded often saves other bytes", seed)
		}
	}
}

// TestLoadNoticesDamage changes every bit of a state, cuts it at every byte, and loses, doubles and
// swaps chunks: it is never loaded.
func TestLoadNoticesDamage(t *testing.T) {
	d := dice(5)
	w := newCrowd(d.below)
	w.begin()
	for range 100 {
		w.step(t)
	}
	chunks := saved(t, w.x)
	refused := func(what string, bad [][]byte) {
		t.Helper()
		x, _, err := Load(1, giver(bad))
		if err == nil || x != nil || !errors.Is(err, ErrState) && !errors.Is(err, ErrVersion) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := range chunks {
		for at := range chunks[i] {
			for bit := range 8 {
				bad := slices.Clone(chunks)
				bad[i] = bytes.Clone(chunks[i])
				bad[i][at] ^= 1 << bit
				refused("a bit", bad)
			}
			bad := slices.Clone(chunks[:i+1])
			bad[i] = chunks[i][:at]
			refused("a cut", bad)
		}
		refused("a loss", slices.Delete(slices.Clone(chunks), i, i+1))
		if i < len(chunks)-1 { // what comes after the last one is not looked at
			refused("twice", slices.Insert(slices.Clone(chunks), i, chunks[i]))
		}
	}
	slices.Reverse(chunks)
	refused("swapped", chunks)
}

// TestLoadNoticesNonsense loads states whose checksums are right and whose contents are not.
func TestLoadNoticesNonsense(t *testing.T) {
	setting.Full(t, "TestLoadNoticesDamage stays")
	d := dice(6)
	w := newCrowd(d.below)
	w.begin()
	for range 150 {
		w.step(t)
	}
	chunk := saved(t, w.x)[0]
	body := bytes.Clone(chunk[ChunkOverhead:])
	loaded, same := 0, w.x.Digest()
	for at := range body {
		for _, change := range []byte{1, 0x40, 0x80, 0xff} {
			bad := bytes.Clone(body)
			bad[at] ^= change
			var packed [][]byte
			p := NewPacker(func(c []byte) error {
				packed = append(packed, bytes.Clone(c))
				return nil
			})
			p.Bytes(bad)
			p.Close(uint64(same))
			x, _, err := Load(1, giver(packed))
			if err != nil {
				continue
			}
			loaded++
			if x.Digest() != same {
				t.Fatalf("byte %d: Digest %016x, saved as %016x", at, x.Digest(), same)
			}
		}
	}
	// What the Digest leaves out: Sequences.
	if loaded > len(body)/2 {
		t.Fatalf("%d of %d changes were loaded", loaded, 4*len(body))
	}
	t.Logf("%d of %d changes changed nothing but Sequences", loaded, 4*len(body))
}

// TestSinkEndsSave: Save returns the sink's error.
func TestSinkEndsSave(t *testing.T) {
	full := errors.New("full")
	if err := NewExchange(1).Save(func([]byte) error { return full }); !errors.Is(err, full) {
		t.Fatal(err)
	}
}

// TestSaveNoticesDrift: Save refuses a state whose counters are wrong. The error names wrong
// reserves of collateral and tokens, also if two of them cancel out, and money or tokens from
// nowhere. Load refuses the chunks that the sink has got by then.
func TestSaveNoticesDrift(t *testing.T) {
	d := dice(7)
	w := newCrowd(d.below)
	w.begin()
	for range 400 {
		w.step(t)
	}
	x := w.x
	if x.accounts.used < 3 || x.positions.used < 3 {
		t.Fatalf("%d wallets, %d positions", x.accounts.used, x.positions.used)
	}
	cash := func(no uint32) *entry { return &x.accounts.at(no).cash }
	tokens := func(no uint32, o Outcome) *entry { return &x.positions.at(no).tokens[o] }
	const asset = "an asset does not sum to zero"
	for _, drift := range []struct {
		want     string
		counters []*int64 // every other one the other way
	}{
		{"wallet 2: reserved collateral", []*int64{&cash(2).held}},
		{"wallet 1: reserved collateral", []*int64{&cash(1).held, &cash(3).held}},
		{"reserved tokens of outcome 0", []*int64{&tokens(1, 0).held}},
		{"reserved tokens of outcome 1", []*int64{&tokens(2, 1).held, &tokens(3, 1).held}},
		{asset, []*int64{&cash(1).total}},
		{asset, []*int64{&tokens(2, 1).total}},
		{asset, []*int64{(*int64)(&x.markets.at(1).issued[1])}},
		{asset, []*int64{(*int64)(&x.markets.at(1).vault)}},
		{asset, []*int64{(*int64)(&x.markets.at(2).external[0])}},
		{asset, []*int64{(*int64)(&x.fees)}},
	} {
		for _, by := range []int64{1, -1, 7, 1 << 40} {
			for i, c := range drift.counters {
				*c += by * int64(1-2*i)
			}
			var chunks [][]byte
			err := x.Save(func(c []byte) error { chunks = append(chunks, bytes.Clone(c)); return nil })
			if !errors.Is(err, ErrDrift) || !strings.Contains(err.Error(), drift.want) {
				t.Errorf("off by %d: %v, want %q", by, err, drift.want)
			}
			if _, _, err := Load(1, giver(chunks)); !errors.Is(err, ErrState) {
				t.Errorf("off by %d: loaded: %v", by, err)
			}
			for i, c := range drift.counters {
				*c -= by * int64(1-2*i)
			}
		}
	}
	reloaded(t, x, 3)
}

// TestLaterVersionIsRefused: Load refuses the state of a later version with ErrVersion.
func TestLaterVersionIsRefused(t *testing.T) {
	for _, word := range [][2]uint64{{saveFormat + 1, Version}, {saveFormat, Version + 1}} {
		var packed [][]byte
		p := NewPacker(func(c []byte) error { packed = append(packed, bytes.Clone(c)); return nil })
		p.Uint(word[0])
		p.Uint(word[1])
		p.Close(0)
		if _, _, err := Load(1, giver(packed)); !errors.Is(err, ErrVersion) {
			t.Fatal(err)
		}
	}
}

var savedOrders = flag.Int("saved", 20_000, "resting orders of BenchmarkSave")

// BenchmarkSave saves and loads an Exchange full of resting orders: bytes and time of each.
func BenchmarkSave(b *testing.B) {
	c, g := Command{}, newGrowth(max(1, *savedOrders/(MaxMarketOrders/2)))
	for range *savedOrders {
		g.place(&c)
		g.apply(&c)
	}
	var chunks [][]byte
	size, saving, loading := 0, time.Duration(0), time.Duration(0)
	for b.Loop() {
		chunks, size = chunks[:0], 0
		start := time.Now()
		g.x.Save(func(c []byte) error {
			chunks = append(chunks, bytes.Clone(c))
			size += len(c)
			return nil
		})
		saving += time.Since(start)
		start = time.Now()
		if _, _, err := Load(1, giver(chunks)); err != nil {
			b.Fatal(err)
		}
		loading += time.Since(start)
	}
	n := float64(b.N * *savedOrders)
	b.ReportMetric(float64(size)/float64(*savedOrders), "B/order")
	b.ReportMetric(float64(saving.Nanoseconds())/n, "save-ns/order")
	b.ReportMetric(float64(loading.Nanoseconds())/n, "load-ns/order")
}

// TestReserve: reserve keeps all entries, even during a move, and the reserved number of inserts
// causes no doubling.
func TestReserve(t *testing.T) {
	for _, before := range []uint32{0, 100, 193, 200, 1000, 1537, 1540} {
		m := newTable()
		entry := func(i uint32) uint64 { return entryOf(i*2654435761, i) }
		for i := uint32(1); i <= before; i++ {
			m.insert(entry(i))
		}
		m.reserve(5000)
		size := len(m.all)
		for i := before + 1; i <= before+5000; i++ {
			if i%2 == 0 && m.holds(entry(i)) {
				t.Fatalf("after %d: %d is there already", before, i)
			}
			m.insert(entry(i))
		}
		for i := uint32(1); i <= before+5000; i++ {
			if !m.holds(entry(i)) {
				t.Fatalf("after %d: %d is gone", before, i)
			}
		}
		if m.used != before+5000 || len(m.all) != size || m.old.all != nil {
			t.Fatalf("after %d: %d entries in %d buckets, before %d", before, m.used, len(m.all), size)
		}
	}
}

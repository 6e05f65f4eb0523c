package view

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"clobd/engine"
)

// saved is all that a Board packs.
func saved(t *testing.T, b *Board) [][]byte {
	t.Helper()
	var chunks [][]byte
	err := b.Save(func(c []byte) error { chunks = append(chunks, bytes.Clone(c)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}

// loadFrom makes a Board of chunks.
func loadFrom(chunks [][]byte) (*Board, error) {
	b := NewBoard()
	return b, b.Load(func() ([]byte, error) {
		if len(chunks) == 0 {
			return nil, io.EOF
		}
		c := chunks[0]
		chunks = chunks[1:]
		return c, nil
	})
}

// keyed is a frame in which keys of owner come on record, are revoked and watched.
func (w *world) keyed(owner engine.WalletNo) *engine.Frame {
	f := w.begin()
	for range 1 + w.rng.IntN(3) {
		number, class := w.rng.Int64N(4), w.rng.Int64N(3)
		f.add(engine.Command{Kind: engine.SetKey, Owner: owner}, engine.Event{Kind: engine.KeySet,
			Owner: owner, Args: [3]int64{number, class, w.rng.Int64N(2)}})
		f.add(engine.Command{Kind: engine.Arm, Owner: owner}, engine.Event{Kind: engine.Armed,
			Owner: owner, Args: [3]int64{w.rng.Int64N(6), w.rng.Int64N(3) * 1000}})
		f.add(engine.Command{Kind: engine.SetMode, Wallet: owner}, engine.Event{
			Kind: engine.ModeSet, Wallet: owner, Mode: engine.Mode(w.rng.IntN(3))})
	}
	return f.end()
}

// TestSaveBoard saves and loads at random moments. The loaded Board agrees with the naive books,
// and saves the same bytes as a Board that never stopped.
func TestSaveBoard(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		w, never, often := newWorld(seed), NewBoard(), NewBoard()
		for i := range 300 {
			var f *engine.Frame
			if w.wallets > 0 && w.rng.IntN(10) == 0 {
				f = w.keyed(engine.WalletNo(1 + w.rng.IntN(int(w.wallets))))
			} else {
				f = w.random(1 + w.rng.IntN(30))
			}
			never.Publish(f)
			often.Replay(f)
			if w.rng.IntN(8) != 0 {
				continue
			}
			chunks := saved(t, often)
			b, err := loadFrom(chunks)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(chunks, saved(t, never), bytes.Equal) {
				t.Fatalf("seed %d, frame %d: it saves other bytes than one that never stopped", seed, i)
			}
			for _, n := range w.markets {
				s, was := checkMarket(t, b, n), often.Condition(n.list.Condition)
				if s.Sequence != was.Sequence || s.Time != was.Time || *s.Market != *was.Market {
					t.Fatalf("%+v of %d, want %+v of %d", s.Market, s.Sequence, was.Market, was.Sequence)
				}
			}
			checkWallets(t, b, w)
			checkHoldings(t, b, never, w)
			often = b
		}
	}
}

// checkHoldings compares the wallets and keys of all owners in two Directories.
func checkHoldings(t *testing.T, b, want *Board, w *world) {
	t.Helper()
	for no := engine.WalletNo(1); uint32(no) <= w.wallets; no++ {
		d, e := b.Directory, want.Directory
		if !slices.Equal(d.Owned(no, nil), e.Owned(no, nil)) || d.WalletMode(no) != e.WalletMode(no) {
			t.Fatalf("wallet %d owns %v, mode %d", no, d.Owned(no, nil), d.WalletMode(no))
		}
		for class := range engine.KeyClass(keyClasses) {
			if got, want := d.Keys(no, class, nil), e.Keys(no, class, nil); !slices.Equal(got, want) {
				t.Fatalf("wallet %d: keys %+v, want %+v", no, got, want)
			}
		}
		for number := range uint32(8) {
			if a := addressOf(no); d.Revoked(a, number) != e.Revoked(a, number) {
				t.Fatalf("wallet %d, key %d: revoked %v", no, number, d.Revoked(a, number))
			}
		}
	}
	type watched struct {
		owner  engine.WalletNo
		number uint32
	}
	armed := map[watched]engine.Time{}
	want.Directory.Armed(func(o engine.WalletNo, n uint32, t engine.Time) { armed[watched{o, n}] = t })
	b.Directory.Armed(func(o engine.WalletNo, n uint32, timeout engine.Time) {
		if armed[watched{o, n}] != timeout {
			t.Fatalf("key %d of %d is armed for %d", n, o, timeout)
		}
		delete(armed, watched{o, n})
	})
	if len(armed) != 0 {
		t.Fatalf("not armed: %v", armed)
	}
}

// TestLoadBoardNoticesDamage: Load refuses every changed bit.
func TestLoadBoardNoticesDamage(t *testing.T) {
	w, b := newWorld(3), NewBoard()
	for range 20 {
		b.Publish(w.random(20))
	}
	chunks := saved(t, b)
	for i := range chunks {
		for at := range chunks[i] {
			bad := slices.Clone(chunks)
			bad[i] = bytes.Clone(chunks[i])
			bad[i][at] ^= 1 << w.rng.IntN(8)
			if _, err := loadFrom(bad); !errors.Is(err, engine.ErrState) {
				t.Fatalf("chunk %d, byte %d: %v", i, at, err)
			}
		}
		if _, err := loadFrom(chunks[:i]); !errors.Is(err, engine.ErrState) {
			t.Fatalf("%d chunks: %v", i, err)
		}
	}
}

// TestLoadFirstFormat: a Board of format 1 says when its markets changed last: those that have
// ended did so then.
func TestLoadFirstFormat(t *testing.T) {
	var chunks [][]byte
	p := engine.NewPacker(func(chunk []byte) error {
		chunks = append(chunks, bytes.Clone(chunk))
		return nil
	})
	var l engine.Listing
	l.Condition, l.Tokens[0], l.Tokens[1] = engine.Condition{1}, engine.Token{2}, engine.Token{3}
	for _, v := range []uint64{1, 9, 0, 0, 1} { // format, Sequence, mode, no wallets, one market
		p.Uint(v)
	}
	p.Bytes(l.Condition[:])
	p.Bytes(l.Tokens[0][:])
	p.Bytes(l.Tokens[1][:])
	for _, v := range []uint64{0, 0, 100, 0, 0, uint64(engine.Settled), 0, 10_000, 9, 0, 0} {
		p.Uint(v)
	}
	for _, v := range []int64{5, 0, 1234} { // the least sizes, the Time
		p.Int(v)
	}
	for range 4 { // no levels, owners or modes
		p.Uint(0)
	}
	if err := p.Close(9); err != nil {
		t.Fatal(err)
	}
	b, err := loadFrom(chunks)
	if err != nil {
		t.Fatal(err)
	}
	m, s := b.Directory.Condition(l.Condition), b.Condition(l.Condition)
	if m.State != engine.Settled || m.Payout != 10_000 || m.Ended != 1234 ||
		m.Resolved != 1234 || s.Time != 1234 {
		t.Errorf("%+v at %d", m, s.Time)
	}
}

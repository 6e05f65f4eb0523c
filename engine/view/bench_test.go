package view

import (
	"fmt"
	"testing"

	"clobd/engine"
)

// TestAllocations holds every read to none.
func TestAllocations(t *testing.T) {
	b, _ := full(1)
	d, token, condition, address := b.Directory, tokenOf(1, 1), conditionOf(1), addressOf(1)
	s := b.Condition(condition)
	s.Text(0, rendered)
	sum := engine.Size(0)
	reads := map[string]func(){
		"Book":      func() { b.Book(token) },
		"Board":     func() { b.Condition(condition); b.Sequence() },
		"Best":      func() { s.Best(1) },
		"Depth":     func() { s.Depth(1, engine.Buy) },
		"Last":      func() { s.Last(1) },
		"Text":      func() { s.Text(0, rendered) },
		"Token":     func() { d.Token(token) },
		"Condition": func() { d.Condition(condition) },
		"Market":    func() { d.Market(1) },
		"Wallet":    func() { d.Wallet(address) },
		"Address":   func() { d.Address(1) },
		"Owner":     func() { d.Owner(1); d.LastNamed(1) },
		"Counters":  func() { b.Counters() },
		"Levels": func() {
			s.Levels(1, engine.Buy, func(_ engine.Price, size engine.Size) bool {
				sum += size
				return true
			})
		},
	}
	for name, read := range reads {
		if n := testing.AllocsPerRun(100, read); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if sum == 0 {
		t.Error("Levels read nothing")
	}
}

// BenchmarkPublish publishes frames of one Command per dirty chunk in one market. Bytes and
// allocations are those of the Snapshot: the frames are made before.
func BenchmarkPublish(b *testing.B) {
	for _, x := range []struct {
		levels int
		tick   engine.Price
		chunks int
	}{{99, 100, 1}, {99, 100, 2}, {9_999, 1, 1}, {9_999, 1, 16}} {
		b.Run(fmt.Sprintf("levels=%d/chunks=%d", x.levels, x.chunks), func(b *testing.B) {
			board, w := full(x.tick)
			before, start := board.Counters().Chunks, board.Sequence()
			f := w.begin()
			prices := make([]engine.Price, x.chunks)
			for i := range prices {
				// Spread over the ladder, the last chunk included.
				index := max(1, (x.levels-1)*i/max(1, x.chunks-1))
				prices[i] = engine.Price(index) * x.tick
				f.rest(1, resting{0, side(prices[i]), prices[i], engine.Lot, 1})
			}
			frame := f.end()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				board.Publish(frame)
				frame.First = frame.Last() + 1
				if s := board.Condition(conditionOf(1)); s.Sequence != frame.First-1 {
					b.Fatalf("Sequence %d, want %d", s.Sequence, frame.First-1)
				}
			}
			b.StopTimer()
			n := int(board.Counters().Chunks - before)
			if n != b.N*x.chunks || int(board.Sequence()-start) != b.N*x.chunks {
				b.Fatalf("%d chunks, want %d", n, b.N*x.chunks)
			}
			s := board.Condition(conditionOf(1))
			want := (10 + engine.Size(b.N)) * engine.Lot
			if got := sizeAt(s, prices[x.chunks-1]); got != want {
				b.Fatalf("size %d, want %d", got, want)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/chunk")
		})
	}
}

// sizeAt is the size at a price of outcome 0.
func sizeAt(s *Snapshot, price engine.Price) (found engine.Size) {
	s.Levels(0, side(price), func(p engine.Price, size engine.Size) bool {
		if p == price {
			found = size
		}
		return p != price
	})
	return found
}

// BenchmarkBook looks a token up among n and reads its best prices.
func BenchmarkBook(b *testing.B) {
	for _, n := range []int{1, 20_000} {
		b.Run(fmt.Sprintf("markets=%d", n), func(b *testing.B) {
			board, w := full(100)
			for len(w.markets) < n {
				f := w.begin()
				for i := 0; i < engine.FrameCommands && len(w.markets) < n; i++ {
					no := engine.MarketNo(len(w.markets) + 1)
					f.list(no, 100, engine.Open)
					f.rest(no, resting{0, engine.Buy, 4_900, engine.Lot, 1})
					f.rest(no, resting{0, engine.Sell, 5_000, engine.Lot, 1})
				}
				board.Publish(f.end())
			}
			tokens := make([]engine.Token, min(n, 4_096))
			for i := range tokens {
				tokens[i] = tokenOf(engine.MarketNo(1+i*(n/len(tokens))), 1)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				s, o, ok := board.Book(tokens[i%len(tokens)])
				if !ok || o != 1 {
					b.Fatal("token is not found")
				}
				if bid, ask := s.Best(o); bid != 5_000 || ask != 5_100 {
					b.Fatalf("best %d and %d", bid, ask)
				}
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	board, _ := full(100)
	s := board.Condition(conditionOf(1))
	want := len(s.Text(1, rendered))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if got := s.Text(1, rendered); len(got) != want {
			b.Fatalf("%d bytes, want %d", len(got), want)
		}
	}
}

// BenchmarkLevels walks one side of a full ladder; ns are per level.
func BenchmarkLevels(b *testing.B) {
	board, _ := full(1)
	s, n := board.Condition(conditionOf(1)), 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		sum := engine.Size(0)
		s.Levels(0, engine.Buy, func(_ engine.Price, size engine.Size) bool {
			n++
			sum += size
			return true
		})
		if sum != 4_999*10*engine.Lot {
			b.Fatalf("sum %d", sum)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/level")
}

func BenchmarkWallet(b *testing.B) {
	board, w := full(100)
	for w.wallets < 20_000 {
		f := w.begin()
		for range engine.FrameCommands {
			f.deposit(engine.WalletNo(w.wallets + 1))
		}
		board.Publish(f.end())
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		want := engine.WalletNo(1 + i%20_000)
		if no, ok := board.Directory.Wallet(addressOf(want)); !ok || no != want {
			b.Fatalf("wallet %d is found as %d", want, no)
		}
	}
}

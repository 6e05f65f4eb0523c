package engine

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// dice is splitmix64: seeded, and the same everywhere.
type dice uint64

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

// mixed is the mix of Commands that a book sees: 50 % new orders off the middle, 40 % cancels (half
// of them recent), 10 % orders that cross. Sizes are 5 to 100 shares, the tick is 0.01. Beyond
// mixedLive orders it cancels more, so that the book stops growing.
type mixed struct {
	dice    dice
	markets int
	wallets int
	owners  []WalletNo
	ids     []OrderID
}

const (
	mixedWallets = 64
	mixedLive    = 30_000
)

func newMixed(x *Exchange, markets int) *mixed {
	m := &mixed{dice: 42, markets: markets, wallets: mixedWallets}
	seq := Sequence(0)
	apply := func(c Command) {
		seq++
		x.Apply(&c, seq, 1, nil)
	}
	for i := range markets {
		l := &Listing{Tick: 100, MinSize: 5 * Unit, Open: true}
		binary.BigEndian.PutUint64(l.Condition[:], uint64(i))
		binary.BigEndian.PutUint64(l.Tokens[0][:], uint64(2*i+1))
		binary.BigEndian.PutUint64(l.Tokens[1][:], uint64(2*i+2))
		apply(Command{Kind: List, Listing: l})
	}
	for w := range mixedWallets {
		a := Address{byte(w + 1)}
		apply(Command{Kind: Deposit, Address: a, Cash: MaxAmount})
		for i := range markets {
			for o := range Outcome(2) {
				apply(Command{Kind: Deposit, Address: a, Market: MarketNo(i + 1),
					Outcome: o, Size: MaxAmount / 1024})
			}
		}
	}
	return m
}

// market draws one with a long tail: the first is the hottest.
func (m *mixed) market() int {
	if m.markets == 1 {
		return 1
	}
	n := m.dice.below(m.markets) + 1
	return m.dice.below(n) + 1
}

// next writes the next Command.
func (m *mixed) next(c *Command) {
	what := m.dice.below(10)
	if what < 4 && len(m.ids) > 0 || len(m.ids) > mixedLive {
		i := m.dice.below(len(m.ids))
		if what < 2 {
			i = len(m.ids) - 1 - m.dice.below(min(len(m.ids), 1000))
		}
		*c = Command{Kind: Cancel, ID: m.ids[i], Owner: m.owners[i]}
		last := len(m.ids) - 1
		m.ids[i], m.owners[i] = m.ids[last], m.owners[last]
		m.ids, m.owners = m.ids[:last], m.owners[:last]
		return
	}
	w := WalletNo(m.dice.below(m.wallets) + 1)
	*c = Command{Kind: Place, Wallet: w, Owner: w, Market: MarketNo(m.market()), Seen: 1 << 60}
	c.Side, c.Outcome = Side(m.dice.below(2)), Outcome(m.dice.below(2))
	away := 1 + min(m.dice.below(12), m.dice.below(25))
	if what == 9 {
		away = -2
	}
	n := 50 + away // of a sell; a buy mirrors it
	if c.Side == Buy {
		n = 50 - away
	}
	c.Size = Size(5+m.dice.below(96)) * Unit
	c.Cash = Cost(c.Size, Price(n)*100)
	for i := range 4 {
		binary.LittleEndian.PutUint64(c.ID[8*i:], m.dice.next())
	}
	if what != 9 {
		m.ids, m.owners = append(m.ids, c.ID), append(m.owners, w)
	}
}

// fills is a checksum over what happened.
type fills struct{ count, volume, rejected uint64 }

func (f *fills) add(events []Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case Filled:
			f.count++
			f.volume += uint64(e.Size/Lot) * uint64(e.Price)
		case Rejected:
			if e.Reject != RejectNotFound {
				f.rejected++
			}
		}
	}
}

// stream makes n Commands ahead of the clock.
func (m *mixed) stream(n int) []Command {
	all := make([]Command, n)
	for i := range all {
		m.next(&all[i])
	}
	return all
}

// varied is the same mix with all order types: GTD that expire soon, FOK, FAK and post-only, all
// preventions, fees in every market, and the timer.
type varied struct {
	*mixed
	n Time
}

func newVaried(x *Exchange, markets int) *varied {
	m := newMixed(x, markets)
	seq := Sequence(1 << 19)
	apply := func(c Command) {
		seq++
		x.Apply(&c, seq, 1, nil)
	}
	for no := MarketNo(1); no <= MarketNo(markets); no++ {
		l := x.markets.known(no).listing()
		l.Fee = Fee{Rate: 441, Exponent: uint8(no % 4)}
		apply(Command{Kind: Adjust, Market: no, Listing: &l})
	}
	for w := WalletNo(1); w <= mixedWallets; w++ {
		apply(Command{Kind: SetPrevention, Wallet: w, Prevention: Prevention(w % 4)})
	}
	return &varied{m, 0}
}

// stream makes n Commands ahead of the clock; their Times are their places in it.
func (v *varied) stream(n int) []Command {
	all := v.mixed.stream(n)
	for i := range all {
		c := &all[i]
		if v.n++; v.n%64 == 0 {
			*c = Command{Kind: Advance}
		}
		if c.Kind != Place {
			continue
		}
		switch v.dice.below(8) {
		case 0:
			c.Type, c.Expiry = GTD, v.n+Time(v.dice.below(1000))
		case 1:
			c.Type = FOK
		case 2:
			c.Type = FAK
		case 3:
			c.PostOnly = true
		}
	}
	return all
}

// BenchmarkTypes is Apply with the varied mix.
func BenchmarkTypes(b *testing.B) {
	x := NewExchange(1)
	v := newVaried(x, 10)
	var sum fills
	events := make([]Event, 0, 1024)
	b.ReportAllocs()
	for done := 0; done < b.N; {
		b.StopTimer()
		at := int(v.n)
		all := v.stream(min(100_000, b.N-done))
		b.StartTimer()
		for i := range all {
			at++
			events = x.Apply(&all[i], Sequence(1<<20+at), Time(at), events[:0])
			sum.add(events)
		}
		done += len(all)
	}
	b.StopTimer()
	if err := audit(x); err != nil || b.N > 1000 && x.fees == 0 {
		b.Fatalf("fees %v: %v", x.fees, err)
	}
	b.ReportMetric(float64(sum.count)/float64(b.N), "fills/op")
}

// mixedSum is what the first 100,000 Commands of the mix must come to, by number of markets.
var mixedSum = map[int]fills{
	1:    {19559, 260367110000, 0},
	1000: {12423, 174550380000, 0},
}

func BenchmarkApply(b *testing.B) {
	for _, markets := range []int{1, 1000} {
		b.Run(fmt.Sprintf("markets=%d", markets), func(b *testing.B) {
			benchApply(b, markets)
		})
	}
}

func benchApply(b *testing.B, markets int) {
	x := NewExchange(1)
	m := newMixed(x, markets)
	var sum fills
	events, seq := make([]Event, 0, 1024), Sequence(1<<20)
	run := func(all []Command) {
		for i := range all {
			seq++
			events = x.Apply(&all[i], seq, 1, events[:0])
			sum.add(events)
		}
	}
	run(m.stream(100_000))
	if want := mixedSum[markets]; sum != want {
		b.Fatalf("fills %+v, want %+v", sum, want)
	}
	if err := audit(x); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		b.StopTimer()
		all := m.stream(min(100_000, b.N-done))
		b.StartTimer()
		run(all)
		done += len(all)
	}
	b.StopTimer()
	if sum.rejected != 0 {
		b.Fatalf("%d rejected", sum.rejected)
	}
	b.ReportMetric(float64(sum.count)/float64(100_000+b.N), "fills/op")
}

// mixedFrames are n frames of 100 Commands of the mix, encoded, after the ones that set it up.
func mixedFrames(n int) (frames [][]byte, setup func() *Exchange) {
	setup = func() *Exchange {
		x := NewExchange(3)
		newMixed(x, 1)
		x.last = 1 << 20
		return x
	}
	x := NewExchange(4)
	m := newMixed(x, 1)
	f := Frame{Engine: Version, First: 1<<20 + 1}
	for range n {
		f.Commands, f.Events, f.Ends = m.stream(100), f.Events[:0], f.Ends[:0]
		for i := range f.Commands {
			f.Commands[i].Proof = make([]byte, 160)
			f.Events = x.Apply(&f.Commands[i], f.First+Sequence(i), 1, f.Events)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
		}
		f.No, f.Digest = f.No+1, x.Digest()
		f.Encode(f.Hash)
		frames = append(frames, f.Bytes)
		f.First += 100
	}
	return frames, setup
}

func BenchmarkEncode(b *testing.B) {
	frames, _ := mixedFrames(20)
	var f Frame
	if err := DecodeFrame(frames[19], &f); err != nil {
		b.Fatal(err)
	}
	hash := f.Hash
	b.ReportAllocs()
	b.SetBytes(int64(len(f.Bytes)))
	for b.Loop() {
		f.Encode(f.Prev)
	}
	if f.Hash != hash {
		b.Fatal("another frame")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/command")
}

func BenchmarkDecode(b *testing.B) {
	frames, _ := mixedFrames(20)
	var f Frame
	b.ReportAllocs()
	b.SetBytes(int64(len(frames[19])))
	for b.Loop() {
		if err := DecodeFrame(frames[19], &f); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/command")
}

// BenchmarkApplyFrame is recovery: decode and replay, 100 Commands a frame.
func BenchmarkApplyFrame(b *testing.B) {
	frames, setup := mixedFrames(2000)
	x, f, at := setup(), Frame{}, 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if at == len(frames) {
			b.StopTimer()
			x, at = setup(), 0
			b.StartTimer()
		}
		if err := DecodeFrame(frames[at], &f); err != nil {
			b.Fatal(err)
		}
		if err := x.ApplyFrame(&f); err != nil {
			b.Fatal(err)
		}
		at++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/command")
}

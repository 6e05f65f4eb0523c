package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var golden = flag.Bool("golden", false, "write the golden frame anew")

// sampleFrame has every kind of Command and Event in it, made by Apply.
func sampleFrame(t testing.TB) *Frame {
	x := NewExchange(1)
	l := &Listing{Group: 77, Tick: 100, MinSize: 5 * Unit, Open: true, NegRisk: true}
	l.Condition[31], l.Tokens[0][31], l.Tokens[1][0] = 1, 2, 3
	alice, bob := Address{1}, Address{2}
	id := func(b byte) OrderID { return OrderID{b, 31: b} }
	buy := Command{
		Kind: Place, Market: 1, Wallet: 1, Owner: 1, Key: 9, Size: 10 * Unit, Cash: 4 * Unit,
		ID: id(1), Proof: []byte("signed"),
	}
	cross := buy
	cross.Wallet, cross.Owner, cross.ID, cross.Outcome = 2, 2, id(2), 1
	cross.Type, cross.Cash, cross.Expiry, cross.Seen = GTD, 7*Unit, 1_800_000_000_000, 4
	bad := cross
	bad.ID, bad.Cash = id(3), 12345
	f := &Frame{
		Engine: Version, Partition: 3, Epoch: 2, No: 1, First: 1, Time: 1_700_000_000_123,
		Commands: []Command{
			{Kind: Started, Seen: 2, Expiry: 1_700_000_000_000},
			{Kind: List, Listing: l},
			{Kind: Deposit, Address: alice, Cash: 100 * Unit, ID: id(200)},
			{Kind: Deposit, Address: bob, Cash: 100 * Unit},
			{Kind: Link, Address: Address{3}, Holder: alice},
			buy, cross, bad,
			{Kind: Cancel, Owner: 2, ID: id(2)},
			{Kind: Cancel, Owner: 1, ID: id(1)},
			{Kind: Withdraw, Address: alice, Market: 1, Size: Unit},
		},
	}
	f.Commands = append(f.Commands, sampleControls(l, buy)...)
	for i := range f.Commands {
		f.Events = x.Apply(&f.Commands[i], Sequence(i+1), f.Time, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
	}
	f.Digest = x.Digest()
	f.Encode(Hash{7, 7})
	return f
}

// sampleControls adds the Commands of wallets and operators to the sample.
func sampleControls(l *Listing, buy Command) []Command {
	id := func(b byte) OrderID { return OrderID{b, 31: b} }
	rules := *l
	rules.Tick, rules.MinBuy, rules.Fee = 10, Unit, Fee{Rate: 441, Exponent: 2}
	post := buy
	post.Type, post.Expiry, post.PostOnly, post.ID = GTD, 1_800_000_000_000, true, id(4)
	post.FeeBound, post.Deadline = 1+500, 1_700_000_000_124
	more := post
	more.ID = id(11)
	take := buy
	take.Type, take.Wallet, take.Owner, take.Side, take.ID = FAK, 2, 2, Sell, id(5)
	take.Size = 3 * Unit
	take.Cash = 1_200_000
	return []Command{
		{Kind: Adjust, Market: 1, Listing: &rules},
		{Kind: SetPrevention, Wallet: 1, Prevention: ExpireBoth},
		{Kind: SetMode, Wallet: 2, Mode: PostOnly},
		{Kind: SetMode, Wallet: 2},
		{Kind: SplitTokens, Market: 1, Wallet: 2, Owner: 2, Size: 20*Unit + 1, ID: id(6)},
		{Kind: SplitTokens, Market: 1, Wallet: 2, Owner: 2, Size: 20*Unit + 1, ID: id(6)},
		{Kind: MergeTokens, Market: 1, Wallet: 2, Owner: 2, Size: 3, ID: id(7)},
		post, more, take,
		{Kind: Cancel, Reason: ByOperator, ID: more.ID},
		{Kind: Arm, Owner: 1, Key: 9, Expiry: 10_000},
		{Kind: CancelAll, Market: 1, Outcome: 0, Wallet: 1, Owner: 1, Key: 9,
			Only: OnlyToken | OnlyKey, Reason: Timeout},
		{Kind: Advance},
		{Kind: Collect, Address: Address{4}, Cash: 10, ID: id(8)},
		{Kind: SetState, Market: 1, State: Paused},
		{Kind: SetKey, Owner: 2, Key: 7, Class: BuilderKey, Revoke: true},
		{Kind: Resolve, Market: 1, Price: 3333, ID: id(9)},
		{Kind: RedeemTokens, Market: 1, Wallet: 2, Owner: 2, ID: id(10)},
		{Kind: Raise, Seen: Version},
	}
}

// TestSampleIsWhole: the sample frame contains every Kind of Command, accepted, and every kind of
// Event.
func TestSampleIsWhole(t *testing.T) {
	f := sampleFrame(t)
	commands, events := map[Kind]bool{}, map[EventKind]bool{}
	for i := range f.Commands {
		for _, e := range f.EventsOf(i) {
			events[e.Kind] = true
			if e.Kind != Rejected {
				commands[f.Commands[i].Kind] = true
			}
		}
	}
	for k := Started; k <= Raise; k++ {
		if !commands[k] {
			t.Errorf("no accepted command of kind %d", k)
		}
	}
	for k := EpochStarted; k <= lastEvent; k++ {
		if !events[k] {
			t.Errorf("no event of kind %d", k)
		}
	}
}

func TestGoldenFrame(t *testing.T) {
	const path = "testdata/v2/frame.hex"
	text := []byte(hex.Dump(sampleFrame(t).Bytes))
	if *golden {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("the format changed: got\n%s", text)
	}
}

func TestFrameHeader(t *testing.T) {
	f := sampleFrame(t)
	if n := len(f.appendHeader(nil)); n != FrameOverhead {
		t.Errorf("header of %d bytes", n)
	}
	var back Frame
	if err := DecodeFrame(f.Bytes, &back); err != nil {
		t.Fatal(err)
	}
	back.scratch = f.scratch
	if !reflect.DeepEqual(f, &back) {
		t.Errorf("round trip: got\n%+v\nwant\n%+v", &back, f)
	}
	if err := NewExchange(5).ApplyFrame(&back); err != nil {
		t.Error(err)
	}
}

func TestDecodeDamage(t *testing.T) {
	f, back := sampleFrame(t), Frame{}
	for i := range f.Bytes {
		b := bytes.Clone(f.Bytes)
		b[i] ^= 0x10
		if DecodeFrame(b, &back) == nil {
			t.Errorf("byte %d may change unnoticed", i)
		}
		if DecodeFrame(f.Bytes[:i], &back) == nil {
			t.Errorf("%d bytes are a frame", i)
		}
	}
	if err := DecodeFrame(append(bytes.Clone(f.Bytes), 0), &back); !errors.Is(err, ErrLength) {
		t.Errorf("one byte too many: %v", err)
	}
}

func TestApplyFrameDiffers(t *testing.T) {
	change := map[string]func(f *Frame){
		"engine":  func(f *Frame) { f.Engine++ },
		"digest":  func(f *Frame) { f.Digest++ },
		"gap":     func(f *Frame) { f.First++ },
		"event":   func(f *Frame) { f.Events[6].Size += Lot },
		"command": func(f *Frame) { f.Commands[5].Size += 10 * Unit },
	}
	for name, damage := range change {
		f := sampleFrame(t)
		damage(f)
		err := NewExchange(5).ApplyFrame(f)
		if err == nil {
			t.Errorf("%s: no difference found", name)
		}
		t.Logf("%s: %v", name, err)
	}
}

// TestApplyFramePanics: a panic names the Sequence whose Command made Apply panic, and where.
func TestApplyFramePanics(t *testing.T) {
	f, x := sampleFrame(t), NewExchange(5)
	for i := range 6 {
		x.Apply(&f.Commands[i], Sequence(i+1), f.Time, nil)
	}
	x.orders.at(1).position = 1 << 30 // what the next order meets
	f.First, f.Commands, f.Events = 7, f.Commands[6:], f.Events[f.Ends[5]:]
	defer func() {
		said := fmt.Sprintf("%v\n%s", recover(), debug.Stack())
		for _, word := range []string{"replay of Sequence 7 in frame 1: ", "place.go:"} {
			if !strings.Contains(said, word) {
				t.Errorf("%q is not in: %s", word, said)
			}
		}
	}()
	t.Errorf("no panic: %v", x.ApplyFrame(f))
}

// TestEncodedMax checks the bounds that batches are cut by, at the largest values.
func TestEncodedMax(t *testing.T) {
	full32 := [32]byte(bytes.Repeat([]byte{255}, 32))
	c := Command{
		Kind: 255, Type: 255, Side: 255, Outcome: 255, Market: math.MaxUint32,
		Wallet: math.MaxUint32, Owner: math.MaxUint32, Key: math.MaxUint32, Size: math.MinInt64,
		Cash: math.MinInt64, Expiry: math.MinInt64, Seen: math.MaxUint64, ID: full32,
		Address: Address{1}, Holder: Address{1}, Proof: make([]byte, ProofMax),
		Listing: &Listing{full32, [2]Token{full32, full32}, math.MaxUint64, 65535,
			math.MinInt64, math.MinInt64, Fee{65535, 255}, true, true},
		PostOnly: true, Only: 255, Revoke: true, Class: 255, Reason: 255, State: 255, Mode: 255,
		Prevention: 255, Price: 65535, FeeBound: math.MaxUint16, Deadline: math.MinInt64,
	}
	if n := len(appendCommand(nil, &c)) + binary.MaxVarintLen64; n > c.EncodedMax() {
		t.Errorf("command takes %d bytes, bound is %d", n, c.EncodedMax())
	}
	e := Event{255, 255, 255, 255, 255, 255, 254, 254, 65535, 65535, math.MaxUint32 - 1,
		math.MaxUint32 - 1, math.MaxUint32 - 1, math.MinInt64, math.MinInt64, math.MinInt64,
		[3]int64{math.MinInt64, math.MinInt64, math.MinInt64}, math.MaxUint64, OrderID{1}}
	if n := len(appendEvent(nil, &e, &c)); n > EventMax {
		t.Errorf("event takes %d bytes, bound is %d", n, EventMax)
	}
}

// TestRoundTrip encodes Commands and Events of any value.
func TestRoundTrip(t *testing.T) {
	i64 := rapid.Int64()
	rapid.Check(t, func(t *rapid.T) {
		c := Command{
			Kind: Kind(rapid.Byte().Draw(t, "kind")), Type: OrderType(rapid.Byte().Draw(t, "type")),
			Side: Side(rapid.Byte().Draw(t, "side")), Market: MarketNo(rapid.Uint32().Draw(t, "m")),
			Wallet: WalletNo(rapid.Uint32().Draw(t, "w")), Size: Size(i64.Draw(t, "size")),
			Cash: Cash(i64.Draw(t, "cash")), Seen: Sequence(rapid.Uint64().Draw(t, "seen")),
			ID: OrderID{rapid.Byte().Draw(t, "id")}, Key: rapid.Uint32().Draw(t, "key"),
			PostOnly: rapid.Bool().Draw(t, "post-only"), Revoke: rapid.Bool().Draw(t, "revoke"),
			Only: Only(rapid.Byte().Draw(t, "only")), Class: KeyClass(rapid.Byte().Draw(t, "class")),
			Reason: Reason(rapid.Byte().Draw(t, "why")),
			State:  MarketState(rapid.Byte().Draw(t, "state")), Mode: Mode(rapid.Byte().Draw(t, "mode")),
			Prevention: Prevention(rapid.Byte().Draw(t, "prevention")),
			Price:      Price(rapid.Uint16().Draw(t, "price")),
			FeeBound:   rapid.Uint16().Draw(t, "bound"), Deadline: Time(i64.Draw(t, "deadline")),
		}
		if rapid.Bool().Draw(t, "listing") {
			c.Listing = &Listing{Tick: Price(rapid.Uint16().Draw(t, "tick")),
				MinBuy: Cash(i64.Draw(t, "buy")), Open: rapid.Bool().Draw(t, "open"),
				Fee: Fee{rapid.Uint16().Draw(t, "rate"), rapid.Byte().Draw(t, "exponent")}}
		}
		e := Event{
			Kind:   EventKind(rapid.IntRange(1, int(lastEvent)).Draw(t, "event")),
			Price:  Price(rapid.Uint16().Draw(t, "price")),
			Market: MarketNo(rapid.Uint32().Draw(t, "m")), Remaining: Size(i64.Draw(t, "left")),
			Args:  [3]int64{i64.Draw(t, "a"), 0, i64.Draw(t, "b")},
			First: Sequence(rapid.Uint64().Draw(t, "first")),
			Order: OrderID{rapid.Byte().Draw(t, "order")}, Fee: Cash(i64.Draw(t, "fee")),
			State: MarketState(rapid.Byte().Draw(t, "state")), Mode: Mode(rapid.Byte().Draw(t, "mode")),
			Prevention: Prevention(rapid.Byte().Draw(t, "prevention")),
		}
		f := Frame{Commands: []Command{c}, Events: []Event{e, e}, Ends: []uint32{2}}
		f.Encode(Hash{})
		var back Frame
		if err := DecodeFrame(f.Bytes, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(f.Commands, back.Commands) ||
			!reflect.DeepEqual(f.Events, back.Events) {
			t.Fatalf("got %+v\nwant %+v", back, f)
		}
	})
}

// FuzzDecodeFrame: hostile bytes behind a valid header never cause a panic, and a frame that
// decodes encodes to the same bytes.
func FuzzDecodeFrame(f *testing.F) {
	sample := sampleFrame(f)
	f.Add(sample.Bytes[FrameOverhead:], uint32(len(sample.Commands)))
	f.Add([]byte{}, uint32(1))
	f.Add(bytes.Repeat([]byte{255}, 64), uint32(3))
	f.Fuzz(func(t *testing.T, body []byte, count uint32) {
		head := (&Frame{Engine: Version}).appendHeader(nil)
		b := append(head, body...)
		binary.LittleEndian.PutUint32(b[34:], count)
		binary.LittleEndian.PutUint32(b[crcAt-4:], uint32(len(body)))
		binary.LittleEndian.PutUint32(b[crcAt:], frameSum(b))
		var frame Frame
		if DecodeFrame(b, &frame) != nil {
			return
		}
		frame.Encode(frame.Prev)
		if !bytes.Equal(frame.Bytes, b) {
			t.Errorf("decoded\n%x\nencoded\n%x", b, frame.Bytes)
		}
	})
}

// FuzzFrame: whatever a frame holds, header and body, one that is taken is written again with the
// same bytes.
func FuzzFrame(f *testing.F) {
	f.Add(bytes.Clone(sampleFrame(f).Bytes), true)
	f.Add((&Frame{Engine: 9, Partition: 1, Epoch: 2, No: 3}).appendHeader(nil), true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend && len(b) >= FrameOverhead {
			binary.LittleEndian.PutUint32(b, frameMagic)
			binary.LittleEndian.PutUint16(b[4:], frameFormat)
			binary.LittleEndian.PutUint32(b[crcAt-4:], uint32(len(b)-FrameOverhead))
			binary.LittleEndian.PutUint32(b[crcAt:], frameSum(b))
		}
		var frame Frame
		if DecodeFrame(b, &frame) != nil {
			return
		}
		frame.Encode(frame.Prev)
		if !bytes.Equal(frame.Bytes, b) {
			t.Errorf("decoded\n%x\nencoded\n%x", b, frame.Bytes)
		}
	})
}

// FuzzApply: no Command that can be decoded makes Apply panic or break the books.
func FuzzApply(f *testing.F) {
	var body []byte
	sample := sampleFrame(f)
	for i := range sample.Commands {
		body = appendCommand(body, &sample.Commands[i])
	}
	const step = 10_000 // of Time: requests are forgotten, orders expire
	f.Add(body)
	f.Add(appendCommand(nil, &Command{Kind: 99}))
	f.Fuzz(func(t *testing.T, body []byte) {
		x, r, events := newExchange(1, 4), reader{rest: body}, []Event(nil)
		for seq := Sequence(1); len(r.rest) > 0 && seq < 200; seq++ {
			var c Command
			if r.command(&c); r.bad {
				break
			}
			before := x.Digest()
			events = x.Apply(&c, seq, Time(seq)*step, events[:0])
			if len(events) == 0 {
				t.Fatal("no event")
			}
			if e := &events[0]; e.Kind == Rejected && !Rejects[e.Reject].Final &&
				before != x.Digest() {
				t.Fatal("a rejected command changed the state")
			}
		}
		if err := audit(x); err != nil {
			t.Fatal(err)
		}
	})
}

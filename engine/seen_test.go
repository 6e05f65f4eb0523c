package engine

import (
	"encoding/binary"
	"testing"
)

// TestSame: ids that differ in one bit are not the same, whatever the other bits are.
func TestSame(t *testing.T) {
	d := dice(1)
	for range 20 {
		var a OrderID
		for i := range 4 {
			binary.LittleEndian.PutUint64(a[8*i:], d.next())
		}
		b := a
		if !same(&a, &b) {
			t.Fatal("an id is not the same as itself")
		}
		for bit := range 8 * len(a) {
			b = a
			b[bit/8] ^= 1 << (bit % 8)
			if same(&a, &b) || same(&b, &a) {
				t.Fatalf("bit %d of %x makes no difference", bit, a)
			}
		}
	}
}

// TestOneTag: two ids with the same tag that differ in one word are two orders, whether the first
// one rests or not. A hint of Touch for one of them is refused for the other.
func TestOneTag(t *testing.T) {
	x := NewExchange(1)
	newMixed(x, 1)
	seq := Sequence(1 << 20)
	apply := func(c Command) Event {
		seq++
		events := x.Apply(&c, seq, 1, nil)
		return events[len(events)-1]
	}
	c := Command{Kind: Place, Wallet: 1, Owner: 1, Market: 1, Size: 5 * Unit, Cash: Unit}
	c.Seen = 1 << 60
	for word := range 4 {
		first, second := oneTag(&x.seen, word, 0xff)
		for _, id := range []OrderID{first, second} {
			if c.ID = id; apply(c).Kind != Placed {
				t.Fatalf("word %d: an order with the tag of another is not placed", word)
			}
		}
		other := Command{Kind: Cancel, ID: first, Owner: 1}
		x.Touch([]*Command{&other})
		if e := apply(Command{Kind: Cancel, ID: second, Owner: 1}); e.Order != second {
			t.Errorf("word %d: %x was cancelled instead of %x", word, e.Order, second)
		}
		if e := apply(other); e.Kind != Cancelled || e.Order != first {
			t.Errorf("word %d: %+v", word, e)
		}
		gone, late := oneTag(&x.seen, word, 0x7f)
		c.ID = gone
		apply(c)
		apply(Command{Kind: Cancel, ID: gone, Owner: 1})
		if c.ID = late; apply(c).Kind != Placed {
			t.Errorf("word %d: an order with the tag of one that is gone is not placed", word)
		}
	}
}

// oneTag are two ids that differ in that word only and have the same tag.
func oneTag(s *seen, word int, fill byte) (first, second OrderID) {
	tags, id := map[uint32]OrderID{}, OrderID{}
	for i := range id {
		id[i] = fill
	}
	for n := uint64(1); ; n++ {
		binary.LittleEndian.PutUint64(id[8*word:], n*0x9e3779b97f4a7c15)
		tag := s.salt.tag(&id)
		if before, ok := tags[tag]; ok {
			return before, id
		}
		tags[tag] = id
	}
}

// TestPositionsOfOneTag: the tags of positions have no salt, and of 400,000 some are the same.
func TestPositionsOfOneTag(t *testing.T) {
	x, first, pairs := NewExchange(1), map[uint32][2]uint32{}, 0
	for w := range WalletNo(1000) {
		for m := range MarketNo(400) {
			tag := positionTag(w+1, m+1)
			before, ok := first[tag]
			if !ok {
				first[tag] = [2]uint32{uint32(w + 1), uint32(m + 1)}
				continue
			}
			pairs++
			a := x.addPosition(WalletNo(before[0]), MarketNo(before[1]))
			if got := x.position(w+1, m+1); got != 0 {
				t.Fatalf("wallet %d has position %d of %v", w+1, got, before)
			}
			b := x.addPosition(w+1, m+1)
			if x.position(w+1, m+1) != b ||
				x.position(WalletNo(before[0]), MarketNo(before[1])) != a {
				t.Fatalf("of two positions with the tag %x one is not found", tag)
			}
		}
	}
	if pairs == 0 {
		t.Fatal("no two tags are the same")
	}
}

// TestMarketsOfOneTag lists two conditions with the same tag and tokens with the same tag, twice,
// and splits with two requests with the same tag, twice: the engine tells them apart.
func TestMarketsOfOneTag(t *testing.T) {
	x := NewExchange(1)
	seq := Sequence(0)
	apply := func(c Command) Event {
		seq++
		events := x.Apply(&c, seq, 1, nil)
		return events[len(events)-1]
	}
	var both [2]Listing
	for i := range both {
		both[i] = Listing{Tick: 100, Open: true}
	}
	pair := func(fill byte, a, b *[32]byte) {
		first, second := oneTag(&x.seen, 3, fill)
		*a, *b = first, second
	}
	pair(1, (*[32]byte)(&both[0].Condition), (*[32]byte)(&both[1].Condition))
	pair(2, (*[32]byte)(&both[0].Tokens[0]), (*[32]byte)(&both[1].Tokens[0]))
	pair(3, (*[32]byte)(&both[0].Tokens[1]), (*[32]byte)(&both[1].Tokens[1]))
	for range 2 {
		for i := range both {
			if e := apply(Command{Kind: List, Listing: &both[i]}); e.Market != MarketNo(i+1) {
				t.Fatalf("condition %d: %+v", i, e)
			}
		}
	}
	stolen := Listing{Condition: Condition{9}, Tokens: [2]Token{both[1].Tokens[1], {9}}, Tick: 100}
	if e := apply(Command{Kind: List, Listing: &stolen}); e.Reject != RejectListing {
		t.Errorf("a token of two markets: %+v", e)
	}
	apply(Command{Kind: Deposit, Address: Address{1}, Cash: MaxAmount})
	first, second := oneTag(&x.seen, 2, 4)
	firsts := map[OrderID]Sequence{}
	for _, id := range []OrderID{first, second, second, first} {
		e := apply(Command{Kind: SplitTokens, Wallet: 1, Owner: 1, Market: 1, Size: Lot, ID: id})
		if was := firsts[id]; was == 0 && e.Kind != Split ||
			was != 0 && (e.Reject != RejectDuplicate || e.First != was) {
			t.Errorf("request %x: %+v", id, e)
		}
		if firsts[id] == 0 {
			firsts[id] = seq
		}
	}
}

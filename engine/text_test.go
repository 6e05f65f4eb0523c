package engine

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		v      int64
		digits int
		want   string
	}{
		{5100, 4, "0.51"}, {21_040_000, 6, "21.04"}, {100_000_000, 6, "100"}, {0, 6, "0"},
		{1, 6, "0.000001"}, {-1_500_000, 6, "-1.5"}, {42, 0, "42"}, {10_000, 4, "1"},
		{math.MaxInt64, 6, "9223372036854.775807"}, {math.MinInt64, 0, "-9223372036854775808"},
		{1, 18, "0.000000000000000001"},
	} {
		if got := string(AppendDecimal(nil, c.v, c.digits)); got != c.want {
			t.Errorf("%d / 10^%d: got %q, want %q", c.v, c.digits, got, c.want)
		}
	}
	if s := Price(5100).String() + Size(Lot).String() + Cash(1).String(); s != "0.510.010.000001" {
		t.Error(s)
	}
}

// TestParseToken compares with a library: numbers of every length, the largest ones, and every byte
// in every place.
func TestParseToken(t *testing.T) {
	agrees := func(s string) {
		t.Helper()
		var want Token
		digits := s != "" && strings.Trim(s, "0123456789") == ""
		n, ok := new(big.Int).SetString(s, 10)
		if ok = ok && digits && n.BitLen() <= 256; ok {
			n.FillBytes(want[:])
		}
		if got, good := ParseToken(s); got != want || good != ok {
			t.Fatalf("%q: %v %v, want %v %v", s, got, good, want, ok)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 100 {
		for range 50 {
			s := make([]byte, n)
			for i := range s {
				s[i] = byte('0' + r.IntN(10))
			}
			agrees(string(s))
		}
	}
	most := new(big.Int).Lsh(big.NewInt(1), 256)
	for i := int64(-2); i <= 2; i++ {
		s := new(big.Int).Add(most, big.NewInt(i)).String()
		agrees(s)
		agrees("00" + s)
	}
	fine := strings.Repeat("1234567890", 7) + "1234567"
	for i := range fine {
		for c := range 256 {
			agrees(fine[:i] + string([]byte{byte(c)}) + fine[i+1:])
		}
	}
}

func TestToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var token Token
		copy(token[rapid.IntRange(0, 32).Draw(t, "zeros"):],
			rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "token"))
		want := new(big.Int).SetBytes(token[:]).String()
		if token.String() != want {
			t.Fatalf("got %s, want %s", token, want)
		}
		if back, ok := ParseToken(want); !ok || back != token {
			t.Fatalf("%s is read as %s", want, back)
		}
	})
	most := new(big.Int).Lsh(big.NewInt(1), 256).String()
	for _, s := range []string{"", "x", "-1", "1 ", "0x1", most, strings.Repeat("9", 100)} {
		if token, ok := ParseToken(s); ok {
			t.Errorf("%q is read as %s", s, token)
		}
	}
	if zero, ok := ParseToken("0"); !ok || zero.String() != "0" {
		t.Error("zero is no token")
	}
	ten19, _ := ParseToken("100000000000000000000000000000000000000")
	if ten19.String() != "100000000000000000000000000000000000000" {
		t.Error("zeros between the digits are lost: " + ten19.String())
	}
}

func TestTradeID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		journal := rapid.Uint64Range(0, 1<<60-1).Draw(t, "journal")
		seq := Sequence(rapid.Uint64Range(0, 1<<48-1).Draw(t, "seq"))
		index := rapid.Uint32Range(0, 1<<14-1).Draw(t, "index")
		id := TradeID(journal, seq, index)
		if id[6]>>4 != 8 || id[8]>>6 != 2 {
			t.Fatalf("%x is no UUID of version 8", id)
		}
		if j, s, i, ok := ParseTradeID(id); !ok || j != journal || s != seq || i != index {
			t.Fatalf("got %d %d %d", j, s, i)
		}
		tx := TxHash(journal, seq, index)
		if j, s, i, ok := ParseTxHash(tx); !ok || j != journal || s != seq || i != index {
			t.Fatalf("got %d %d %d", j, s, i)
		}
		tx[rapid.IntRange(0, 31).Draw(t, "at")] ^= 1
		if _, _, _, ok := ParseTxHash(tx); ok {
			t.Fatal("a damaged receipt is read")
		}
	})
}

func TestRejectTexts(t *testing.T) {
	for code := range Rejects {
		r := Receipt{Reject: Reject(code), Args: [3]int64{1, 2, 3}}
		text := r.Text()
		if (text == "") != (code == 0) || strings.ContainsAny(text, "{}") {
			t.Errorf("%d: %q", code, text)
		}
	}
	r := Receipt{Reject: RejectTick, Order: OrderID{0xab}, Args: [3]int64{5055, 100}}
	want := "order 0xab" + strings.Repeat("0", 62) +
		" is invalid. Price (0.5055) breaks minimum tick size rule: 0.01"
	if r.Text() != want {
		t.Errorf("got %s", r.Text())
	}
	alice := Address{0xa1, 19: 0x1e}
	for _, c := range []struct {
		r    Receipt
		want string
	}{
		{Receipt{Reject: RejectBanned, Args: packAddress(&alice)},
			"'" + alice.Hex() + "' address in closed only mode"},
		{Receipt{Reject: RejectMinBuy, Args: [3]int64{998_200, Unit}},
			"invalid amount for a marketable BUY order ($0.9982), min size: $1"},
		{Receipt{Reject: RejectFee, Args: [3]int64{0, 1000}},
			"invalid fee rate (0), current market's taker fee: 1000"},
		{Receipt{Reject: RejectStale, Args: [3]int64{7, 8}},
			"the order came at 8, after its deadline 7"},
	} {
		if got := c.r.Text(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if (&Receipt{Reject: 999}).Text() != "" {
		t.Error("an unknown reject has a text")
	}
	if s := (Address{1}).Hex(); s != "0x0100000000000000000000000000000000000000" {
		t.Error(s)
	}
	if s := (Condition{1}).Hex(); s != (OrderID{1}).Hex() || len(s) != 66 {
		t.Error(s)
	}
}

// TestPackedAddress: an Address comes out of the Args of a refusal as it went in.
func TestPackedAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Address
		copy(a[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
		if args := packAddress(&a); unpackAddress(&args) != a {
			t.Fatalf("%x comes back as %x", a, unpackAddress(&args))
		}
	})
}

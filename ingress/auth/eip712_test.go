package auth

import (
	"bytes"
	"fmt"
	"testing"

	"clobd/engine"
)

func TestTypeHashes(t *testing.T) {
	for _, c := range []struct {
		got  [32]byte
		want string
	}{
		{orderTypeHashV2, "bb86318a2138f5fa8ae32fbe8e659f8fcf13cc6ae4014a707893055433818589"},
		{orderTypeHashV1, "a852566c4e14d00869b6db0220888a9090a13eccdaea03713ff0a3d27bf9767c"},
		{domainTypeHash, "8b73c3c69bb8fe3d512ecc4cf759cc79239f7b179b0ffacaa9a75d522b39400f"},
		{authDomainTypeHash, "c2f8787176b8ac6bf7215b4adcc1e069bf4ab82d9ab1df05a57a91d425935b6e"},
		{authTypeHash, "52578c5c725a28a84fedc8c22aa47947822942f35b4dc350db028e45320e035c"},
		{nestedTypeHash, "6ba028565cb324c2aa02bb714b9816d0bddd557a2f33bb36cf13272a4256bd42"},
	} {
		if fmt.Sprintf("%x", c.got) != c.want {
			t.Errorf("type hash %x, want %s", c.got, c.want)
		}
	}
	if len(OrderTypeV2) != 186 || NestedSize != 317 {
		t.Errorf("type string of %d, nested signature of %d bytes", len(OrderTypeV2), NestedSize)
	}
}

func TestStructHash(t *testing.T) {
	o := Order{
		Version: 2, Maker: mustAddress("0x1234567890123456789012345678901234567890"),
		Signer:      mustAddress("0x2345678901234567890123456789012345678901"),
		MakerAmount: 1_000_000, TakerAmount: 500_000,
		Salt: WordOf(12345), Timestamp: WordOf(1_700_000_000),
		Metadata: WordOf(0xdeadbeef), Builder: WordOf(0xfeedface),
	}
	for i := range o.Token {
		o.Token[i] = byte(i + 1)
	}
	sum := newHasher().order(&o)
	const want = "08b5c2f163715a48f38ae24e8d1b9ab97bb3d457245b854c1b6cb2a69142742a"
	if fmt.Sprintf("%x", sum) != want {
		t.Errorf("struct hash %x, want %s", sum, want)
	}
}

// TestEveryFieldIsSigned changes one field after the other: each must change the hash, and those
// of the other struct must not.
func TestEveryFieldIsSigned(t *testing.T) {
	changes := []struct {
		name   string
		v1, v2 bool
		change func(o *Order)
	}{
		{"salt", true, true, func(o *Order) { o.Salt[0]++ }},
		{"maker", true, true, func(o *Order) { o.Maker[0]++ }},
		{"signer", true, true, func(o *Order) { o.Signer[19]++ }},
		{"token", true, true, func(o *Order) { o.Token[9]++ }},
		{"makerAmount", true, true, func(o *Order) { o.MakerAmount++ }},
		{"takerAmount", true, true, func(o *Order) { o.TakerAmount += 1 << 63 }},
		{"side", true, true, func(o *Order) { o.Side ^= 1 }},
		{"signatureType", true, true, func(o *Order) { o.SignatureType++ }},
		{"taker", true, false, func(o *Order) { o.Taker[0]++ }},
		{"expiration", true, false, func(o *Order) { o.Expiration[0]++ }},
		{"nonce", true, false, func(o *Order) { o.Nonce[31]++ }},
		{"feeRate", true, false, func(o *Order) { o.FeeRate[31]++ }},
		{"timestamp", false, true, func(o *Order) { o.Timestamp[31]++ }},
		{"metadata", false, true, func(o *Order) { o.Metadata[0]++ }},
		{"builder", false, true, func(o *Order) { o.Builder[31]++ }},
	}
	h := newHasher()
	for _, version := range []uint8{1, 2} {
		before := h.order(sample(anvil(t), version, TypeEOA))
		for _, c := range changes {
			o := sample(anvil(t), version, TypeEOA)
			c.change(o)
			want := c.v1 && version == 1 || c.v2 && version == 2
			if got := h.order(o) != before; got != want {
				t.Errorf("V%d: changing %s changes the hash: %v, want %v", version, c.name, got, want)
			}
		}
	}
}

func TestClobAuth(t *testing.T) {
	s := anvil(t)
	const want = "0xf62319a987514da40e57e2f4d7529f7bac38f0355bd88bb5adbb3768d80de6c1" +
		"682518e0af677d5260366425f4361e7b70c25ae232aff0ab2331e2b164a1aedc1b"
	got, err := s.SignAuth(ChainTest, "10000000", 23)
	if err != nil || got != want {
		t.Fatalf("SignAuth = %s, %v", got, err)
	}
	made := AuthDigests(ChainTest, s.Address, "10000000", WordOf(23))
	separator, contents := made.Separator, made.Struct
	if fmt.Sprintf("%x", separator) != "a1df8f4e3112eaee2448fbec9ab79f68278407e49d9cf52e3dd3d9692fcac9b6" ||
		fmt.Sprintf("%x", contents) != "11100b50654a1fcdab3af4f391788034786202690bb9319db16fd3f335ef643c" {
		t.Errorf("separator %x, struct %x", separator, contents)
	}
}

// TestNestedKnown is a deposit wallet's signature that a published client's test holds.
func TestNestedKnown(t *testing.T) {
	o := &Order{
		Version: 2, SignatureType: TypeWallet, Maker: wallet, Signer: wallet,
		Token: engine.Token(WordOf(1234)), MakerAmount: 100_000_000, TakerAmount: 50_000_000,
		Salt: WordOf(479_249_096_354), Timestamp: WordOf(1_710_000_000_000),
	}
	d := domainOf(t, 2, false)
	signature, id := sign(t, anvil(t), o, d)
	const inner = "a3a093c83b6c20c83355c16ce94c92e6e9fcbdeb840618cc74f6c57a42ad145b" +
		"2b98db73d2c73cbf1f2b6af288566ae81960ddbc3a13921027358a8bff3be6ff1c"
	const contents = "d23d42d3ad94e65d78258cecaf8dcbaddac0f73dc085040f2c12bb595dd83804"
	separator := d.Separator()
	want := append(unhex(t, inner), separator[:]...)
	want = append(want, unhex(t, contents)...)
	want = append(append(want, OrderTypeV2...), 0x00, 0xba)
	if !bytes.Equal(signature, want) {
		t.Fatalf("signature %x\nwant      %x", signature, want)
	}
	if fmt.Sprintf("%x", id) != "2afca94626db91b2d556c351584a4cd93e13da32e377dc48c7983e43afa5ab47" {
		t.Errorf("hash %x", id)
	}
}

package auth

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"clobd/engine"
)

// anvilKey is the first account of a well-known development chain: public, and worth nothing.
const anvilKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

const anvilAddress = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

// curveOrder is the order of the curve, big endian.
var curveOrder = [32]byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
	0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
}

// noon is the clock of the tests.
var noon = time.Unix(1_760_000_000, 0)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	if len(s) > 1 && s[:2] == "0x" {
		s = s[2:]
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func anvil(t testing.TB) *Signer {
	t.Helper()
	s, err := NewSigner([32]byte(unhex(t, anvilKey)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// other is a second account.
func other(t testing.TB) *Signer {
	t.Helper()
	s, err := NewSigner([32]byte{31: 7})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wallet is an address that no key here is behind.
var wallet = mustAddress("0x1111111111111111111111111111111111111111")

// sample is an order of s of the given struct and signature type.
func sample(s *Signer, version, kind uint8) *Order {
	o := &Order{
		Version: version, SignatureType: kind, Side: engine.Sell,
		Maker: s.Address, Signer: s.Address, Token: engine.Token{0: 0x9d, 31: 4},
		MakerAmount: 100_000_000, TakerAmount: 52_000_000, Salt: WordOf(479_249_096_354),
	}
	switch kind {
	case TypeProxy, TypeSafe:
		o.Maker = wallet
	case TypeWallet:
		o.Maker, o.Signer = wallet, wallet
	}
	if version == 1 {
		o.Expiration, o.Nonce, o.FeeRate = WordOf(1_900_000_000), WordOf(3), WordOf(100)
	} else {
		o.Timestamp, o.Builder = WordOf(1_760_000_000_000), Word{0: 1, 31: 0xee}
	}
	return o
}

// domainOf is the first row of the test chain for that struct and kind of market.
func domainOf(t testing.TB, version uint8, negRisk bool) *Domain {
	t.Helper()
	for _, d := range Domains(ChainTest) {
		if d.structVersion() == version && d.serves(negRisk) {
			return &d
		}
	}
	t.Fatalf("no domain for struct V%d", version)
	return nil
}

func sign(t testing.TB, s *Signer, o *Order, d *Domain) ([]byte, engine.OrderID) {
	t.Helper()
	signature, id, err := s.SignOrder(o, d)
	if err != nil {
		t.Fatal(err)
	}
	return signature, id
}

// shared is the path of a file of the common test data, or a visible skip where there is none.
func shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
	path := filepath.Join(dir, "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the shared test data is not here: %v", err)
	}
	return path
}

// readJSON decodes a file of the shared data.
func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// SignHex is Sign with a signature of 64 hex digits.
func (t *Trio) SignHex(r *Request) error {
	if err := t.Sign(r); err != nil {
		return err
	}
	digest, _ := Digest(r.Signature)
	r.Signature = hex.EncodeToString(digest[:])
	return nil
}

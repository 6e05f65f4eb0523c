package vectors

import (
	"encoding/hex"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"clobd/engine"
	"clobd/ingress/auth"
)

// anvilKey is the first account of a well-known development chain: public, and worth nothing.
const anvilKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

const anvilAddress = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

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

func anvil(t testing.TB) *auth.Signer {
	t.Helper()
	s, err := auth.NewSigner([32]byte(unhex(t, anvilKey)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// other is a second account.
func other(t testing.TB) *auth.Signer {
	t.Helper()
	s, err := auth.NewSigner([32]byte{31: 7})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wallet is an address whose key nobody here has.
var wallet, _ = auth.ParseAddress("0x1111111111111111111111111111111111111111")

// sample is an order of s of the given struct and signature type.
func sample(s *auth.Signer, version, kind uint8) *auth.Order {
	o := &auth.Order{
		Version: version, SignatureType: kind, Side: engine.Sell,
		Maker: s.Address, Signer: s.Address, Token: engine.Token{0: 0x9d, 31: 4},
		MakerAmount: 100_000_000, TakerAmount: 52_000_000, Salt: auth.WordOf(479_249_096_354),
	}
	switch kind {
	case auth.TypeProxy, auth.TypeSafe:
		o.Maker = wallet
	case auth.TypeWallet:
		o.Maker, o.Signer = wallet, wallet
	}
	if version == 1 {
		o.Expiration, o.Nonce, o.FeeRate = auth.WordOf(1_900_000_000), auth.WordOf(3), auth.WordOf(100)
	} else {
		o.Timestamp, o.Builder = auth.WordOf(1_760_000_000_000), auth.Word{0: 1, 31: 0xee}
	}
	return o
}

// domainOf returns the first row of the test chain for that struct and kind of market.
func domainOf(t testing.TB, version uint8, negRisk bool) *auth.Domain {
	t.Helper()
	for _, d := range auth.Domains(auth.ChainTest) {
		if structOf(&d) == version && (d.Both || d.NegRisk == negRisk) {
			return &d
		}
	}
	t.Fatalf("no domain for struct V%d", version)
	return nil
}

func sign(t testing.TB, s *auth.Signer, o *auth.Order, d *auth.Domain) ([]byte, engine.OrderID) {
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

// twin returns the other signature that the same nonce allows: n - s for s, and the other v.
func twin(b []byte) []byte {
	c := append([]byte(nil), b...)
	order, _ := new(big.Int).SetString(
		"fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", 16)
	order.Sub(order, new(big.Int).SetBytes(b[32:64])).FillBytes(c[32:64])
	c[64] ^= 27 ^ 28
	return c
}

// structOf is the version of the struct that is signed for d.
func structOf(d *auth.Domain) uint8 {
	if d.Version == "1" {
		return 1
	}
	return 2
}

// request is a signed request of a key of the first account.
func request(t testing.TB, k *auth.Keyring) (*auth.Request, auth.Trio) {
	t.Helper()
	a := anvil(t).Address
	trio := k.Derive(a, 23)
	r := &auth.Request{
		Address: auth.Checksum(a), Timestamp: "1760000000",
		Method: "POST", Path: "/order", Body: []byte(`{"order": {"salt": 1}}`),
	}
	if err := trio.Sign(r); err != nil {
		t.Fatal(err)
	}
	return r, trio
}

package auth

import (
	"encoding/json"
	"os"
	"testing"
)

// TestRecoverOnVectors asks whose the signatures of the shared vectors are.
func TestRecoverOnVectors(t *testing.T) {
	h := newHasher()
	for _, name := range []string{
		"vectors/orders_polymarket_v2.json", "vectors/orders_kuest_v2.json",
		"vectors/orders_polymarket_v3.json", "vectors/clob_auth.json",
	} {
		b, err := os.ReadFile(shared(t, name))
		if err != nil {
			t.Fatal(err)
		}
		var all []struct{ Owner, Address, Signature, SignedDigest, Digest string }
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		for i, v := range all {
			digest := [32]byte(unhex(t, v.SignedDigest+v.Digest))
			owner := mustAddress(v.Owner + v.Address)
			if reason := h.load(unhex(t, v.Signature)[:65]); reason != "" {
				t.Fatalf("%s %d: %s", name, i, reason)
			}
			h.digest = digest
			if who, ok := h.recover(); !ok || who != owner {
				t.Errorf("%s %d: %x %v, owner %x", name, i, who, ok, owner)
			}
		}
	}
}

package auth

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"
)

// TestCurves holds the two implementations of the curve against each other: on good signatures,
// on damaged ones, and on noise. Without cgo both are the same, and the test says so.
func TestCurves(t *testing.T) {
	t.Log("this build's curve: " + curveName)
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	same := func(digest *[32]byte, rs *[65]byte) bool {
		t.Helper()
		a, aOK := curveRecover(digest, rs)
		b, bOK := pureRecover(digest, rs)
		if aOK != bOK || !bytes.Equal(a, b) {
			t.Errorf("digest %x, signature %x: %x %v, in pure Go %x %v", digest, rs, a, aOK, b, bOK)
		}
		return aOK
	}
	fill := func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	h := newHasher()
	recovered := 0
	for i := range 60 {
		var key, digest [32]byte
		var rs, pure [65]byte
		fill(key[:])
		fill(digest[:])
		if i == 0 {
			digest = [32]byte{}
		}
		if !curveSign(&digest, &key, &rs) || !pureSign(&digest, &key, &pure) || rs != pure {
			t.Fatalf("signatures of %x: %x and %x", digest, rs, pure)
		}
		got, ok := curveRecover(&digest, &rs)
		if !ok || h.account(got) != h.account(purePublic(&key)) {
			t.Fatalf("signature %x is of %x", rs, got)
		}
		same(&digest, &rs)
		rs[64] ^= 1
		same(&digest, &rs)
		rs[r.IntN(64)] ^= 1 << r.IntN(8)
		if same(&digest, &rs) {
			recovered++
		}
		fill(rs[:64])
		same(&digest, &rs)
	}
	if recovered == 0 || recovered == 60 {
		t.Errorf("%d of 60 damaged signatures are somebody's", recovered)
	}
	// The edges of the field and of the scalars that load lets through.
	for _, edge := range []byte{1, 2, 3, 4, 5, 6, 7, 8} {
		for v := range byte(2) {
			low := [65]byte{31: edge, 63: edge, 64: v}
			same(&[32]byte{31: 1}, &low)
			high := [65]byte{64: v}
			copy(high[:], curveOrder[:])
			copy(high[32:], curveHalf[:])
			high[31] -= edge
			same(&[32]byte{0: 255}, &high)
		}
	}
}

// TestCurvesOnVectors does the same over the shared vectors.
func TestCurvesOnVectors(t *testing.T) {
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
			a, aOK := curveRecover(&digest, &h.rs)
			p, pOK := pureRecover(&digest, &h.rs)
			if !aOK || !pOK || !bytes.Equal(a, p) || h.account(p) != owner {
				t.Errorf("%s %d: %x %v and %x %v, owner %x", name, i, a, aOK, p, pOK, owner)
			}
		}
	}
}

package curve

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// TestCurves holds the two implementations of the curve against each other: on good signatures,
// on damaged ones, and on noise. Without cgo both are the same, and the test says so.
func TestCurves(t *testing.T) {
	t.Log("this build's curve: " + Recovery)
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	same := func(digest *[32]byte, rs *[65]byte) bool {
		t.Helper()
		a, aOK := Recover(digest, rs)
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
	recovered := 0
	for i := range 60 {
		var key, digest [32]byte
		var rs, pure [65]byte
		fill(key[:])
		fill(digest[:])
		if i == 0 {
			digest = [32]byte{}
		}
		if !Sign(&digest, &key, &rs) || !pureSign(&digest, &key, &pure) || rs != pure {
			t.Fatalf("signatures of %x: %x and %x", digest, rs, pure)
		}
		got, ok := Recover(&digest, &rs)
		if !ok || !bytes.Equal(got, Public(&key)) {
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
	// The edges of the field and of the scalars that are in range.
	for _, edge := range []byte{1, 2, 3, 4, 5, 6, 7, 8} {
		for v := range byte(2) {
			low := [65]byte{31: edge, 63: edge, 64: v}
			same(&[32]byte{31: 1}, &low)
			high := [65]byte{64: v}
			copy(high[:], orderBytes)
			copy(high[32:], halfBytes)
			high[31] -= edge
			same(&[32]byte{0: 255}, &high)
		}
	}
}

// TestCurvesOnVectors does the same over the shared vectors; package auth asks whose they are.
func TestCurvesOnVectors(t *testing.T) {
	for _, name := range []string{
		"orders_polymarket_v2.json", "orders_kuest_v2.json", "orders_polymarket_v3.json", "clob_auth.json",
	} {
		b, err := os.ReadFile("../../../../shared/data/vectors/" + name)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("the shared test data is not here: %v", err)
		}
		var all []struct{ Signature, SignedDigest, Digest string }
		if err := errors.Join(err, json.Unmarshal(b, &all)); err != nil {
			t.Fatal(err)
		}
		for i, v := range all {
			digest, err := hex.DecodeString(strings.TrimPrefix(v.SignedDigest+v.Digest, "0x"))
			signature, signatureErr := hex.DecodeString(v.Signature[2:])
			if err := errors.Join(err, signatureErr); err != nil {
				t.Fatal(err)
			}
			rs := [65]byte(signature[:65])
			rs[64] -= 27
			a, aOK := Recover((*[32]byte)(digest), &rs)
			p, pOK := pureRecover((*[32]byte)(digest), &rs)
			if !aOK || !pOK || !bytes.Equal(a, p) {
				t.Errorf("%s %d: %x %v and %x %v", name, i, a, aOK, p, pOK)
			}
		}
	}
}

func BenchmarkRecover(b *testing.B) {
	digest, rs := &[32]byte{1}, &[65]byte{}
	if !Sign(digest, &[32]byte{31: 1}, rs) {
		b.Fatal("not signed")
	}
	for name, f := range map[string]func(*[32]byte, *[65]byte) ([]byte, bool){
		"build": Recover, "pure": pureRecover,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if key, ok := f(digest, rs); !ok || len(key) != 65 {
					b.Fatal("not recovered")
				}
			}
		})
	}
}

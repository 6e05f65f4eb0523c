package auth

import (
	"bytes"
	"errors"
	"testing"

	"clobd/engine"
)

// samples are one order of each kind, with the longest numbers that fit and with the shortest.
func samples(t testing.TB) []*Order {
	s := anvil(t)
	var all []*Order
	for _, c := range []struct{ version, kind uint8 }{
		{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {2, 3},
	} {
		o := sample(s, c.version, c.kind)
		long, short := *o, *o
		long.MakerAmount, long.TakerAmount = 1<<64-1, 1<<63
		for _, w := range long.tail() {
			*w = Word(bytes.Repeat([]byte{0xfe}, 32))
		}
		long.Salt, long.Taker = Word{0: 1}, wallet
		if c.version == 2 {
			long.Taker = engine.Address{}
		}
		short.MakerAmount, short.TakerAmount, short.Salt = 0, 0, Word{}
		for _, w := range short.tail() {
			*w = Word{}
		}
		all = append(all, o, &long, &short)
	}
	return all
}

func TestProof(t *testing.T) {
	s, v := anvil(t), NewVerifier(Domains(ChainTest))
	longest := 0
	for _, o := range samples(t) {
		signature, id := sign(t, s, o, domainOf(t, o.Version, true))
		found, err := v.Verify(o, signature, true)
		if err != nil {
			t.Fatal(err)
		}
		b := o.AppendProof([]byte("before"), &found, signature)
		b = b[len("before"):]
		longest = max(longest, len(b))
		p, err := ParseProof(b)
		if err != nil {
			t.Fatal(err)
		}
		again := p.Order
		again.Maker, again.Signer, again.Token, again.Side = o.Maker, o.Signer, o.Token, o.Side
		if again != *o || p.Separator != found.Separator || !bytes.Equal(p.Append(nil), b) {
			t.Errorf("V%d type %d: the proof is of another order", o.Version, o.SignatureType)
		}
		got, err := p.Verify(o.Maker, s.Address, o.Token, o.Side)
		if err != nil || got != id {
			t.Errorf("V%d type %d: %x, %v", o.Version, o.SignatureType, got, err)
		}
		for n := range b {
			if _, err := ParseProof(b[:n]); !errors.Is(err, errProof) {
				t.Errorf("cut to %d of %d bytes: %v", n, len(b), err)
			}
		}
	}
	if longest > proofMax || proofMax > engine.ProofMax {
		t.Errorf("longest proof %d, bound %d, room %d", longest, proofMax, engine.ProofMax)
	}
}

func TestProofRefuses(t *testing.T) {
	s, v := anvil(t), NewVerifier(Domains(ChainTest))
	for _, kind := range []uint8{TypeEOA, TypeProxy, TypeWallet} {
		o := sample(s, 2, kind)
		signature, _ := sign(t, s, o, domainOf(t, 2, false))
		found, err := v.Verify(o, signature, false)
		if err != nil {
			t.Fatal(err)
		}
		good := o.AppendProof(nil, &found, signature)
		verify := func(b []byte, wallet, owner engine.Address, side engine.Side) error {
			p, err := ParseProof(b)
			if err == nil {
				_, err = p.Verify(wallet, owner, o.Token, side)
			}
			return err
		}
		if err := verify(good, o.Maker, s.Address, o.Side); err != nil {
			t.Fatal(err)
		}
		// A chain counts only where it is signed: in the typed data of a wallet.
		chain := 3 + 32 + SignatureSize
		for i := range good {
			b := append([]byte(nil), good...)
			b[i] ^= 1
			free := kind != TypeWallet && i > chain && i <= chain+int(good[chain])
			if err := verify(b, o.Maker, s.Address, o.Side); err == nil && !free {
				t.Errorf("type %d: byte %d of %d flipped and still a proof", kind, i, len(b))
			}
		}
		for name, err := range map[string]error{
			"another wallet": verify(good, other(t).Address, s.Address, o.Side),
			"another owner":  verify(good, o.Maker, other(t).Address, o.Side),
			"another side":   verify(good, o.Maker, s.Address, o.Side.Other()),
			"more bytes":     verify(append(good, 0), o.Maker, s.Address, o.Side),
		} {
			if err == nil {
				t.Errorf("type %d: a proof for %s", kind, name)
			}
		}
	}
}

func FuzzParseProof(f *testing.F) {
	s, v := anvil(f), NewVerifier(Domains(ChainTest))
	for _, o := range samples(f) {
		signature, _ := sign(f, s, o, domainOf(f, o.Version, false))
		found, err := v.Verify(o, signature, false)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(o.AppendProof(nil, &found, signature))
	}
	f.Add([]byte{})
	f.Add([]byte{1, 2, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseProof(b)
		if err != nil {
			return
		}
		if again := p.Append(nil); !bytes.Equal(again, b) || len(b) > proofMax {
			t.Errorf("parsed %x, gives %x", b, again)
		}
		_, _ = p.Verify(wallet, wallet, engine.Token{}, engine.Buy)
	})
}

package auth

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sync"
	"testing"

	"clobd/engine"
	"clobd/ingress/auth/curve"
)

// numbered is account i of many.
func numbered(t testing.TB, i int) *Signer {
	t.Helper()
	var key [32]byte
	binary.BigEndian.PutUint64(key[16:], uint64(i)+1)
	s, err := NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// heat gives s a comb in v, and makes it the owner of the wallet.
func heat(v *Verifier, s *Signer, wallet engine.Address) {
	v.hot.building.Lock()
	defer v.hot.building.Unlock()
	v.hot.build(s.Address, curve.Public(&s.key))
	v.owners[hintSlot(&wallet)].Store(&s.Address)
}

// visits verifies an order of s so many times.
func visits(t *testing.T, v *Verifier, s *Signer, times int) {
	t.Helper()
	d := &v.Domains[0]
	o := sample(s, d.structVersion(), TypeEOA)
	signature, id := sign(t, s, o, d)
	for range times {
		found, err := v.Verify(o, signature, d.NegRisk)
		if err != nil || found.ID != id || found.Signer != s.Address {
			t.Fatalf("%+v, %v", found, err)
		}
	}
}

// TestHotAfter: a signer gets a comb with order hotAfter, of any type.
func TestHotAfter(t *testing.T) {
	for kind := TypeEOA; kind <= TypeWallet; kind++ {
		s, v := anvil(t), NewVerifier(Domains(ChainTest))
		d := &v.Domains[0]
		o := sample(s, 2, kind)
		signature, id := sign(t, s, o, d)
		for i := range 3 * hotAfter {
			if hot := v.hot.find(&s.Address) != nil; hot != (i >= hotAfter) {
				t.Fatalf("type %d: hot %v after %d orders", kind, hot, i)
			}
			found, err := v.Verify(o, signature, d.NegRisk)
			if want := (Verified{id, s.Address, 0, d.Separator(), d.Chain}); err != nil || found != want {
				t.Fatalf("type %d, %d: %+v, %v", kind, i, found, err)
			}
		}
		if got := allocs(func() { _, _ = v.Verify(o, signature, d.NegRisk) }); got != 0 {
			t.Errorf("type %d: %v allocations", kind, got)
		}
		if who := v.hot.find(&s.Address); !who.used.Load() {
			t.Errorf("type %d: the comb was never used", kind)
		}
	}
}

// TestHotRefusesTheSame: what is wrong with a signature is told of a hot signer's as of any other.
func TestHotRefusesTheSame(t *testing.T) {
	s := anvil(t)
	cold, hot := NewVerifier(Domains(ChainTest)), NewVerifier(Domains(ChainTest))
	heat(hot, s, wallet)
	heat(hot, other(t), wallet)
	heat(hot, s, wallet)
	same := func(name string, o *Order, signature []byte) {
		t.Helper()
		for range 2 {
			want, wantErr := cold.Verify(o, signature, false)
			got, err := hot.Verify(o, signature, false)
			if got != want || !reflect.DeepEqual(err, wantErr) {
				t.Errorf("type %d, %s: %+v, %v; want %+v, %v", o.SignatureType, name, got, err, want, wantErr)
			}
		}
	}
	for kind := TypeEOA; kind <= TypeWallet; kind++ {
		for _, c := range spoiledOrders(t, s) {
			if o := sample(s, 2, kind); kind != TypeWallet || c.name != "another signer" {
				same(c.name, o, c.sign(o))
			}
		}
		o := sample(s, 2, kind)
		for i := range cold.Domains { // rows that the hint is not of
			if d := &cold.Domains[i]; d.structVersion() == 2 {
				signature, _ := sign(t, s, o, d)
				same("row "+d.String(), o, signature)
			}
		}
		signature, _ := sign(t, s, o, domainOf(t, 2, false))
		for i := range signature {
			bent := append([]byte(nil), signature...)
			bent[i] ^= 1 << (i % 8)
			same(fmt.Sprintf("byte %d", i), o, bent)
		}
		o.Side ^= 1
		same("the other side", o, signature)
	}
	o := sample(s, 2, TypeWallet)
	signature, _ := sign(t, other(t), o, domainOf(t, 2, false))
	same("another owner", o, signature)
	if found, err := hot.Verify(o, signature, false); err != nil || found.Signer != other(t).Address {
		t.Errorf("another owner: %+v, %v", found, err)
	}
}

// hotCase is a signed order of the shared vectors.
type hotCase struct {
	Domain *struct {
		Name, Version, VerifyingContract string
		ChainID                          uint64
	}
	Order                 *wireOrder
	Body                  struct{ Order *wireOrder }
	Signature, PrivateKey string
}

// wireOrder is an order as clients send it.
type wireOrder struct {
	Salt, TokenID, MakerAmount, TakerAmount, Timestamp, Expiration, Nonce, FeeRateBps json.Number

	Maker, Signer, Taker, Metadata, Builder, Signature string
	SignatureType                                      uint8
	Side                                               any
}

// order is the order that is signed; a field that cannot be read fails the test.
func (w *wireOrder) order(t *testing.T) *Order {
	t.Helper()
	word := func(n json.Number) Word {
		v, ok := ParseWord(n.String())
		if !ok {
			t.Fatalf("%+v: number %q", w, n)
		}
		return v
	}
	amount := func(n json.Number) uint64 {
		v := word(n)
		amount, _ := v.Uint64()
		return amount
	}
	o := &Order{Version: 1, SignatureType: w.SignatureType, Maker: mustAddress(w.Maker),
		Signer: mustAddress(w.Signer), Token: engine.Token(word(w.TokenID)), Salt: word(w.Salt),
		MakerAmount: amount(w.MakerAmount), TakerAmount: amount(w.TakerAmount)}
	if w.Side == "SELL" {
		o.Side = engine.Sell
	}
	if w.Timestamp != "" {
		o.Version, o.Timestamp = 2, word(w.Timestamp)
		o.Metadata, o.Builder = Word(unhex(t, w.Metadata)), Word(unhex(t, w.Builder))
		return o
	}
	o.Taker = mustAddress(w.Taker)
	o.Expiration, o.Nonce, o.FeeRate = word(w.Expiration), word(w.Nonce), word(w.FeeRateBps)
	return o
}

// orderVectors calls f with each signed order of the file.
func orderVectors(t *testing.T, path string, f func(at string, v *hotCase)) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(at string, b json.RawMessage)
	walk = func(at string, b json.RawMessage) {
		var list []json.RawMessage
		_ = json.Unmarshal(b, &list)
		for i := range list {
			walk(fmt.Sprintf("%s[%d]", at, i), list[i])
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(b, &members)
		var v hotCase
		if members["domain"] != nil && json.Unmarshal(b, &v) == nil {
			if v.Order == nil {
				v.Order = v.Body.Order
			}
			if v.Order != nil {
				f(at, &v)
				return
			}
		}
		for key, value := range members {
			walk(at+"."+key, value)
		}
	}
	walk("", b)
}

// TestHotVectors verifies every order of the shared vectors forty times, by every body, alone and
// in lists: the answer is the library's to the last letter when the signer is unknown, when it is a
// newcomer, when it has become hot, and when it was so from the start.
func TestHotVectors(t *testing.T) {
	for name, want := range map[string]int{
		"vectors/orders_invalid.json": 43, "vectors/orders_kuest_v2.json": 68,
		"vectors/orders_polymarket_v1.json": 30, "vectors/orders_polymarket_v2.json": 128,
		"vectors/orders_polymarket_v3.json": 18, "vectors.json": 24,
	} {
		t.Run(name, func(t *testing.T) {
			path := shared(t, name)
			checked, accepted := 0, 0
			orderVectors(t, path, func(at string, v *hotCase) {
				if hotVector(t, name+at, v) {
					accepted++
				}
				checked++
			})
			t.Logf("%d orders, %d accepted", checked, accepted)
			if checked != want || accepted == 0 && name != "vectors/orders_invalid.json" {
				t.Errorf("%d orders, want %d; %d accepted", checked, want, accepted)
			}
		})
	}
}

// hotVector tells if the order was accepted.
func hotVector(t *testing.T, at string, c *hotCase) bool {
	d := Domain{Name: c.Domain.Name, Version: c.Domain.Version, Chain: c.Domain.ChainID,
		Contract: mustAddress(c.Domain.VerifyingContract), Both: true}
	o, text := c.Order.order(t), c.Signature
	if text == "" {
		text = c.Order.Signature
	}
	signature := unhex(t, text)
	v, all := NewVerifier([]Domain{d}), verifiers([]Domain{d})
	want, wantErr := byLibrary([]Domain{d}, o, signature, false)
	var key [32]byte
	if ParseHex(key[:], c.PrivateKey) {
		s, err := NewSigner(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, hot := range all {
			heat(hot, s, o.Signer)
		}
	}
	for i := range 39 {
		for _, v := range append(all, v) {
			var list []Submission
			switch i {
			case 20:
				list = make([]Submission, 3)
			case 30:
				list = make([]Submission, 9)
			}
			for k := range list {
				list[k] = Submission{Order: o, Signature: signature}
			}
			v.VerifyAll(list)
			for k := range list {
				if got := &list[k]; got.Verified != want || !reflect.DeepEqual(got.Err, wantErr) {
					t.Fatalf("%s: %+v, %v; want %+v, %v", at, got.Verified, got.Err, want, wantErr)
				}
			}
			got, err := v.Verify(o, signature, false)
			if got != want || !reflect.DeepEqual(err, wantErr) {
				t.Fatalf("%s: %+v, %v; want %+v, %v", at, got, err, want, wantErr)
			}
		}
	}
	if wantErr == nil && v.hot.find(&want.Signer) == nil {
		t.Errorf("%s: the signer is not hot", at)
	}
	return wantErr == nil
}

// TestHotEviction: a newcomer comes later, and instead of one who is away.
func TestHotEviction(t *testing.T) {
	v := NewVerifier(Domains(ChainTest))
	v.hot = newHotSigners(4, v.hot.checker)
	hot := func(i int) bool { a := numbered(t, i).Address; return v.hot.find(&a) != nil }
	for i := range 4 {
		visits(t, v, numbered(t, i), hotAfter)
	}
	for i := range 4 {
		if !hot(i) {
			t.Errorf("signer %d is not hot", i)
		}
	}
	visits(t, v, numbered(t, 0), 1) // used: these two stay
	visits(t, v, numbered(t, 2), 1)
	visits(t, v, numbered(t, 4), hotInstead-1)
	if hot(4) {
		t.Error("a newcomer is hot too early")
	}
	visits(t, v, numbered(t, 4), 1)
	if !hot(4) || !hot(0) || hot(1) || !hot(2) || !hot(3) {
		t.Errorf("hot: %v %v %v %v %v", hot(0), hot(1), hot(2), hot(3), hot(4))
	}
	visits(t, v, numbered(t, 1), hotInstead-1) // must begin again
	if hot(1) {
		t.Error("an evicted signer is hot too early")
	}
	visits(t, v, numbered(t, 1), 1)
	if !hot(1) || !hot(4) || len(*v.hot.all.Load()) != 4 || len(v.hot.ring) != 4 {
		t.Errorf("hot: %v, %v; %d in all", hot(1), hot(4), len(*v.hot.all.Load()))
	}
}

// TestHotCounts: strangers in the slot of a regular signer do not keep it cold, and one comb is
// built at a time.
func TestHotCounts(t *testing.T) {
	s := anvil(t)
	key := curve.Public(&s.key)
	h := newHotSigners(4, curve.NewChecker(true))
	stranger := s.Address
	for i := range 2*hotAfter - 1 {
		h.counted(s.Address, key)
		if stranger[7]++; i%2 == 0 {
			h.counted(stranger, key)
		}
		if hot := h.find(&s.Address) != nil; hot != (i == 2*hotAfter-2) {
			t.Fatalf("hot %v after %d orders", hot, i+1)
		}
	}
	if len(*h.all.Load()) != 1 {
		t.Errorf("%d are hot", len(*h.all.Load()))
	}
	h.building.Lock()
	busy := other(t)
	for range 3 * hotAfter {
		h.counted(busy.Address, curve.Public(&busy.key))
	}
	if h.find(&busy.Address) != nil {
		t.Error("two combs built at a time")
	}
	h.building.Unlock()
	h.counted(busy.Address, curve.Public(&busy.key))
	if h.find(&busy.Address) == nil {
		t.Error("no comb after the other was built")
	}
}

// TestHotConcurrently lets many goroutines use, build and evict combs.
func TestHotConcurrently(t *testing.T) {
	v := NewVerifier(Domains(ChainTest))
	v.hot = newHotSigners(2, v.hot.checker)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			d := &v.Domains[0]
			s := numbered(t, i)
			o, nested := sample(s, 2, TypeEOA), sample(s, 2, TypeWallet)
			plain, id, err := s.SignOrder(o, d)
			inner, nestedID, nestedErr := s.SignOrder(nested, d)
			if err != nil || nestedErr != nil {
				t.Errorf("%v, %v", err, nestedErr)
				return
			}
			bent := append([]byte(nil), plain...)
			bent[40] ^= 1
			for range 3 * hotInstead / 2 {
				a, err := v.Verify(o, plain, d.NegRisk)
				b, nestedErr := v.Verify(nested, inner, d.NegRisk)
				if err != nil || nestedErr != nil || a.ID != id || b.ID != nestedID ||
					a.Signer != s.Address || b.Signer != s.Address {
					t.Errorf("%d: %+v, %v; %+v, %v", i, a, err, b, nestedErr)
					return
				}
				list := []Submission{{Order: o, Signature: plain, NegRisk: d.NegRisk},
					{Order: nested, Signature: inner, NegRisk: d.NegRisk},
					{Order: o, Signature: bent, NegRisk: d.NegRisk}}
				v.VerifyAll(list)
				if list[0].Verified != a || list[1].Verified != b || list[2].Err == nil {
					t.Errorf("%d: as a list %+v", i, list)
				}
			}
		})
	}
	group.Wait()
	if n := len(*v.hot.all.Load()); n < 1 || n > 2 {
		t.Errorf("%d are hot, want 1 or 2", n)
	}
	// Whoever built one may have held up all others, who had to go on without: now nobody builds.
	for i := range 4 {
		visits(t, v, numbered(t, i), hotInstead)
	}
	if n := len(*v.hot.all.Load()); n != 2 {
		t.Errorf("%d are hot, want 2", n)
	}
}

// BenchmarkVerifyHot is one order of each of so many hot signers in turn.
func BenchmarkVerifyHot(b *testing.B) {
	for _, n := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := NewVerifier(Domains(ChainTest))
			d := &v.Domains[0]
			orders, signatures := make([]*Order, n), make([][]byte, n)
			for i := range n {
				s := numbered(b, i)
				heat(v, s, wallet)
				orders[i] = sample(s, 2, TypeEOA)
				signatures[i], _ = sign(b, s, orders[i], d)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(orders[i], signatures[i], d.NegRisk); err != nil {
					b.Fatal(err)
				}
				i = (i + 1) % n
			}
		})
	}
}

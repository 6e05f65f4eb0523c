package vectors

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/ingress/auth"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/signed.json again")

func checkFile(t *testing.T, path string) (agree int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	agree, disagree, err := Check(filepath.Base(path), f, func(line string) { t.Error(line) })
	if err != nil || disagree != 0 {
		t.Errorf("%s: %d agree, %d disagree, %v", path, agree, disagree, err)
	}
	return agree
}

func TestSharedVectors(t *testing.T) {
	for name, want := range map[string]int{
		"vectors/clob_auth.json":            50,
		"vectors/constants.json":            1,
		"vectors/hmac.json":                 50,
		"vectors/orders_invalid.json":       43,
		"vectors/orders_kuest_v2.json":      68,
		"vectors/orders_polymarket_v1.json": 30,
		"vectors/orders_polymarket_v2.json": 128,
		"vectors/orders_polymarket_v3.json": 18,
		"vectors.json":                      65,
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkFile(t, shared(t, name)); got != want {
				t.Errorf("%d agree, want %d", got, want)
			}
		})
	}
}

func TestOwnVectors(t *testing.T) {
	if got := checkFile(t, "testdata/known.json"); got != 23 {
		t.Errorf("known.json: %d agree", got)
	}
	path := "testdata/signed.json"
	if *rewrite {
		b, err := json.MarshalIndent(signedVectors(t), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := checkFile(t, path); got != 37 {
		t.Errorf("signed.json: %d agree", got)
	}
}

// signedVectors is one order of each type and domain of the test chain, and each way to break one.
func signedVectors(t *testing.T) []any {
	s := anvil(t)
	var all []any
	for i, d := range auth.Domains(auth.ChainTest) {
		kinds := []uint8{uint8(i % 3), auth.TypeWallet}
		if structOf(&d) == 1 {
			kinds = kinds[:1]
		}
		for _, kind := range kinds {
			o := sample(s, structOf(&d), kind)
			o.Salt = auth.WordOf(uint64(1000*i) + uint64(kind))
			all = append(all, vectorOf(t, s, o, &d))
		}
	}
	all = append(all, brokenVectors(t, s)...)
	return append(all, messageVectors(t, s)...)
}

// brokenVectors are orders to refuse.
func brokenVectors(t *testing.T, s *auth.Signer) []any {
	var all []any
	d := domainOf(t, 2, false)
	for i, b := range []struct {
		name string
		kind uint8
		bend func(map[string]any)
	}{
		{"high_s", 0, func(v map[string]any) {
			v["signature"] = fmt.Sprintf("%#x", twin(unhex(t, v["signature"].(string))))
		}},
		{"flipped_bit", 1, func(v map[string]any) {
			b := unhex(t, v["signature"].(string))
			b[50] ^= 4
			v["signature"] = fmt.Sprintf("%#x", b)
		}},
		{"bad_v", 2, func(v map[string]any) {
			v["signature"] = v["signature"].(string)[:130] + "1d"
		}},
		{"side_flipped", 0, func(v map[string]any) { v["order"].(map[string]any)["side"] = "BUY" }},
		{"another_owner", 3, func(v map[string]any) { v["owner"] = auth.Checksum(other(t).Address) }},
		{"inner_signature_only", 3, func(v map[string]any) {
			v["signature"] = v["signature"].(string)[:132]
		}},
		{"another_contract", 3, func(v map[string]any) {
			v["domain"].(map[string]any)["verifyingContract"] = auth.Checksum(wallet)
		}},
		{"maker_not_signer", 0, func(v map[string]any) {
			v["order"].(map[string]any)["maker"] = auth.Checksum(wallet)
		}},
		{"metadata_changed", 1, func(v map[string]any) {
			v["order"].(map[string]any)["metadata"] = "0x" + strings.Repeat("01", 32)
		}},
	} {
		o := sample(s, 2, b.kind)
		o.Salt = auth.WordOf(uint64(i))
		v := vectorOf(t, s, o, d)
		for _, key := range []string{"orderHash", "domainSeparator"} {
			delete(v, key)
		}
		v["valid"], v["mutation"] = false, b.name
		b.bend(v)
		all = append(all, v)
	}
	return all
}

// messageVectors are HMACs and ClobAuth messages; the last of each must be refused.
func messageVectors(t *testing.T, s *auth.Signer) []any {
	var all []any
	k := auth.NewKeyring([32]byte{0: 1, 31: 2})
	for i := range 3 {
		r, trio := request(t, k)
		r.Body = []byte(fmt.Sprintf(`{"n": %d}`, i))
		if err := trio.Sign(r); err != nil {
			t.Fatal(err)
		}
		all = append(all, map[string]any{
			"secret": trio.Secret, "timestamp": r.Timestamp, "method": r.Method, "path": r.Path,
			"body": string(r.Body), "signature": r.Signature, "valid": i < 2,
		})
	}
	maps.Copy(all[len(all)-1].(map[string]any), map[string]any{"path": "/other"})
	for i, chain := range []uint64{auth.ChainMain, auth.ChainTest, auth.ChainLocal} {
		signature, err := s.SignAuth(chain, "1760000000", uint32(i))
		if err != nil {
			t.Fatal(err)
		}
		v := map[string]any{
			"chainId": chain, "address": anvilAddress, "timestamp": "1760000000", "nonce": i + i/2,
			"message": auth.AuthMessage, "signature": signature, "valid": i < 2, "privateKey": "0x" + anvilKey,
		}
		if i < 2 {
			nonce := auth.WordOf(uint64(i))
			digest := auth.AuthDigests(chain, s.Address, "1760000000", nonce).Signed
			v["digest"] = fmt.Sprintf("%#x", digest[:])
		}
		all = append(all, v)
	}
	return all
}

// vectorOf is a signed order in the form of a vector.
func vectorOf(t *testing.T, s *auth.Signer, o *auth.Order, d *auth.Domain) map[string]any {
	signature, id := sign(t, s, o, d)
	separator := d.Separator()
	number := func(w auth.Word) string {
		v, _ := w.Uint64()
		return fmt.Sprint(v)
	}
	order := map[string]any{
		"salt": number(o.Salt), "maker": auth.Checksum(o.Maker), "signer": auth.Checksum(o.Signer),
		"tokenId": new(big.Int).SetBytes(o.Token[:]).String(), "makerAmount": fmt.Sprint(o.MakerAmount),
		"takerAmount": fmt.Sprint(o.TakerAmount), "side": "SELL", "signatureType": o.SignatureType,
	}
	if o.Version == 1 {
		maps.Copy(order, map[string]any{
			"taker": auth.Checksum(o.Taker), "expiration": number(o.Expiration),
			"nonce": number(o.Nonce), "feeRateBps": number(o.FeeRate),
		})
	} else {
		maps.Copy(order, map[string]any{
			"timestamp": number(o.Timestamp), "metadata": fmt.Sprintf("%#x", o.Metadata[:]),
			"builder": fmt.Sprintf("%#x", o.Builder[:]),
		})
	}
	return map[string]any{
		"owner": auth.Checksum(s.Address), "privateKey": "0x" + anvilKey, "valid": true,
		"domain": map[string]any{
			"name": d.Name, "version": d.Version, "chainId": d.Chain,
			"verifyingContract": auth.Checksum(d.Contract),
		},
		"order": order, "signature": fmt.Sprintf("%#x", signature),
		"orderHash": fmt.Sprintf("%#x", id[:]), "domainSeparator": fmt.Sprintf("%#x", separator[:]),
	}
}

// TestVectorsDisagree changes each value of a good vector: every change must be noticed.
func TestVectorsDisagree(t *testing.T) {
	s := anvil(t)
	d := domainOf(t, 2, false)
	for path, value := range map[string]any{
		"orderHash": "0x00", "domainSeparator": "0x" + strings.Repeat("00", 32), "valid": false,
		"owner": auth.Checksum(wallet), "signature": "0x12", "order.salt": "2", "order.side": "BOTH",
		"order.makerAmount": "-1", "order.metadata": "0x", "domain.chainId": 1,
		"domain.verifyingContract": "none", "domain.name": "", "signedDigest": "0x01",
	} {
		v := vectorOf(t, s, sample(s, 2, auth.TypeWallet), d)
		at := v
		if parent, key, nested := strings.Cut(path, "."); nested {
			at, path = v[parent].(map[string]any), key
		}
		at[path] = value
		b, err := json.Marshal(map[string]any{"deep": []any{[]any{v}}})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		agree, disagree, err := Check("x", strings.NewReader(string(b)),
			func(line string) { lines = append(lines, line) })
		if agree != 0 || disagree != 1 || err != nil || len(lines) != 1 {
			t.Errorf("%s = %v: %d agree, %d disagree, %v, %q", path, value, agree, disagree, err, lines)
		}
	}
	for _, s := range []string{"", "{", "[1,]"} {
		if _, _, err := Check("x", strings.NewReader(s), nil); err == nil {
			t.Errorf("%q is JSON", s)
		}
	}
	for _, s := range []string{"null", "3", "[]", `{"order": 1}`, `[[{"a": {"b": null}}]]`,
		`{"source": "x", "order": {"salt": 1, "signature": "0x"}}`, `{"signature": null}`} {
		if a, d, err := Check("x", strings.NewReader(s), nil); a+d != 0 || err != nil {
			t.Errorf("%s: %d, %d, %v", s, a, d, err)
		}
	}
}

// TestVectorsIncomplete: a vector that would be skipped, or compared with nothing, disagrees by
// name.
func TestVectorsIncomplete(t *testing.T) {
	s := anvil(t)
	order := func() map[string]any {
		return vectorOf(t, s, sample(s, 2, auth.TypeEOA), domainOf(t, 2, false))
	}
	message := func() map[string]any {
		return messageVectors(t, s)[3].(map[string]any)
	}
	rename := func(v map[string]any, key, name string) map[string]any {
		v[name] = v[key]
		delete(v, key)
		return v
	}
	set := func(v map[string]any, key string, value any) map[string]any {
		v[key] = value
		return v
	}
	const unknown, empty = "looks like a vector", "states no hash"
	recomputed := map[string]any{"other": "0x00"}
	for _, c := range []struct {
		name  string
		bend  map[string]any
		wants string
	}{
		{"good order", order(), ""},
		{"good message", message(), ""},
		{"hash elsewhere", set(rename(order(), "orderHash", "x"), "signedDigest",
			order()["orderHash"]), ""},
		{"domain misspelt", rename(order(), "domain", "domian"), unknown},
		{"no signature either", rename(rename(order(), "domain", "domian"), "signature", "s"), unknown},
		{"order misspelt", rename(order(), "order", "oder"), unknown},
		{"order in a body", map[string]any{"body": map[string]any{"order": order()["order"]},
			"orderHash": "0x00"}, unknown},
		{"nonce misspelt", rename(message(), "nonce", "once"), unknown},
		{"message misspelt", rename(message(), "message", "msg"), unknown},
		{"a message alone", map[string]any{"message": "hello"}, unknown},
		{"valid as text", set(order(), "valid", "true"), `valid is "true", neither`},
		{"valid as number", set(order(), "valid", 1), "valid is 1, neither"},
		{"valid as null", set(message(), "valid", nil), "valid is null, neither"},
		{"hash misspelt", rename(order(), "orderHash", "oderHash"), empty},
		{"hash empty", set(order(), "orderHash", ""), empty},
		{"hash no text", set(order(), "orderHash", []int{1}), empty},
		{"recomputed to nothing", set(rename(order(), "orderHash", "x"), "recomputed", recomputed), empty},
		{"recomputed to another", set(order(), "recomputed", map[string]any{"orderHash": "0x00"}),
			"order hash is"},
		{"no digest", rename(message(), "digest", "x"), empty},
		{"no separator", map[string]any{"name": "a", "version": "1", "chainId": 1,
			"domainSeparator": nil}, empty},
		{"no type hash", map[string]any{"string": "A()", "typeHash": ""}, empty},
		{"no struct hash", map[string]any{"order": order()["order"], "structHash": nil}, empty},
	} {
		b, err := json.Marshal([]any{map[string]any{"deep": c.bend}})
		if err != nil {
			t.Fatal(err)
		}
		line := ""
		agree, disagree, err := Check("x", strings.NewReader(string(b)),
			func(told string) { line += told })
		good := agree == 1 && disagree == 0
		if c.wants != "" {
			good = agree == 0 && disagree == 1 && strings.Contains(line, c.wants) &&
				strings.HasPrefix(line, "x: [0].deep: ")
		}
		if !good || err != nil {
			t.Errorf("%s: %d agree, %d disagree, %v, %q", c.name, agree, disagree, err, line)
		}
	}
}

package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
)

// FuzzAuthenticate: the five headers of a request are accepted if they are what the standard
// library makes of the key's texts, and only then.
func FuzzAuthenticate(f *testing.F) {
	k := NewKeyring(master)
	good, trio := request(f, k)
	add := func(r Request) {
		f.Add(r.Address, r.Key, r.Passphrase, r.Timestamp, r.Signature, r.Path, r.Body)
	}
	add(*good)
	for _, spoil := range []func(r *Request){
		func(r *Request) { r.Address = strings.ToLower(r.Address) },
		func(r *Request) { r.Address = "0X" + r.Address[2:] },
		func(r *Request) { r.Address = "" },
		func(r *Request) { r.Passphrase = "0x" + strings.ToUpper(r.Passphrase) },
		func(r *Request) { r.Key = strings.ToUpper(r.Key) },
		func(r *Request) { r.Timestamp += "000" },
		func(r *Request) { r.Timestamp = "+" + r.Timestamp[1:] },
		func(r *Request) { r.Signature = strings.TrimRight(r.Signature, "=") },
		func(r *Request) { r.Signature = strings.NewReplacer("-", "+", "_", "/").Replace(r.Signature) },
		func(r *Request) { r.Signature = "0x" + strings.Repeat("0", 64) },
		func(r *Request) { r.Path += "?a=b" },
		func(r *Request) { r.Body = nil },
	} {
		r := *good
		spoil(&r)
		add(r)
		_ = trio.Sign(&r)
		add(r)
	}
	a := anvil(f).Address
	f.Fuzz(func(t *testing.T, address, key, passphrase, timestamp, signature, path string,
		body []byte) {
		r := Request{Address: address, Key: key, Passphrase: passphrase, Timestamp: timestamp,
			Signature: signature, Method: good.Method, Path: path, Body: body}
		who, err := k.Authenticate(&r, noon)
		want := strings.EqualFold(address, "0x"+hex.EncodeToString(a[:])) && key == trio.Key &&
			strings.EqualFold(passphrase, trio.Passphrase) && isNow(timestamp) && signs(&r, trio.Secret)
		if want != (err == nil) {
			t.Fatalf("%+v: %v, want accepted: %v", r, err, want)
		}
		if want && who != (Identity{a, 23}) {
			t.Fatalf("%+v: accepted as %+v", r, who)
		}
	})
}

// isNow reports whether a timestamp is in the window around noon.
func isNow(text string) bool {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || len(text) > 16 {
		return false
	}
	ms := float64(v)
	if v < 1e12 {
		ms *= 1000
	}
	age := float64(noon.UnixMilli()) - ms
	return age <= 60_000 && age >= -30_000
}

// signs reports whether a request carries its HMAC, in one of the forms that clients write.
func signs(r *Request, secret string) bool {
	key, _ := base64.URLEncoding.DecodeString(secret)
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(r.Timestamp + r.Method + r.Path))
	sum.Write(r.Body)
	want := sum.Sum(nil)
	digits := hex.EncodeToString(want)
	if strings.EqualFold(r.Signature, digits) || strings.EqualFold(r.Signature, "0x"+digits) {
		return true
	}
	text := strings.NewReplacer("-", "+", "_", "/").Replace(r.Signature)
	full := base64.StdEncoding.EncodeToString(want)
	return text == full || text == strings.TrimRight(full, "=")
}

// FuzzKeyRequest: a request for a key is granted only with a signature that the account made, for
// the account, timestamp, number and chain that it signed.
func FuzzKeyRequest(f *testing.F) {
	s := anvil(f)
	stamp := strconv.FormatInt(noon.Unix(), 10)
	signed, err := s.SignAuth(ChainTest, stamp, 23)
	if err != nil {
		f.Fatal(err)
	}
	signed = strings.TrimPrefix(signed, "0x")
	for _, c := range [][5]string{
		{Checksum(s.Address), "0x" + signed, stamp, "23", ""},
		{strings.ToLower(Checksum(s.Address)), signed, stamp, "23", strconv.Itoa(ChainTest)},
		{Checksum(s.Address), "0x" + signed, stamp, "", "137"}, {"", "", "", "", ""},
		{Checksum(s.Address), strings.Repeat("f", 130), stamp, "4294967296", "+1"},
		{Checksum(s.Address), "0x" + signed[:128] + "00", stamp, "0023", "080002"},
	} {
		f.Add(c[0], c[1], c[2], c[3], c[4])
	}
	chains := []uint64{ChainTest, ChainMain}
	f.Fuzz(func(t *testing.T, address, signature, timestamp, nonce, chain string) {
		r := L1Request{Address: address, Signature: signature, Timestamp: timestamp, Nonce: nonce,
			Chain: chain}
		who, number, err := VerifyL1(&r, chains, noon)
		if err != nil {
			return
		}
		digits := strings.TrimPrefix(strings.ToLower(signature), "0x")
		other := chain != "" && strings.TrimLeft(chain, "0") != strconv.Itoa(ChainTest)
		if who != s.Address || number != 23 || timestamp != stamp || other ||
			!strings.HasPrefix(digits, signed[:128]) {
			t.Fatalf("%+v: granted to %x, number %d", r, who, number)
		}
	})
}

package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

// TestMac holds our HMAC against the library's, for keys shorter and longer than a block.
func TestMac(t *testing.T) {
	m := newMac()
	for _, key := range []int{0, 1, 32, 63, 64, 65, 200} {
		for _, size := range []int{0, 1, 55, 56, 64, 1000} {
			k, text, body := bytes.Repeat([]byte{7}, key), make([]byte, size/3), make([]byte, size)
			oracle := hmac.New(sha256.New, k)
			oracle.Write(text)
			oracle.Write(body)
			m.text = append(m.text[:0], text...)
			m.compute(k, body)
			if !bytes.Equal(oracle.Sum(nil), m.out[:]) {
				t.Errorf("key of %d bytes, text of %d: %x", key, size, m.out)
			}
		}
	}
}

// TestRequestKnown is what tests of published clients hold.
func TestRequestKnown(t *testing.T) {
	trio := Trio{Key: "k", Passphrase: "p", Secret: strings.Repeat("A", 43) + "="}
	for _, c := range []struct {
		r         Request
		b64, hex_ string
	}{
		{
			Request{Timestamp: "1", Method: "GET", Path: "/"},
			"eHaylCwqRSOa2LFD77Nt_SaTpbsxzN8eTEI3LryhEj4=",
			"7876b2942c2a45239ad8b143efb36dfd2693a5bb31ccdf1e4c42372ebca1123e",
		},
		{
			Request{
				Timestamp: "1000000", Method: "test-sign", Path: "/orders",
				Body: []byte(`{"hash": "0x123"}`),
			},
			"ZwAdJKvoYRlEKDkNMwd5BuwNNtg93kNaR_oU2HrfVvc=",
			"67001d24abe861194428390d33077906ec0d36d83dde435a47fa14d87adf56f7",
		},
	} {
		r := c.r
		if err := trio.Sign(&r); err != nil || r.Signature != c.b64 || r.Key != "k" || r.Passphrase != "p" {
			t.Errorf("Sign: %+v, %v", r, err)
		}
		if err := trio.SignHex(&r); err != nil || r.Signature != c.hex_ {
			t.Errorf("SignHex: %s, %v", r.Signature, err)
		}
	}
	for _, secret := range []string{"", "=", "!!!!", "AAAA\x00"} {
		broken := Trio{Secret: secret}
		if err := broken.Sign(&Request{}); err == nil {
			t.Errorf("signed with the secret %q", secret)
		}
	}
}

func TestDigestForms(t *testing.T) {
	want := sha256.Sum256([]byte("chosen so that both alphabets differ: 61"))
	std, url := base64.StdEncoding.EncodeToString(want[:]), base64.URLEncoding.EncodeToString(want[:])
	if std == url {
		t.Fatal("this digest tells no alphabet from the other")
	}
	lower := hex.EncodeToString(want[:])
	forms := []struct {
		name, text string
		ok         bool
	}{
		{"hex lower", lower, true},
		{"hex upper", strings.ToUpper(lower), true},
		{"hex with 0x", "0x" + lower, true},
		{"hex with 0X", "0X" + strings.ToUpper(lower), true},
		{"base64 standard padded", std, true},
		{"base64 standard", std[:43], true},
		{"base64 URL padded", url, true},
		{"base64 URL", url[:43], true},
		{"empty", "", false},
		{"hex truncated", lower[:63], false},
		{"hex truncated by a byte", lower[:62], false},
		{"hex extended", lower + "0", false},
		{"hex extended by a byte", lower + "00", false},
		{"hex of another letter", lower[:63] + "g", false},
		{"base64 truncated", url[:42], false},
		{"base64 extended", url + "=", false},
		{"base64 with two paddings", url[:42] + "==", false},
		{"base64 in other case", swapCase(url), false},
		{"base64 with a newline", url[:20] + "\n" + url[21:], false},
		{"base64 with a blank", " " + url[:43], false},
		{"base64 with set bits after the end", lastBits(url), false},
		{"not ASCII", strings.Repeat("é", 22), false},
	}
	for _, f := range forms {
		m := newMac()
		if ok := m.digest(f.text) && m.want == want; ok != f.ok {
			t.Errorf("%s: %v, want %v", f.name, ok, f.ok)
		}
	}
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r ^ 0x20
		}
		return r
	}, s)
}

// lastBits sets one of the two bits that the last letter of base64 has to spare.
func lastBits(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	at := strings.IndexByte(alphabet, s[42])
	return s[:42] + string(alphabet[at|1]) + "="
}

package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"strings"
)

// mac computes HMAC-SHA256 (RFC 2104) in reused memory: each request has its own key, and
// crypto/hmac makes five allocations per key. One goroutine at a time may use it.
type mac struct {
	sum  hash.Hash
	pad  [sha256.BlockSize]byte
	key  [32]byte // key of the current request
	text []byte   // the signed text without the body
	out  [32]byte // result of the last compute
	want [32]byte // digest that came with the request
	b64  [44]byte
}

func newMac() *mac { return &mac{sum: sha256.New(), text: make([]byte, 0, 256)} }

// compute leaves the HMAC of m.text and body under key in m.out.
func (m *mac) compute(key, body []byte) {
	clear(m.pad[:])
	if len(key) > len(m.pad) {
		short := sha256.Sum256(key)
		copy(m.pad[:], short[:])
	} else {
		copy(m.pad[:], key)
	}
	for i := range m.pad {
		m.pad[i] ^= 0x36
	}
	m.sum.Reset()
	m.sum.Write(m.pad[:])
	m.sum.Write(m.text)
	m.sum.Write(body)
	m.sum.Sum(m.out[:0])
	for i := range m.pad {
		m.pad[i] ^= 0x36 ^ 0x5c
	}
	m.sum.Reset()
	m.sum.Write(m.pad[:])
	m.sum.Write(m.out[:])
	m.sum.Sum(m.out[:0])
}

// request leaves the HMAC of a request under key in m.out.
func (m *mac) request(key []byte, r *Request, path string) {
	m.text = append(m.text[:0], r.Timestamp...)
	m.text = append(m.text, r.Method...)
	m.text = append(m.text, path...)
	m.compute(key, r.Body)
}

// strictBase64 refuses stray bits after the last byte, so each digest has one text per alphabet.
var strictBase64 = base64.RawStdEncoding.Strict()

// digest reads 32 bytes into m.want: 64 hex digits of any case, with or without 0x, or base64 in
// the standard or the URL alphabet, with or without padding.
func (m *mac) digest(s string) bool {
	if len(s) >= 64 {
		return ParseHex(m.want[:], s)
	}
	if len(s) == 44 && s[43] == '=' {
		s = s[:43]
	}
	if len(s) != 43 {
		return false
	}
	text := m.b64[:copy(m.b64[:], s)]
	standardAlphabet(text)
	n, err := strictBase64.Decode(m.want[:], text)
	return err == nil && n == len(m.want)
}

// standardAlphabet replaces the characters of the URL alphabet by those of the standard one.
func standardAlphabet(text []byte) {
	for i, c := range text {
		switch c {
		case '-':
			text[i] = '+'
		case '_':
			text[i] = '/'
		}
	}
}

// Digest reads a request's signature header, in hex or base64. The result identifies the request.
func Digest(signature string) ([32]byte, bool) {
	m := newMac()
	ok := m.digest(signature)
	return m.want, ok
}

// Sign authenticates a request with the secret: it fills in Key, Passphrase and Signature (base64,
// URL alphabet, padded) from Timestamp, Method, Path and Body. The error is about the secret.
func (t *Trio) Sign(r *Request) error {
	key, err := decodeSecret(t.Secret)
	if err != nil {
		return err
	}
	m := newMac()
	m.request(key, r, r.Path)
	r.Key, r.Passphrase = t.Key, t.Passphrase
	r.Signature = base64.URLEncoding.EncodeToString(m.out[:])
	return nil
}

// decodeSecret reads base64 in either alphabet, padded or not.
func decodeSecret(s string) ([]byte, error) {
	text := []byte(strings.TrimRight(s, "="))
	standardAlphabet(text)
	key := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, err := base64.RawStdEncoding.Decode(key, text)
	if err != nil || n == 0 {
		return nil, errors.New("the API secret is not base64")
	}
	return key[:n], nil
}

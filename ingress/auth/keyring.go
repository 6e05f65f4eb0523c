package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"clobd/engine"
)

// Trio is what a client gets: an API key (a lower-case UUID of version 4), a secret (base64 of 32
// bytes, URL alphabet, padded) and a passphrase (64 hex digits).
type Trio struct{ Key, Secret, Passphrase string }

// Request is the part of a request that its HMAC covers, and the five headers that prove it. The
// headers of a builder's key name no address. Path has no query and no /clob prefix. RawPath, if
// not empty, is the path as sent: Authenticate accepts an HMAC over either.
type Request struct {
	Class engine.KeyClass // TradingKey or BuilderKey

	Address, Key, Passphrase, Timestamp, Signature string

	Method, Path, RawPath string
	Body                  []byte
}

// Identity is who sent a request: the address behind the key, and the key's number.
type Identity struct {
	Address engine.Address
	Nonce   uint32
}

// The errors of Authenticate, by the first check that failed. A stranger must not learn which of
// them it was, except ErrWindow.
var (
	ErrMissing   = errors.New("a header is missing")
	ErrTimestamp = errors.New("the timestamp is malformed")
	ErrWindow    = errors.New("the timestamp is out of the window")
	ErrKey       = errors.New("the passphrase is unknown")
	ErrAddress   = errors.New("the address is another")
	ErrKeyID     = errors.New("the API key is another")
	ErrSignature = errors.New("the signature is wrong")
)

// Requests are accepted from this long before the node's clock to this long after it.
const (
	windowPast   = 60 * time.Second
	windowFuture = 30 * time.Second
)

// keyVersion is the first byte of each passphrase, which names the master secret that made it.
const keyVersion = 1

// A passphrase is the hex text of these bytes.
const (
	atVersion = 0
	atAddress = 1
	atNonce   = 21
	atTag     = 25
	claimSize = atTag // what the tag covers
	tokenSize = 32
)

// claim is the readable part of a passphrase: version, address, nonce.
type claim [claimSize]byte

func newClaim(a engine.Address, nonce uint32) claim {
	var c claim
	c[atVersion] = keyVersion
	copy(c[atAddress:], a[:])
	binary.BigEndian.PutUint32(c[atNonce:], nonce)
	return c
}

func (c *claim) identity() Identity {
	return Identity{
		Address: engine.Address(c[atAddress:atNonce]),
		Nonce:   binary.BigEndian.Uint32(c[atNonce:atTag]),
	}
}

// labels separate the HMACs that make the parts of a Trio. No label of any class of keys is a
// prefix of another.
type labels struct{ tag, secret, key string }

var keyLabels = [...]labels{
	engine.TradingKey:  {"clobd passphrase:", "clobd secret:", "clobd api key:"},
	engine.ReadOnlyKey: {key: "clobd read-only key:"},
	engine.BuilderKey:  {"clobd builder passphrase:", "clobd builder secret:", "clobd builder key:"},
}

// Keyring makes and checks API keys out of one master secret. It stores nothing. Any number of
// goroutines may use one.
type Keyring struct {
	master *[32]byte
	pool   sync.Pool // *mac
}

// NewKeyring makes a Keyring of a copy of a master secret.
func NewKeyring(master [32]byte) *Keyring { return KeyringOf(&master) }

// KeyringOf makes a Keyring of a master secret that stays where it is.
func KeyringOf(master *[32]byte) *Keyring {
	k := &Keyring{master: master}
	k.pool.New = func() any { return newMac() }
	return k
}

// derive leaves the HMAC of label and claim under the master secret in m.out.
func (k *Keyring) derive(m *mac, label string, c *claim) {
	m.text = append(append(m.text[:0], label...), c[:]...)
	m.compute(k.master[:], nil)
}

// Derive returns the Trio of a trading key: for an address and a nonce always the same.
func (k *Keyring) Derive(a engine.Address, nonce uint32) Trio {
	return k.Trio(engine.TradingKey, a, nonce)
}

// Trio returns the three texts of an address's trading or builder key; each number has another key.
func (k *Keyring) Trio(class engine.KeyClass, a engine.Address, number uint32) Trio {
	l := &keyLabels[class]
	m := k.pool.Get().(*mac)
	defer k.pool.Put(m)
	c := newClaim(a, number)
	var token [tokenSize]byte
	copy(token[:], c[:])
	k.derive(m, l.tag, &c)
	copy(token[atTag:], m.out[:])
	k.derive(m, l.secret, &c)
	t := Trio{Secret: base64.URLEncoding.EncodeToString(m.out[:])}
	t.Passphrase = hex.EncodeToString(token[:])
	id := k.keyID(m, l.key, &c)
	t.Key = string(id[:])
	return t
}

// KeyID returns the trading key of an address and a nonce.
func (k *Keyring) KeyID(a engine.Address, nonce uint32) string {
	return k.ID(engine.TradingKey, a, nonce)
}

// ID returns an address's key of any class. A read-only key has no other part, so it is secret.
func (k *Keyring) ID(class engine.KeyClass, a engine.Address, number uint32) string {
	m := k.pool.Get().(*mac)
	defer k.pool.Put(m)
	c := newClaim(a, number)
	id := k.keyID(m, keyLabels[class].key, &c)
	return string(id[:])
}

// Is reports whether text is the key that ID returns, in any letter case, in constant time.
func (k *Keyring) Is(class engine.KeyClass, a engine.Address, number uint32, text string) bool {
	return equalText([]byte(k.ID(class, a, number)), strings.ToLower(text)) == 1
}

func (k *Keyring) keyID(m *mac, label string, c *claim) [36]byte {
	k.derive(m, label, c)
	b := m.out[:16]
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // variant of RFC 9562
	var text [36]byte
	engine.AppendUUID(text[:0], [16]byte(b))
	return text
}

// Authenticate checks r at time now and returns who sent it. The error is one of those above.
//
// Secrets are compared in constant time, and a forged passphrase takes as long as a true one. Only
// a missing header and a stale clock, which strangers can see, are refused early.
func (k *Keyring) Authenticate(r *Request, now time.Time) (Identity, error) {
	l, unnamed := &keyLabels[r.Class], r.Address == "" && r.Class == engine.TradingKey
	if unnamed || r.Key == "" || r.Passphrase == "" || r.Timestamp == "" || r.Signature == "" {
		return Identity{}, ErrMissing
	}
	if err := fresh(r.Timestamp, now); err != nil {
		return Identity{}, err
	}
	m := k.pool.Get().(*mac)
	defer k.pool.Put(m)

	var token [tokenSize]byte
	known := parsePassphrase(&token, r.Passphrase)
	c := claim(token[:claimSize])
	k.derive(m, l.tag, &c)
	known &= subtle.ConstantTimeCompare(m.out[:tokenSize-atTag], token[atTag:])

	id := k.keyID(m, l.key, &c)
	sameKey := equalText(id[:], r.Key)

	// A forged passphrase gets a secret too, with one bit flipped: no client has it, and deriving
	// it takes the same time.
	k.derive(m, l.secret, &c)
	m.key = m.out
	m.key[0] ^= byte(1 ^ known)
	signed := m.signed(r)

	who := c.identity()
	address, isAddress := ParseAddress(r.Address)
	switch {
	case known == 0:
		return Identity{}, ErrKey
	case r.Address != "" && (!isAddress || address != who.Address):
		return Identity{}, ErrAddress
	case sameKey == 0:
		return Identity{}, ErrKeyID
	case signed == 0:
		return Identity{}, ErrSignature
	}
	return who, nil
}

// signed returns 1 if r carries its HMAC under m.key, over Path or over RawPath, else 0.
func (m *mac) signed(r *Request) int {
	readable := 0
	if m.digest(r.Signature) {
		readable = 1
	}
	m.request(m.key[:], r, r.Path)
	same := subtle.ConstantTimeCompare(m.out[:], m.want[:])
	if r.RawPath != "" && r.RawPath != r.Path {
		m.request(m.key[:], r, r.RawPath)
		same |= subtle.ConstantTimeCompare(m.out[:], m.want[:])
	}
	return same & readable
}

// parsePassphrase reads the hex text of a passphrase of this version into token and returns 1. It
// returns 0, with token undefined, for any other text.
func parsePassphrase(token *[tokenSize]byte, s string) int {
	if len(s) != 2*tokenSize || !ParseHex(token[:], s) || token[atVersion] != keyVersion {
		return 0
	}
	return 1
}

// equalText is subtle.ConstantTimeCompare without converting b, which would allocate.
func equalText(a []byte, b string) int {
	if len(a) != len(b) {
		return 0
	}
	var diff byte
	for i := range a {
		diff |= a[i] ^ b[i]
	}
	return subtle.ConstantTimeByteEq(diff, 0)
}

// maxStampDigits bounds a timestamp: microseconds of the far future have 16 digits.
const maxStampDigits = 16

// parseTimestamp returns a timestamp of 1 to 16 digits in milliseconds. Below 10^12 it is in
// seconds.
func parseTimestamp(s string) (int64, bool) {
	if len(s) == 0 || len(s) > maxStampDigits {
		return 0, false
	}
	var t int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		t = 10*t + int64(s[i]-'0')
	}
	if t < 1e12 {
		t *= 1000
	}
	return t, true
}

func fresh(timestamp string, now time.Time) error {
	t, ok := parseTimestamp(timestamp)
	if !ok {
		return ErrTimestamp
	}
	age := now.UnixMilli() - t
	if age > windowPast.Milliseconds() || age < -windowFuture.Milliseconds() {
		return ErrWindow
	}
	return nil
}

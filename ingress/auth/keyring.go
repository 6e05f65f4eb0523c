package auth

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// Requests are accepted from windowPast before the node's clock to WindowFuture after it.
const (
	windowPast   = 60 * time.Second
	WindowFuture = 30 * time.Second
)

// FirstMaster is the number of a node's first master secret.
const FirstMaster = 1

// Master is a master secret with its number, which is the first byte of each passphrase that it
// makes.
type Master struct {
	Number byte
	Secret *[32]byte
}

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

func newClaim(master byte, a engine.Address, nonce uint32) claim {
	var c claim
	c[atVersion] = master
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

// Keyring makes API keys out of the newest master secret, and checks those of all that live. It
// stores nothing else. Any number of goroutines may use one.
type Keyring struct {
	live atomic.Pointer[[]Master] // the newest last
	pool sync.Pool                // *mac
}

// NewKeyring makes a Keyring of a copy of a master secret.
func NewKeyring(master [32]byte) *Keyring { return KeyringOf(&master) }

// KeyringOf makes a Keyring of a first master secret that stays where it is.
func KeyringOf(master *[32]byte) *Keyring {
	k := &Keyring{}
	k.Use([]Master{{FirstMaster, master}})
	k.pool.New = func() any { return newMac() }
	return k
}

// Use makes these the master secrets that live, at least one, the newest last. Keys of all others
// are refused from now on.
func (k *Keyring) Use(live []Master) {
	own := slices.Clone(live)
	k.live.Store(&own)
}

func (k *Keyring) oldest() Master { return (*k.live.Load())[0] }

func (k *Keyring) newest() Master {
	live := *k.live.Load()
	return live[len(live)-1]
}

// master returns the secret that a passphrase names. For a number that no secret has, known is 0
// and any secret will do: the refusal takes as long.
func (k *Keyring) master(number byte) (secret *[32]byte, known int) {
	live := *k.live.Load()
	for i := range live {
		if live[i].Number == number {
			return live[i].Secret, 1
		}
	}
	return live[0].Secret, 0
}

// derive leaves the HMAC of label and claim under a master secret in m.out.
func derive(m *mac, master *[32]byte, label string, c *claim) {
	m.text = append(append(m.text[:0], label...), c[:]...)
	m.compute(master[:], nil)
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
	master := k.newest()
	c := newClaim(master.Number, a, number)
	var token [tokenSize]byte
	copy(token[:], c[:])
	derive(m, master.Secret, l.tag, &c)
	copy(token[atTag:], m.out[:])
	derive(m, master.Secret, l.secret, &c)
	t := Trio{Secret: base64.URLEncoding.EncodeToString(m.out[:])}
	t.Passphrase = hex.EncodeToString(token[:])
	id := keyID(m, master.Secret, l.key, &c)
	t.Key = string(id[:])
	return t
}

// KeyID returns the trading key of an address and a nonce as answers name it: that of the oldest
// secret, so that a rotation changes no answer before the old keys end.
func (k *Keyring) KeyID(a engine.Address, nonce uint32) string {
	return k.id(k.oldest(), engine.TradingKey, a, nonce)
}

// ID returns an address's key of any class, of the newest secret. A read-only key has no other
// part, so it is secret.
func (k *Keyring) ID(class engine.KeyClass, a engine.Address, number uint32) string {
	return k.id(k.newest(), class, a, number)
}

func (k *Keyring) id(master Master, class engine.KeyClass, a engine.Address, number uint32) string {
	m := k.pool.Get().(*mac)
	defer k.pool.Put(m)
	c := newClaim(master.Number, a, number)
	id := keyID(m, master.Secret, keyLabels[class].key, &c)
	return string(id[:])
}

// Is reports whether text is the key that ID returns for any secret that lives, in any letter case,
// in constant time.
func (k *Keyring) Is(class engine.KeyClass, a engine.Address, number uint32, text string) bool {
	same, text := 0, strings.ToLower(text)
	for _, master := range *k.live.Load() {
		same |= equalText([]byte(k.id(master, class, a, number)), text)
	}
	return same == 1
}

func keyID(m *mac, master *[32]byte, label string, c *claim) [36]byte {
	derive(m, master, label, c)
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
	master, lives := k.master(c[atVersion])
	known &= lives
	derive(m, master, l.tag, &c)
	known &= subtle.ConstantTimeCompare(m.out[:tokenSize-atTag], token[atTag:])

	id := keyID(m, master, l.key, &c)
	sameKey := equalText(id[:], r.Key)

	// A forged passphrase gets a secret too, with one bit flipped: no client has it, and deriving
	// it takes the same time.
	derive(m, master, l.secret, &c)
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

// parsePassphrase reads the hex text of a passphrase into token and returns 1. It returns 0, with
// token undefined, for any other text.
func parsePassphrase(token *[tokenSize]byte, s string) int {
	if len(s) != 2*tokenSize || !ParseHex(token[:], s) {
		return 0
	}
	return 1
}

// Claimed is the address that a passphrase claims, as 0x and 40 hex digits, for a client that names
// none; "" if the passphrase is malformed. Whether the claim is true, Authenticate says.
func Claimed(passphrase string) string {
	var token [tokenSize]byte
	if parsePassphrase(&token, passphrase) == 0 {
		return ""
	}
	c := claim(token[:claimSize])
	return c.identity().Address.Hex()
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
	if age > windowPast.Milliseconds() || age < -WindowFuture.Milliseconds() {
		return ErrWindow
	}
	return nil
}

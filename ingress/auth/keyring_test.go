package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clobd/engine"
)

var master = [32]byte{0: 1, 31: 2}

func TestDerive(t *testing.T) {
	k := NewKeyring(master)
	a := anvil(t).Address
	trio := k.Derive(a, 23)
	if again := NewKeyring(master).Derive(a, 23); again != trio {
		t.Error("the same key is not the same")
	}
	const want = "01f39fd6e51aad88f6f4ce6ab8827279cfffb9226600000017"
	if !strings.HasPrefix(trio.Passphrase, want) || len(trio.Passphrase) != 64 {
		t.Errorf("passphrase %s, want %s and a tag", trio.Passphrase, want)
	}
	secret, err := base64.URLEncoding.DecodeString(trio.Secret)
	if err != nil || len(secret) != 32 || len(trio.Secret) != 44 {
		t.Errorf("secret %s: %v", trio.Secret, err)
	}
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !uuid.MatchString(trio.Key) || k.KeyID(a, 23) != trio.Key {
		t.Errorf("key %s, KeyID %s", trio.Key, k.KeyID(a, 23))
	}
	b := a
	b[0]++
	for name, o := range map[string]Trio{
		"another nonce":   k.Derive(a, 24),
		"another address": k.Derive(b, 23),
		"another master":  NewKeyring([32]byte{}).Derive(a, 23),
	} {
		if o.Key == trio.Key || o.Secret == trio.Secret || o.Passphrase == trio.Passphrase {
			t.Errorf("%s has parts of the same key", name)
		}
	}
}

// TestDeriveFrozen pins the derivation: changing it changes every key that was ever issued.
func TestDeriveFrozen(t *testing.T) {
	want := Trio{
		Key:        "ceca8e0b-dd33-40c7-b46e-290d0b3f99af",
		Secret:     "iQ_ZvOP6uRsrLd1gE58OlYvF_eEYeO67N59JnhwNw44=",
		Passphrase: "01f39fd6e51aad88f6f4ce6ab8827279cfffb9226600000000f51321b2c0987a",
	}
	if got := NewKeyring(master).Derive(anvil(t).Address, 0); got != want {
		t.Errorf("Derive = %+v", got)
	}
}

// request is a good request of the first account's key 23.
func request(t testing.TB, k *Keyring) (*Request, Trio) {
	t.Helper()
	a := anvil(t).Address
	trio := k.Derive(a, 23)
	r := &Request{
		Address: Checksum(a), Timestamp: fmt.Sprint(noon.Unix()),
		Method: http.MethodPost, Path: "/order", Body: []byte(`{"order": {"salt": 1}}`),
	}
	if err := trio.Sign(r); err != nil {
		t.Fatal(err)
	}
	return r, trio
}

func TestAuthenticate(t *testing.T) {
	k := NewKeyring(master)
	want := Identity{anvil(t).Address, 23}
	for name, change := range map[string]func(r *Request, trio *Trio){
		"as it is":                func(*Request, *Trio) {},
		"lower-case address":      func(r *Request, _ *Trio) { r.Address = strings.ToLower(r.Address) },
		"badly checksummed":       func(r *Request, _ *Trio) { r.Address = "0x" + swapCase(r.Address[2:]) },
		"upper-case passphrase":   func(r *Request, _ *Trio) { r.Passphrase = strings.ToUpper(r.Passphrase) },
		"in hex":                  func(r *Request, trio *Trio) { _ = trio.SignHex(r) },
		"in milliseconds":         func(r *Request, trio *Trio) { r.Timestamp += "000"; _ = trio.Sign(r) },
		"without a body":          func(r *Request, trio *Trio) { r.Body = nil; _ = trio.Sign(r) },
		"raw path the same":       func(r *Request, _ *Trio) { r.RawPath = r.Path },
		"path under /clob":        func(r *Request, _ *Trio) { r.RawPath = "/clob/order" },
		"signed with the prefix":  func(r *Request, trio *Trio) { signRaw(r, trio) },
		"repeated, byte for byte": func(r *Request, _ *Trio) { _, _ = k.Authenticate(r, noon) },
	} {
		r, trio := request(t, k)
		change(r, &trio)
		if got, err := k.Authenticate(r, noon); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// signRaw signs as a client does whose base address ends in /clob.
func signRaw(r *Request, trio *Trio) {
	r.Path = "/clob/order"
	_ = trio.Sign(r)
	r.Path, r.RawPath = "/order", "/clob/order"
}

// refusalCase is one way to spoil a good request.
type refusalCase struct {
	name   string
	change func(r *Request, trio *Trio)
	want   error
}

// spoiledSignatures are the cases of headers and HMAC.
func spoiledSignatures(second Trio) []refusalCase {
	return []refusalCase{
		{"no address", func(r *Request, _ *Trio) { r.Address = "" }, ErrMissing},
		{"no key", func(r *Request, _ *Trio) { r.Key = "" }, ErrMissing},
		{"no passphrase", func(r *Request, _ *Trio) { r.Passphrase = "" }, ErrMissing},
		{"no timestamp", func(r *Request, _ *Trio) { r.Timestamp = "" }, ErrMissing},
		{"no signature", func(r *Request, _ *Trio) { r.Signature = "" }, ErrMissing},

		{"wrong secret", func(r *Request, trio *Trio) { trio.Secret = second.Secret; _ = trio.Sign(r) }, ErrSignature},
		{"empty secret", func(r *Request, _ *Trio) {
			m := newMac()
			m.request(nil, r, r.Path)
			r.Signature = hex.EncodeToString(m.out[:])
		}, ErrSignature},
		{"wrong method", func(r *Request, _ *Trio) { r.Method = "PUT" }, ErrSignature},
		{"method in lower case", func(r *Request, _ *Trio) { r.Method = "post" }, ErrSignature},
		{"wrong path", func(r *Request, _ *Trio) { r.Path = "/orders" }, ErrSignature},
		{"path with query", func(r *Request, _ *Trio) { r.Path += "?a=1" }, ErrSignature},
		{"wrong raw path too", func(r *Request, _ *Trio) { r.Path, r.RawPath = "/a", "/b" }, ErrSignature},
		{"one byte of the body", func(r *Request, _ *Trio) { r.Body[0] ^= 1 }, ErrSignature},
		{"body written again", func(r *Request, _ *Trio) { r.Body = []byte(`{"order":{"salt":1}}`) }, ErrSignature},
		{"body left out", func(r *Request, _ *Trio) { r.Body = nil }, ErrSignature},
		{"another timestamp", func(r *Request, _ *Trio) { r.Timestamp = fmt.Sprint(noon.Unix() - 1) }, ErrSignature},
		{"signature truncated", func(r *Request, _ *Trio) { r.Signature = r.Signature[:42] }, ErrSignature},
		{"signature extended", func(r *Request, _ *Trio) { r.Signature += "A" }, ErrSignature},
		{"signature in other case", func(r *Request, _ *Trio) { r.Signature = swapCase(r.Signature) }, ErrSignature},
		{"signature of zeros", func(r *Request, _ *Trio) { r.Signature = strings.Repeat("0", 64) }, ErrSignature},
	}
}

// spoiledKeys are the cases of key, passphrase and address.
func spoiledKeys(second, foreign, stranger Trio, notMine engine.Address) []refusalCase {
	flip := func(s string, at int) string {
		b := []byte(s)
		b[at] = "01"[b[at]&1^1]
		return string(b)
	}
	return []refusalCase{
		{"unknown key", func(r *Request, _ *Trio) { r.Key = "00000000-0000-4000-8000-000000000001" }, ErrKeyID},
		{"key in upper case", func(r *Request, _ *Trio) { r.Key = strings.ToUpper(r.Key) }, ErrKeyID},
		{"key of another nonce", func(r *Request, _ *Trio) { r.Key = second.Key }, ErrKeyID},
		{"key of another owner", func(r *Request, _ *Trio) { r.Key = foreign.Key }, ErrKeyID},
		{"another address", func(r *Request, _ *Trio) { r.Address = Checksum(notMine) }, ErrAddress},
		{"no address at all", func(r *Request, _ *Trio) { r.Address = "alice" }, ErrAddress},
		{"another nonce's passphrase", func(r *Request, _ *Trio) { r.Passphrase = second.Passphrase }, ErrKeyID},
		{"another owner's passphrase", func(r *Request, _ *Trio) { r.Passphrase = foreign.Passphrase }, ErrAddress},
		{"another node's key", func(r *Request, _ *Trio) { _ = stranger.Sign(r) }, ErrKey},
		{"passphrase of another version", func(r *Request, _ *Trio) { r.Passphrase = "02" + r.Passphrase[2:] }, ErrKey},
		{"passphrase with another address", func(r *Request, _ *Trio) { r.Passphrase = flip(r.Passphrase, 10) }, ErrKey},
		{"passphrase with another nonce", func(r *Request, _ *Trio) { r.Passphrase = flip(r.Passphrase, 49) }, ErrKey},
		{"passphrase with another tag", func(r *Request, _ *Trio) { r.Passphrase = flip(r.Passphrase, 63) }, ErrKey},
		{"passphrase truncated", func(r *Request, _ *Trio) { r.Passphrase = r.Passphrase[:62] }, ErrKey},
		{"passphrase extended", func(r *Request, _ *Trio) { r.Passphrase = "0x" + r.Passphrase }, ErrKey},
		{"passphrase of letters", func(r *Request, _ *Trio) { r.Passphrase = strings.Repeat("a", 64) }, ErrKey},
		{"no passphrase at all", func(r *Request, _ *Trio) { r.Passphrase = "open sesame" }, ErrKey},
	}
}

func TestAuthenticateRefuses(t *testing.T) {
	k := NewKeyring(master)
	a, b := anvil(t).Address, other(t).Address
	second := k.Derive(a, 24)
	cases := append(spoiledSignatures(second),
		spoiledKeys(second, k.Derive(b, 23), NewKeyring([32]byte{9}).Derive(a, 23), b)...)
	for _, c := range cases {
		r, trio := request(t, k)
		c.change(r, &trio)
		got, err := k.Authenticate(r, noon)
		if err != c.want || got != (Identity{}) {
			t.Errorf("%s: %+v, %#v, want %s", c.name, got, err, c.want)
		}
	}
}

// TestTagOfEveryBit: no bit of a passphrase can be changed.
func TestTagOfEveryBit(t *testing.T) {
	k := NewKeyring(master)
	r, _ := request(t, k)
	good := unhex(t, r.Passphrase)
	for bit := range 8 * len(good) {
		b := append([]byte(nil), good...)
		b[bit/8] ^= 1 << (bit % 8)
		r.Passphrase = hex.EncodeToString(b)
		if _, err := k.Authenticate(r, noon); err != ErrKey {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
}

func TestTimestamps(t *testing.T) {
	k := NewKeyring(master)
	now := noon.Unix()
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"now", fmt.Sprint(now), nil},
		{"the oldest", fmt.Sprint(now - 60), nil},
		{"1 s too old", fmt.Sprint(now - 61), ErrWindow},
		{"the newest", fmt.Sprint(now + 30), nil},
		{"1 s too new", fmt.Sprint(now + 31), ErrWindow},
		{"milliseconds", fmt.Sprint(now * 1000), nil},
		{"the oldest millisecond", fmt.Sprint(now*1000 - 60_000), nil},
		{"1 ms too old", fmt.Sprint(now*1000 - 60_001), ErrWindow},
		{"the newest millisecond", fmt.Sprint(now*1000 + 30_000), nil},
		{"1 ms too new", fmt.Sprint(now*1000 + 30_001), ErrWindow},
		{"microseconds", fmt.Sprint(now * 1_000_000), ErrWindow},
		{"zero", "0", ErrWindow},
		{"the last of seconds", "999999999999", ErrWindow},
		{"the first of milliseconds", "1000000000000", ErrWindow},
		{"16 digits", "9999999999999999", ErrWindow},
		{"padded with zeros", "00" + fmt.Sprint(now), nil},
		{"not a number", "noon", ErrTimestamp},
		{"negative", "-" + fmt.Sprint(now), ErrTimestamp},
		{"with a plus", "+" + fmt.Sprint(now), ErrTimestamp},
		{"with a blank", " " + fmt.Sprint(now), ErrTimestamp},
		{"with a fraction", fmt.Sprint(now) + ".0", ErrTimestamp},
		{"exponent", "1.76e9", ErrTimestamp},
		{"hex", "0x68e7b700", ErrTimestamp},
		{"2^63", fmt.Sprint(uint64(math.MaxInt64) + 1), ErrTimestamp},
		{"other digits", "१७६०००००००", ErrTimestamp},
		{"wide digits", "１７６０００００００", ErrTimestamp},
	} {
		r, trio := request(t, k)
		r.Timestamp = c.text
		if err := trio.Sign(r); err != nil {
			t.Fatal(err)
		}
		want := error(nil)
		if c.want != nil {
			want = c.want
		}
		if _, err := k.Authenticate(r, noon); err != want {
			t.Errorf("%s (%s): %v, want %v", c.name, c.text, err, want)
		}
	}
}

func TestAuthenticateConcurrently(t *testing.T) {
	k := NewKeyring(master)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			a := engine.Address{byte(i)}
			trio := k.Derive(a, uint32(i))
			r := Request{Address: Checksum(a), Timestamp: fmt.Sprint(noon.Unix()), Method: "GET", Path: "/"}
			for range 200 {
				err := trio.Sign(&r)
				id, bad := k.Authenticate(&r, noon)
				if err != nil || bad != nil || id != (Identity{a, uint32(i)}) {
					t.Errorf("%d: %v, %v, %+v", i, err, bad, id)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestVerifyL1(t *testing.T) {
	s := anvil(t)
	chains := []uint64{ChainTest, ChainMain}
	now := fmt.Sprint(noon.Unix())
	make := func(chain uint64, nonce uint32) *L1Request {
		signature, err := s.SignAuth(chain, now, nonce)
		if err != nil {
			t.Fatal(err)
		}
		return &L1Request{anvilAddress, signature, now, fmt.Sprint(nonce), ""}
	}
	for _, c := range []struct {
		name   string
		r      *L1Request
		change func(r *L1Request)
		want   error
	}{
		{"good", make(ChainTest, 5), func(*L1Request) {}, nil},
		{"second chain", make(ChainMain, math.MaxUint32), func(*L1Request) {}, nil},
		{"chain named", make(ChainMain, 0), func(r *L1Request) { r.Chain = "137" }, nil},
		{"no nonce is 0", make(ChainTest, 0), func(r *L1Request) { r.Nonce = "" }, nil},
		{"lower case", make(ChainTest, 1), func(r *L1Request) { r.Address = strings.ToLower(r.Address) }, nil},
		{"another chain", make(1, 0), func(*L1Request) {}, ErrL1Signature},
		{"another chain named", make(ChainMain, 0), func(r *L1Request) { r.Chain = "80002" }, ErrL1Signature},
		{"chain not served", make(1, 0), func(r *L1Request) { r.Chain = "1" }, ErrL1Chain},
		{"chain of letters", make(ChainMain, 0), func(r *L1Request) { r.Chain = "polygon" }, ErrL1Chain},
		{"another nonce", make(ChainTest, 5), func(r *L1Request) { r.Nonce = "6" }, ErrL1Signature},
		{"nonce of 2^32", make(ChainTest, 5), func(r *L1Request) { r.Nonce = "4294967296" }, ErrNonce},
		{"nonce of 2^256", make(ChainTest, 5), func(r *L1Request) { r.Nonce = strings.Repeat("9", 78) }, ErrNonce},
		{"negative nonce", make(ChainTest, 5), func(r *L1Request) { r.Nonce = "-1" }, ErrNonce},
		{"another address", make(ChainTest, 5), func(r *L1Request) { r.Address = Checksum(wallet) }, ErrL1Signature},
		{"no address", make(ChainTest, 5), func(r *L1Request) { r.Address = "" }, ErrL1Missing},
		{"no signature", make(ChainTest, 5), func(r *L1Request) { r.Signature = "" }, ErrL1Missing},
		{"no timestamp", make(ChainTest, 5), func(r *L1Request) { r.Timestamp = "" }, ErrL1Missing},
		{"malformed address", make(ChainTest, 5), func(r *L1Request) { r.Address = "0x12" }, ErrL1Address},
		{"another timestamp", make(ChainTest, 5), func(r *L1Request) {
			r.Timestamp = fmt.Sprint(noon.Unix() + 1)
		}, ErrL1Signature},
		{"old timestamp", make(ChainTest, 5), func(r *L1Request) { r.Timestamp = "1700000000" }, ErrWindow},
		{"malformed timestamp", make(ChainTest, 5), func(r *L1Request) { r.Timestamp = "now" }, ErrTimestamp},
		{"short signature", make(ChainTest, 5), func(r *L1Request) { r.Signature = r.Signature[:130] }, ErrL1Form},
		{"v of 2", make(ChainTest, 5), func(r *L1Request) { r.Signature = r.Signature[:130] + "02" }, ErrL1Form},
		{"high s", make(ChainTest, 5), func(r *L1Request) {
			r.Signature = "0x" + hex.EncodeToString(twin(unhex(t, r.Signature)))
		}, ErrL1Form},
		{"of nobody", make(ChainTest, 5), func(r *L1Request) {
			r.Signature = "0x" + strings.Repeat("0", 63) + "5" + r.Signature[66:]
		}, ErrL1Signature},
	} {
		nonce := c.r.Nonce
		c.change(c.r)
		a, n, err := VerifyL1(c.r, chains, noon)
		if c.want != nil {
			failed := errors.Is(err, c.want) && errors.Is(err, ErrL1) == (c.want != ErrNonce)
			if !failed || a != (engine.Address{}) {
				t.Errorf("%s: %x, %v, want %s", c.name, a, err, c.want)
			}
			continue
		}
		if err != nil || a != s.Address || fmt.Sprint(n) != nonce {
			t.Errorf("%s: %x, %d, %v", c.name, a, n, err)
		}
	}
}

func TestMaster(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "master.key")
	made, err := LoadSecret(path)
	if err != nil || made == ([32]byte{}) {
		t.Fatal(err)
	}
	state, err := os.Stat(path)
	if err != nil || state.Mode().Perm() != 0o600 || state.Size() != 65 {
		t.Errorf("%v, %v", state, err)
	}
	if again, err := LoadSecret(path); err != nil || again != made {
		t.Errorf("read again: %x, %v", again, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if another, err := LoadSecret(filepath.Join(dir, "another")); err != nil || another == made {
		t.Errorf("a second secret: %x, %v", another, err)
	}
	for mode, want := range map[os.FileMode][2]bool{ // LoadSecret, ReadSecret
		0o600: {true, true}, 0o400: {true, true}, 0o440: {false, true}, 0o640: {false, true},
		0o644: {false, false}, 0o604: {false, false}, 0o660: {false, false}, 0o601: {false, false},
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for i, read := range []func(string) ([32]byte, error){LoadSecret, ReadSecret} {
			got, err := read(path)
			if (err == nil) != want[i] || err == nil && got != made {
				t.Errorf("mode %04o, reader %d: %v", mode, i, err)
			}
			if err != nil && !strings.Contains(err.Error(), "chmod 600 "+path) {
				t.Errorf("no hint: %v", err)
			}
		}
	}
}

func TestMasterForms(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	text := strings.Repeat("0a", 32)
	for _, c := range []struct {
		name, content string
		ok            bool
	}{
		{"hex", text, true},
		{"hex and a newline", text + "\n", true},
		{"hex with 0x", "0x" + text + "\r\n", true},
		{"bytes", strings.Repeat("\x0a", 32), true},
		{"empty", "", false},
		{"31 bytes", strings.Repeat("\x0a", 31), false},
		{"short hex", text[:62], false},
		{"letters", strings.Repeat("z", 64), false},
	} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSecret(path)
		if (err == nil) != c.ok || c.ok && got != [32]byte([]byte(strings.Repeat("\x0a", 32))) {
			t.Errorf("%s: %x, %v", c.name, got, err)
		}
		if err != nil && c.content != "" && strings.Contains(err.Error(), c.content) {
			t.Errorf("%s: the error tells the secret", c.name)
		}
	}
	if _, err := ReadSecret(filepath.Join(dir, "absent")); err == nil {
		t.Error("made a secret that somebody else provides")
	}
	if _, err := LoadSecret(filepath.Join(dir, "no", "folder")); err == nil {
		t.Error("made a secret in no folder")
	}
	if _, err := LoadSecret(dir); err == nil {
		t.Error("read a folder")
	}
}

func TestMasterMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	var group sync.WaitGroup
	var got [8][32]byte
	for i := range got {
		group.Go(func() {
			var err error
			if got[i], err = LoadSecret(path); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Errorf("start %d has another secret", i)
		}
	}
}

func FuzzPassphrase(f *testing.F) {
	k := NewKeyring(master)
	r, trio := request(f, k)
	f.Add(trio.Passphrase)
	f.Add(strings.ToUpper(trio.Passphrase))
	f.Add("")
	f.Add("0x" + trio.Passphrase[2:])
	f.Add(strings.Repeat("é", 32))
	f.Fuzz(func(t *testing.T, s string) {
		c := *r
		c.Passphrase = s
		_, err := k.Authenticate(&c, noon)
		if err == nil && !strings.EqualFold(s, trio.Passphrase) {
			t.Errorf("accepted %q", s)
		}
	})
}

// traced is a hash that keeps what it is asked to do: each step is the length of what it is given,
// or a number for the rest.
type traced struct {
	hash.Hash
	taken []int
}

const (
	stepSum   = -1
	stepReset = -2
)

func (s *traced) Write(b []byte) (int, error) {
	s.taken = append(s.taken, len(b))
	return s.Hash.Write(b)
}

func (s *traced) Sum(b []byte) []byte {
	s.taken = append(s.taken, stepSum)
	return s.Hash.Sum(b)
}

func (s *traced) Reset() {
	s.taken = append(s.taken, stepReset)
	s.Hash.Reset()
}

// TestSameWork: a forged passphrase takes the way of a true one, step by step of what all the time
// goes into. BenchmarkAuthenticate has the time of both.
func TestSameWork(t *testing.T) {
	k := NewKeyring(master)
	good, _ := request(t, k)
	took := func(passphrase string, want error) []int {
		s := &traced{Hash: sha256.New()}
		k := NewKeyring(master)
		k.pool.New = func() any { return &mac{sum: s, text: make([]byte, 0, 256)} }
		r := *good
		r.Passphrase = passphrase
		if _, err := k.Authenticate(&r, noon); err != want {
			t.Errorf("%q: %v, want %v", passphrase, err, want)
		}
		return s.taken
	}
	way := took(good.Passphrase, nil)
	if len(way) < 8 {
		t.Fatalf("the way of a true one: %v", way)
	}
	for _, forged := range []string{good.Passphrase[:63] + "x", good.Passphrase[:63] + "0",
		good.Passphrase[:10], "02" + good.Passphrase[2:], "open sesame"} {
		if forged == good.Passphrase {
			forged = good.Passphrase[:63] + "1"
		}
		if got := took(forged, ErrKey); !slices.Equal(got, way) {
			t.Errorf("%q: %v, a true one %v", forged, got, way)
		}
	}
}

// TestKindsOfKeys: a key of one kind is none of another, and each number has its own.
func TestKindsOfKeys(t *testing.T) {
	k, a, now := NewKeyring([32]byte{1}), anvil(t).Address, time.Unix(1_760_000_000, 0)
	trading, builder := k.Derive(a, 3), k.Trio(engine.BuilderKey, a, 3)
	if builder.Key != k.ID(engine.BuilderKey, a, 3) || builder.Key == k.ID(engine.BuilderKey, a, 4) ||
		builder.Key == trading.Key || builder.Secret == trading.Secret {
		t.Errorf("%+v and %+v", trading, builder)
	}
	sign := func(trio *Trio) *Request {
		r := Request{Class: engine.BuilderKey, Timestamp: "1760000000", Method: "DELETE", Path: "/x"}
		if err := trio.Sign(&r); err != nil {
			t.Fatal(err)
		}
		return &r
	}
	if id, err := k.Authenticate(sign(&builder), now); err != nil || id != (Identity{a, 3}) {
		t.Errorf("builder: %+v, %v", id, err)
	}
	if _, err := k.Authenticate(sign(&trading), now); err != ErrKey {
		t.Errorf("a trading key as a builder's: %v", err)
	}
	r := sign(&builder)
	r.Class = engine.TradingKey
	if _, err := k.Authenticate(r, now); err != ErrMissing {
		t.Errorf("a builder key without an address: %v", err)
	}
	r.Address = Checksum(a)
	if _, err := k.Authenticate(r, now); err != ErrKey {
		t.Errorf("a builder key that trades: %v", err)
	}
	r.Class, r.Address = engine.BuilderKey, "0x0000000000000000000000000000000000000001"
	if _, err := k.Authenticate(r, now); err != ErrAddress {
		t.Errorf("another address: %v", err)
	}
	reader := k.ID(engine.ReadOnlyKey, a, 3)
	if !k.Is(engine.ReadOnlyKey, a, 3, strings.ToUpper(reader)) ||
		k.Is(engine.ReadOnlyKey, a, 4, reader) ||
		k.Is(engine.ReadOnlyKey, a, 3, builder.Key) || k.Is(engine.ReadOnlyKey, a, 3, trading.Key) ||
		k.Is(engine.ReadOnlyKey, a, 3, "") {
		t.Errorf("read-only key %s", reader)
	}
}

// TestDigest: the digest of a request is the same in each of its forms.
func TestDigest(t *testing.T) {
	k, a := NewKeyring([32]byte{1}), anvil(t).Address
	trio := k.Derive(a, 0)
	r := Request{Timestamp: "1760000000", Method: "POST", Path: "/split", Body: []byte("{}")}
	if err := trio.Sign(&r); err != nil {
		t.Fatal(err)
	}
	base64, ok := Digest(r.Signature)
	if err := trio.SignHex(&r); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if text, ok := Digest("0x" + strings.ToUpper(r.Signature)); !ok || text != base64 {
		t.Errorf("%x and %x", text, base64)
	}
	if _, ok := Digest("00"); ok {
		t.Error("two digits are a digest")
	}
}

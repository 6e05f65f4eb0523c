package vectors

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/sha3"

	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/ingress/auth/curve"
)

// Check checks a file of known answers: JSON with, at any depth, orders signed for a domain,
// ClobAuth messages, request HMACs, domain separators, struct hashes and type hashes, each
// recognised by its keys; whatever is none of these is passed over, unless it states a signature, a
// message or something about an order: then it is a vector that nobody checks, and disagrees. Each
// is checked against the domain it states, whether or not a node would take that domain. One that
// says "valid": false agrees if it is refused; any other must state its hash.
//
// It returns how many agree and how many do not, and reports a line for each of the latter. An
// error means that the file could not be read as JSON.
func Check(
	name string, r io.Reader, report func(line string),
) (agree, disagree int, err error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, 0, fmt.Errorf("read vectors: %w", err)
	}
	if !json.Valid(b) {
		return 0, 0, fmt.Errorf("vectors of %s: not JSON", name)
	}
	c := checker{}
	if signer := readFields(b).sub("about").sub("signer"); signer != nil {
		c.signer, c.key = signer.text("address"), signer.text("privatekey")
	}
	c.walk("", b, func(at string, err error) {
		if err == nil {
			agree++
			return
		}
		disagree++
		report(fmt.Sprintf("%s: %s: %v", name, at, err))
	})
	return agree, disagree, nil
}

// fields is a JSON object with its keys in lower case and without underscores, because files of
// vectors write one name in many ways.
type fields map[string]json.RawMessage

// readFields is nil if b is not an object.
func readFields(b []byte) fields {
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) != nil || raw == nil {
		return nil
	}
	f := make(fields, len(raw))
	for key, value := range raw {
		f[strings.ToLower(strings.ReplaceAll(key, "_", ""))] = value
	}
	return f
}

func (f fields) has(keys ...string) bool {
	for _, key := range keys {
		if _, ok := f[key]; !ok {
			return false
		}
	}
	return true
}

func (f fields) sub(key string) fields { return readFields(f[key]) }

// text returns a string's value or a number's digits; "" for null, an object or a missing key.
func (f fields) text(key string) string {
	var s string
	if json.Unmarshal(f[key], &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(f[key], &n) == nil {
		return n.String()
	}
	return ""
}

// either is the first text that is not empty.
func (f fields) either(keys ...string) string {
	for _, key := range keys {
		if s := f.text(key); s != "" {
			return s
		}
	}
	return ""
}

// invalid tells if the vector is one to refuse.
func (f fields) invalid() bool { return string(f["valid"]) == "false" }

// checker knows the account that a file's vectors are signed by unless they say otherwise.
type checker struct{ signer, key string }

// walk checks b if it is a vector, and else everything in it, in a fixed order.
func (c *checker) walk(at string, b json.RawMessage, done func(at string, err error)) {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) == nil {
		for i, item := range list {
			c.walk(at+"["+strconv.Itoa(i)+"]", item, done)
		}
		return
	}
	f := readFields(b)
	if f == nil {
		return
	}
	if check, hashes := c.kind(f); check != nil || f.claims() {
		if id := f.either("id", "label", "mutation"); id != "" {
			at += " " + id
		}
		err := errors.New("looks like a vector, but is none that is known")
		if check != nil {
			if err = f.complete(hashes); err == nil {
				err = check(f)
			}
		}
		done(strings.TrimSpace(at), err)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(f)) {
		c.walk(at+"."+key, f[key], done)
	}
}

// claims tells if something is stated that could be wrong: a signature, a message, or the hash or
// validity of an order. A bare order, or one with an empty signature, states nothing.
func (f fields) claims() bool {
	if strings.TrimPrefix(f.text("signature"), "0x") != "" || f.has("message") {
		return true
	}
	if !f.has("order") && !f.sub("body").has("order") {
		return false
	}
	for key := range f {
		if key == "valid" || strings.Contains(key, "hash") || strings.Contains(key, "digest") {
			return true
		}
	}
	return false
}

// complete checks that a vector says whether it is valid in one way only, and that a valid one
// states one of its hashes, itself or as computed again: else nothing would be compared.
func (f fields) complete(hashes []string) error {
	if v, given := f["valid"]; given && string(v) != "true" && !f.invalid() {
		return fmt.Errorf("valid is %s, neither true nor false", v)
	}
	if f.invalid() || len(hashes) == 0 ||
		f.either(hashes...) != "" || f.sub("recomputed").either(hashes...) != "" {
		return nil
	}
	return errors.New("states no hash")
}

// kind is the check for a vector and the hashes of which it must state one, or nil if f is none.
func (c *checker) kind(f fields) (check func(fields) error, hashes []string) {
	switch {
	case f.has("order", "domain"), f.sub("body").has("order") && f.has("domain"):
		return c.order, []string{"orderhash", "signeddigest", "structhash"}
	case f.has("order", "structhash"):
		return c.structHash, []string{"structhash"}
	case f.has("message", "nonce", "signature"):
		return c.auth, []string{"digest", "structhash"}
	case f.has("secret", "method", "path"):
		return c.hmac, nil // which counts what is stated itself
	case f.has("name", "version", "chainid", "domainseparator"):
		return c.separator, []string{"domainseparator"}
	case f.has("string", "typehash"):
		return c.typeHash, []string{"typehash"}
	case f.has("ordertypehash"):
		return func(f fields) error {
			hash := keccak(auth.OrderTypeV2)
			return f.same("order type hash", hash[:], "ordertypehash")
		}, []string{"ordertypehash"}
	}
	return nil, nil
}

// sameHash compares with a stated value in hex; one that is not stated is right.
func sameHash(what string, computed []byte, stated string) error {
	if stated == "" {
		return nil
	}
	want := make([]byte, len(computed))
	if !auth.ParseHex(want, stated) || !bytes.Equal(want, computed) {
		return fmt.Errorf("%s is %#x, stated %s", what, computed, stated)
	}
	return nil
}

// same compares with what a vector states under key, itself and as computed again.
func (f fields) same(what string, computed []byte, key string) error {
	return errors.Join(sameHash(what, computed, f.text(key)),
		sameHash(what, computed, f.sub("recomputed").text(key)))
}

// readDomain reads a stated domain.
func readDomain(f fields) (auth.Domain, error) {
	chain, err := strconv.ParseUint(f.text("chainid"), 10, 64)
	if err != nil {
		return auth.Domain{}, fmt.Errorf("chain id %q", f.text("chainid"))
	}
	d := auth.Domain{Name: f.text("name"), Version: f.text("version"), Chain: chain, Both: true}
	var ok bool
	if d.Contract, ok = auth.ParseAddress(f.text("verifyingcontract")); !ok {
		return auth.Domain{}, fmt.Errorf("contract %q", f.text("verifyingcontract"))
	}
	return d, nil
}

// readOrder reads an order in the form that clients send; the payload says which struct it is.
func readOrder(f fields) (*auth.Order, error) {
	o := &auth.Order{Version: 1}
	if f.has("timestamp") {
		o.Version = 2
	}
	var problems []error
	need := func(ok bool, key string) {
		if !ok {
			problems = append(problems, fmt.Errorf("order: %s is %q", key, f.text(key)))
		}
	}
	number := func(bits int, key string) uint64 {
		v, err := strconv.ParseUint(f.text(key), 10, bits)
		need(err == nil, key)
		return v
	}
	word := func(key string) auth.Word {
		w, ok := auth.ParseWord(f.text(key))
		need(ok, key)
		return w
	}
	account := func(key string) engine.Address {
		a, ok := auth.ParseAddress(f.text(key))
		need(ok, key)
		return a
	}
	switch f.text("side") {
	case "BUY", "0":
	case "SELL", "1":
		o.Side = engine.Sell
	default:
		need(false, "side")
	}
	o.SignatureType = uint8(number(8, "signaturetype"))
	o.Salt, o.Token = word("salt"), engine.Token(word("tokenid"))
	o.Maker, o.Signer = account("maker"), account("signer")
	o.MakerAmount, o.TakerAmount = number(64, "makeramount"), number(64, "takeramount")
	if o.Version == 1 {
		o.Taker = account("taker")
		o.Expiration, o.Nonce, o.FeeRate = word("expiration"), word("nonce"), word("feeratebps")
		return o, errors.Join(problems...)
	}
	o.Timestamp = word("timestamp")
	need(auth.ParseHex(o.Metadata[:], f.text("metadata")), "metadata")
	need(auth.ParseHex(o.Builder[:], f.text("builder")), "builder")
	return o, errors.Join(problems...)
}

// order checks an order: its separator, its hashes, its signature, and, where the key is stated,
// that our own signature is the same to the byte.
func (c *checker) order(f fields) error {
	payload := f.sub("order")
	if payload == nil {
		payload = f.sub("body").sub("order")
	}
	d, err := readDomain(f.sub("domain"))
	if err != nil {
		return err
	}
	o, err := readOrder(payload)
	if err != nil {
		return err
	}
	made := o.Digests(&d)
	if err := errors.Join(
		f.same("domain separator", made.Separator[:], "domainseparator"),
		f.same("struct hash", made.Struct[:], "structhash"),
		f.same("order hash", made.Hash[:], "orderhash"),
		f.same("signed digest", made.Signed[:], "signeddigest"),
	); err != nil {
		return err
	}
	text := f.text("signature")
	if text == "" {
		text = payload.text("signature")
	}
	if text == "" {
		return nil
	}
	err = c.signature(f, o, &d, text)
	if f.invalid() {
		return refused(err)
	}
	return err
}

// refused turns the outcome for a vector to refuse.
func refused(err error) error {
	if err == nil {
		return errors.New("accepted, should be refused")
	}
	return nil
}

// signature checks who signed: the stated owner, or the order's signer, or for a wallet the file's
// account.
func (c *checker) signature(f fields, o *auth.Order, d *auth.Domain, text string) error {
	owner := o.Signer
	stated := f.text("owner")
	if stated == "" && o.SignatureType == auth.TypeWallet {
		stated = c.signer
	}
	if stated != "" {
		var ok bool
		if owner, ok = auth.ParseAddress(stated); !ok {
			return fmt.Errorf("owner %q", stated)
		}
	}
	signature, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	found, err := auth.NewVerifier([]auth.Domain{*d}).Verify(o, signature, false)
	if err != nil {
		return err
	}
	if found.Signer != owner {
		return fmt.Errorf("signed by %s, owner %s", auth.Checksum(found.Signer), auth.Checksum(owner))
	}
	key, ok := c.keyOf(f, owner)
	if !ok {
		return nil
	}
	s, err := auth.NewSigner(key)
	if err != nil {
		return err
	}
	ours, _, err := s.SignOrder(o, d)
	if err != nil {
		return err
	}
	if !bytes.Equal(ours, signature) {
		return fmt.Errorf("our signature is %#x, stated %s", ours, text)
	}
	return nil
}

// keyOf is the private key of owner, if the vector or the file states it.
func (c *checker) keyOf(f fields, owner engine.Address) (key [32]byte, ok bool) {
	text := f.text("privatekey")
	if text == "" {
		text = c.key
	}
	if !auth.ParseHex(key[:], text) {
		return key, false
	}
	s, err := auth.NewSigner(key)
	return key, err == nil && s.Address == owner
}

// structHash checks an order's struct hash alone.
func (c *checker) structHash(f fields) error {
	o, err := readOrder(f.sub("order"))
	if err != nil {
		return err
	}
	made := o.Digests(&auth.Domain{})
	return f.same("struct hash", made.Struct[:], "structhash")
}

// auth checks a ClobAuth message.
func (c *checker) auth(f fields) error {
	if text := f.text("message"); text != auth.AuthMessage {
		return fmt.Errorf("message %q", text)
	}
	chain, err := strconv.ParseUint(f.text("chainid"), 10, 64)
	if err != nil {
		return fmt.Errorf("chain id %q", f.text("chainid"))
	}
	address, ok := auth.ParseAddress(f.text("address"))
	nonce, isNumber := auth.ParseWord(f.text("nonce"))
	if !ok || !isNumber {
		return fmt.Errorf("address %q or nonce %q", f.text("address"), f.text("nonce"))
	}
	stamp := f.text("timestamp")
	made := auth.AuthDigests(chain, address, stamp, nonce)
	if err := errors.Join(
		f.same("domain separator", made.Separator[:], "domainseparator"),
		f.same("struct hash", made.Struct[:], "structhash"),
		f.same("digest", made.Signed[:], "digest"),
	); err != nil {
		return err
	}
	err = c.authSignature(f, made.Signed, address, chain)
	if f.invalid() {
		return refused(err)
	}
	return err
}

// authSignature checks who signed the digest, and our own signature of it.
func (c *checker) authSignature(
	f fields, digest [32]byte, address engine.Address, chain uint64,
) error {
	r := auth.L1Request{
		Address: f.text("address"), Signature: f.text("signature"),
		Timestamp: f.text("timestamp"), Nonce: f.text("nonce"),
	}
	seconds, err := strconv.ParseInt(r.Timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("timestamp %q", r.Timestamp)
	}
	if _, _, err = auth.VerifyL1(&r, []uint64{chain}, time.Unix(seconds, 0)); err != nil {
		return err
	}
	key, ok := c.keyOf(f, address)
	if !ok {
		return nil
	}
	var ours [auth.SignatureSize]byte
	if !curve.Sign(&digest, &key, &ours) {
		return errors.New("the curve refused")
	}
	ours[64] += 27
	return sameHash("our signature", ours[:], f.text("signature"))
}

// hmac checks a request's HMAC, in each form that the vector states.
func (c *checker) hmac(f fields) error {
	t := auth.Trio{Secret: f.text("secret")}
	r := auth.Request{
		Timestamp: f.text("timestamp"), Method: f.text("method"), Path: f.text("path"),
		Body: []byte(f.either("body", "bodyexactbytes")),
	}
	err := t.Sign(&r)
	if err != nil {
		return err
	}
	ours, _ := auth.Digest(r.Signature)
	stated := 0
	for _, key := range []string{
		"signature", "signatureb64urlpadded", "recomputedhex", "polysignature", "svcsignaturehex",
	} {
		text := f.text(key)
		if text == "" {
			continue
		}
		stated++
		if digest, ok := auth.Digest(text); !ok || digest != ours {
			err = fmt.Errorf("HMAC is %x, %s states %s", ours, key, text)
		}
	}
	if stated == 0 {
		err = errors.New("no HMAC stated")
	}
	if f.invalid() {
		return refused(err)
	}
	return err
}

// separator checks a domain separator, with or without a contract.
func (c *checker) separator(f fields) error {
	if f.has("verifyingcontract") {
		d, err := readDomain(f)
		if err != nil {
			return err
		}
		separator := d.Separator()
		return f.same("domain separator", separator[:], "domainseparator")
	}
	chain, err := strconv.ParseUint(f.text("chainid"), 10, 64)
	if err != nil {
		return fmt.Errorf("chain id %q", f.text("chainid"))
	}
	// The node itself knows one such domain only, that of ClobAuth: see auth.
	const kind = "EIP712Domain(string name,string version,uint256 chainId)"
	var words []byte
	for _, text := range []string{kind, f.text("name"), f.text("version")} {
		hash := keccak(text)
		words = append(words, hash[:]...)
	}
	number := auth.WordOf(chain)
	separator := keccak(string(append(words, number[:]...)))
	return f.same("domain separator", separator[:], "domainseparator")
}

// typeHash checks the hash of a type string, and that a string for an Order is one of ours.
func (c *checker) typeHash(f fields) error {
	text := f.text("string")
	if strings.HasPrefix(text, "Order(") && text != auth.OrderTypeV1 && text != auth.OrderTypeV2 {
		return errors.New("another struct than ours: " + text)
	}
	sum := keccak(text)
	return f.same("type hash", sum[:], "typehash")
}

func keccak(text string) (sum [32]byte) {
	h := sha3.NewLegacyKeccak256()
	h.Write([]byte(text))
	h.Sum(sum[:0])
	return sum
}

package form

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/ingress/auth"
)

// ErrOther says that a body is not what its route asks for.
var ErrOther = errors.New("not the body of an order request")

// MemberError is ErrOther with the member that is wrong.
type MemberError struct{ member, want, got string }

// What members must be.
const (
	wantWord    = "an unsigned integer below 2^256"
	wantAmount  = "an unsigned integer of base units below 2^64"
	wantAddress = "an address: 0x and 40 hex digits"
	wantBytes32 = "0x and 64 hex digits"
)

// GotBytes bounds how much of a wrong member an answer repeats.
const GotBytes = 80

// Error names the member, what it must be and what it was.
func (e *MemberError) Error() string {
	if e.got == "" {
		return e.member + " must be " + e.want + ", got nothing"
	}
	return e.member + " must be " + e.want + ", got " + e.got[:min(len(e.got), GotBytes)]
}

// Unwrap returns ErrOther.
func (e *MemberError) Unwrap() error { return ErrOther }

// KeyError is ErrOther with the key that a body was refused at.
type KeyError struct{ *scan.Fault }

// Unwrap returns ErrOther.
func (e KeyError) Unwrap() error { return ErrOther }

func errorOf(fault *scan.Fault) error {
	if fault.Why == scan.Malformed && fault.Key == "" {
		return ErrOther
	}
	return KeyError{fault}
}

type checks struct{ err error }

// that notes the member of f unless it is good. The first bad member stays.
func (c *checks) that(good bool, f *scan.Field, member, want string) {
	if !good && c.err == nil {
		c.err = &MemberError{member, want, strings.Clone(f.Text)}
	}
}

// payload is the body of an order request, with every member as text.
type payload struct {
	owner, orderType, postOnly, deferExec scan.Field

	salt, maker, signer, taker, tokenID, conditionID scan.Field
	makerAmount, takerAmount, side, signatureType    scan.Field
	timestamp, metadata, builder                     scan.Field
	expiration, nonce, feeRate, signature            scan.Field
}

// member is one member of a body: its name, the kinds that it may have, and its field.
type member struct {
	name  string
	kinds scan.Kinds
	at    func(p *payload) *scan.Field
}

// The members of an order request, without the signed order.
var payloadMembers = []member{
	{"owner", scan.AString, func(p *payload) *scan.Field { return &p.owner }},
	{"orderType", scan.AString, func(p *payload) *scan.Field { return &p.orderType }},
	{"postOnly", scan.ABool, func(p *payload) *scan.Field { return &p.postOnly }},
	{"deferExec", scan.ABool, func(p *payload) *scan.Field { return &p.deferExec }},
}

// integer is the kinds of a number in the signed struct: public clients write either.
const integer = scan.AString | scan.ANumber

// The members of the signed order.
var signedMembers = []member{
	{"salt", integer, func(p *payload) *scan.Field { return &p.salt }},
	{"maker", scan.AString, func(p *payload) *scan.Field { return &p.maker }},
	{"signer", scan.AString, func(p *payload) *scan.Field { return &p.signer }},
	{"taker", scan.AString, func(p *payload) *scan.Field { return &p.taker }},
	{"tokenId", integer, func(p *payload) *scan.Field { return &p.tokenID }},
	{"conditionId", scan.AString, func(p *payload) *scan.Field { return &p.conditionID }},
	{"makerAmount", integer, func(p *payload) *scan.Field { return &p.makerAmount }},
	{"takerAmount", integer, func(p *payload) *scan.Field { return &p.takerAmount }},
	{"side", integer, func(p *payload) *scan.Field { return &p.side }},
	{"signatureType", integer, func(p *payload) *scan.Field { return &p.signatureType }},
	{"timestamp", integer, func(p *payload) *scan.Field { return &p.timestamp }},
	{"metadata", scan.AString, func(p *payload) *scan.Field { return &p.metadata }},
	{"builder", scan.AString, func(p *payload) *scan.Field { return &p.builder }},
	{"expiration", integer, func(p *payload) *scan.Field { return &p.expiration }},
	{"nonce", integer, func(p *payload) *scan.Field { return &p.nonce }},
	{"feeRateBps", integer, func(p *payload) *scan.Field { return &p.feeRate }},
	{"signature", scan.AString, func(p *payload) *scan.Field { return &p.signature }},
}

var payloadNames, signedNames = append(namesOf(payloadMembers), "order"), namesOf(signedMembers)

func namesOf(members []member) []string {
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].name
	}
	return names
}

func (p *payload) slot(members []member, name string) (scan.Slot, bool) {
	for i := range members {
		if m := &members[i]; m.name == name {
			return scan.Slot{Into: m.at(p), Kinds: m.kinds}, true
		}
	}
	return scan.Slot{}, false
}

// filler is a payload with the functions that find its slots: to make them takes longer than to
// find a slot.
type filler struct {
	payload
	root, signed scan.Shape

	member, signedMember func(name string) (scan.Slot, bool)
}

// fillers are the fillers that nobody uses now. Their payloads are empty.
var fillers = sync.Pool{New: func() any {
	r := &filler{}
	r.signedMember = func(name string) (scan.Slot, bool) { return r.slot(signedMembers, name) }
	r.member = func(name string) (scan.Slot, bool) {
		if name == "order" {
			return scan.Slot{Members: &r.signed}, true
		}
		return r.slot(payloadMembers, name)
	}
	return r
}}

// read fills the payload from a body.
func (r *filler) read(body string) *scan.Fault {
	r.signed = scan.Shape{Names: signedNames, Exact: r.signedMember}
	r.root = scan.Shape{Names: payloadNames, Exact: r.member}
	return scan.Document(body, &r.root)
}

// put gives the filler back. Its payload holds the body no longer.
func (r *filler) put() {
	r.payload = payload{}
	fillers.Put(r)
}

// Request is a decoded order request: integers and bytes, checked for form only.
type Request struct {
	Signed       auth.Order
	Signature    []byte // Decode uses its memory again
	Owner        string // uuid of an API key, as written: a part of the body
	Kind         engine.OrderType
	Condition    engine.Condition
	HasCondition bool
	Expiration   uint64 // unix seconds, or milliseconds from 10^12 on; 0: none
	PostOnly     bool
	DeferExec    bool
}

// Decode reads the body of POST /order, or one value of POST /orders. Nothing but r.Owner stays a
// part of body. The error is ErrOther, a MemberError or a KeyError.
func Decode(body string, r *Request) error {
	p := fillers.Get().(*filler)
	defer p.put()
	if fault := p.read(body); fault != nil {
		return errorOf(fault)
	}
	var c checks
	c.that(p.tokenID.Given() || p.maker.Given() || p.salt.Given() || p.signature.Given(),
		&scan.Field{}, "order", "the object with the signed order")
	p.decodeCommon(&c, r)
	p.decodeVersion(&c, r)
	p.decodeTerms(&c, r)
	return c.err
}

// decodeCommon converts the members that both versions of the struct have.
func (p *payload) decodeCommon(c *checks, r *Request) {
	o := &r.Signed
	token, ok := Word(p.tokenID.Text)
	c.that(ok, &p.tokenID, "tokenId", wantWord)
	o.Token = engine.Token(token)
	o.Salt, ok = Word(p.salt.Text)
	c.that(ok, &p.salt, "salt", wantWord)
	o.Maker, ok = auth.ParseAddress(p.maker.Text)
	c.that(ok, &p.maker, "maker", wantAddress)
	o.Signer, ok = auth.ParseAddress(p.signer.Text)
	c.that(ok, &p.signer, "signer", wantAddress)
	o.MakerAmount, ok = Amount(p.makerAmount.Text)
	c.that(ok, &p.makerAmount, "makerAmount", wantAmount)
	o.TakerAmount, ok = Amount(p.takerAmount.Text)
	c.that(ok, &p.takerAmount, "takerAmount", wantAmount)
	o.Side, ok = Side(p.side.Text)
	c.that(ok, &p.side, "side", "BUY or SELL")
	o.SignatureType, ok = parseSmall(p.signatureType.Text)
	c.that(ok, &p.signatureType, "signatureType", "0, 1, 2 or 3")
	r.Signature, ok = parseBytes(r.Signature[:0], p.signature.Text)
	c.that(ok, &p.signature, "signature", "0x and the hex digits of at most 512 bytes")
}

// decodeVersion finds out which struct was signed. Each version has members that the other lacks. A
// payload with both or neither is judged as version 2.
func (p *payload) decodeVersion(c *checks, r *Request) {
	o := &r.Signed
	later := p.timestamp.Given() && p.metadata.Given() && p.builder.Given()
	first := p.taker.Given() && p.nonce.Given() && p.feeRate.Given() && p.expiration.Given()
	ok := false
	if later || !first {
		o.Version = 2
		o.Timestamp, ok = Word(p.timestamp.Text)
		c.that(ok, &p.timestamp, "timestamp", wantWord)
		c.that(auth.ParseHex(o.Metadata[:], p.metadata.Text), &p.metadata, "metadata", wantBytes32)
		c.that(auth.ParseHex(o.Builder[:], p.builder.Text), &p.builder, "builder", wantBytes32)
		return
	}
	o.Version = 1
	o.Expiration, ok = Word(p.expiration.Text)
	c.that(ok, &p.expiration, "expiration", wantWord)
	o.Nonce, ok = Word(p.nonce.Text)
	c.that(ok, &p.nonce, "nonce", wantWord)
	o.FeeRate, ok = Word(p.feeRate.Text)
	c.that(ok, &p.feeRate, "feeRateBps", wantWord)
	o.Taker, ok = auth.ParseAddress(p.taker.Text)
	c.that(ok, &p.taker, "taker", wantAddress)
}

// decodeTerms converts the members that version 2 does not sign: how long, for whose key.
func (p *payload) decodeTerms(c *checks, r *Request) {
	c.that(p.owner.Given(), &p.owner, "owner", "the API key that signs the request")
	r.Owner = p.owner.Text
	r.PostOnly, r.DeferExec = p.postOnly.Text == "true", p.deferExec.Text == "true"
	if r.HasCondition = p.conditionID.Given(); r.HasCondition {
		c.that(auth.ParseHex(r.Condition[:], p.conditionID.Text), &p.conditionID, "conditionId",
			wantBytes32)
	}
	if p.expiration.Given() {
		word, ok := Word(p.expiration.Text)
		if ok {
			r.Expiration, ok = word.Uint64()
		}
		c.that(ok, &p.expiration, "expiration", "unix seconds")
	}
	kind := slices.IndexFunc(orderTypes[:], func(name string) bool {
		return strings.EqualFold(name, p.orderType.Text)
	})
	c.that(kind >= 0 || p.orderType.Kind == 0, &p.orderType, "orderType", "GTC, GTD, FOK or FAK")
	r.Kind = engine.OrderType(max(kind, 0)) // GTC is the default
}

// orderTypes are the order types as most clients write them; any case will do.
var orderTypes = [...]string{
	engine.GTC: "GTC", engine.GTD: "GTD", engine.FOK: "FOK", engine.FAK: "FAK",
}

// Side reads a side by its name or by its number in the signed struct.
func Side(s string) (engine.Side, bool) {
	switch {
	case s == "0" || strings.EqualFold(s, "BUY"):
		return engine.Buy, true
	case s == "1" || strings.EqualFold(s, "SELL"):
		return engine.Sell, true
	}
	return 0, false
}

// Word reads an unsigned integer of 256 bits: decimal digits, or 0x and hex digits.
func Word(s string) (auth.Word, bool) {
	if len(s) < 3 || s[0] != '0' || s[1]|0x20 != 'x' {
		return auth.ParseWord(s)
	}
	var w auth.Word
	digits := s[2:]
	if len(digits) > 2*len(w) {
		return w, false
	}
	ok := auth.ParseHex(w[:], strings.Repeat("0", 2*len(w)-len(digits))+digits)
	return w, ok
}

// Amount reads an unsigned integer of 64 bits in decimal digits.
func Amount(s string) (uint64, bool) {
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil
}

func parseSmall(s string) (uint8, bool) {
	v, err := strconv.ParseUint(s, 10, 8)
	return uint8(v), err == nil
}

// maxSignature bounds a signature: the longest known form has 317 bytes.
const maxSignature = 512

// parseBytes appends the bytes of 0x and an even number of hex digits.
func parseBytes(dst []byte, s string) ([]byte, bool) {
	if len(s) < 2 || s[0] != '0' || s[1]|0x20 != 'x' || len(s)%2 != 0 || len(s) > 2+2*maxSignature {
		return dst, false
	}
	n := len(dst)
	dst = slices.Grow(dst, len(s)/2-1)[:n+len(s)/2-1]
	return dst, auth.ParseHex(dst[n:], s)
}

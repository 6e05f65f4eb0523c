package ingress

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clobd/engine"
	"clobd/ingress/auth"
)

// errPayload says that a body is not what its route asks for.
var errPayload = errors.New("not the body of an order request")

// memberError is errPayload with the member that is wrong. Without want the member could not be
// read at all.
type memberError struct{ member, want, got string }

// What members must be.
const (
	wantWord    = "an unsigned integer below 2^256"
	wantAmount  = "an unsigned integer of base units below 2^64"
	wantAddress = "an address: 0x and 40 hex digits"
	wantBytes32 = "0x and 64 hex digits"
)

// gotBytes bounds how much of a wrong member an answer repeats.
const gotBytes = 80

func (e *memberError) Error() string {
	switch {
	case e.want == "":
		return e.member + " is malformed or of a wrong kind"
	case e.got == "":
		return e.member + " must be " + e.want + ", got nothing"
	}
	return e.member + " must be " + e.want + ", got " + e.got[:min(len(e.got), gotBytes)]
}

func (e *memberError) Unwrap() error { return errPayload }

type checks struct{ err error }

// that notes the member of f unless it is good. The first bad member stays.
func (c *checks) that(good bool, f *field, member, want string) {
	if !good && c.err == nil {
		c.err = &memberError{member, want, strings.Clone(f.text)}
	}
}

// payload is the body of an order request, with every member as text.
type payload struct {
	owner, orderType, postOnly, deferExec field

	salt, maker, signer, taker, tokenID, conditionID field
	makerAmount, takerAmount, side, signatureType    field
	timestamp, metadata, builder                     field
	expiration, nonce, feeRate, signature            field
}

// member says how one member of a body is read: its name, the kinds it may have, and its field.
type member struct {
	name  string
	kinds kinds
	at    func(p *payload) *field
}

// The members of an order request, without the signed order.
var payloadMembers = []member{
	{"owner", aString, func(p *payload) *field { return &p.owner }},
	{"orderType", aString, func(p *payload) *field { return &p.orderType }},
	{"postOnly", aBool, func(p *payload) *field { return &p.postOnly }},
	{"deferExec", aBool, func(p *payload) *field { return &p.deferExec }},
}

// integer is the kinds of a number in the signed struct: public clients write either.
const integer = aString | aNumber

// The members of the signed order.
var signedMembers = []member{
	{"salt", integer, func(p *payload) *field { return &p.salt }},
	{"maker", aString, func(p *payload) *field { return &p.maker }},
	{"signer", aString, func(p *payload) *field { return &p.signer }},
	{"taker", aString, func(p *payload) *field { return &p.taker }},
	{"tokenId", integer, func(p *payload) *field { return &p.tokenID }},
	{"conditionId", aString, func(p *payload) *field { return &p.conditionID }},
	{"makerAmount", integer, func(p *payload) *field { return &p.makerAmount }},
	{"takerAmount", integer, func(p *payload) *field { return &p.takerAmount }},
	{"side", integer, func(p *payload) *field { return &p.side }},
	{"signatureType", integer, func(p *payload) *field { return &p.signatureType }},
	{"timestamp", integer, func(p *payload) *field { return &p.timestamp }},
	{"metadata", aString, func(p *payload) *field { return &p.metadata }},
	{"builder", aString, func(p *payload) *field { return &p.builder }},
	{"expiration", integer, func(p *payload) *field { return &p.expiration }},
	{"nonce", integer, func(p *payload) *field { return &p.nonce }},
	{"feeRateBps", integer, func(p *payload) *field { return &p.feeRate }},
	{"signature", aString, func(p *payload) *field { return &p.signature }},
}

var payloadNames, signedNames = append(namesOf(payloadMembers), "order"), namesOf(signedMembers)

func namesOf(members []member) []string {
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].name
	}
	return names
}

// place returns where the member of a name belongs.
func (p *payload) place(members []member, name string) (place, bool) {
	for i := range members {
		if m := &members[i]; m.name == name {
			return place{into: m.at(p), kinds: m.kinds}, true
		}
	}
	return place{}, false
}

// read fills p from a body. If that fails, at names the member that is malformed or of a wrong
// kind; "" if no single member is.
func (p *payload) read(body string) (at string, ok bool) {
	signed := shape{signedNames, func(name string) (place, bool) {
		return p.place(signedMembers, name)
	}}
	root := shape{payloadNames, func(name string) (place, bool) {
		if name == "order" {
			return place{members: &signed}, true
		}
		return p.place(payloadMembers, name)
	}}
	c := scanner{s: body}
	ok = c.document(&root)
	return c.at, ok
}

// request is a decoded order request: integers and bytes, checked for form only.
type request struct {
	order        auth.Order
	signature    []byte
	owner        string // uuid of an API key, as written
	kind         engine.OrderType
	condition    engine.Condition
	hasCondition bool
	expiration   uint64 // unix seconds, or milliseconds from 10^12 on; 0: none
	postOnly     bool
	deferExec    bool
}

// decodeOrder reads the body of POST /order, or one value of that of POST /orders. It keeps nothing
// of body. The only error is errPayload, as it is or as a memberError.
func decodeOrder(body string, r *request) error {
	var p payload
	if at, ok := p.read(body); !ok && at != "" {
		return &memberError{member: strings.Clone(at)}
	} else if !ok {
		return errPayload
	}
	var c checks
	p.decodeCommon(&c, r)
	p.decodeVersion(&c, r)
	p.decodeTerms(&c, r)
	return c.err
}

// decodeCommon converts the members that both versions of the struct have.
func (p *payload) decodeCommon(c *checks, r *request) {
	o := &r.order
	token, ok := parseWord(p.tokenID.text)
	c.that(ok, &p.tokenID, "tokenId", wantWord)
	o.Token = engine.Token(token)
	o.Salt, ok = parseWord(p.salt.text)
	c.that(ok, &p.salt, "salt", wantWord)
	o.Maker, ok = auth.ParseAddress(p.maker.text)
	c.that(ok, &p.maker, "maker", wantAddress)
	o.Signer, ok = auth.ParseAddress(p.signer.text)
	c.that(ok, &p.signer, "signer", wantAddress)
	o.MakerAmount, ok = parseAmount(p.makerAmount.text)
	c.that(ok, &p.makerAmount, "makerAmount", wantAmount)
	o.TakerAmount, ok = parseAmount(p.takerAmount.text)
	c.that(ok, &p.takerAmount, "takerAmount", wantAmount)
	o.Side, ok = parseSide(p.side.text)
	c.that(ok, &p.side, "side", "BUY or SELL")
	o.SignatureType, ok = parseSmall(p.signatureType.text)
	c.that(ok, &p.signatureType, "signatureType", "0, 1, 2 or 3")
	r.signature, ok = parseBytes(p.signature.text)
	c.that(ok, &p.signature, "signature", "0x and the hex digits of at most 512 bytes")
}

// decodeVersion finds out which struct was signed. The payload of each version has members that the
// other one lacks. A payload with both kinds is of version 2; a payload with neither is told what
// version 2 needs.
func (p *payload) decodeVersion(c *checks, r *request) {
	o := &r.order
	later := p.timestamp.given() && p.metadata.given() && p.builder.given()
	first := p.taker.given() && p.nonce.given() && p.feeRate.given() && p.expiration.given()
	ok := false
	if later || !first {
		o.Version = 2
		o.Timestamp, ok = parseWord(p.timestamp.text)
		c.that(ok, &p.timestamp, "timestamp", wantWord)
		c.that(auth.ParseHex(o.Metadata[:], p.metadata.text), &p.metadata, "metadata", wantBytes32)
		c.that(auth.ParseHex(o.Builder[:], p.builder.text), &p.builder, "builder", wantBytes32)
		return
	}
	o.Version = 1
	o.Expiration, ok = parseWord(p.expiration.text)
	c.that(ok, &p.expiration, "expiration", wantWord)
	o.Nonce, ok = parseWord(p.nonce.text)
	c.that(ok, &p.nonce, "nonce", wantWord)
	o.FeeRate, ok = parseWord(p.feeRate.text)
	c.that(ok, &p.feeRate, "feeRateBps", wantWord)
	o.Taker, ok = auth.ParseAddress(p.taker.text)
	c.that(ok, &p.taker, "taker", wantAddress)
}

// decodeTerms converts the members that version 2 does not sign: how long, for whose key.
func (p *payload) decodeTerms(c *checks, r *request) {
	c.that(p.owner.given(), &p.owner, "owner", "the API key that signs the request")
	r.owner = strings.Clone(p.owner.text)
	r.postOnly, r.deferExec = p.postOnly.text == "true", p.deferExec.text == "true"
	if r.hasCondition = p.conditionID.given(); r.hasCondition {
		c.that(auth.ParseHex(r.condition[:], p.conditionID.text), &p.conditionID, "conditionId",
			wantBytes32)
	}
	if p.expiration.given() {
		word, ok := parseWord(p.expiration.text)
		if ok {
			r.expiration, ok = word.Uint64()
		}
		c.that(ok, &p.expiration, "expiration", "unix seconds")
	}
	ok := true
	r.kind, ok = parseOrderType(p.orderType)
	c.that(ok, &p.orderType, "orderType", "GTC, GTD, FOK or FAK")
}

// parseOrderType reads an order type; GTC is the default.
func parseOrderType(f field) (engine.OrderType, bool) {
	switch f.text {
	case "GTC":
		return engine.GTC, true
	case "GTD":
		return engine.GTD, true
	case "FOK":
		return engine.FOK, true
	case "FAK":
		return engine.FAK, true
	}
	return engine.GTC, f.kind == 0
}

// parseSide reads a side by its name or by its number in the signed struct.
func parseSide(s string) (engine.Side, bool) {
	switch {
	case s == "0" || strings.EqualFold(s, "BUY"):
		return engine.Buy, true
	case s == "1" || strings.EqualFold(s, "SELL"):
		return engine.Sell, true
	}
	return 0, false
}

// parseWord reads an unsigned integer of 256 bits: decimal digits, or 0x and hex digits. A point or
// an exponent is refused: such a number went through a float somewhere.
func parseWord(s string) (auth.Word, bool) {
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

// parseAmount reads an unsigned integer of 64 bits.
func parseAmount(s string) (uint64, bool) {
	if s == "" || s[0] == '+' {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil
}

// parseSmall reads an unsigned integer of 8 bits.
func parseSmall(s string) (uint8, bool) {
	v, ok := parseAmount(s)
	return uint8(v), ok && v <= 255
}

// maxSignature bounds a signature: the longest known form has 317 bytes.
const maxSignature = 512

// parseBytes reads 0x and an even number of hex digits.
func parseBytes(s string) ([]byte, bool) {
	if len(s) < 2 || s[0] != '0' || s[1]|0x20 != 'x' || len(s)%2 != 0 || len(s) > 2+2*maxSignature {
		return nil, false
	}
	b := make([]byte, len(s)/2-1)
	return b, auth.ParseHex(b, s)
}

// decodeCancel reads the body of DELETE /order: the order id, under any of the names that clients
// use. ok is false if the body is no JSON object.
func decodeCancel(body []byte) (id string, ok bool) {
	var f field
	names := []string{"orderID", "orderId", "order_id", "id", "hash"}
	root := shape{names, func(name string) (place, bool) {
		return place{into: &f, kinds: aString}, slices.Contains(names, name)
	}}
	c := scanner{s: string(body)}
	ok = c.document(&root)
	return f.text, ok
}

// readMembers reads the named scalar members of a body that holds one object.
func readMembers(body []byte, at map[string]place) bool {
	c := scanner{s: string(body)}
	names := slices.Sorted(maps.Keys(at))
	return c.document(&shape{names, func(n string) (place, bool) { p, ok := at[n]; return p, ok }})
}

// splitArray splits a body that holds one array: it returns the text of the first values, at most
// so many, and how many there are. ok is false if the body is no JSON array.
func splitArray(body string, most int) (values []string, count int, ok bool) {
	c := scanner{s: body, depth: 1}
	c.space()
	if !c.next('[') {
		return nil, 0, false
	}
	for c.space(); !c.next(']'); {
		if count > 0 && !c.next(',') {
			return nil, 0, false
		}
		c.space()
		from := c.i
		if !c.value(place{}) {
			return nil, 0, false
		}
		if count++; count <= most {
			values = append(values, body[from:c.i])
		}
		c.space()
	}
	c.space()
	return values, count, c.i == len(body)
}

// decodeCancels reads the body of DELETE /orders: a list of ids, each a string or a body of DELETE
// /order. It returns the first maxCancels and how many there are.
func decodeCancels(body []byte) (ids []string, count int, ok bool) {
	values, count, ok := splitArray(string(body), maxCancels)
	if !ok {
		return nil, 0, false
	}
	for _, v := range values {
		id := ""
		if v[0] == '"' {
			c := scanner{s: v}
			id, ok = c.text()
		} else if id, ok = decodeCancel([]byte(v)); v[0] != '{' {
			ok = false
		}
		if !ok {
			return nil, 0, false
		}
		ids = append(ids, id)
	}
	return ids, count, true
}

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

// errPayload says that a body is not what the route asks for.
var errPayload = errors.New("not the body of an order request")

// payload is the body of an order request as it was written, every member still text.
type payload struct {
	owner, orderType, postOnly, deferExec field

	salt, maker, signer, taker, tokenID, conditionID field
	makerAmount, takerAmount, side, signatureType    field
	timestamp, metadata, builder                     field
	expiration, nonce, feeRate, signature            field
}

// The members that an order request is read for.
var (
	payloadNames = []string{"order", "owner", "orderType", "postOnly", "deferExec"}
	signedNames  = []string{"salt", "maker", "signer", "taker", "tokenId", "conditionId",
		"makerAmount", "takerAmount", "side", "signatureType", "timestamp", "metadata", "builder",
		"expiration", "nonce", "feeRateBps", "signature"}
)

// read fills p from a body.
func (p *payload) read(body string) bool {
	signed := shape{signedNames, p.signed}
	root := shape{payloadNames, func(name string) (place, bool) {
		switch name {
		case "order":
			return place{members: &signed}, true
		case "owner":
			return place{into: &p.owner, kinds: aString}, true
		case "orderType":
			return place{into: &p.orderType, kinds: aString}, true
		case "postOnly":
			return place{into: &p.postOnly, kinds: aBool}, true
		case "deferExec":
			return place{into: &p.deferExec, kinds: aBool}, true
		}
		return place{}, false
	}}
	c := scanner{s: body}
	return c.document(&root)
}

// signed is where the members of the signed order belong. What is a number in the signed struct
// may be written as a number or as a string: public clients do either.
func (p *payload) signed(name string) (place, bool) {
	const integer = aString | aNumber
	at, want := (*field)(nil), aString
	switch name {
	case "salt":
		at, want = &p.salt, integer
	case "maker":
		at = &p.maker
	case "signer":
		at = &p.signer
	case "taker":
		at = &p.taker
	case "tokenId":
		at, want = &p.tokenID, integer
	case "conditionId":
		at = &p.conditionID
	case "makerAmount":
		at, want = &p.makerAmount, integer
	case "takerAmount":
		at, want = &p.takerAmount, integer
	case "side":
		at, want = &p.side, integer
	case "signatureType":
		at, want = &p.signatureType, integer
	case "timestamp":
		at, want = &p.timestamp, integer
	case "metadata":
		at = &p.metadata
	case "builder":
		at = &p.builder
	case "expiration":
		at, want = &p.expiration, integer
	case "nonce":
		at, want = &p.nonce, integer
	case "feeRateBps":
		at, want = &p.feeRate, integer
	case "signature":
		at = &p.signature
	}
	return place{into: at, kinds: want}, at != nil
}

// request is a decoded order request: integers and bytes, judged for form only.
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

// decodeOrder reads the body of POST /order. It keeps nothing of body. The only error is
// errPayload.
func decodeOrder(body []byte, r *request) error { return decodeText(string(body), r) }

// decodeText is decodeOrder for a part of a body.
func decodeText(body string, r *request) error {
	var p payload
	if !p.read(body) {
		return errPayload
	}
	if !p.decodeCommon(r) || !p.decodeVersion(r) || !p.decodeTerms(r) {
		return errPayload
	}
	return nil
}

// decodeCommon converts the members that every version of the struct has.
func (p *payload) decodeCommon(r *request) bool {
	o := &r.order
	token, ok := parseWord(p.tokenID.text)
	if !ok {
		return false
	}
	o.Token = engine.Token(token)
	if o.Salt, ok = parseWord(p.salt.text); !ok {
		return false
	}
	if o.Maker, ok = auth.ParseAddress(p.maker.text); !ok {
		return false
	}
	if o.Signer, ok = auth.ParseAddress(p.signer.text); !ok {
		return false
	}
	if o.MakerAmount, ok = parseAmount(p.makerAmount.text); !ok {
		return false
	}
	if o.TakerAmount, ok = parseAmount(p.takerAmount.text); !ok {
		return false
	}
	if o.Side, ok = parseSide(p.side.text); !ok {
		return false
	}
	if o.SignatureType, ok = parseSmall(p.signatureType.text); !ok {
		return false
	}
	r.signature, ok = parseBytes(p.signature.text)
	return ok
}

// decodeVersion finds out which struct was signed: the payload of the first one has members that
// those of the later ones lack, and the other way round.
func (p *payload) decodeVersion(r *request) bool {
	o := &r.order
	ok := true
	read := func(into *auth.Word, f *field) {
		good := false
		*into, good = parseWord(f.text)
		ok = ok && good
	}
	if p.timestamp.given() && p.metadata.given() && p.builder.given() {
		o.Version = 2
		read(&o.Timestamp, &p.timestamp)
		ok = ok && auth.ParseHex(o.Metadata[:], p.metadata.text)
		return ok && auth.ParseHex(o.Builder[:], p.builder.text)
	}
	if !p.taker.given() || !p.nonce.given() || !p.feeRate.given() || !p.expiration.given() {
		return false
	}
	o.Version = 1
	read(&o.Expiration, &p.expiration)
	read(&o.Nonce, &p.nonce)
	read(&o.FeeRate, &p.feeRate)
	taker, good := auth.ParseAddress(p.taker.text)
	o.Taker = taker
	return ok && good
}

// decodeTerms converts what is not signed in the later struct: how long, for whose key.
func (p *payload) decodeTerms(r *request) bool {
	if !p.owner.given() {
		return false
	}
	r.owner = strings.Clone(p.owner.text)
	r.postOnly, r.deferExec = p.postOnly.text == "true", p.deferExec.text == "true"
	if r.hasCondition = p.conditionID.given(); r.hasCondition {
		if !auth.ParseHex(r.condition[:], p.conditionID.text) {
			return false
		}
	}
	if p.expiration.given() {
		word, ok := parseWord(p.expiration.text)
		if !ok {
			return false
		}
		if r.expiration, ok = word.Uint64(); !ok {
			return false
		}
	}
	ok := true
	r.kind, ok = parseOrderType(p.orderType)
	return ok
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

// parseWord reads an unsigned integer of 256 bits: decimal digits, or 0x and hex digits. A number
// with a point or an exponent is none, whatever its value: it went through a float somewhere.
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

// decodeCancel reads the body of DELETE /order: the text of the order id under any of the names
// that clients give it. ok is false if the body is no JSON object.
func decodeCancel(body []byte) (id string, ok bool) {
	var f field
	names := []string{"orderID", "order_id", "id", "hash"}
	root := shape{names, func(name string) (place, bool) {
		switch name {
		case "orderID", "orderId", "order_id", "id", "hash":
			return place{into: &f, kinds: aString}, true
		}
		return place{}, false
	}}
	c := scanner{s: string(body)}
	ok = c.document(&root)
	return f.text, ok
}

// parseOrderID reads 0x and 64 hex digits.
func parseOrderID(s string) (id engine.OrderID, ok bool) {
	ok = len(s) == 66 && auth.ParseHex(id[:], s)
	return id, ok
}

// readMembers reads the named scalar members of a body that holds one object.
func readMembers(body []byte, at map[string]place) bool {
	c := scanner{s: string(body)}
	names := slices.Sorted(maps.Keys(at))
	return c.document(&shape{names, func(n string) (place, bool) { p, ok := at[n]; return p, ok }})
}

// splitArray takes a body that holds one array apart: the text of its first values, at most so
// many, and how many there are. ok is false if it is no JSON array.
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

// decodeCancels reads the body of DELETE /orders: a list of ids, each a text or what DELETE /order
// takes. It returns the first maxCancels and how many there are.
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

// parseCondition reads 0x and 64 hex digits.
func parseCondition(s string) (c engine.Condition, ok bool) {
	ok = len(s) == 66 && auth.ParseHex(c[:], s)
	return c, ok
}

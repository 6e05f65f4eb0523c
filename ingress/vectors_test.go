package ingress

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/ingress/form"
)

// tally counts what became of known answers on their way through the door, so that one can see what
// was posted and what was not, and why.
type tally map[string]int

// report says it, and fails if there was nothing.
func (n tally) report(t *testing.T) {
	t.Helper()
	posted := 0
	for what, count := range n {
		if !strings.HasPrefix(what, "skipped") {
			posted += count
		}
	}
	parts := make([]string, 0, len(n))
	for _, what := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d %s", n[what], what))
	}
	t.Logf("%d posted: %s", posted, strings.Join(parts, ", "))
	if posted == 0 {
		t.Error("nothing was posted")
	}
}

// readVectors reads a file of the shared folder, or skips.
func readVectors(t *testing.T, into any, name ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "shared", "data"}, name...)...))
	if err != nil {
		t.Skipf("SKIPPED: no %s: %v", filepath.Join(name...), err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// vector is an order that somebody else's client signed, or one that was spoilt after.
type vector struct {
	ID, Owner, ExchangeKind, OrderHash, Mutation, Signature, Label string
	ChainID                                                        uint64
	Valid                                                          bool
	Order, Wire                                                    map[string]any
	Domain                                                         struct {
		Name, Version, VerifyingContract string
		ChainID                          uint64
	}
}

// domain is the exchange that a vector was signed for.
func (v *vector) domain(t *testing.T) auth.Domain {
	t.Helper()
	contract, ok := auth.ParseAddress(v.Domain.VerifyingContract)
	if !ok {
		t.Fatalf("%s has no contract", v.ID)
	}
	return auth.Domain{Name: v.Domain.Name, Version: v.Domain.Version, Chain: v.Domain.ChainID,
		Contract: contract}
}

// known finds the row of the node's own table for a domain; one that has none is an exchange which
// an operator adds.
func known(d auth.Domain) (auth.Domain, bool) {
	for _, row := range auth.Domains(d.Chain) {
		if row.Name == d.Name && row.Version == d.Version && row.Contract == d.Contract {
			return row, true
		}
	}
	d.Both = true
	return d, false
}

// street is the houses in which vectors are posted: one for each chain and kind of market, because
// there a token has one market, and for each exchange that is not in the table.
type street struct {
	t      *testing.T
	houses map[string]*house
	listed map[string]bool // house and token
}

func newStreet(t *testing.T) *street {
	return &street{t: t, houses: map[string]*house{}, listed: map[string]bool{}}
}

// of is the house for a vector, with the market and the money that its order may need.
func (s *street) of(v *vector) *house {
	s.t.Helper()
	d, mine := known(v.domain(s.t))
	negRisk := v.ExchangeKind == "negRisk" || v.ExchangeKind == "" && d.NegRisk
	if v.Mutation == "wrong_exchange" { // an order does not say for which it was signed
		negRisk = !negRisk
	}
	chain, extra := v.Domain.ChainID, []auth.Domain(nil)
	name := fmt.Sprint(chain, negRisk)
	if !mine {
		name, extra = name+d.String(), []auth.Domain{d}
	}
	h := s.houses[name]
	if h == nil {
		h = newHouse(s.t, func(o *Options) {
			o.Chains = []uint64{chain}
			o.Verifier = auth.NewVerifier(append(auth.Domains(chain), extra...))
		})
		s.houses[name] = h
	}
	token, ok := engine.ParseToken(v.Order["tokenId"].(string))
	if !ok {
		s.t.Fatalf("%s has no token", v.ID)
	}
	if key := name + token.String(); !s.listed[key] {
		s.listed[key] = true
		l := engine.Listing{Condition: engine.Condition(token), Group: 1, Tick: 1, Open: true,
			NegRisk: negRisk, Tokens: [2]engine.Token{token, token}}
		l.Tokens[1][0] ^= 0xff
		h.submit(engine.Command{Kind: engine.List, Listing: &l})
	}
	h.provide(v, token)
	return h
}

// provide gives the maker of a vector all that its order may need.
func (h *house) provide(v *vector, token engine.Token) {
	h.t.Helper()
	maker, ok1 := auth.ParseAddress(v.Order["maker"].(string))
	owner, ok2 := auth.ParseAddress(v.Owner)
	market, _, ok3 := h.board.Directory.Token(token)
	if !ok1 || !ok2 || !ok3 {
		h.t.Fatalf("%s %s cannot be read", v.ID, v.Label)
	}
	if v.Order["signatureType"] != float64(auth.TypeEOA) {
		h.submit(engine.Command{Kind: engine.Link, Address: maker, Holder: owner})
	}
	const plenty = 1_000_000 * engine.Unit
	h.submit(engine.Command{Kind: engine.Deposit, Address: maker, Cash: plenty})
	h.submit(engine.Command{Kind: engine.Deposit, Address: maker, Market: market.No, Size: plenty})
}

// call sends a request with the headers of the API key of an address.
func (h *house) call(owner engine.Address, method, path, body string) string {
	h.t.Helper()
	trio := h.keyring.Derive(owner, 0)
	r := auth.Request{Address: auth.Checksum(owner), Timestamp: strconv.FormatInt(h.now(), 10),
		Method: method, Path: path, Body: []byte(body)}
	if err := trio.Sign(&r); err != nil {
		h.t.Fatal(err)
	}
	return h.send((&rawRequest{method: method, path: path, body: body, headers: []string{
		"POLY_ADDRESS: " + r.Address, "POLY_API_KEY: " + r.Key, "POLY_PASSPHRASE: " + r.Passphrase,
		"POLY_TIMESTAMP: " + r.Timestamp, "POLY_SIGNATURE: " + r.Signature,
	}}).String())
}

// offer posts a vector with the API key of its owner.
func (h *house) offer(v *vector) string {
	h.t.Helper()
	owner, _ := auth.ParseAddress(v.Owner)
	if v.Wire == nil {
		if v.Order["signature"] == nil {
			v.Order["signature"] = v.Signature
		}
		v.Wire = map[string]any{"order": v.Order, "orderType": "GTC"}
		if v.Order["expiration"] != "0" {
			v.Wire["orderType"] = "GTD"
		}
	}
	v.Wire["owner"] = h.keyring.Derive(owner, 0).Key
	body, err := json.Marshal(v.Wire)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.call(owner, "POST", "/order", string(body))
}

// judge says what became of a vector, and fails if that is not what it states.
func (n tally) judge(t *testing.T, v *vector, answer string) {
	t.Helper()
	text, _ := v.Order["expiration"].(string)
	expiry, _ := strconv.ParseInt(text, 10, 64)
	has := func(code string) bool {
		return strings.HasPrefix(answer, "400\n") && strings.Contains(answer, `"code":"`+code+`"`)
	}
	switch {
	case !v.Valid && (has("invalid_signature") || has("signer_mismatch")):
		n["spoilt and refused"]++
	case v.Valid && strings.HasPrefix(answer, "200\n") && strings.Contains(answer, v.OrderHash):
		n["taken under their own id"]++
	case v.Valid && expiry != 0 && expiry <= testNow && has("expiration"):
		n["well signed, too late for this clock"]++
	case v.Valid && v.ID == "" && (has("tick_size") || has("fak_unfilled") || has("fok_unfilled")):
		n["well signed, with a price that is none or that nobody meets"]++
	default:
		t.Errorf("%s %s %s: %s", v.ID, v.Label, v.Mutation, answer)
	}
}

// TestVectorsThroughTheDoor: what clients of the public exchanges have signed is taken as it comes,
// under the id that they computed, unless it is too late for it. What was spoilt is refused.
func TestVectorsThroughTheDoor(t *testing.T) {
	for _, name := range []string{"orders_polymarket_v1.json", "orders_polymarket_v2.json",
		"orders_polymarket_v3.json", "orders_kuest_v2.json", "orders_invalid.json"} {
		t.Run(name, func(t *testing.T) {
			var list []vector
			readVectors(t, &list, "vectors", name)
			s, n := newStreet(t), tally{}
			for i := range list {
				n.judge(t, &list[i], s.of(&list[i]).offer(&list[i]))
			}
			n.report(t)
		})
	}
}

// published is the file of answers that other people's tests state.
type published struct {
	About struct{ Signer struct{ Address string } } `json:"_about"`
	V1    []publishedOrder                          `json:"orders_v1"`
	V2    []publishedOrder                          `json:"orders_v2"`
	Npm   []struct {
		publishedOrder
		Body map[string]any
	} `json:"npm_captured_post_order_bodies"`
	Example struct {
		Body string `json:"body_exact_bytes"`
		Hash string `json:"order_hash"`
	} `json:"full_request_example"`
	Limit, Market []struct {
		Side, Price string
		Tick        string `json:"tick_size"`
		Maker       string `json:"makerAmount"`
		Taker       string `json:"takerAmount"`
	}
	Cancels struct {
		Reason string `json:"failed_reason"`
	} `json:"cancel_fixtures"`
	Auth []message `json:"clob_auth_l1"`
	Mac  []mac     `json:"l2_hmac"`
}

type publishedOrder struct {
	vector
	Hash string `json:"order_hash"`
}

// readPublished reads it.
func readPublished(t *testing.T) *published {
	p := new(published)
	readVectors(t, p, "vectors.json")
	rows := struct {
		Limit  json.RawMessage `json:"limit_order_amounts"`
		Market json.RawMessage `json:"market_order_amounts"`
	}{}
	readVectors(t, &rows, "vectors.json")
	for from, into := range map[*json.RawMessage]any{&rows.Limit: &p.Limit, &rows.Market: &p.Market} {
		if err := json.Unmarshal(*from, into); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestPublishedOrders: so it is with the orders of other people's tests, and with the requests that
// their clients made of them.
func TestPublishedOrders(t *testing.T) {
	p := readPublished(t)
	list := slices.Concat(p.V1, p.V2)
	for _, o := range p.Npm {
		o.publishedOrder.Wire = o.Body
		o.publishedOrder.Order = o.Body["order"].(map[string]any)
		list = append(list, o.publishedOrder)
	}
	s, n := newStreet(t), tally{}
	for i := range list {
		v := &list[i].vector
		if signature, _ := v.Order["signature"].(string); v.Signature+signature == "" {
			n["skipped: stated without a signature"]++
			continue
		}
		v.Owner, v.OrderHash, v.Valid = p.About.Signer.Address, list[i].Hash, true
		n.judge(t, v, s.of(v).offer(v))
	}
	example := vector{Label: "full request", Owner: p.About.Signer.Address, Valid: true,
		OrderHash: p.Example.Hash, Domain: p.V2[slices.IndexFunc(p.V2, func(o publishedOrder) bool {
			return o.Hash == p.Example.Hash
		})].Domain}
	if err := json.Unmarshal([]byte(p.Example.Body), &example.Wire); err != nil {
		t.Fatal(err)
	}
	example.Order = example.Wire["order"].(map[string]any)
	h := s.of(&example)
	owner, _ := auth.ParseAddress(example.Owner)
	body := strings.Replace(p.Example.Body, "00000000-0000-4000-8000-000000000001",
		h.keyring.Derive(owner, 0).Key, 1) // the only bytes of it that are the node's to give
	n.judge(t, &example, h.call(owner, "POST", "/order", body))
	n["skipped: hashes of domains, structs and books: no requests"]++
	n.report(t)
}

// TestPublishedAmounts: the amounts that clients round to are on the grid of their tick.
func TestPublishedAmounts(t *testing.T) {
	p, n := readPublished(t), tally{}
	h, domain, salt := newHouse(t, nil), auth.Domains(testChain)[0], uint64(1)
	alice := trader("alice")
	h.run([]string{"fund alice 1000000"})
	tokens := map[string]engine.Token{}
	post := func(kind, tick, side, maker, taker string) string {
		token, listed := tokens[tick]
		if !listed {
			token = engine.Token{30: 7, 31: byte(len(tokens) * 2)}
			tokens[tick] = token
			step, _ := form.Price(tick)
			l := engine.Listing{Condition: engine.Condition(token), Group: 1, Tick: step, Open: true,
				Tokens: [2]engine.Token{token, {30: 7, 31: token[31] + 1}}}
			h.submit(engine.Command{Kind: engine.List, Listing: &l})
			m, _, _ := h.board.Directory.Token(token)
			h.submit(engine.Command{Kind: engine.Deposit, Address: alice.Address, Market: m.No,
				Size: 1_000_000 * engine.Unit})
		}
		x := auth.Order{Version: 2, Maker: alice.Address, Signer: alice.Address, Token: token,
			Salt: auth.WordOf(salt), Timestamp: auth.WordOf(testNow * 1000)}
		salt++
		x.MakerAmount, _ = form.Amount(maker)
		x.TakerAmount, _ = form.Amount(taker)
		x.Side, _ = form.Side(side)
		signature, _, err := alice.SignOrder(&x, &domain)
		if err != nil {
			t.Fatal(err)
		}
		zeros := "0x" + strings.Repeat("0", 64)
		return h.call(alice.Address, "POST", "/order", fmt.Sprintf(`{"order":{"salt":%d,"maker":"%s",`+
			`"signer":"%s","tokenId":"%s","makerAmount":"%s","takerAmount":"%s","side":"%s",`+
			`"signatureType":0,"timestamp":"%d","metadata":"%s","builder":"%s","signature":"0x%x"},`+
			`"owner":"%s","orderType":"%s"}`, salt-1, alice.Address.Hex(), alice.Address.Hex(),
			token.String(), maker, taker, side, testNow*1000, zeros, zeros, signature,
			h.keyring.KeyID(alice.Address, 0), kind))
	}
	for _, a := range p.Limit {
		if got := post("GTC", a.Tick, a.Side, a.Maker, a.Taker); !strings.HasPrefix(got, "200\n") {
			t.Errorf("limit order %+v: %s", a, got)
		}
		n["limit orders taken"]++
		h.call(alice.Address, "DELETE", "/cancel-all", "")
	}
	n.report(t)
}

// TestPublishedCancels: an order that is over is refused in the words that clients look for.
func TestPublishedCancels(t *testing.T) {
	p := readPublished(t)
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	id := h.names["a1"].Hex()
	body := `{"orderID":"` + id + `"}`
	for i, want := range []string{`{"canceled":["` + id + `"],"not_canceled":{}}`,
		`{"canceled":[],"not_canceled":{"` + id + `":"order ` + p.Cancels.Reason + `"}}`} {
		got := h.call(trader("alice").Address, "DELETE", "/order", body)
		if got != "200\n"+want+"\n" {
			t.Errorf("cancel %d: %s", i, got)
		}
	}
	tally{"cancels": 2, "skipped: three cursors, of the reads: they have them in their own tests": 3}.report(t)
}

// message is a signed request for an API key.
type message struct {
	Address, Signature string
	Timestamp          json.Number
	Nonce              json.Number
	ChainID            uint64 // of one file
	Chain              uint64 `json:"chain_id"` // of the other
}

// TestMessagesThroughTheDoor: whoever signed a message of another client is told his key, and with
// one digit changed nobody is.
func TestMessagesThroughTheDoor(t *testing.T) {
	var list []message
	readVectors(t, &list, "vectors", "clob_auth.json")
	list = append(list, readPublished(t).Auth...)
	h := newHouse(t, func(o *Options) { o.Chains = []uint64{137, testChain, 31337} })
	n := tally{}
	for i := range list {
		m := &list[i]
		m.ChainID = max(m.ChainID, m.Chain)
		stamp, _ := m.Timestamp.Int64()
		h.late.Store(stamp - testNow)
		address, _ := auth.ParseAddress(m.Address)
		nonce, err := strconv.ParseUint(m.Nonce.String(), 10, 32)
		ask := func(signature string) string {
			return h.send((&rawRequest{method: "GET", path: "/auth/derive-api-key", headers: []string{
				"POLY_ADDRESS: " + m.Address, "POLY_SIGNATURE: " + signature,
				"POLY_TIMESTAMP: " + m.Timestamp.String(), "POLY_NONCE: " + m.Nonce.String(),
				"X-Chain-Id: " + strconv.FormatUint(m.ChainID, 10)}}).String())
		}
		want := "200\n" + string(appendTrio(nil, "apiKey", h.keyring.Derive(address, uint32(nonce)))) + "\n"
		got := ask(m.Signature)
		switch {
		case err != nil && strings.Contains(got, "invalid_nonce"):
			n["with a nonce that is no key's"]++
		case err != nil || got != want:
			t.Errorf("message %d: %s, want %s", i, got, want)
		default:
			n["keys told"]++
		}
		bad := []byte(m.Signature)
		bad[20] ^= 1
		if got := ask(string(bad)); !strings.HasPrefix(got, "401\n") {
			t.Errorf("message %d, spoilt: %s", i, got)
		}
		n["spoilt and refused"]++
	}
	n.report(t)
}

// mac is a request and the HMAC that another client made of it.
type mac struct {
	Timestamp          json.Number
	Method, Path, Body string
}

// TestMacsThroughTheDoor: requests of other clients, of any method, path and body, pass with the
// HMAC over their exact bytes, computed here by other code than the node's, and do not pass
// with another. The secret is this node's own: theirs cannot be, by design.
func TestMacsThroughTheDoor(t *testing.T) {
	var list []mac
	readVectors(t, &list, "vectors", "hmac.json")
	list = append(list, readPublished(t).Mac...)
	h, n := newHouse(t, func(o *Options) { o.Windows = nil }), tally{}
	alice := trader("alice").Address
	trio := h.keyring.Derive(alice, 0)
	secret, err := base64.URLEncoding.DecodeString(trio.Secret)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range list {
		stamp, _ := m.Timestamp.Int64()
		h.late.Store(stamp - testNow)
		ask := func(spoil byte) string {
			sum := hmac.New(sha256.New, secret)
			sum.Write([]byte(m.Timestamp.String() + m.Method + m.Path + m.Body))
			code := sum.Sum(nil)
			code[0] ^= spoil
			return h.send((&rawRequest{method: m.Method, path: m.Path, body: m.Body, headers: []string{
				"POLY_ADDRESS: " + auth.Checksum(alice), "POLY_API_KEY: " + trio.Key,
				"POLY_PASSPHRASE: " + trio.Passphrase, "POLY_TIMESTAMP: " + m.Timestamp.String(),
				"POLY_SIGNATURE: " + base64.URLEncoding.EncodeToString(code)}}).String())
		}
		if spoilt := ask(1); !strings.HasPrefix(spoilt, "401\n") ||
			strings.Contains(spoilt, "invalid_l1") {
			n["skipped: no route that asks for an HMAC has that method and path"]++
			continue
		}
		if got := ask(0); strings.HasPrefix(got, "401\n") {
			t.Errorf("request %d, %s %s: %s", i, m.Method, m.Path, got)
		}
		n["authenticated, and refused with another HMAC"]++
	}
	n.report(t)
}

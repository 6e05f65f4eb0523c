package ingress

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clobd/engine"
	"clobd/ingress/auth"
)

// vector is an order that somebody else's client signed, or one that was spoilt after.
type vector struct {
	ID, Owner, PrivateKey, ExchangeKind, OrderHash, Mutation, Signature string
	ChainID                                                             uint64
	Valid                                                               bool
	Order                                                               map[string]any
	Wire                                                                map[string]any
}

// vectorsOf reads those of the chain of the tests.
func vectorsOf(t *testing.T, name string) (list []vector) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataFolder(t), "vectors", name))
	if err != nil {
		t.Skipf("SKIPPED: no %s: %v", name, err)
	}
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.ChainID == testChain {
			list = append(list, v)
		}
	}
	return list
}

// prepare lists the market of a vector and gives its maker all that the order may need.
func (h *house) prepare(v *vector, seen map[engine.Token]bool) {
	h.t.Helper()
	token, ok := engine.ParseToken(v.Order["tokenId"].(string))
	maker, ok1 := auth.ParseAddress(v.Order["maker"].(string))
	owner, ok2 := auth.ParseAddress(v.Owner)
	if !ok || !ok1 || !ok2 {
		h.t.Fatalf("%s cannot be read", v.ID)
	}
	if !seen[token] {
		// An order does not say which exchange it was signed for: its market does.
		elsewhere := v.Mutation == "wrong_exchange"
		seen[token] = true
		l := engine.Listing{Condition: engine.Condition(token), Group: 1, Tick: 1, Open: true,
			NegRisk: (v.ExchangeKind == "negRisk") != elsewhere, Tokens: [2]engine.Token{token, token}}
		l.Tokens[1][0] ^= 0xff
		h.submit(engine.Command{Kind: engine.List, Listing: &l})
	}
	market, _, _ := h.board.Directory.Token(token)
	if maker != owner {
		h.submit(engine.Command{Kind: engine.Link, Address: maker, Holder: owner})
	}
	const plenty = 1_000_000 * engine.Unit
	h.submit(engine.Command{Kind: engine.Deposit, Address: maker, Cash: plenty})
	h.submit(engine.Command{Kind: engine.Deposit, Address: maker, Market: market.No, Size: plenty})
}

// offer posts a vector with the API key of its owner.
func (h *house) offer(v *vector) string {
	h.t.Helper()
	owner, _ := auth.ParseAddress(v.Owner)
	trio := h.keyring.Derive(owner, 0)
	if v.Wire == nil {
		v.Wire = map[string]any{"order": v.Order, "orderType": "GTC"}
		if v.Order["expiration"] != "0" {
			v.Wire["orderType"] = "GTD"
		}
	}
	v.Wire["owner"] = trio.Key
	body, err := json.Marshal(v.Wire)
	if err != nil {
		h.t.Fatal(err)
	}
	r := auth.Request{Address: auth.Checksum(owner), Timestamp: strconv.FormatInt(h.now(), 10),
		Method: "POST", Path: "/order", Body: body}
	if err := trio.Sign(&r); err != nil {
		h.t.Fatal(err)
	}
	return h.send((&wire{method: r.Method, path: r.Path, body: string(body), headers: []string{
		"POLY_ADDRESS: " + r.Address, "POLY_API_KEY: " + r.Key, "POLY_PASSPHRASE: " + r.Passphrase,
		"POLY_TIMESTAMP: " + r.Timestamp, "POLY_SIGNATURE: " + r.Signature,
	}}).String())
}

// TestVectorsThroughTheDoor: what clients of the public exchanges have signed is taken as it comes,
// under the id that they computed, unless it is too late for it. What was spoilt is refused.
func TestVectorsThroughTheDoor(t *testing.T) {
	for _, name := range []string{"orders_polymarket_v2.json", "orders_polymarket_v3.json",
		"orders_kuest_v2.json", "orders_invalid.json"} {
		t.Run(name, func(t *testing.T) {
			h, seen := newHouse(t, nil), map[engine.Token]bool{}
			taken, late, refused := 0, 0, 0
			list := vectorsOf(t, name)
			for i := range list {
				v := &list[i]
				h.prepare(v, seen)
				answer := h.offer(v)
				text, _ := v.Order["expiration"].(string)
				expiry, _ := strconv.ParseInt(text, 10, 64)
				switch {
				case !v.Valid:
					refused++
					if !strings.HasPrefix(answer, "400\n") ||
						!strings.Contains(answer, `"code":"invalid_signature"`) &&
							!strings.Contains(answer, `"code":"signer_mismatch"`) {
						t.Errorf("%s, spoilt by %s: %s", v.ID, v.Mutation, answer)
					}
				case expiry != 0 && expiry <= testNow:
					late++
					if !strings.HasPrefix(answer, "400\n") || !strings.Contains(answer, "expiration") {
						t.Errorf("%s, expired: %s", v.ID, answer)
					}
				default:
					taken++
					if !strings.HasPrefix(answer, "200\n") || !strings.Contains(answer, v.OrderHash) {
						t.Errorf("%s: %s", v.ID, answer)
					}
				}
			}
			t.Logf("%d taken, %d too late, %d refused", taken, late, refused)
			if taken+late+refused == 0 {
				t.Error("no vectors")
			}
		})
	}
}

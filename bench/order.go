package bench

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/auth"
)

// OneOrder says what PlaceOne signs.
type OneOrder struct {
	URL, Key, Token, Side, Price, Size, Type string
	Chain                                    uint64
	SignatureType                            int
	Wallet                                   string
	// Expiration is in unix seconds, for a GTD only; Builder is 0x and 64 hex digits, or empty.
	Expiration uint64
	Builder    string
	// Owner is the API key that SignOne puts into the body. PlaceOne derives one.
	Owner string
}

// PlaceOne signs one order, places it, and prints the request and the answer.
func PlaceOne(w io.Writer, o OneOrder) error {
	key, l, err := o.read()
	if err != nil {
		return err
	}
	c, err := trader.NewClient(o.URL, o.Chain, key)
	if err != nil {
		return err
	}
	if l.NegRisk, err = negRisk(c, o.Token); err != nil {
		return err
	}
	return placeAndPrint(w, c, l)
}

// SignOne signs one order, and prints the body of POST /order.
func SignOne(w io.Writer, o OneOrder) error {
	key, l, err := o.read()
	if err != nil {
		return err
	}
	c, err := trader.NewClient(o.URL, o.Chain, key)
	if err != nil {
		return err
	}
	if l.NegRisk, err = negRisk(c, o.Token); err != nil {
		return err
	}
	c.Trio.Key = o.Owner
	body, _, err := c.Sign(l)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", body)
	}
	return err
}

// SignAuth prints the headers of POST /auth/api-key, one a line.
func SignAuth(w io.Writer, key string, chain uint64) error {
	k, err := readKey(key)
	if err != nil {
		return err
	}
	signer, err := auth.NewSigner(k)
	if err != nil {
		return err
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	signature, err := signer.SignAuth(chain, timestamp, 0)
	if err == nil {
		_, err = fmt.Fprintf(w, "POLY_ADDRESS: %s\nPOLY_SIGNATURE: %s\nPOLY_TIMESTAMP: %s\nPOLY_NONCE: 0\n",
			auth.Checksum(signer.Address), signature, timestamp)
	}
	return err
}

// DeriveOne prints the API key of a private key, as POST /auth/api-key answers it.
func DeriveOne(w io.Writer, url, key string, chain uint64) error {
	c, err := derived(url, key, chain)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(map[string]string{"apiKey": c.Trio.Key, "secret": c.Trio.Secret,
		"passphrase": c.Trio.Passphrase, "address": c.Address})
}

// CancelOnes cancels all orders of a private key, and prints the answer.
func CancelOnes(w io.Writer, url, key string, chain uint64) error {
	c, err := derived(url, key, chain)
	if err != nil {
		return err
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	if err := c.Do(http.MethodDelete, "/cancel-all", nil, resp); err != nil {
		return fmt.Errorf("cancel all orders: %w", err)
	}
	fmt.Fprintf(w, "%s\n", resp.Body())
	if resp.StatusCode() != 200 {
		return fmt.Errorf("the node refused: status %d", resp.StatusCode())
	}
	return nil
}

// derived is a client with its API key.
func derived(url, key string, chain uint64) (*trader.Client, error) {
	k, err := readKey(key)
	if err != nil {
		return nil, err
	}
	c, err := trader.NewClient(url, chain, k)
	if err == nil {
		err = c.Derive()
	}
	return c, err
}

// read reads the texts of the order.
func (o *OneOrder) read() (key [32]byte, l trader.Limit, err error) {
	all := Problems{Of: "order"}
	key, err = readKey(o.Key)
	all.Add(err != nil, "%v", err)
	all.Add(auth.Domains(o.Chain) == nil, "chain %d: no exchange is known there", o.Chain)
	l = trader.Limit{Type: o.Type, Salt: uint64(time.Now().UnixNano()) & (1<<53 - 1),
		SignatureType: uint8(o.SignatureType), Expiration: o.Expiration}
	all.Add(o.Builder != "" && !engine.ParseHex(l.Builder[:], o.Builder),
		"builder %q: want 0x and 64 hex digits", o.Builder)
	if strings.EqualFold(o.Side, "SELL") {
		l.Side = engine.Sell
	}
	price, priceErr := parseDecimal(o.Price, 4)
	size, sizeErr := parseDecimal(o.Size, 6)
	all.Add(priceErr != nil || sizeErr != nil || price < 1 || price >= int64(engine.PriceOne) ||
		size < int64(engine.Lot) || size%int64(engine.Lot) != 0,
		"price %q or size %q: want a price between 0 and 1 with up to 4 decimals and a size of at "+
			"least 0.01 with up to 2", o.Price, o.Size)
	l.Price, l.Size = engine.Price(price), engine.Size(size)
	ok := true
	l.Token, ok = engine.ParseToken(o.Token)
	all.Add(!ok, "token %q: want an unsigned 256-bit decimal", o.Token)
	if o.Wallet != "" {
		l.Wallet, ok = auth.ParseAddress(o.Wallet)
		all.Add(!ok, "wallet %q: want 0x and 40 hex digits", o.Wallet)
	}
	return key, l, all.Err()
}

func placeAndPrint(w io.Writer, c *trader.Client, l trader.Limit) error {
	if err := c.Derive(); err != nil {
		return err
	}
	body, _, err := c.Sign(l)
	if err != nil {
		return err
	}
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	fmt.Fprintf(w, "POST /order\n%s\n", body)
	if err := c.Do(http.MethodPost, "/order", body, resp); err != nil {
		return fmt.Errorf("place order: %w", err)
	}
	fmt.Fprintf(w, "%d\n%s\n", resp.StatusCode(), resp.Body())
	if resp.StatusCode() != 200 {
		return fmt.Errorf("the node refused the order: status %d", resp.StatusCode())
	}
	return nil
}

// negRisk asks the node whether a token's market is a neg-risk market.
func negRisk(c *trader.Client, token string) (bool, error) {
	body, err := c.Get("/neg-risk?token_id=" + token)
	if err != nil {
		return false, err
	}
	var told struct {
		NegRisk bool `json:"neg_risk"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return false, fmt.Errorf("read neg-risk: %w", err)
	}
	return told.NegRisk, nil
}

// readKey reads a private key given as hex or as @FILE.
func readKey(s string) (key [32]byte, err error) {
	if file, ok := strings.CutPrefix(s, "@"); ok {
		b, err := os.ReadFile(file)
		if err != nil {
			return key, fmt.Errorf("read key: %w", err)
		}
		s = strings.TrimSpace(string(b))
	}
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil || len(b) != len(key) {
		return key, fmt.Errorf("key: want 0x and 64 hex digits, or @FILE")
	}
	return [32]byte(b), nil
}

// parseDecimal reads an unsigned decimal with at most so many digits after the point, as an
// integer of that many digits.
func parseDecimal(s string, digits int) (int64, error) {
	whole, frac, _ := strings.Cut(s, ".")
	if len(frac) > digits || whole+frac == "" {
		return 0, fmt.Errorf("%q: want a decimal with up to %d digits after the point", s, digits)
	}
	n, ok := new(big.Int).SetString(whole+frac+strings.Repeat("0", digits-len(frac)), 10)
	if !ok || n.Sign() < 0 || !n.IsInt64() {
		return 0, fmt.Errorf("%q: not an unsigned decimal", s)
	}
	return n.Int64(), nil
}

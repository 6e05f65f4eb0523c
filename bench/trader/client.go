package trader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/auth"
)

const answerTime = time.Minute

// Client is a trader at the public door. After Derive any number of goroutines may use it.
type Client struct {
	Signer  *auth.Signer
	Address string               // of the Signer, as the headers want it
	Trio    auth.Trio            // the API key, from Derive
	Host    *fasthttp.HostClient // the connections; a caller may set its own
	domain  auth.Domain
	chain   uint64
}

// NewClient returns a trader at url (http://HOST:PORT) that signs for the first known exchange of
// chain.
func NewClient(url string, chain uint64, key [32]byte) (*Client, error) {
	signer, err := auth.NewSigner(key)
	if err != nil {
		return nil, fmt.Errorf("make trader: %w", err)
	}
	domains := auth.Domains(chain)
	if len(domains) == 0 {
		return nil, fmt.Errorf("no exchange is known on chain %d", chain)
	}
	addr, ok := strings.CutPrefix(url, "http://")
	if !ok {
		return nil, fmt.Errorf("url %q: want http://HOST:PORT", url)
	}
	return &Client{Signer: signer, Address: auth.Checksum(signer.Address),
		domain: domains[0], chain: chain,
		Host: &fasthttp.HostClient{Addr: strings.TrimSuffix(addr, "/"), MaxConns: 512,
			ReadTimeout: answerTime, WriteTimeout: answerTime,
			MaxIdemponentCallAttempts: 1, NoDefaultUserAgentHeader: true}}, nil
}

// Derive gets the API key of the trader's address.
func (c *Client) Derive() error {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	signature, err := c.Signer.SignAuth(c.chain, timestamp, 0)
	if err != nil {
		return fmt.Errorf("sign key derivation: %w", err)
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	c.aim(req, http.MethodPost, "/auth/api-key")
	h := &req.Header
	h.Set("POLY_ADDRESS", c.Address)
	h.Set("POLY_SIGNATURE", signature)
	h.Set("POLY_TIMESTAMP", timestamp)
	h.Set("POLY_NONCE", "0")
	if err := c.Host.Do(req, resp); err != nil {
		return fmt.Errorf("derive key: %w", err)
	}
	var told struct{ APIKey, Secret, Passphrase, Error string }
	if err := json.Unmarshal(resp.Body(), &told); err != nil || resp.StatusCode() != 200 {
		return fmt.Errorf("derive key: status %d: %s", resp.StatusCode(), resp.Body())
	}
	c.Trio = auth.Trio{Key: told.APIKey, Secret: told.Secret, Passphrase: told.Passphrase}
	return nil
}

func (c *Client) aim(req *fasthttp.Request, method, path string) {
	req.SetRequestURI(path)
	req.Header.SetMethod(method)
	req.SetHost(c.Host.Addr)
}

// Do sends one authenticated request into resp. A query in path is not signed.
func (c *Client) Do(method, path string, body []byte, resp *fasthttp.Response) error {
	req := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(req)
	c.aim(req, method, path)
	unasked, _, _ := strings.Cut(path, "?")
	signed := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: method,
		Path: unasked, Body: body}
	if err := c.Trio.Sign(&signed); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	h := &req.Header
	h.Set("POLY_ADDRESS", c.Address)
	h.Set("POLY_API_KEY", signed.Key)
	h.Set("POLY_PASSPHRASE", signed.Passphrase)
	h.Set("POLY_TIMESTAMP", signed.Timestamp)
	h.Set("POLY_SIGNATURE", signed.Signature)
	h.SetContentType("application/json")
	req.SetBodyRaw(body)
	return c.Host.Do(req, resp)
}

// Limit is an order in a trader's words.
type Limit struct {
	Token engine.Token
	Side  engine.Side
	Price engine.Price
	Size  engine.Size // a multiple of engine.Lot
	Type  string      // GTC
	// Expiration is when a GTD ends, in unix seconds; 0 for every other type.
	Expiration uint64
	// Builder is the code of the builder who brought the order; zero for none.
	Builder auth.Word
	Salt    uint64 // below 2^53: the public clients send it as a JSON number
	// SignatureType and Wallet: 0 and the zero address sign for the trader's own wallet.
	SignatureType uint8
	Wallet        engine.Address
	NegRisk       bool
}

// Sign makes the body of POST /order, and the order's id.
func (c *Client) Sign(l Limit) ([]byte, engine.OrderID, error) {
	cash, size := uint64(engine.Cost(l.Size, l.Price)), uint64(l.Size)
	o := auth.Order{Version: 2, SignatureType: l.SignatureType, Side: l.Side,
		Maker: c.Signer.Address, Signer: c.Signer.Address, Token: l.Token,
		MakerAmount: cash, TakerAmount: size, Salt: auth.WordOf(l.Salt),
		Timestamp: auth.WordOf(uint64(time.Now().UnixMilli())), Builder: l.Builder}
	if l.Side == engine.Sell {
		o.MakerAmount, o.TakerAmount = size, cash
	}
	if l.SignatureType != auth.TypeEOA {
		o.Maker = l.Wallet
	}
	if l.SignatureType == auth.TypeWallet {
		o.Signer = l.Wallet
	}
	d := c.domain
	if l.NegRisk {
		for _, other := range auth.Domains(c.chain) {
			if other.NegRisk && other.Version == d.Version && other.Name == d.Name {
				d = other
			}
		}
	}
	signature, id, err := c.Signer.SignOrder(&o, &d)
	if err != nil {
		return nil, id, fmt.Errorf("sign order: %w", err)
	}
	return c.body(&o, &l, signature), id, nil
}

// body returns the JSON that the public clients send. The expiration is in it but not signed.
func (c *Client) body(o *auth.Order, l *Limit, signature []byte) []byte {
	sideName := [...]string{"BUY", "SELL"}[o.Side]
	salt, _ := o.Salt.Uint64()
	timestamp, _ := o.Timestamp.Uint64()
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"deferExec":false,"postOnly":false,"order":{"salt":%d,"maker":"%s",`+
		`"signer":"%s","tokenId":"%s","makerAmount":"%d","takerAmount":"%d","side":"%s",`+
		`"signatureType":%d,"timestamp":"%d","expiration":"%d","metadata":"0x%x","builder":"0x%x",`+
		`"signature":"0x%x"},"owner":"%s","orderType":"%s"}`,
		salt, auth.Checksum(o.Maker), auth.Checksum(o.Signer), o.Token.String(), o.MakerAmount,
		o.TakerAmount, sideName, o.SignatureType, timestamp, l.Expiration, o.Metadata, o.Builder,
		signature, c.Trio.Key, l.Type)
	return b.Bytes()
}

// CancelBody is the body of DELETE /order.
func CancelBody(id engine.OrderID) []byte { return []byte(`{"orderID":"` + id.Hex() + `"}`) }

// Get reads a public route; an answer other than 200 is an error.
func (c *Client) Get(path string) ([]byte, error) {
	status, body, err := c.Host.Get(nil, "http://"+c.Host.Addr+path)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	if status != 200 {
		return nil, fmt.Errorf("get %s: status %d: %s", path, status, body)
	}
	return body, nil
}

package ingress

import (
	"crypto/sha256"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/auth"
)

// families are the header prefixes, the most preferred first. A request is read in one of them
// only, the first that any of its headers belongs to.
var families = [...]string{dialectSVC, dialectPOLY, "KUEST_"}

// credentials are the authentication headers of a request.
type credentials struct {
	dialect string
	address, key, passphrase, timestamp,
	signature, nonce string
	maxAge, readOnly string
	builder          auth.Request // the headers of a builder key
	// doubled: a header came twice. Nobody knows which of the two was meant.
	doubled bool
}

// readCredentials finds them whatever their letter case, and with '-' for '_': some proxies drop
// names with underscores.
func readCredentials(h *fasthttp.RequestHeader) credentials {
	var c credentials
	best := len(families) // whose headers c holds
	for name, value := range h.All() {
		for i, family := range families[:min(best+1, len(families))] {
			if len(name) <= len(family) || !foldEqual(name[:len(family)], family) {
				continue
			}
			if n := headerNumber(name[len(family):]); n >= 0 {
				if i < best {
					c, best = credentials{dialect: family}, i
				}
				c.set(n, value)
			}
			break
		}
	}
	if best == len(families) {
		c.dialect = dialectSVC
	}
	return c
}

// headers are those of a family by their names without its prefix.
var headers = [...]string{
	"ADDRESS", "API_KEY", "PASSPHRASE", "TIMESTAMP", "SIGNATURE", "NONCE", "MAX_AGE_MS",
	"READONLY_API_KEY", "BUILDER_API_KEY", "BUILDER_PASSPHRASE", "BUILDER_TIMESTAMP",
	"BUILDER_SIGNATURE",
}

// headerNumber is the index of a header in headers, named without its prefix; -1 if it is not one
// of ours.
func headerNumber(name []byte) int {
	for i := range headers {
		if foldEqual(name, headers[i]) {
			return i
		}
	}
	return -1
}

// set keeps one header.
func (c *credentials) set(n int, value []byte) {
	at := [len(headers)]*string{
		&c.address, &c.key, &c.passphrase, &c.timestamp, &c.signature, &c.nonce, &c.maxAge,
		&c.readOnly, &c.builder.Key, &c.builder.Passphrase, &c.builder.Timestamp, &c.builder.Signature,
	}[n]
	c.doubled = c.doubled || *at != ""
	*at = string(value)
}

// foldEqual compares a header name with its canonical form in upper case.
func foldEqual(name []byte, upper string) bool {
	if len(name) != len(upper) {
		return false
	}
	for i, b := range name {
		switch {
		case 'a' <= b && b <= 'z':
			b -= 'a' - 'A'
		case b == '-':
			b = '_'
		}
		if b != upper[i] {
			return false
		}
	}
	return true
}

// identity is who an authenticated request comes from.
type identity struct {
	auth.Identity
	key     string // uuid of the API key
	dialect string
	maxAge  string // how many milliseconds after its signature an order is still wanted, or ""

	signature string // of the request, as written
}

// authenticate checks the five headers of a request over its exact bytes, or answers 401.
func (s *Server) authenticate(ctx *fasthttp.RequestCtx) (identity, bool) {
	c := readCredentials(&ctx.Request.Header)
	if c.doubled {
		failRefusal(ctx, auth.ErrMissing, time.Time{})
		return identity{}, false
	}
	r := auth.Request{
		Address: c.address, Key: c.key, Passphrase: c.passphrase,
		Timestamp: c.timestamp, Signature: c.signature,
	}
	s.describe(ctx, &r)
	now := s.options.Now()
	id, err := s.options.Keyring.Authenticate(&r, now)
	if err == nil && s.options.Board.Directory.Revoked(id.Address, id.Nonce) {
		err = auth.ErrKey
	}
	if err != nil {
		failRefusal(ctx, err, now)
		return identity{}, false
	}
	return identity{id, strings.ToLower(c.key), c.dialect, c.maxAge, c.signature}, true
}

// describe fills in what the headers of a request sign.
func (s *Server) describe(ctx *fasthttp.RequestCtx, r *auth.Request) {
	raw := string(ctx.URI().PathOriginal())
	r.Method, r.Path, r.RawPath = string(ctx.Method()), strings.TrimPrefix(raw, "/clob"), raw
	r.Body = ctx.Request.Body()
}

// What a request must carry: the same for every cause, so that strangers learn nothing from it.
const (
	adviceL2 = "send ADDRESS, API_KEY, PASSPHRASE, TIMESTAMP and SIGNATURE of a key that is not " +
		"revoked, each once and with one prefix; SIGNATURE is the HMAC-SHA256 by its secret of timestamp, " +
		"method, path without query, and body as sent"
	adviceL1 = "send ADDRESS, TIMESTAMP, NONCE and SIGNATURE, each once and with one prefix; SIGNATURE " +
		"is the address's own of ClobAuth for this node's chain"
)

// failRefusal answers a failed authentication. All of one kind have one text; a caller whose clock
// is wrong is told the right time.
func failRefusal(ctx *fasthttp.RequestCtx, err error, now time.Time) {
	no, advice := refusal{401, "unauthorized", "Unauthorized/Invalid api key", nil}, adviceL2
	if errors.Is(err, auth.ErrL1) {
		no.code, no.text, advice = "invalid_l1", "Invalid L1 Request headers", adviceL1
	}
	switch {
	case errors.Is(err, auth.ErrNonce):
		no = refusal{400, "invalid_nonce", "invalid nonce", nil}
		advice = "NONCE must be an unsigned integer below 2^32"
	case errors.Is(err, auth.ErrWindow):
		no.code = "timestamp_out_of_window"
		no.more = []detail{{"server_time", strconv.FormatInt(now.Unix(), 10)}}
		advice = "set the clock by server_time: TIMESTAMP may be 60 s older and 30 s newer"
	}
	no.because(advice).send(ctx)
}

// deriveKey is POST /auth/api-key and GET /auth/derive-api-key: whoever shows that the address is
// its own is told the key. The same address and nonce always give the same three. POST puts the key
// on record, if the address has an account, and restores it if it was revoked; GET stores nothing.
func (s *Server) deriveKey(ctx *fasthttp.RequestCtx) {
	c := readCredentials(&ctx.Request.Header)
	r := auth.L1Request{
		Address: c.address, Signature: c.signature, Timestamp: c.timestamp, Nonce: c.nonce,
		Chain: string(ctx.Request.Header.Peek("X-Chain-Id")),
	}
	var address engine.Address
	var nonce uint32
	err := error(auth.ErrL1Missing)
	now := s.options.Now()
	if !c.doubled {
		full := s.verifyDerivation(s.clientAddress(ctx), func() {
			address, nonce, err = auth.VerifyL1(&r, s.options.Chains, now)
		})
		if full != nil {
			s.refusePool(full).send(ctx)
			return
		}
	}
	if err != nil {
		failRefusal(ctx, err, now)
		return
	}
	s.faucet.give(s, address, s.clientAddress(ctx))
	s.claim(address)
	if ctx.IsPost() {
		owner, _ := s.options.Board.Directory.Wallet(address)
		no := s.record(address, engine.TradingKey, nonce)
		if no != nil && s.revoked(owner, engine.TradingKey, nonce) {
			no.send(ctx) // it would open nothing
			return
		}
	}
	answer(ctx, 200, appendTrio(nil, s.options.Keyring.Derive(address, nonce)))
}

// derivationShare is the part of the verification queue that all derivations together may hold:
// they come from nobody known, and must not keep signed orders out.
const derivationShare = 8

// verifyDerivation is pool.do for whoever is known by its network address only: the share that it
// uses up is that address's, not the one of the wallet it claims to be.
func (s *Server) verifyDerivation(from netip.Addr, work func()) error {
	defer s.deriving.Add(-1)
	if int(s.deriving.Add(1)) > max(s.pool.capacity()/derivationShare, 1) {
		return errPoolFull
	}
	var payer engine.Address
	network := addressKey(from)
	copy(payer[copy(payer[:], "net:"):], network[:16])
	return s.pool.do(payer, work)
}

// faucetWindow is how many gifts one address of the network may cause.
var faucetWindow = window{64, 10 * time.Minute}

// faucet gives paper collateral to wallets without an account. Its Deposit carries an id made of
// the address, and the engine takes an id once: so does every wallet, whatever happens here.
type faucet struct {
	amount engine.Cash
	most   int // wallets that may have a number when a gift is given

	mutex   sync.Mutex
	pending int // gifts on their way
	callers *windows
}

func newFaucet(o *Options) *faucet {
	return &faucet{amount: o.Faucet, most: o.FaucetWallets, callers: newWindows(o.Now)}
}

// give deposits the gift, if there is one, and the wallet has no account yet. A gift that fails
// costs nobody his key: the next derivation tries again.
func (f *faucet) give(s *Server, a engine.Address, from netip.Addr) {
	if f.amount == 0 {
		return
	}
	if _, known := s.options.Board.Directory.Wallet(a); known || !f.admit(s, from) {
		return
	}
	gift := engine.Command{
		Kind:    engine.Deposit,
		Address: a,
		Cash:    f.amount,
		ID:      sha256.Sum256(append([]byte("faucet"), a[:]...)),
	}
	_, _ = s.deposit(&gift) // what fails here is given by the next derivation
	f.mutex.Lock()
	f.pending--
	f.mutex.Unlock()
}

// admit takes one gift from the caller's window, which holds whatever other limits are off, if
// there are not too many wallets already.
func (f *faucet) admit(s *Server, from netip.Addr) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if int(s.options.Board.Counters().Wallets)+f.pending >= f.most || !f.callers.gift(from) {
		return false
	}
	f.pending++
	return true
}

// deposit enters a Deposit and waits for it. Where wallets are linked on first use, a Link of an
// address that is nobody's yet to itself enters with it: a stranger who saw the money before the
// owner was set could claim it. Should the Link not enter, claim finds out.
func (s *Server) deposit(c *engine.Command) (engine.Receipt, error) {
	given, err := s.enter(c)
	if err != nil {
		return engine.Receipt{}, err
	}
	d := s.options.Board.Directory
	if no, _ := d.Wallet(c.Address); s.options.LinkOnFirstUse && d.Owner(no) == 0 {
		own := engine.Command{Kind: engine.Link, Address: c.Address, Holder: c.Address}
		if linked, err := s.enter(&own); err == nil {
			_, _ = linked.Wait() // claim looks what became of it
		}
	}
	return given.Wait()
}

// claim links an address that has shown to hold its own private key to itself, before somebody else
// signs for it. It is tried again with the next derivation or the first order.
func (s *Server) claim(a engine.Address) {
	d := s.options.Board.Directory
	if no, known := d.Wallet(a); s.options.LinkOnFirstUse && known && d.Owner(no) == 0 {
		_, _ = s.submit(&engine.Command{Kind: engine.Link, Address: a, Holder: a})
	}
}

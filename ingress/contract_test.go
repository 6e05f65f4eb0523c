package ingress

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/auth"
	"clobd/ingress/limits"
	"clobd/scripts/openapi"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of this run as the expected ones")

// TestContract runs testdata/*.txt: requests, and the exact answers. A case is a command with its
// lines, "----", and the answer, up to an empty line. Behind the answer stands what became of the
// trading state, compared by digest: what the door refuses changes nothing.
func TestContract(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	record, seen := new(openapi.Record), newCoverage()
	whole := true
	for _, file := range files {
		ran := false
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			ran = true
			inBubble(t, func(t *testing.T) { runCases(newCaseHouse(t, file), file, record, seen) })
		})
		whole = whole && ran
	}
	t.Run("door", func(t *testing.T) { everyRouteAtTheDoor(t, record) })
	if whole && !t.Failed() {
		keepsPromises(t, record)
		for _, missing := range seen.missing(t, newHouse(t, nil).server) {
			t.Error("no contract case for " + missing)
		}
	}
}

// newCaseHouse starts a house with the options that the cases of a file need.
func newCaseHouse(t *testing.T, file string) *house {
	h := buildCaseHouse(t, file)
	open(h)
	return h
}

func buildCaseHouse(t *testing.T, file string) (h *house) {
	h = buildHouse(t, func(o *Options) {
		switch filepath.Base(file) {
		case "limits.txt":
			o.Windows = limits.New(o.Now)
		case "trouble.txt":
			o.Verifier = auth.NewVerifier(auth.Domains(testChain)[:2])
			o.Quarantined = func(*engine.Command) bool { return h.troubles.quarantine.Load() }
			o.Enter = func(c *engine.Command) (*sequencer.Call, error) {
				if h.troubles.leaderless.Load() {
					return nil, sequencer.ErrNoLeader
				}
				return h.sequencer.Enter(c)
			}
		case "first_use.txt":
			o.Faucet, o.LinkOnFirstUse, o.FaucetWallets = 1000*engine.Unit, true, 2
		}
	})
	return h
}

func runCases(h *house, file string, record *openapi.Record, seen *coverage) {
	t := h.t
	h.record, h.seen = record, seen
	var out strings.Builder
	var lines, want []string
	answer := false
	finish := func() {
		if len(lines) == 0 {
			return
		}
		got := h.run(lines)
		expected := strings.Join(want, "\n") + "\n"
		if h.desk != nil {
			got, expected = asOnSockets(got), asOnSockets(expected)
		}
		if got != expected && !*rewrite {
			t.Errorf("%s: %s\n got: %swant: %s", file, lines[0], got, expected)
		}
		out.WriteString(strings.Join(lines, "\n") + "\n----\n" + got + "\n")
		lines, want, answer = nil, nil, false
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text) + "\n") {
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "":
			finish()
		case strings.HasPrefix(line, "# "):
			out.WriteString(line + "\n")
		case line == "----":
			answer = true
		case answer:
			want = append(want, line)
		default:
			lines = append(lines, line)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// run carries out one case.
func (h *house) run(lines []string) string {
	h.t.Helper()
	before := h.exchange.Digest()
	got := h.carryOut(lines)
	if h.exchange.Digest() != before {
		return got + "state changed\n"
	}
	return got + "state same\n"
}

// carryOut is run without a look at the state.
func (h *house) carryOut(lines []string) (got string) {
	h.t.Helper()
	command, rest, _ := strings.Cut(lines[0], " ")
	o := &words{strings.Fields(rest)}
	switch command {
	case "fund":
		c := engine.Command{Kind: engine.Deposit, Address: address(o.list[0])}
		units, _ := strconv.Atoi(o.list[1])
		if c.Cash = engine.Cash(units * engine.Unit); len(o.list) > 2 {
			c.Market, c.Size, c.Cash = 1, engine.Size(c.Cash), 0
			c.Outcome = engine.Outcome(o.list[2][0] - 'A')
		}
		h.submit(c)
	case "link":
		h.submit(engine.Command{
			Kind: engine.Link, Address: address(o.list[0]), Holder: address(o.list[1]),
		})
	case "order":
		got = h.runOrder(o)
	case "orders":
		got = h.runOrders(o, lines[1:])
	case "cancel":
		got = h.runCancel(o)
	case "call":
		got = h.runCall(o, lines[1:])
	case "reader":
		got = h.runReader(o)
	case "builder":
		got = h.runBuilder(o)
	case "mode", "resolve", "state", "prevention", "fee", "minimum":
		h.operate(command, o)
	case "wait":
		h.late.Add(int64(o.number("seconds", 0)))
		h.server.beats.silence()
	case "derive":
		got = h.runDerive(o)
	case "get":
		w := rawRequest{method: o.text("method", "GET"), path: o.list[1]}
		h.signed(&w, o.list[0], o)
		got = h.send(w.String())
	case "http":
		w := rawRequest{method: o.list[0], path: o.list[1], headers: lines[1:]}
		w.body = strings.Repeat(o.text("fill", "x"), o.number("size", 0))
		if n := o.number("header", 0); n > 0 {
			w.headers = append(w.headers, "X-Fill: "+strings.Repeat("x", n))
		}
		got = h.send(w.String())
	case "raw":
		got = h.send(strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(rest))
	case "repeat":
		n, _ := strconv.Atoi(o.list[0])
		w := rawRequest{method: o.list[1], path: o.list[2]}
		for range n {
			got = h.send(w.String())
		}
	case "ready":
		h.server.Ready(o.list[0] == "true")
	case "blind":
		h.mutex.Lock()
		h.blind = o.list[0] == "true"
		h.mutex.Unlock()
	case "admin":
		got = h.admin(append([]string{rest}, lines[1:]...))
	default:
		got = h.trouble(command, o, lines)
	}
	return got
}

// operate is what only an operator may do.
func (h *house) operate(command string, o *words) {
	c := engine.Command{Market: 1}
	switch command {
	case "mode":
		c.Kind, c.Market, c.Mode = engine.SetMode, 0, engine.Mode(o.number("mode", 0))
		if name, ok := o.find("wallet"); ok {
			c.Wallet, _ = h.board.Directory.Wallet(address(name))
		}
	case "resolve":
		c.Kind, c.Price = engine.Resolve, engine.Price(o.number("price", 0))
	case "state":
		c.Kind, c.State = engine.SetState, engine.MarketState(o.number("state", 0))
	case "minimum": // of what a BUY that trades at once may cost
		l := h.market
		l.MinBuy = engine.Cash(o.number("units", 0)) * engine.Unit
		c.Kind, c.Listing = engine.Adjust, &l
	case "fee":
		l := h.market
		l.Fee = engine.Fee{Rate: uint16(o.number("rate", 0)), Exponent: 1}
		c.Kind, c.Listing = engine.Adjust, &l
	case "prevention":
		c.Kind, c.Prevention = engine.SetPrevention, engine.Prevention(o.number("prevention", 0))
		c.Wallet, _ = h.board.Directory.Wallet(address(o.list[0]))
	}
	h.submit(c)
}

// runOrders: TRADER, then options; each further line is an order: SIDE OUTCOME SIZE @ PRICE and its
// options, or raw JSON.
func (h *house) runOrders(o *words, lines []string) string {
	var bodies []string
	for _, line := range lines {
		if line[0] == '{' || line[0] == '"' {
			bodies = append(bodies, line)
			continue
		}
		x, item := h.parseOrder(&words{strings.Fields(o.list[0] + " " + line)})
		bodies = append(bodies, h.orderBody(x, o.list[0], item))
	}
	for range o.number("times", 1) - 1 {
		bodies = append(bodies, bodies[0])
	}
	w := rawRequest{method: "POST", path: "/orders", body: "[" + strings.Join(bodies, ",") + "]"}
	w.body = o.text("body", w.body)
	h.signed(&w, o.list[0], o)
	return entrance{h}.ask(&w, o)
}

// runCall: TRADER METHOD PATH, then options; the further lines are the body, in which $NAME$ is
// what was given that name.
func (h *house) runCall(o *words, lines []string) string {
	w := rawRequest{method: o.list[1], path: h.fill(o.list[2]), body: h.fill(strings.Join(lines, "\n"))}
	if n := o.number("ids", 0); n > 0 {
		var ids []string
		for i := range n {
			ids = append(ids, `"`+engine.OrderID{30: byte(i >> 8), 31: byte(i)}.Hex()+`"`)
		}
		w.body = "[" + strings.Join(ids, ",") + "]"
	}
	h.signed(&w, o.list[0], o)
	for _, word := range o.list[3:] {
		if key, ok := strings.CutPrefix(word, "once="); ok {
			w.headers = append(w.headers, "Idempotency-Key: "+key)
		}
	}
	got := entrance{h}.ask(&w, o)
	for range o.number("times", 1) - 1 {
		got = entrance{h}.ask(&w, o)
	}
	if n := o.number("cut", 0); n > 0 && len(got) > n {
		got = got[:n] + "...\n"
	}
	if field, ok := o.find("keep"); ok { // a member of the answer, by the name of its value
		member, name, _ := strings.Cut(field, ":")
		_, rest, found := strings.Cut(got, `"`+member+`":"`)
		value, _, _ := strings.Cut(rest, `"`)
		if !found {
			h.t.Errorf("no %s in %s", member, got)
		}
		h.texts[name] = value
		if o.has("hide") {
			got = strings.Replace(got, value, "$"+name, 1)
		}
	}
	return got
}

// fill puts what was kept in the place of its name.
func (h *house) fill(s string) string {
	for name, id := range h.names {
		s = strings.ReplaceAll(s, "$"+name+"$", id.Hex())
	}
	for _, name := range []string{"alice", "bob", "safe"} {
		s = strings.ReplaceAll(s, "$"+name+"$", auth.Checksum(address(name)))
	}
	for name, text := range h.texts {
		s = strings.ReplaceAll(s, "$"+name+"$", text)
	}
	return s
}

// runReader: TRADER PATH KEY: a request with a read-only key.
func (h *house) runReader(o *words) string {
	p := o.text("dialect", string(wire.SVC))
	w := rawRequest{method: o.text("method", "GET"), path: o.list[1]}
	w.headers = []string{p + "ADDRESS: " + auth.Checksum(address(o.list[0])),
		p + "READONLY_API_KEY: " + h.fill(o.list[2])}
	return h.send(w.String())
}

// runBuilder: TRADER NUMBER: a builder key of his revokes itself.
func (h *house) runBuilder(o *words) string {
	number, _ := strconv.ParseUint(o.list[1], 10, 32)
	trio := h.keyring.Trio(engine.BuilderKey, address(o.list[0]), uint32(number))
	r := auth.Request{Timestamp: strconv.FormatInt(h.now(), 10), Method: "DELETE",
		Path: "/auth/builder-api-key"}
	if err := trio.Sign(&r); err != nil {
		h.t.Fatal(err)
	}
	w := rawRequest{method: r.Method, path: r.Path, headers: []string{
		"POLY_BUILDER_API_KEY: " + r.Key, "POLY_BUILDER_PASSPHRASE: " + r.Passphrase,
		"POLY_BUILDER_TIMESTAMP: " + r.Timestamp, "POLY_BUILDER_SIGNATURE: " + r.Signature}}
	return h.send(w.String())
}

// runOrder: TRADER SIDE OUTCOME SIZE @ PRICE, then options.
func (h *house) runOrder(o *words) string {
	name := o.list[0]
	x, _ := h.parseOrder(o)
	w := rawRequest{method: "POST", path: o.text("path", "/order")}
	w.body = h.orderBody(x, name, o)
	if old, ok := o.find("swap"); ok {
		from, to, _ := strings.Cut(old, "=>")
		if !strings.Contains(w.body, from) {
			h.t.Fatalf("no %q in %s", from, w.body)
		}
		w.body = strings.Replace(w.body, from, to, 1)
	}
	w.body = o.text("body", w.body)
	h.signed(&w, name, o)
	if from, ok := o.find("tamper"); ok {
		w.body = strings.Replace(w.body, from, strings.ToUpper(from), 1)
	}
	for range o.number("times", 1) - 1 {
		entrance{h}.ask(&w, o)
	}
	return entrance{h}.ask(&w, o)
}

// parseOrder is the order that the words mean, unsigned.
func (h *house) parseOrder(o *words) (*auth.Order, *words) {
	name := o.list[0]
	units := func(s string) *big.Rat {
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			h.t.Fatalf("%q is no number", s)
		}
		return r.Mul(r, big.NewRat(engine.Unit, 1))
	}
	size, price := units(o.list[3]), units(o.list[5])
	cash := new(big.Rat).Mul(size, price)
	shares := size.Num().Uint64()
	collateral := cash.Mul(cash, big.NewRat(1, engine.Unit)).Num().Uint64()
	x := auth.Order{
		Version: uint8(o.number("v", 2)), SignatureType: uint8(o.number("type", 0)),
		Maker: address(o.text("maker", name)), Salt: auth.WordOf(uint64(o.number("salt", 1))),
		MakerAmount: collateral, TakerAmount: shares,
	}
	x.Signer = address(o.text("signer", name))
	x.Token, _ = engine.ParseToken(o.text("token", strconv.Itoa(int(o.list[2][0]-'A'+10))))
	if x.Version == 1 {
		x.Taker = engine.Address{}
		if taker, ok := o.find("taker"); ok {
			x.Taker = address(taker)
		}
		x.FeeRate = auth.WordOf(uint64(o.number("fee", 0)))
		x.Expiration = auth.WordOf(uint64(o.number("expiration", 0)))
	} else {
		x.Timestamp = auth.WordOf(uint64(testNow+o.number("signed", 0)) * 1000)
	}
	if o.list[1] == "sell" {
		x.Side, x.MakerAmount, x.TakerAmount = engine.Sell, shares, collateral
	}
	return &x, o
}

// orderBody signs the order and writes it as public clients do.
func (h *house) orderBody(x *auth.Order, name string, o *words) string {
	domain := auth.Domains(testChain)[o.number("domain", map[uint8]int{1: 9, 2: 0}[x.Version])]
	signature, id, err := trader(o.text("by", name)).SignOrder(x, &domain)
	if err != nil { // what nobody can sign is refused before its signature is looked at
		signature = make([]byte, auth.SignatureSize)
	}
	if as, ok := o.find("as"); ok {
		h.names[as] = id
	}
	if o.has("corrupt") {
		signature[40] ^= 1
	}
	who := trader(o.text("key", name)).Address
	nonce, _ := strconv.ParseUint(o.text("keynonce", "0"), 10, 32)
	more := `"timestamp":"` + decimal(x.Timestamp) + `","metadata":"0x` + strings.Repeat("0", 64) +
		`","builder":"0x` + strings.Repeat("0", 64) + `","expiration":"` + o.text("expiration", "0") + `"`
	if x.Version == 1 {
		more = `"taker":"` + x.Taker.Hex() + `","nonce":"0","feeRateBps":"` +
			decimal(x.FeeRate) + `","expiration":"` + decimal(x.Expiration) + `"`
	}
	condition := ""
	if v, ok := o.find("condition"); ok {
		condition = `"conditionId":"` + v + `",`
	}
	return fmt.Sprintf(`{"order":{"salt":%s,"maker":"%s","signer":"%s","tokenId":"%s",%s`+
		`"makerAmount":"%d","takerAmount":"%d","side":"%s","signatureType":%d,%s,`+
		`"signature":"0x%s"},"owner":"%s","orderType":"%s","postOnly":%v,"deferExec":%v}`,
		decimal(x.Salt), auth.Checksum(x.Maker), x.Signer.Hex(), x.Token, condition,
		x.MakerAmount, x.TakerAmount, [2]string{"BUY", "SELL"}[x.Side], x.SignatureType, more,
		hex.EncodeToString(signature), o.text("owner", h.keyring.KeyID(who, uint32(nonce))),
		o.text("kind", "GTC"), o.has("post-only"), o.has("defer"))
}

func decimal(w auth.Word) string { return engine.Token(w).String() }

// runCancel: TRADER ID, where ID is a name given by as= or a text.
func (h *house) runCancel(o *words) string {
	text := o.list[1]
	if id, ok := h.names[text]; ok {
		text = id.Hex()
	}
	w := rawRequest{method: "DELETE", path: "/order"}
	w.body = o.text("body", fmt.Sprintf(`{"%s":"%s"}`, o.text("field", "orderID"), text))
	h.signed(&w, o.list[0], o)
	for range o.number("times", 1) - 1 {
		entrance{h}.ask(&w, o)
	}
	return entrance{h}.ask(&w, o)
}

// runDerive: TRADER, then options.
func (h *house) runDerive(o *words) string {
	s := trader(o.list[0])
	nonce := o.text("nonce", "0")
	small, _ := strconv.ParseUint(nonce, 10, 32)
	stamp := strconv.FormatInt(h.now()+int64(o.number("late", 0)), 10)
	signature, err := trader(o.text("by", o.list[0])).SignAuth(
		uint64(o.number("chain", testChain)), stamp, uint32(small))
	if err != nil {
		h.t.Fatal(err)
	}
	w := rawRequest{method: "POST", path: "/auth/api-key", body: o.text("body", "")}
	if o.has("get") {
		w.method, w.path = "GET", "/auth/derive-api-key"
	}
	p := o.text("dialect", string(wire.SVC))
	w.headers = []string{p + "ADDRESS: " + auth.Checksum(s.Address), p + "SIGNATURE: " + signature,
		p + "TIMESTAMP: " + stamp, p + "NONCE: " + nonce}
	w.headers = w.headers[:len(w.headers)-o.number("cut", 0)]
	return h.send(w.String())
}

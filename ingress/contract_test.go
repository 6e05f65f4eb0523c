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

	"clobd/engine"
	"clobd/ingress/auth"
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
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			runCases(t, file)
		})
	}
}

func runCases(t *testing.T, file string) {
	h := newHouse(t, func(o *Options) {
		switch filepath.Base(file) {
		case "limits.txt":
			o.Limits = true
		case "first_use.txt":
			o.Faucet, o.LinkOnFirstUse, o.FaucetWallets = 1000*engine.Unit, true, 2
		}
	})
	var out strings.Builder
	var lines, want []string
	answer := false
	finish := func() {
		if len(lines) == 0 {
			return
		}
		got := h.run(lines)
		if expected := strings.Join(want, "\n") + "\n"; got != expected && !*rewrite {
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
	command, rest, _ := strings.Cut(lines[0], " ")
	o := &words{strings.Fields(rest)}
	got := ""
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
	case "cancel":
		got = h.runCancel(o)
	case "derive":
		got = h.runDerive(o)
	case "get":
		w := wire{method: o.text("method", "GET"), path: o.list[1]}
		h.signed(&w, o.list[0], o)
		got = h.send(w.String())
	case "http":
		w := wire{method: o.list[0], path: o.list[1], headers: lines[1:]}
		w.body = strings.Repeat(o.text("fill", "x"), o.number("size", 0))
		got = h.send(w.String())
	case "raw":
		got = h.send(strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(rest))
	case "repeat":
		n, _ := strconv.Atoi(o.list[0])
		w := wire{method: o.list[1], path: o.list[2]}
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
		h.t.Fatalf("unknown command %q", command)
	}
	if h.exchange.Digest() != before {
		return got + "state changed\n"
	}
	return got + "state same\n"
}

// runOrder: TRADER SIDE OUTCOME SIZE @ PRICE, then options.
func (h *house) runOrder(o *words) string {
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
	} else {
		x.Timestamp = auth.WordOf(testNow * 1000)
	}
	if o.list[1] == "sell" {
		x.Side, x.MakerAmount, x.TakerAmount = engine.Sell, shares, collateral
	}
	w := wire{method: "POST", path: o.text("path", "/order")}
	w.body = h.orderBody(&x, name, o)
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
	return h.send(w.String())
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
	more := `"timestamp":"` + decimal(x.Timestamp) + `","metadata":"0x` + zeros64 +
		`","builder":"0x` + zeros64 + `","expiration":"` + o.text("expiration", "0") + `"`
	if x.Version == 1 {
		more = `"taker":"` + x.Taker.Hex() + `","nonce":"0","feeRateBps":"0","expiration":"0"`
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
	w := wire{method: "DELETE", path: "/order"}
	w.body = o.text("body", fmt.Sprintf(`{"%s":"%s"}`, o.text("field", "orderID"), text))
	h.signed(&w, o.list[0], o)
	for range o.number("times", 1) - 1 {
		h.send(w.String())
	}
	return h.send(w.String())
}

// runDerive: TRADER, then options.
func (h *house) runDerive(o *words) string {
	s := trader(o.list[0])
	nonce := o.text("nonce", "0")
	small, _ := strconv.ParseUint(nonce, 10, 32)
	stamp := strconv.Itoa(testNow + o.number("late", 0))
	signature, err := trader(o.text("by", o.list[0])).SignAuth(
		uint64(o.number("chain", testChain)), stamp, uint32(small))
	if err != nil {
		h.t.Fatal(err)
	}
	w := wire{method: "POST", path: "/auth/api-key"}
	if o.has("get") {
		w.method, w.path = "GET", "/auth/derive-api-key"
	}
	p := o.text("dialect", dialectSVC)
	w.headers = []string{p + "ADDRESS: " + auth.Checksum(s.Address), p + "SIGNATURE: " + signature,
		p + "TIMESTAMP: " + stamp, p + "NONCE: " + nonce}
	w.headers = w.headers[:len(w.headers)-o.number("cut", 0)]
	return h.send(w.String())
}

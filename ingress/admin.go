package ingress

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/goccy/go-json"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/auth"
)

// adminBytes bounds the body of an operator's request.
const adminBytes = 4 << 10

// admin serves the operator's writes on the admin listener.
type admin struct {
	server *Server
	token  [32]byte // SHA-256 of the token: comparing two hashes takes the same time for any guess
	open   bool
}

// members are what an operator is answered.
type members map[string]any

// refuseAdmin makes the refusal of an operator's request: why, and what to do about it.
func refuseAdmin(status int, text, hint string) *wire.Refusal {
	return wire.Operators.Refuse(status, "", text, hint)
}

// Admin is the handler of the operator's writes. Each request needs the bearer token, on loopback
// too, and must not come from a web page: any page the operator has open can post to 127.0.0.1,
// but its browser says so in Origin.
func (s *Server) Admin() http.Handler {
	a := &admin{s, sha256.Sum256([]byte(s.options.AdminToken)), s.options.AdminToken != ""}
	mux := http.NewServeMux()
	for path, run := range map[string]func(operation) (members, *wire.Refusal){
		"fund":     func(o operation) (members, *wire.Refusal) { return a.transfer(engine.Deposit, o) },
		"withdraw": func(o operation) (members, *wire.Refusal) { return a.transfer(engine.Withdraw, o) },
		"link":     a.link, "collect": a.collect,
		"state": a.inMarket(a.state), "resolve": a.inMarket(a.resolve),
		"adjust": a.inMarket(a.adjust), "mode": a.mode, "stp": a.prevention,
	} {
		mux.HandleFunc("/admin/"+path, func(w http.ResponseWriter, r *http.Request) {
			o, refused := a.read(r)
			var body members
			if refused == nil {
				body, refused = run(o)
			}
			reply(w, body, refused)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, nil, refuseAdmin(404, "not found", "there are /admin/fund, withdraw, link, "+
			"collect, state, resolve, adjust, mode and stp"))
	})
	return mux
}

// reply answers with the body, or with the refusal if there is one.
func reply(w http.ResponseWriter, body members, refused *wire.Refusal) {
	status, text := http.StatusOK, []byte(nil)
	if refused != nil {
		status, text = refused.Status, refused.Append(nil)
	} else {
		var err error
		if text, err = json.Marshal(body); err != nil {
			panic("BUG: admin answer: " + err.Error())
		}
	}
	w.Header().Set("Content-Type", wire.JSON)
	w.WriteHeader(status)
	_, _ = w.Write(text) // an operator who hung up needs no answer
}

// operation is the texts of one operator's request by their names; a text that was left out is "".
type operation map[string]string

// read checks the origin and the token of r and reads its body: a JSON object of strings and
// numbers.
func (a *admin) read(r *http.Request) (operation, *wire.Refusal) {
	if len(r.Header.Values("Origin")) > 0 {
		return nil, refuseAdmin(403, "requests of web pages are refused", "use clobd or curl")
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	hash := sha256.Sum256([]byte(given))
	if !a.open || !bearer || subtle.ConstantTimeCompare(hash[:], a.token[:]) != 1 {
		return nil, refuseAdmin(401, "unauthorized", "send Authorization: Bearer with the text of "+
			"admin.token from the data folder")
	}
	if r.Method != http.MethodPost {
		return nil, refuseAdmin(405, "method not allowed", "use POST")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, adminBytes+1))
	if err != nil || len(body) > adminBytes {
		return nil, refuseAdmin(413, "request body too large", "send at most 4096 bytes")
	}
	at := make(map[string]scan.Slot)
	for _, name := range []string{"wallet", "owner", "amount", "token", "ref", "market", "state",
		"payouts", "mode", "tick", "min_size", "min_buy", "fee"} {
		at[name] = scan.Slot{Into: new(scan.Field), Kinds: scan.AString | scan.ANumber}
	}
	if !readMembers(body, at) {
		return nil, refuseAdmin(400, "malformed JSON", `send {"wallet":"0x…","amount":"100"}`)
	}
	if !a.server.ready.Load() {
		return nil, refuseAdmin(425, "service not ready",
			"the journal is being recovered: try again")
	}
	o := make(operation)
	for name, slot := range at {
		o[name] = slot.Into.Text
	}
	return o, nil
}

// address reads the address of a name.
func (o operation) address(name string) (engine.Address, *wire.Refusal) {
	a, ok := auth.ParseAddress(o[name])
	if !ok {
		return a, refuseAdmin(400, name+" is not an address", "write it as 0x and 40 hex digits")
	}
	return a, nil
}

// amount reads the amount, in base units.
func (o operation) amount() (int64, *wire.Refusal) {
	amount, ok := parseDecimal(o["amount"])
	if !ok {
		return 0, refuseAdmin(400, "amount is not a decimal number",
			"write a positive amount of whole units with up to 6 decimals, such as 12.5")
	}
	return amount, nil
}

var refuseNoAccount = refuseAdmin(404, "the wallet has no account",
	"nothing was ever paid into it")

// transfer moves collateral, or the tokens of one outcome, in or out of the exchange.
func (a *admin) transfer(kind engine.Kind, o operation) (members, *wire.Refusal) {
	d := a.server.options.Board.Directory
	c := engine.Command{Kind: kind, ID: reference(kind, o["ref"])}
	var refused *wire.Refusal
	if c.Address, refused = o.address("wallet"); refused != nil {
		return nil, refused
	}
	c.Wallet, _ = d.Wallet(c.Address)
	if kind == engine.Withdraw && c.Wallet == 0 {
		return nil, refuseNoAccount
	}
	amount, refused := o.amount()
	if refused != nil {
		return nil, refused
	}
	c.Cash = engine.Cash(amount)
	if o["token"] != "" {
		word, ok := parseWord(o["token"])
		market, outcome, known := d.Token(engine.Token(word))
		if !ok || !known {
			return nil, refuseAdmin(404, "unknown token", "it must belong to a listed market")
		}
		c.Market, c.Outcome, c.Cash, c.Size = market.No, outcome, 0, engine.Size(amount)
	}
	body := members{"wallet": auth.Checksum(c.Address),
		"amount": string(engine.AppendDecimal(nil, amount, 6))}
	if o["token"] != "" {
		body["token"] = o["token"]
	}
	body, refused = a.carry(&c, body)
	if refused != nil {
		return nil, refused
	}
	if kind == engine.Deposit {
		a.server.faucet.claim(c.Address) // its Link may not have entered with it
	}
	if body["repeated"] == nil {
		body["number"], _ = d.Wallet(c.Address)
	}
	return body, nil
}

// link lets owner trade for wallet.
func (a *admin) link(o operation) (members, *wire.Refusal) {
	c := engine.Command{Kind: engine.Link}
	var refused *wire.Refusal
	if c.Address, refused = o.address("wallet"); refused != nil {
		return nil, refused
	}
	if c.Holder, refused = o.address("owner"); refused != nil {
		return nil, refused
	}
	body, refused := a.carry(&c, members{
		"wallet": auth.Checksum(c.Address), "owner": auth.Checksum(c.Holder)})
	if refused == nil {
		d := a.server.options.Board.Directory
		body["number"], _ = d.Wallet(c.Address)
		body["owner_number"], _ = d.Wallet(c.Holder)
	}
	return body, refused
}

// carry enters c, waits for its Receipt, and answers with its Sequence and body. A ref that was
// carried out before is answered as such: what it did then is in the journal, and this request may
// say something else.
func (a *admin) carry(c *engine.Command, body members) (members, *wire.Refusal) {
	enter := a.server.submit
	if c.Kind == engine.Deposit {
		enter = a.server.faucet.deposit
	}
	receipt, err := enter(c)
	switch {
	case errors.Is(err, sequencer.ErrBusy):
		return nil, refuseAdmin(503, "the exchange is busy", "nothing was entered: send again")
	case errors.Is(err, sequencer.ErrClosed), errors.Is(err, errQuarantined):
		return nil, refuseAdmin(503, err.Error(), "nothing was entered")
	case err != nil:
		return nil, refuseAdmin(504, err.Error(),
			"its outcome is unknown: send it again with the same ref")
	case receipt.Reject == engine.RejectDuplicate:
		return members{"repeated": true, "sequence": receipt.First}, nil
	case receipt.Reject != engine.Accepted:
		rule := engine.Rejects[receipt.Reject]
		return nil, refuseAdmin(rule.HTTP, receipt.Text(), "refused: "+rule.Code)
	}
	body["sequence"] = receipt.Sequence
	return body, nil
}

// reference is the id of an operator's request, zero without a ref: an id is carried out once. The
// kind is part of it, so that a withdrawal may carry the ref of the deposit it takes back.
func reference(kind engine.Kind, ref string) engine.OrderID {
	if ref == "" {
		return engine.OrderID{}
	}
	return sha256.Sum256(append([]byte{'r', 'e', 'f', byte(kind)}, ref...))
}

// parseDecimal reads a positive amount of whole units with at most 6 decimals, in base units.
func parseDecimal(s string) (int64, bool) {
	whole, part, point := strings.Cut(s, ".")
	if whole == "" || len(whole) > 10 || len(part) > 6 || point && part == "" {
		return 0, false
	}
	v, ok := parseAmount(whole + part + "000000"[len(part):])
	return int64(v), ok && v >= 1 && v <= engine.MaxAmount
}

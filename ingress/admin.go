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
	for path, run := range map[string]func(*operation) (map[string]any, *wire.Refusal){
		"fund": a.fund, "withdraw": a.withdraw, "link": a.link, "collect": a.collect,
		"state": a.state, "resolve": a.resolve, "adjust": a.adjust, "mode": a.mode,
		"stp": a.prevention,
	} {
		mux.HandleFunc("/admin/"+path, a.guard(run))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, nil, refuseAdmin(404, "not found", "there are /admin/fund, withdraw, link, "+
			"collect, state, resolve, adjust, mode and stp"))
	})
	return mux
}

// operation is one operator's request, every value a string.
type operation struct {
	Wallet, Owner, Amount, Token, Ref string
	Market, State, Payouts, Mode      string
	Tick, MinSize, MinBuy, Fee        string
}

// fields are its values by their names.
func (o *operation) fields() map[string]*string {
	return map[string]*string{
		"wallet": &o.Wallet, "owner": &o.Owner, "amount": &o.Amount, "token": &o.Token,
		"ref": &o.Ref, "market": &o.Market, "state": &o.State, "payouts": &o.Payouts,
		"mode": &o.Mode, "tick": &o.Tick, "min_size": &o.MinSize, "min_buy": &o.MinBuy,
		"fee": &o.Fee,
	}
}

// guard checks the token and the origin, reads the body, and answers.
func (a *admin) guard(
	run func(*operation) (map[string]any, *wire.Refusal),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var o operation
		p := a.check(r)
		if p == nil {
			p = readOperation(r, &o)
		}
		if p == nil && !a.server.ready.Load() {
			p = refuseAdmin(425, "service not ready", "the journal is being recovered: try again")
		}
		var body map[string]any
		if p == nil {
			body, p = run(&o)
		}
		reply(w, body, p)
	}
}

// reply answers with the body, or with the refusal if there is one.
func reply(w http.ResponseWriter, body map[string]any, refused *wire.Refusal) {
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

// check says why r may not do anything.
func (a *admin) check(r *http.Request) *wire.Refusal {
	if len(r.Header.Values("Origin")) > 0 {
		return refuseAdmin(403, "requests of web pages are refused", "use clobd or curl")
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	hash := sha256.Sum256([]byte(given))
	if !a.open || !bearer || subtle.ConstantTimeCompare(hash[:], a.token[:]) != 1 {
		return refuseAdmin(401, "unauthorized", "send Authorization: Bearer with the text of admin.token from the data folder")
	}
	if r.Method != http.MethodPost {
		return refuseAdmin(405, "method not allowed", "use POST")
	}
	return nil
}

// readOperation reads the body: a JSON object of strings; what is a number may be written as one.
func readOperation(r *http.Request, o *operation) *wire.Refusal {
	body, err := io.ReadAll(io.LimitReader(r.Body, adminBytes+1))
	if err != nil || len(body) > adminBytes {
		return refuseAdmin(413, "request body too large", "send at most 4096 bytes")
	}
	into, read := o.fields(), map[string]*field{}
	var names []string
	at := map[string]place{}
	for name := range into {
		read[name] = new(field)
		at[name] = place{into: read[name], kinds: aString | aNumber}
		names = append(names, name)
	}
	c := scanner{s: string(body)}
	if !c.document(&shape{names, func(n string) (place, bool) { p, ok := at[n]; return p, ok }}) {
		return refuseAdmin(400, "malformed JSON", `send {"wallet":"0x…","amount":"100"}`)
	}
	for name, f := range read {
		*into[name] = f.text
	}
	return nil
}

// fund credits a wallet.
func (a *admin) fund(o *operation) (map[string]any, *wire.Refusal) {
	return a.transfer(engine.Deposit, o)
}

// withdraw debits a wallet.
func (a *admin) withdraw(o *operation) (map[string]any, *wire.Refusal) {
	return a.transfer(engine.Withdraw, o)
}

// transfer moves collateral, or the tokens of one outcome, in or out of the exchange.
func (a *admin) transfer(kind engine.Kind, o *operation) (map[string]any, *wire.Refusal) {
	d := a.server.options.Board.Directory
	c := engine.Command{Kind: kind, ID: reference(kind, o.Ref)}
	var ok bool
	if c.Address, ok = auth.ParseAddress(o.Wallet); !ok {
		return nil, refuseAdmin(400, "wallet is not an address", "write it as 0x and 40 hex digits")
	}
	c.Wallet, _ = d.Wallet(c.Address)
	if kind == engine.Withdraw && c.Wallet == 0 {
		return nil, refuseAdmin(404, "the wallet has no account", "nothing was ever paid into it")
	}
	amount, ok := parseDecimal(o.Amount)
	if !ok {
		return nil, refuseAdmin(400, "amount is not a decimal number", "write a positive amount of whole units with up to 6 decimals, such as 12.5")
	}
	c.Cash = engine.Cash(amount)
	if o.Token != "" {
		word, ok := parseWord(o.Token)
		market, outcome, known := d.Token(engine.Token(word))
		if !ok || !known {
			return nil, refuseAdmin(404, "unknown token", "it must belong to a listed market")
		}
		c.Market, c.Outcome, c.Cash, c.Size = market.No, outcome, 0, engine.Size(amount)
	}
	receipt, p := a.submit(&c)
	if p != nil {
		return nil, p
	}
	if kind == engine.Deposit {
		a.server.faucet.claim(c.Address) // its Link may not have entered with it
	}
	if receipt.Reject == engine.RejectDuplicate {
		// What the ref moved then is in the journal; this request may say something else.
		return map[string]any{"repeated": true, "sequence": receipt.First}, nil
	}
	body := map[string]any{
		"sequence": receipt.Sequence,
		"wallet":   auth.Checksum(c.Address),
		"amount":   string(engine.AppendDecimal(nil, amount, 6)),
	}
	body["number"], _ = d.Wallet(c.Address)
	if o.Token != "" {
		body["token"] = o.Token
	}
	return body, nil
}

// link lets owner trade for wallet.
func (a *admin) link(o *operation) (map[string]any, *wire.Refusal) {
	c := engine.Command{Kind: engine.Link}
	var ok bool
	if c.Address, ok = auth.ParseAddress(o.Wallet); !ok {
		return nil, refuseAdmin(400, "wallet is not an address", "write it as 0x and 40 hex digits")
	}
	if c.Holder, ok = auth.ParseAddress(o.Owner); !ok {
		return nil, refuseAdmin(400, "owner is not an address", "write it as 0x and 40 hex digits")
	}
	receipt, p := a.submit(&c)
	if p != nil {
		return nil, p
	}
	d := a.server.options.Board.Directory
	wallet, _ := d.Wallet(c.Address)
	owner, _ := d.Wallet(c.Holder)
	return map[string]any{
		"sequence":     receipt.Sequence,
		"wallet":       auth.Checksum(c.Address),
		"number":       wallet,
		"owner":        auth.Checksum(c.Holder),
		"owner_number": owner,
	}, nil
}

// submit hands the Command over and turns what is not a yes into a problem. A ref that was carried
// out before is a yes too: a caller without an answer can ask again.
func (a *admin) submit(c *engine.Command) (engine.Receipt, *wire.Refusal) {
	enter := a.server.submit
	if c.Kind == engine.Deposit {
		enter = a.server.faucet.deposit
	}
	receipt, err := enter(c)
	switch {
	case errors.Is(err, sequencer.ErrBusy):
		return receipt, refuseAdmin(503, "the exchange is busy", "nothing was entered: send again")
	case errors.Is(err, sequencer.ErrClosed), errors.Is(err, errQuarantined):
		return receipt, refuseAdmin(503, err.Error(), "nothing was entered")
	case err != nil:
		return receipt, refuseAdmin(504, err.Error(), "its outcome is unknown: send it again with the same ref")
	case receipt.Reject == engine.RejectDuplicate:
		return receipt, nil
	case receipt.Reject != engine.Accepted:
		rule := engine.Rejects[receipt.Reject]
		return receipt, refuseAdmin(rule.HTTP, receipt.Text(), "refused: "+rule.Code)
	}
	return receipt, nil
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

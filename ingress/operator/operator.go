package operator

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"clobd/api/wire"
	"clobd/api/wire/scan"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/ingress/conn"
	"clobd/ingress/form"
	"clobd/ingress/limits"
)

// adminBytes bounds the body of an operator's request.
const adminBytes = 4 << 10

// Options are what the Handler needs. All but Token are required.
type Options struct {
	// Token is the bearer token. If it is "", every request is refused.
	Token string
	// Ready reports whether Commands may enter.
	Ready func() bool
	// Board returns the Board. It is called only after Ready has reported true.
	Board func() *view.Board
	// Enter enters a Command and waits for its Receipt. Its errors are those of sequencer.Submit; any
	// other error means that nothing was entered.
	Enter func(*engine.Command) (engine.Receipt, error)
	Now   func() time.Time
}

// admin serves the operator's requests on the admin listener.
type admin struct {
	Options
	hash    [32]byte        // of the token; comparing hashes takes the same time for any guess
	guesses *limits.Windows // wrong tokens, by address
}

// members are the JSON members of an answer to an operator.
type members map[string]any

func refuse(status int, text, hint string) *wire.Refusal {
	return wire.Operators.Refuse(status, "", text, hint)
}

// Handler serves the operator's requests, and refuses requests without the bearer token, even from
// loopback. It also refuses requests of web pages, which browsers mark with the header Origin.
func Handler(o Options) http.Handler {
	a := &admin{o, sha256.Sum256([]byte(o.Token)), limits.New(o.Now)}
	mux := http.NewServeMux()
	for path, run := range map[string]func(*operation) members{
		"fund":     func(o *operation) members { return a.transfer(engine.Deposit, o) },
		"withdraw": func(o *operation) members { return a.transfer(engine.Withdraw, o) },
		"link":     a.link, "collect": a.collect, "state": a.state, "resolve": a.resolve,
		"adjust": a.adjust, "mode": a.mode, "stp": a.prevention,
	} {
		mux.HandleFunc("/admin/"+path, func(w http.ResponseWriter, r *http.Request) {
			o, refused := a.read(r)
			if refused != nil {
				Refuse(w, refused)
				return
			}
			body := run(o)
			reply(w, body, o.refused)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, refused := a.read(r)
		if guarded := r.URL.Path == "/admin/backup" || r.URL.Path == "/admin/checkpoint" ||
			r.URL.Path == "/admin/scrub" || r.URL.Path == "/page.json" ||
			strings.HasPrefix(r.URL.Path, "/curves/") ||
			strings.HasPrefix(r.URL.Path, "/debug/"); guarded && refused != nil {
			Refuse(w, refused) // other handlers serve these paths once the token is right
			return
		}
		Refuse(w, refuse(404, "not found", "there are /admin/fund, withdraw, link, "+
			"collect, state, resolve, adjust, mode and stp"))
	})
	return mux
}

// Refuse answers an operator's request with a refusal.
func Refuse(w http.ResponseWriter, refused *wire.Refusal) { reply(w, nil, refused) }

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
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "10")
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // if the operator hung up, nobody needs the answer
}

var refuseGuess = refuse(429, "unauthorized", "too many wrong tokens came from this address: "+
	"wait ten seconds, or send the right one, which is always taken")

// mayGuess counts a wrong token, and reports whether its address may send another one. The right
// token is accepted in any case: comparing is cheap, and all programs on this machine share an
// address.
func (a *admin) mayGuess(r *http.Request) bool {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // peers without an IP address share one count
	c, wait := a.guesses.Claim(peer.Addr(), "", false)
	if wait == 0 {
		a.guesses.Failed(&c)
	}
	return wait == 0
}

// operation is an operator's request: its members as strings, "" for a member that was left out.
type operation struct {
	texts   map[string]string
	refused *wire.Refusal // the first thing that is wrong with it
}

// refuse refuses the operation, unless it was refused before.
func (o *operation) refuse(refused *wire.Refusal) members {
	if o.refused == nil {
		o.refused = refused
	}
	return nil
}

// read checks the origin and the token of r and reads its body, an object of strings and numbers.
func (a *admin) read(r *http.Request) (*operation, *wire.Refusal) {
	if len(r.Header.Values("Origin")) > 0 {
		return nil, refuse(403, "requests of web pages are refused", "use clobd or curl")
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	hash := sha256.Sum256([]byte(given))
	if a.Token == "" || !bearer || subtle.ConstantTimeCompare(hash[:], a.hash[:]) != 1 {
		if bearer && !a.mayGuess(r) { // a request without a token is no guess
			return nil, refuseGuess
		}
		return nil, refuse(401, "unauthorized", "send Authorization: Bearer with the text of "+
			"admin.token from the data folder")
	}
	conn.Keep(r.Context())
	if r.Method != http.MethodPost {
		return nil, refuse(405, "method not allowed", "use POST")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, adminBytes+1))
	if err != nil || len(body) > adminBytes {
		return nil, refuse(413, "request body too large", "send at most 4096 bytes")
	}
	at := make(map[string]scan.Slot)
	for _, name := range []string{"wallet", "owner", "amount", "token", "ref", "market", "state",
		"payouts", "mode", "tick", "min_size", "min_buy", "fee"} {
		at[name] = scan.Slot{Into: new(scan.Field), Kinds: scan.AString | scan.ANumber}
	}
	if fault := form.Members(body, at); fault != nil && fault.Why != scan.Malformed {
		return nil, refuse(400, "ambiguous JSON", fault.Error())
	} else if fault != nil {
		return nil, refuse(400, "malformed JSON", `send {"wallet":"0x…","amount":"100"}`)
	}
	if !a.Ready() {
		return nil, refuse(425, "service not ready",
			"the journal is being recovered: try again")
	}
	o := &operation{texts: make(map[string]string)}
	for name, slot := range at {
		o.texts[name] = slot.Into.Text
	}
	return o, nil
}

func (o *operation) address(name string) engine.Address {
	a, ok := auth.ParseAddress(o.texts[name])
	if !ok {
		o.refuse(refuse(400, name+" is not an address", "write it as 0x and 40 hex digits"))
	}
	return a
}

// amount returns the amount of the operation, in base units.
func (o *operation) amount() int64 {
	amount, ok := form.Decimal(o.texts["amount"])
	if !ok {
		o.refuse(refuse(400, "amount is not a decimal number",
			"write a positive amount of whole units with up to 6 decimals, such as 12.5"))
	}
	return amount
}

var refuseNoAccount = refuse(404, "the wallet has no account",
	"nothing was ever paid into it")

// transfer moves collateral, or the tokens of one outcome, in or out of the exchange.
func (a *admin) transfer(kind engine.Kind, o *operation) members {
	d := a.Board().Directory
	c := engine.Command{Kind: kind, ID: reference(kind, o), Address: o.address("wallet")}
	c.Wallet, _ = d.Wallet(c.Address)
	if kind == engine.Withdraw && c.Wallet == 0 {
		o.refuse(refuseNoAccount)
	}
	amount := o.amount()
	body := members{"wallet": auth.Checksum(c.Address),
		"amount": string(engine.AppendDecimal(nil, amount, 6))}
	c.Cash = engine.Cash(amount)
	if token := o.texts["token"]; token != "" {
		word, ok := form.Word(token)
		market, outcome, known := d.Token(engine.Token(word))
		if !ok || !known {
			return o.refuse(refuse(404, "unknown token", "it must belong to a listed market"))
		}
		c.Market, c.Outcome, c.Cash, c.Size = market.No, outcome, 0, engine.Size(amount)
		body["token"] = token
	}
	if body = a.carry(o, &c, body); body == nil {
		return nil
	}
	if body["repeated"] == nil {
		body["number"], _ = d.Wallet(c.Address)
	}
	return body
}

func (a *admin) link(o *operation) members {
	c := engine.Command{Kind: engine.Link, Address: o.address("wallet"), Holder: o.address("owner")}
	body := a.carry(o, &c, members{
		"wallet": auth.Checksum(c.Address), "owner": auth.Checksum(c.Holder)})
	if body != nil {
		d := a.Board().Directory
		body["number"], _ = d.Wallet(c.Address)
		body["owner_number"], _ = d.Wallet(c.Holder)
	}
	return body
}

// carry enters c, waits for its Receipt, and returns body with the Sequence. It returns nil if o
// was refused. If a request with the same ref was carried out before, the answer says only that,
// because this request may differ from it.
func (a *admin) carry(o *operation, c *engine.Command, body members) members {
	if o.refused != nil {
		return nil
	}
	receipt, err := a.Enter(c)
	switch {
	case errors.Is(err, sequencer.ErrBusy):
		return o.refuse(refuse(503, "the exchange is busy", "nothing was entered: send again"))
	case errors.Is(err, sequencer.ErrTimeout), errors.Is(err, sequencer.ErrUnknown):
		return o.refuse(refuse(504, err.Error(),
			"its outcome is unknown: send it again with the same ref"))
	case err != nil:
		return o.refuse(refuse(503, err.Error(), "nothing was entered"))
	case receipt.Reject == engine.RejectDuplicate:
		return members{"repeated": true, "sequence": receipt.First}
	case receipt.Reject != engine.Accepted:
		rule := engine.Rejects[receipt.Reject]
		return o.refuse(refuse(rule.HTTP, receipt.Text(), "refused: "+rule.Code))
	}
	body["sequence"] = receipt.Sequence
	return body
}

// reference returns the id that the ref of an operator's request makes, zero without a ref. The
// kind is a part of the id, so that a withdrawal may have the same ref as the deposit that it takes
// back.
func reference(kind engine.Kind, o *operation) engine.OrderID {
	ref := o.texts["ref"]
	if ref == "" {
		return engine.OrderID{}
	}
	return sha256.Sum256(append([]byte{'r', 'e', 'f', byte(kind)}, ref...))
}

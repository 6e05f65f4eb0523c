package stream

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-json"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
)

// userWish is a message that a subscriber of the user channel may send. The members that prove his
// key are in auth or at the top level.
type userWish struct {
	wish
	proof
	Auth proof `json:"auth"`
}

// proof holds the members that prove a key, in the spellings of different clients.
type proof struct {
	APIKey     string          `json:"apiKey"`
	Lower      string          `json:"apikey"`
	Snake      string          `json:"api_key"`
	Key        string          `json:"key"`
	Secret     string          `json:"secret"`
	Passphrase string          `json:"passphrase"`
	Address    string          `json:"address"`
	Timestamp  json.RawMessage `json:"timestamp"` // a number or a text
	Signature  string          `json:"signature"`
	Dialect    string          `json:"dialect"`
}

func (p *proof) credentials() wire.Credentials {
	return wire.Credentials{Key: cmp.Or(p.APIKey, p.Lower, p.Snake, p.Key), Secret: p.Secret,
		Passphrase: p.Passphrase, Address: p.Address, Signature: p.Signature, Dialect: p.Dialect,
		Timestamp: string(bytes.Trim(p.Timestamp, `"`))}
}

// credentials returns the credentials in auth, or else those at the top level.
func (r *userWish) credentials() wire.Credentials {
	if c := r.Auth.credentials(); c.Key != "" {
		return c
	}
	return r.proof.credentials()
}

// hear does what a subscriber of the user channel asks for, and reports whether he is logged in.
func (p *owners) hear(s *subscriber, text []byte, login wire.Login) bool {
	var r userWish
	word := string(text) == "PING" || string(text) == "PONG"
	err := error(nil)
	if !word {
		err = json.Unmarshal(text, &r)
	}
	if !p.affords(s, len(r.Markets)) {
		return false
	}
	if !word && err == nil && s.user == nil { // only this goroutine sets user
		return p.logIn(s, &r, login)
	}
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	switch {
	case word:
		if string(text) == "PING" {
			s.enqueue(&bulletin{kind: bare, body: []byte("PONG")})
		}
	case err != nil:
		p.hub.fail(s, "bad_request", blame(err, "type, auth and markets"))
	case r.Operation == "" && r.credentials().Key != "":
		p.hub.fail(s, "bad_request", "already logged in: one connection has one key")
	default:
		p.grant(s, &r)
	}
	return s.user != nil
}

// affords charges a message and its names. It closes the socket of a subscriber who sends too many.
func (p *owners) affords(s *subscriber, names int) bool {
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	if !s.spent.take(1+float64(names/tokensUnit), p.hub.o.Now()) {
		s.close(live.Forbidden, "too many messages")
		return false
	}
	return true
}

// logIn makes the subscriber a reader if he proves a key. Otherwise it closes the socket.
func (p *owners) logIn(s *subscriber, r *userWish, login wire.Login) bool {
	c := r.credentials()
	who, err := login(&c)
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	if err == nil && p.revoked(&who) {
		err = errRevoked
	}
	if err != nil {
		p.hub.fail(s, "unauthorized", err.Error())
		now := p.hub.o.Now()
		s.offer(now)
		p.hub.out.flush(now)
		s.close(live.Forbidden, "unauthorized")
		return false
	}
	if s.cut || !p.isUser(s, r) {
		return false
	}
	var resume *place
	if r.Resume != nil {
		resume = &place{engine.Sequence(r.Resume.Seq), r.Resume.Part}
	}
	p.join(s, &who, resume)
	if len(r.Markets) > 0 {
		s.user.markets = make(map[engine.MarketNo]struct{})
	}
	p.grant(s, r)
	return true
}

var errRevoked = errors.New("Unauthorized/Invalid api key") // the text of all refusals of a key

// revoked reports whether a key was revoked.
func (p *owners) revoked(who *wire.Owner) bool {
	d := p.hub.o.Board.Directory
	owner, _ := d.Wallet(who.Address)
	k, known := d.Key(owner, who.Class, who.Number)
	return known && k.Revoked
}

// isUser reports whether a wish is for the user channel. If not, it tells the subscriber so.
func (p *owners) isUser(s *subscriber, r *userWish) bool {
	if r.Type != "" && !strings.EqualFold(r.Type, "user") {
		p.hub.fail(s, "bad_request", "unknown type "+strconv.Quote(r.Type)+": this channel is user")
		return false
	}
	return true
}

// grant adds or removes the markets of a reader. A reader who has named none, or has left all that
// he named, gets the messages of all markets: a message too many is better than a missing fill.
func (p *owners) grant(s *subscriber, r *userWish) {
	leaves := strings.EqualFold(r.Operation, "unsubscribe")
	switch {
	case !p.isUser(s, r):
		return
	case !leaves && r.Operation != "" && !strings.EqualFold(r.Operation, "subscribe"):
		p.hub.fail(s, "bad_request", "unknown operation "+strconv.Quote(r.Operation)+
			": send subscribe or unsubscribe")
		return
	}
	if r.Heartbeat != nil {
		s.heartbeat = *r.Heartbeat
	}
	for _, id := range r.Markets {
		c, ok := engine.ParseCondition(id)
		m := p.hub.o.Board.Directory.Condition(c)
		if !ok || m == nil {
			p.hub.fail(s, "unknown_market", "no market has the condition "+id)
			continue
		}
		switch markets := s.user.markets; {
		case markets == nil:
		case leaves:
			delete(markets, m.No)
		case len(markets) == maxTokens:
			p.hub.fail(s, "too_many", "a connection may name "+strconv.Itoa(maxTokens)+" markets")
			return
		default:
			markets[m.No] = struct{}{}
		}
	}
	if leaves && len(s.user.markets) == 0 {
		s.user.markets = nil
	}
}

// beat sends heartbeats to readers. It closes the sockets of readers whose key was revoked just as
// they logged in, so that cutRevoked did not see them.
func (p *owners) beat(body []byte) {
	for s := range p.readers {
		if p.revoked(&s.user.who) {
			s.close(live.Forbidden, "the key is revoked")
		} else if s.heartbeat {
			s.enqueue(&bulletin{seq: p.lastOf(s.user), body: body})
		}
	}
}

package papers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// porch is Invitations with a clock that a test sets.
type porch struct {
	*testing.T
	book Invitations
	time time.Time
	who  Passport
}

func newPorch(t *testing.T) *porch {
	d := &porch{T: t, time: time.Unix(1_000_000, 0), who: Passport{ID: 1, Journal: JournalID(7)}}
	d.book.Now = func() time.Time { return d.time }
	return d
}

func (d *porch) invite(name string) *Token {
	d.Helper()
	token, _, err := d.book.Invite(&d.who, []byte("root"), name, name+":1")
	if err != nil {
		d.Fatal(err)
	}
	return token
}

// redeem uses a token from a machine of its own, with a key.
func (d *porch) redeem(token *Token, name string, key byte) error {
	machine := netip.AddrFrom4([4]byte{10, 0, 0, key})
	_, err := d.book.Redeem(machine, &Application{No: token.No, Secret: token.Secret, Name: name,
		Address: name + ":1"}, keyOf(key))
	return err
}

// keyOf is the key of a request.
func keyOf(key byte) func() ([32]byte, error) {
	return func() ([32]byte, error) { return [32]byte{key}, nil }
}

// TestToken: a token comes through as it is, and not if a letter of it is another one.
func TestToken(t *testing.T) {
	token := newToken(7, 3, []byte("root"))
	text := token.String()
	if read, err := ParseToken(" " + text + "\n"); err != nil || *read != token {
		t.Fatalf("%+v %v", read, err)
	}
	for i := range text {
		b := []byte(text)
		if b[i] = 'x'; text[i] == 'x' {
			b[i] = 'y'
		}
		if _, err := ParseToken(string(b)); err == nil {
			t.Errorf("letter %d", i)
		} else if strings.Contains(err.Error(), text[20:40]) {
			t.Errorf("the error repeats the token: %v", err)
		}
	}
	for n := range text {
		if _, err := ParseToken(text[:n]); err == nil {
			t.Errorf("%d letters", n)
		}
	}
}

// TestInvitations: a token is good once, for an hour, and for the one who was invited.
func TestInvitations(t *testing.T) {
	d := newPorch(t)
	token := d.invite("d")
	want := func(err error, is error) {
		t.Helper()
		if !errors.Is(err, is) {
			t.Errorf("%v, not %v", err, is)
		}
	}
	forged := *token
	forged.Secret[31]++
	want(d.redeem(&forged, "d", 1), errUnknown)
	unknown := *token
	unknown.No[0]++
	want(d.redeem(&unknown, "d", 2), errUnknown)
	if err := d.redeem(token, "e", 3); err == nil || !strings.Contains(err.Error(), "for d@d:1, not") {
		t.Error(err)
	}
	want(d.redeem(token, "d", 4), nil)
	want(d.redeem(token, "d", 5), errUsed)
	want(d.redeem(token, "d", 4), nil) // the same key asks again
	d.time = d.time.Add(tokenLife + time.Second)
	want(d.redeem(token, "d", 4), errExpired)
	late := d.invite("f")
	d.time = d.time.Add(tokenLife)
	want(d.redeem(late, "f", 6), nil)
	d.time = d.time.Add(time.Nanosecond)
	want(d.redeem(late, "f", 6), errExpired)

	first := d.invite("g")
	second := d.invite("g") // the first one is over
	want(d.redeem(first, "g", 7), errUnknown)
	want(d.redeem(second, "g", 8), nil)

	tried := d.invite("h")
	forged = *tried
	forged.Secret[0]++
	for i := range byte(mostTries) {
		want(d.redeem(&forged, "h", 20+i), errUnknown)
	}
	want(d.redeem(tried, "h", 9), errTried)

	again := newPorch(t) // started again: it remembers nothing
	want(again.redeem(second, "g", 8), errUnknown)
}

// TestInvitationBounds: there is a bound of invitations, and of machines that are remembered
// because they were wrong; and those keep nobody else out.
func TestInvitationBounds(t *testing.T) {
	d := newPorch(t)
	good := d.invite("good")
	for i := range mostOpen - 1 {
		d.invite(fmt.Sprint(i))
	}
	if _, _, err := d.book.Invite(&d.who, nil, "more", "x:1"); err == nil {
		t.Error("no bound of invitations")
	}
	wrong := *good
	wrong.No[0]++
	at := func(n uint32) netip.Addr {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], n)
		return netip.AddrFrom4(b)
	}
	ask := func(from netip.Addr) error {
		_, err := d.book.Redeem(from, &Application{No: wrong.No}, keyOf(1))
		return err
	}
	for range mostWrong {
		if err := ask(at(1)); !errors.Is(err, errUnknown) {
			t.Error(err)
		}
	}
	if err := ask(at(1)); !errors.Is(err, ErrOften) {
		t.Error(err)
	}
	d.time = d.time.Add(wrongPause)
	if err := ask(at(1)); !errors.Is(err, errUnknown) {
		t.Error("nothing is forgotten:", err)
	}
	if err := ask(at(1)); !errors.Is(err, ErrOften) {
		t.Error(err)
	}
	for i := range uint32(3 * machines) {
		_ = ask(at(i + 2))
	}
	if len(d.book.wrong) > machines+1 {
		t.Errorf("%d machines", len(d.book.wrong))
	}
	if err := ask(at(1 << 30)); !errors.Is(err, ErrOften) { // it counts with all others
		t.Error(err)
	}
	network := netip.MustParseAddr("2001:db8::1")
	var fresh Invitations
	if fresh.machineOf(network, d.time) != fresh.machineOf(netip.MustParseAddr("2001:db8::2"), d.time) {
		t.Error("one network of IPv6 counts as many machines")
	}
	d.time = d.time.Add(time.Minute)
	if err := d.redeem(good, "good", 1); err != nil || len(d.book.wrong) > 0 {
		t.Errorf("%d machines are remembered: %v", len(d.book.wrong), err)
	}
	d.time = d.time.Add(2*tokenLife + time.Second)
	d.invite("more") // the old ones are forgotten
	if len(d.book.open) != 1 {
		t.Errorf("%d invitations", len(d.book.open))
	}
}

// TestRequestUnread: what somebody wants signed is looked at only if he knows the token. Who
// knows the token and asks for nonsense has used up a try.
func TestRequestUnread(t *testing.T) {
	d := newPorch(t)
	token, looks := d.invite("d"), 0
	malformed := errors.New("malformed")
	redeem := func(token *Token) error {
		_, err := d.book.Redeem(netip.AddrFrom4([4]byte{10, 0, 0, byte(looks + 1)}),
			&Application{No: token.No, Secret: token.Secret, Name: "d", Address: "d:1"},
			func() ([32]byte, error) { looks++; return [32]byte{}, malformed })
		return err
	}
	wrong, other := *token, *token
	wrong.Secret[0]++
	other.No[0]++
	for _, stranger := range []*Token{&wrong, &other} {
		if err := redeem(stranger); !errors.Is(err, errUnknown) || looks != 0 {
			t.Errorf("%v, %d looks", err, looks)
		}
	}
	for range mostTries - 1 {
		if err := redeem(token); !errors.Is(err, malformed) {
			t.Error(err)
		}
	}
	if err := redeem(token); !errors.Is(err, errTried) || looks != mostTries-1 {
		t.Errorf("%v, %d looks", err, looks)
	}
}

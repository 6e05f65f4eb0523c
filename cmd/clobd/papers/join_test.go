package papers

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clobd/journal/raft"
)

// house is a member that lets others in, with its folder.
type house struct {
	*testing.T
	data      string
	who       *Passport
	authority *Authority
	address   string
	heard     atomic.Int64
	answer    func(a *Application) *Admission
}

func newHouse(t *testing.T, cluster, id uint64) *house {
	t.Helper()
	h := &house{T: t, data: t.TempDir(), who: &Passport{Name: "a", ID: id, Address: "a:1",
		Journal: JournalID(cluster)}}
	var err error
	if h.authority, err = NewAuthority(cluster); err == nil {
		err = h.authority.Write(Folder(h.data), h.who, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// serve answers applications until the test ends.
func (h *house) serve() {
	h.Helper()
	_, secure, err := Keep(h.data, nil, func(func() error) {})
	if err != nil {
		h.Fatal(err)
	}
	secure.NextProtos = []string{raft.Guests}
	l, err := tls.Listen("tcp", "127.0.0.1:0", secure)
	if err != nil {
		h.Fatal(err)
	}
	h.address = l.Addr().String()
	h.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.hear(c)
		}
	}()
}

func (h *house) hear(c net.Conn) {
	defer c.Close()
	a := new(Application)
	if err := Listen(c, a, MostAsked); err != nil {
		return
	}
	h.heard.Add(1)
	_ = Say(c, h.answer(a))
}

// admit signs whatever is asked for.
func (h *house) admit(who *Passport) func(a *Application) *Admission {
	return func(a *Application) *Admission {
		r, _, err := ReadRequest(a.Request)
		if err != nil {
			return &Admission{Refused: err.Error()}
		}
		given, err := h.authority.Admit(who, r)
		if err != nil {
			return &Admission{Refused: err.Error()}
		}
		return given
	}
}

// TestJoin: who has a token gets papers with which both sides know each other, and says nothing to
// anybody but the member that has made the token.
func TestJoin(t *testing.T) {
	h := newHouse(t, 7, 1)
	h.serve()
	token := newToken(7, 1, h.authority.Root())
	in := filepath.Join(t.TempDir(), "part")
	request, err := Request(in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Request(in)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ReadRequest(request)
	_, same, wrong := ReadRequest(again)
	if err != nil || wrong != nil || key != same {
		t.Fatal("another key", err, wrong)
	}
	who := &Passport{Name: "d", ID: 4, Address: "d:1", Journal: JournalID(7)}
	h.answer = h.admit(who)
	a := &Application{Name: "d", Address: "d:1", Request: request}
	given, err := token.Apply(context.Background(), h.address, a)
	if err != nil {
		t.Fatal(err)
	}
	if err := token.Accept(in, given); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if err := os.Rename(in, Folder(data)); err != nil {
		t.Fatal(err)
	}
	read, secure, err := Read(data)
	if err != nil || read.Name != "d" || read.ID != 4 {
		t.Fatal(read, err)
	}
	leaf := secure.Certificates[0].Leaf
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != raft.MemberName(7, 4) || leaf.IsCA {
		t.Error(leaf.DNSNames)
	}
	if _, err := ReadAuthority(data); !errors.Is(err, ErrNoAuthority) {
		t.Error("a new member can sign:", err)
	}
	heard := h.heard.Load()
	for name, change := range map[string]func(*Token){
		"authority": func(x *Token) { x.Root[0]++ }, "member": func(x *Token) { x.Issuer++ },
		"cluster": func(x *Token) { x.Cluster++ }} {
		other := token
		change(&other)
		if _, err := other.Apply(context.Background(), h.address, a); !errors.Is(err, errOther) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	stranger := newHouse(t, 7, 1) // has the same names
	stranger.answer = stranger.admit(who)
	stranger.serve()
	if _, err := token.Apply(context.Background(), stranger.address, a); !errors.Is(err, errOther) {
		t.Error("a stranger:", err)
	}
	if h.heard.Load() != heard || stranger.heard.Load() != 0 {
		t.Error("the token was said to the wrong one")
	}
}

// TestAccept: papers that are not what the token stands for are not taken.
func TestAccept(t *testing.T) {
	h, other := newHouse(t, 7, 1), newHouse(t, 7, 1)
	token := newToken(7, 1, h.authority.Root())
	in := t.TempDir()
	request, err := Request(in)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := Request(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	who := &Passport{Name: "d", ID: 4, Address: "d:1", Journal: JournalID(7)}
	give := func(h *house, request []byte) *Admission {
		return h.admit(who)(&Application{Request: request})
	}
	mixed := give(other, request)
	mixed.Authority = give(h, request).Authority
	renamed := give(h, request)
	renamed.Passport = &Passport{Name: "d", ID: 5, Address: "d:1", Journal: JournalID(7)}
	strange := give(h, request)
	strange.Passport = &Passport{Name: "d", ID: 4, Address: "d:1", Journal: JournalID(8)}
	for what, given := range map[string]*Admission{"no papers": {}, "another authority": give(other,
		request), "another authority's certificate": mixed, "another key": give(h, foreign),
		"another id": renamed, "another cluster": strange} {
		if err := token.Accept(in, given); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if entries, err := os.ReadDir(in); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(in, certName), []byte("half of"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := token.Accept(in, give(h, request)); err != nil { // after a crash
		t.Error(err)
	}
}

// TestRequests: what is no request for a certificate gets none.
func TestRequests(t *testing.T) {
	request, err := Request(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	request[len(request)-1] ^= 1 // its signature
	if _, _, err := ReadRequest(request); err == nil || !strings.Contains(err.Error(), "malformed") {
		t.Error(err)
	}
	for _, b := range [][]byte{nil, []byte("x"), request[:len(request)/2]} {
		if _, _, err := ReadRequest(b); err == nil {
			t.Errorf("%x", b)
		}
	}
}

// TestListen: who says more than he may is not heard.
func TestListen(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	_ = b.SetDeadline(time.Now().Add(time.Minute))
	go func() { _, _ = a.Write([]byte{1, 0x20, 0, 0}) }()
	var into any
	if err := Listen(b, &into, MostAsked); err == nil || !strings.Contains(err.Error(), "8193 bytes") {
		t.Error(err)
	}
}

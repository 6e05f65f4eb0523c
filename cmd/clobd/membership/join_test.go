package membership

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/journal"
	"clobd/journal/raft"
)

// porter lets in who has a token, without a cluster behind it.
type porter struct {
	authority *papers.Authority
	who       *papers.Passport
	book      papers.Invitations
	address   string

	names atomic.Pointer[map[string][]byte] // the files that are given
}

func newPorter(t *testing.T) *porter {
	t.Helper()
	data := t.TempDir()
	p := &porter{who: &papers.Passport{Name: "a", ID: 1, Address: "a:1", Journal: papers.JournalID(7)}}
	p.names.Store(&map[string][]byte{"master.key": []byte("secret")})
	var err error
	if p.authority, err = papers.NewAuthority(7); err == nil {
		err = p.authority.Write(papers.Folder(data), p.who, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, secure, err := papers.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	secure.NextProtos = []string{raft.Guests}
	l, err := tls.Listen("tcp", "127.0.0.1:0", secure)
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.hear(c)
		}
	}()
	return p
}

func (p *porter) hear(c net.Conn) {
	defer c.Close()
	a := new(papers.Application)
	if err := papers.Listen(c, a, papers.MostAsked); err == nil {
		_ = papers.Say(c, p.answer(c, a))
	}
}

func (p *porter) answer(c net.Conn, a *papers.Application) *papers.Admission {
	var request *x509.CertificateRequest
	_, err := p.book.Redeem(c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), a,
		func() (key [32]byte, err error) {
			request, key, err = papers.ReadRequest(a.Request)
			return key, err
		})
	if err != nil {
		return &papers.Admission{Refused: err.Error()}
	}
	given, err := p.authority.Admit(&papers.Passport{Name: a.Name, ID: 4, Address: a.Address,
		Journal: p.who.Journal, Members: []papers.Fellow{{Name: "a", ID: 1, Address: "a:1"}}}, request)
	if err != nil {
		return &papers.Admission{Refused: err.Error()}
	}
	given.Secrets = *p.names.Load()
	return given
}

func (p *porter) joining(t *testing.T, data string) *Joining {
	t.Helper()
	token, _, err := p.book.Invite(p.who, p.authority.Root(), "d", "d:1")
	if err != nil {
		t.Fatal(err)
	}
	return &Joining{Token: token, From: p.address, Name: "d", Address: "d:1", Data: data,
		Journal: func(data string) journal.Options { return journal.Options{Dir: data} }}
}

// TestJoiningEnds ends a joining at each of its steps, and carries it out again with the same
// token.
func TestJoiningEnds(t *testing.T) {
	ended := errors.New("ended")
	for last := 0; ; last++ {
		p, data, n := newPorter(t), filepath.Join(t.TempDir(), "d"), 0
		j := p.joining(t, data)
		j.step = func() error {
			if n++; n > last {
				return ended
			}
			return nil
		}
		_, err := j.Run(context.Background())
		if err == nil {
			if last < 7 {
				t.Errorf("only %d steps", last)
			}
			return
		}
		if !errors.Is(err, ended) {
			t.Fatalf("step %d: %v", last, err)
		}
		if _, err := papers.ReadPassport(papers.Folder(data)); !errors.Is(err, papers.ErrNone) {
			t.Errorf("step %d: a member before all is done: %v", last, err)
		}
		j.step = nil
		if _, err := j.Run(context.Background()); err != nil {
			t.Errorf("again after step %d: %v", last, err)
		}
		joined(t, data)
	}
}

// joined checks a new member's folder.
func joined(t *testing.T, data string) {
	t.Helper()
	who, _, err := papers.Read(data)
	if err != nil || who.ID != 4 || who.Name != "d" || len(who.Members) != 1 {
		t.Errorf("%+v %v", who, err)
	}
	if text, err := os.ReadFile(filepath.Join(data, "master.key")); string(text) != "secret" {
		t.Errorf("the secret is %q %v", text, err)
	}
	if _, err := os.Stat(papers.Part(data)); err == nil {
		t.Error("a part is left")
	}
	journals, err := journal.Open(journal.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	_, err = journals.Recover(engine.NewExchange(0), nil)
	if a := journal.Member(journals); err != nil || a == nil || journals.ID != 7 ||
		a.Last().Index != 0 {
		t.Errorf("journal %d: %v", journals.ID, err)
	}
	if err := journals.Close(); err != nil {
		t.Error(err)
	}
}

// TestJoiningFolders: a folder of somebody else is not touched, and an answer writes nowhere else.
func TestJoiningFolders(t *testing.T) {
	p, data := newPorter(t), t.TempDir()
	j := p.joining(t, data)
	letters := filepath.Join(data, "letters")
	if err := os.WriteFile(letters, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a used folder: %v", err)
	}
	if err := os.Remove(letters); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../master.key", "/tmp/master.key", "a/b", "", "..", "."} {
		p.names.Store(&map[string][]byte{name: []byte("x")})
		if _, err := j.Run(context.Background()); err == nil ||
			!strings.Contains(err.Error(), "a file called") {
			t.Errorf("a file called %q: %v", name, err)
		}
	}
	p.names.Store(&map[string][]byte{"master.key": []byte("secret")})
	if _, err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	joined(t, data)
	if _, err := j.Run(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "is the folder of d in cluster 0000000000000007 already") {
		t.Errorf("a member's folder: %v", err)
	}
}

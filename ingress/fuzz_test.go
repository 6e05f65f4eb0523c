package ingress

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/ingress/auth"
	"clobd/ingress/head"
)

// wireEnd is one end of a connection. The other end has sent everything that it will send.
type wireEnd struct {
	net.Conn
	in  bytes.Reader
	out bytes.Buffer
}

func (s *wireEnd) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s *wireEnd) Write(b []byte) (int, error)      { return s.out.Write(b) }
func (s *wireEnd) Close() error                     { return nil }
func (s *wireEnd) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *wireEnd) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *wireEnd) SetDeadline(time.Time) error      { return nil }
func (s *wireEnd) SetReadDeadline(time.Time) error  { return nil }
func (s *wireEnd) SetWriteDeadline(time.Time) error { return nil }

// once is a listener of one connection.
type once struct {
	net.Listener
	conn net.Conn
}

func (l *once) Accept() (net.Conn, error) { return l.conn, nil }

// served is a request as a reader of HTTP sees it.
type served struct{ method, target, body string }

// reader is a door that is not ready, and what it made of the bytes of one connection. All that it
// serves is answered 425, or by the routes that are always there: only reading is tested.
type reader struct {
	server  *Server
	http    *fasthttp.Server
	served  []served
	refused bool // a request was refused
	late    bool // and another one was handled after it
}

func newReader(t testing.TB) *reader {
	t.Helper()
	s, err := New(Options{Keyring: auth.NewKeyring([32]byte{7}), Chains: []uint64{testChain},
		Verifier: auth.NewVerifier(auth.Domains(testChain)), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.pool.close() })
	l := &reader{server: s, http: s.newHTTP()}
	l.http.Handler = func(ctx *fasthttp.RequestCtx) {
		l.late = l.late || l.refused
		s.handle(ctx)
		switch ctx.Response.StatusCode() {
		case 400, 408, 413, 415, 429, 503:
			l.refused = true
		default:
			l.served = append(l.served, served{string(ctx.Method()),
				string(ctx.Request.Header.RequestURI()), string(ctx.Request.Body())})
		}
	}
	return l
}

// read lets the door read the bytes of a connection to their end.
func (l *reader) read(t testing.TB, text []byte) (answers []byte) {
	t.Helper()
	l.served, l.refused, l.late = l.served[:0], false, false
	s := &wireEnd{}
	s.in.Reset(text)
	c, err := orderListener{l.server.turnstile.Listen(&once{conn: s}), l.server}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = l.http.ServeConn(c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return s.out.Bytes()
}

// rawCase is the bytes of a connection that readers of HTTP may understand in different ways.
type rawCase struct {
	Name, Send string
	Refused    int // its status, 0 if it is served
}

// rawCases are those that the suite of the door sends, too.
func rawCases(t testing.TB) (cases []rawCase) {
	t.Helper()
	f, err := os.Open("../scripts/door/testdata/http.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c rawCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// FuzzConnection: a refused request is the last one of its connection, and net/http reads what the
// door serves as the same requests, one after the other. So a proxy in front of the node cannot be
// made to pass on a request that it has not seen.
func FuzzConnection(f *testing.F) {
	const next = "GET /ok HTTP/1.1\r\nHost: node\r\n\r\n"
	for _, c := range rawCases(f) {
		f.Add([]byte(c.Send))
		f.Add([]byte(c.Send + next))
	}
	l := newReader(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		answers := l.read(t, text)
		if l.late || l.refused && !bytes.Contains(answers, []byte("\r\nConnection: close\r\n")) {
			t.Fatalf("%q: goes on after a refusal: %q", text, answers)
		}
		in := bufio.NewReader(bytes.NewReader(text))
		for i, got := range l.served {
			want, err := readServed(in)
			if target := (*url.Error)(nil); errors.As(err, &target) {
				return // no reader takes it for another request
			} else if err != nil {
				t.Fatalf("%q: request %d is served: %q; net/http: %v", text, i, got, err)
			}
			if got != want {
				t.Fatalf("%q: request %d is %q, net/http reads %q", text, i, got, want)
			}
		}
	})
}

// readServed reads one request as net/http does.
func readServed(in *bufio.Reader) (served, error) {
	for { // RFC 9112, section 2.2, lets a server ignore empty lines in front
		b, _ := in.Peek(2)
		rest := bytes.TrimPrefix(bytes.TrimPrefix(b, []byte("\r")), []byte("\n"))
		if len(rest) == len(b) || b[len(b)-len(rest)-1] != '\n' {
			break
		}
		_, _ = in.Discard(len(b) - len(rest))
	}
	r, err := http.ReadRequest(in)
	if err != nil {
		return served{}, err
	}
	body, err := io.ReadAll(r.Body)
	return served{r.Method, r.RequestURI, string(body)}, err
}

// FuzzCredentials holds the headers that sign a request against a slow reader of their lines: the
// family that counts, each of its values, and that none came twice.
func FuzzCredentials(f *testing.F) {
	for _, s := range []string{
		"SVC_ADDRESS: a\r\nSVC_API_KEY: k\r\nSVC_PASSPHRASE: p\r\nSVC_TIMESTAMP: 1\r\n",
		"poly-address: a\r\nPoly_Api-Key: k\r\nPOLY_NONCE: \r\nPOLY_MAX_AGE_MS: 5\r\n",
		"KUEST_ADDRESS: k\r\nsvc-address: s\r\nPOLY_ADDRESS: p\r\n", "SVC_ADDRESS:\r\nSVC_ADDRESS: b\r\n",
		"POLY_NONCE: \r\nSVC_ADDRESS: a\r\npoly-nonce: 1\r\n", "POLY_ADDRESS: p\r\nSVC_X: 1\r\n",
		"POLY_BUILDER_API_KEY: k\r\nPOLY_BUILDER_SIGNATURE: s\r\nPOLY_READONLY_API_KEY: r\r\n",
		"SVC_ADDRESS: \t a b\t \r\n", "SVC_SIGNATURE: \xff\xc3\r\n", "SVC_: 1\r\n_ADDRESS: 2\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		const start = "DELETE /cancel-all HTTP/1.1\r\nHost: node\r\n"
		var h fasthttp.RequestHeader
		if h.Read(bufio.NewReader(strings.NewReader(start+lines+"\r\n"))) != nil || head.Judge(&h) != nil {
			return
		}
		got, want := head.ReadCredentials(&h), slowCredentials(string(h.RawHeaders()))
		if got.Dialect != want.Dialect || (got.Doubled == "") != (want.Doubled == "") {
			t.Fatalf("%q: %+v, want %+v", lines, got, want)
		}
		for n, name := range head.Names {
			if want.Doubled == "" && *got.At(n) != *want.At(n) {
				t.Fatalf("%q: %s is %q, want %q", lines, name, *got.At(n), *want.At(n))
			}
		}
	})
}

// slowCredentials reads the lines of a head that head.Judge took.
func slowCredentials(lines string) head.Credentials {
	values := map[string]string{} // by prefix and name
	doubled := ""
	for line := range strings.SplitSeq(lines, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		name = strings.ReplaceAll(strings.ToUpper(name), "-", "_")
		if _, twice := values[name]; twice {
			for _, family := range head.Families {
				if short, ok := strings.CutPrefix(name, string(family)); ok &&
					slices.Contains(head.Names[:], short) {
					doubled = name
				}
			}
		}
		values[name] = strings.Trim(value, " \t")
	}
	for _, family := range head.Families {
		c, any := head.Credentials{Dialect: family, Doubled: doubled}, false
		for n, name := range head.Names {
			value, ok := values[string(family)+name]
			*c.At(n) = value
			any = any || ok
		}
		if any {
			return c
		}
	}
	return head.Credentials{Dialect: head.Families[0], Doubled: doubled}
}

package ingress

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/ingress/conn"
	"clobd/ingress/limits"
)

// secureHouse is a house that speaks TLS on a socket, and what its clients trust.
func secureHouse(t *testing.T, request time.Duration, change func(*Options),
) (h *house, addr string, trust *tls.Config) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	made, err := x509.CreateCertificate(rand.Reader, text, text, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	h = newHouse(t, func(o *Options) {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: secret, Leaf: leaf}}}
		if change != nil {
			change(o)
		}
	})
	h.server.turnstile.Timeouts.Request = request
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }() // ends with the house
	trust = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost",
		NextProtos: []string{"h2", "http/1.1"}}
	trust.RootCAs.AddCert(leaf)
	return h, ln.Addr().String(), trust
}

// TestTLS: orders and reads over TLS are answered as in the clear, with what a browser needs to
// stay there. Old versions are refused, and text in the clear is told why.
func TestTLS(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	h, addr, trust := secureHouse(t, time.Hour, func(o *Options) {
		o.Public = func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString(large) }
	})
	h.run([]string{"fund alice 100"})
	c, err := tls.Dial("tcp", addr, trust)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol %q", got)
	}
	r := bufio.NewReader(c)
	order := h.orderWire("alice buy A 10 @ 0.40")
	for i, request := range []string{order, order, "GET /book HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /auth/api-keys HTTP/1.1\r\nHost: x\r\n\r\n"} {
		go func() { _, _ = io.WriteString(c, request) }()
		a, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(a.Body)
		if want := []int{200, 200, 200, 401}[i]; err != nil || a.StatusCode != want {
			t.Errorf("request %d: %d %.200s %v", i, a.StatusCode, body, err)
		}
		if i == 2 && string(body) != large {
			t.Errorf("%d bytes of %d", len(body), len(large))
		}
		if a.Header.Get("Strict-Transport-Security") == "" ||
			a.Header.Get("X-Content-Type-Options") != "nosniff" ||
			(a.Header.Get("Cache-Control") == "no-store") != (i == 3) {
			t.Errorf("request %d: %v", i, a.Header)
		}
	}
	old := trust.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if c, err := tls.Dial("tcp", addr, old); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 was spoken")
	}
	clear, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer clear.Close()
	fmt.Fprint(clear, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := readAnswer(t, clear, false); a.StatusCode != 400 {
		t.Errorf("in the clear: %d", a.StatusCode)
	}
}

// TestUnfinishedHandshakes: who never finishes a handshake, or sends nothing after it, loses the
// place as somebody does who never finishes a request.
func TestUnfinishedHandshakes(t *testing.T) {
	h, addr, trust := secureHouse(t, 50*time.Millisecond, nil)
	silent, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	half, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	_, _ = half.Write([]byte{22, 3, 1, 2, 0, 1, 0}) // the begin of a ClientHello
	waiting := map[string]net.Conn{"silent": silent, "half": half}
	if done, err := tls.Dial("tcp", addr, trust); err == nil { // else it was too slow for the node
		defer done.Close()
		waiting["done"] = done
	}
	for name, c := range waiting {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); err != nil && conn.TimedOut(err) {
			t.Errorf("%s: still open", name)
		}
	}
	awaitOpen(t, h, 0)
}

// withholder keeps what is written once it is told to, instead of sending it.
type withholder struct {
	net.Conn
	keeps bool
	kept  []byte
}

func (r *withholder) Write(b []byte) (int, error) {
	if r.keeps {
		r.kept = append(r.kept, b...)
		return len(b), nil
	}
	return r.Conn.Write(b)
}

// TestTrickledRecord: a TLS record that comes byte by byte has the time of a request, though the
// node sees no byte of the request before the whole record is there.
func TestTrickledRecord(t *testing.T) {
	h, addr, trust := secureHouse(t, time.Second, nil)
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	r := &withholder{Conn: raw}
	c := tls.Client(r, trust)
	fmt.Fprint(c, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := readAnswer(t, c, false); a.StatusCode != 200 {
		t.Fatal(a.StatusCode)
	}
	r.keeps = true
	fmt.Fprintf(c, "GET /ok HTTP/1.1\r\nHost: x\r\nX-Pad: %s\r\n\r\n", strings.Repeat("x", 500))
	over := make(chan struct{})
	go func() { // at this pace the record takes 25 s
		defer close(over)
		for _, b := range r.kept {
			if _, err := raw.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.Copy(io.Discard, c); n > 0 || conn.TimedOut(err) {
		t.Errorf("the node answered %d bytes, or still waits: %v", n, err)
	}
	awaitOpen(t, h, 0)
	_ = raw.Close()
	<-over
}

// TestCrowdGivesWayOverTLS: a connection that has only shaken hands gives way to a new one.
func TestCrowdGivesWayOverTLS(t *testing.T) {
	h, addr, trust := secureHouse(t, time.Hour, func(o *Options) { o.Concurrency = 2 })
	var all []*tls.Conn
	for range 5 {
		c, err := tls.Dial("tcp", addr, trust)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
		for h.server.turnstile.Busy() > 0 { // until the node knows that its hand is shaken
			time.Sleep(time.Millisecond)
		}
	}
	last := all[len(all)-1]
	fmt.Fprint(last, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := readAnswer(t, last, false); a.StatusCode != 200 {
		t.Errorf("the last one: %d", a.StatusCode)
	}
}

// TestNeighbours: a neighbour on a socket in the file system speaks in the clear beside TLS, and
// counts as the loopback address.
func TestNeighbours(t *testing.T) {
	from := make(chan string, 1)
	var h *house
	h, _, _ = secureHouse(t, time.Hour, func(o *Options) {
		o.Public = func(ctx *fasthttp.RequestCtx) { from <- h.server.ClientAddress(ctx).String() }
	})
	path := filepath.Join(t.TempDir(), "door")
	ln, err := conn.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(ln) }()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /book HTTP/1.1\r\nHost: x\r\n\r\n")
	a := readAnswer(t, c, false)
	if a.StatusCode != 200 || a.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if got := <-from; got != "127.0.0.1" {
		t.Errorf("counts as %s", got)
	}
}

// TestHandshakesAreCounted: an address that shakes hands all the time is hung up on, and may again
// when its window has passed.
func TestHandshakesAreCounted(t *testing.T) {
	h, addr, trust := secureHouse(t, time.Hour, func(o *Options) { o.Windows = limits.New(o.Now) })
	shake := func() error {
		c, err := tls.Dial("tcp", addr, trust)
		if err == nil {
			err = c.Close()
		}
		return err
	}
	shaken := 0
	for ; shaken < 1000 && shake() == nil; shaken++ {
	}
	if shaken != 300 {
		t.Errorf("%d handshakes", shaken)
	}
	h.late.Store(11)
	if err := shake(); err != nil {
		t.Errorf("after the window: %v", err)
	}
}

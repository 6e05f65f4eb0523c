package conn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writePair writes a certificate of its own issuer and its key.
func writePair(t *testing.T, folder string, number int64, ends time.Time) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: ends,
		DNSNames: []string{"localhost"}}
	made, err := x509.CreateCertificate(rand.Reader, text, text, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: made}, key: {Type: "PRIVATE KEY", Bytes: hidden}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestCertificateReloads: a new pair is taken, and one that cannot be used leaves the old one.
func TestCertificateReloads(t *testing.T) {
	now := time.Now()
	folder := t.TempDir()
	cert, key := writePair(t, folder, 1, now.Add(time.Hour))
	c, err := ReadCertificate(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	number := func() int64 {
		pair, err := c.Config().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	writePair(t, folder, 2, now.Add(time.Hour))
	if err := c.Reload(now); err != nil || number() != 2 {
		t.Errorf("a new pair: %v, number %d", err, number())
	}
	writePair(t, folder, 3, now.Add(-time.Hour))
	if err := c.Reload(now); err == nil || number() != 2 {
		t.Errorf("a pair that has ended: %v, number %d", err, number())
	}
	old, _ := os.ReadFile(cert)
	writePair(t, folder, 4, now.Add(time.Hour))
	if err := os.WriteFile(cert, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(now); err == nil || number() != 2 {
		t.Errorf("the key of another certificate: %v, number %d", err, number())
	}
}

// TestUnixSocket: a socket left behind is replaced, one that somebody serves is not, and no other
// file ever; only the node's user and group may connect, and the log says who did.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "door")
	first, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	state, err := os.Stat(path)
	if err != nil || state.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", state.Mode(), err)
	}
	if _, err := ListenUnix(path); err == nil {
		t.Error("a socket that is served was taken away")
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = first.Close()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	turnstile := unlimited()
	turnstile.options.Log = slog.New(slog.NewTextHandler(&log,
		&slog.HandlerOptions{Level: slog.LevelDebug}))
	ln, err := ListenUnix(path)
	if err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	defer ln.Close()
	client, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := turnstile.Listen(ln).Next()
	if err != nil || c.Direct {
		t.Fatalf("a neighbour counts by address, or not at all: %v", err)
	}
	defer c.Close()
	if strings.Count(log.String(), "pid=") != 1 {
		t.Errorf("the log names no neighbour, or more than one: %s", log.String())
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(file); err == nil {
		t.Error("a file was taken for a socket")
	}
	if text, err := os.ReadFile(file); string(text) != "mine" {
		t.Errorf("the file is gone: %v", err)
	}
}

// TestCap: where all places are taken the oldest connection gives way, unless it is kept; if all
// are kept, a new one is hung up on. A place is given back once.
func TestCap(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := Cap(raw, 2)
	defer ln.Close()
	in := make(chan net.Conn)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			in <- c
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	gone := func(c net.Conn) {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil || TimedOut(err) {
			t.Errorf("it was served on: %v", err)
		}
	}
	dial()
	kept := <-in
	Keep(WithPlace(t.Context(), kept))
	stranger := dial()
	<-in
	dial()
	second := <-in
	gone(stranger) // not the kept one, which is older
	Keep(WithPlace(t.Context(), tls.Server(second, &tls.Config{})))
	gone(dial())
	_ = second.Close()
	_ = second.Close()
	dial()
	<-in
	other := dial()
	<-in
	_ = other.Close()
	if _, err := kept.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

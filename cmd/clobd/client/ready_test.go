package client

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clobd/cmd/cli"
)

// TestReady: the command fails with the node's own reason, waits if it is told to, and ends when
// the node is ready.
func TestReady(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/readyz":
			t.Errorf("asked for %s", r.URL.Path)
		case asked.Add(1) < 4:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"ready":false,"why":"disk stalled for 2.5 s"}`))
		default:
			_, _ = w.Write([]byte(`{"ready":true,"version":"1","sequence":9}`))
		}
	}))
	defer server.Close()
	once := Ready{Admin: server.URL}
	if err := once.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "disk stalled") {
		t.Errorf("%v", err)
	}
	patient := Ready{Admin: strings.TrimPrefix(server.URL, "http://"), Wait: time.Minute}
	if err := patient.Run(t.Context()); err != nil || asked.Load() != 4 {
		t.Errorf("%v after %d questions", err, asked.Load())
	}
	server.Close()
	var hint *cli.HintError
	if err := once.Run(t.Context()); !errors.As(err, &hint) {
		t.Errorf("nobody answers: %v", err)
	}
	var usage *cli.UsageError
	if err := (&Ready{Admin: "nowhere"}).Run(t.Context()); !errors.As(err, &usage) {
		t.Errorf("no address: %v", err)
	}
}

// TestReadyByTLS: with the node's certificate the command asks an admin listener beyond loopback by
// TLS, at whatever name, and trusts no other certificate. Without, it says what is missing.
func TestReadyByTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Host, "127.0.0.1:") {
			t.Errorf("asked as %s", r.Host)
		}
		_, _ = w.Write([]byte(`{"ready":true,"version":"1","sequence":9}`))
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	folder := t.TempDir()
	write := func(name string, der []byte) string {
		file := filepath.Join(folder, name)
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	own := write("own", server.Certificate().Raw)
	for _, admin := range []string{"0.0.0.0:" + port, ":" + port, "https://127.0.0.1:" + port} {
		if err := (&Ready{Admin: admin, TLSCert: own}).Run(t.Context()); err != nil {
			t.Errorf("%s: %v", admin, err)
		}
	}
	other := Ready{Admin: "0.0.0.0:" + port, TLSCert: write("other", []byte("other"))}
	if err := other.Run(t.Context()); err != nil {
		t.Errorf("a file that was renewed and not read: %v", err)
	}
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{server.Certificate()}}
	for file, right := range map[string]bool{own: true, other.TLSCert: false} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{1}}), text...)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if trust, err := trusting(file); err != nil || (trust.VerifyConnection(state) == nil) != right {
			t.Errorf("on another machine, %s: %v", file, err)
		}
	}
	for says, c := range map[string]Ready{
		"no such file":            {Admin: "https://192.0.2.1:1", TLSCert: filepath.Join(folder, "none")},
		"answer of status 400":    {Admin: "0.0.0.0:" + port},
		"server gave HTTP respon": {Admin: plain(t), TLSCert: own},
	} {
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// plain is the address of a server without TLS.
func plain(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return strings.Replace(strings.TrimPrefix(server.URL, "http://"), "127.0.0.1", "0.0.0.0", 1)
}

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/client"
)

// writePair writes a certificate of its own issuer with its key, and returns what trusts it.
func writePair(t *testing.T, folder string, number int64) (cert, key string, trust *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	text := &x509.Certificate{SerialNumber: big.NewInt(number), DNSNames: []string{"localhost", name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
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
	trust = x509.NewCertPool()
	trust.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
	return cert, key, trust
}

// awaitLog waits until the node has said something.
func (p *process) awaitLog(t *testing.T, words string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.log.String(), words); {
		if time.Now().After(end) {
			t.Fatalf("the log never says %q:\n%s", words, p.log.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestListeners: the public door speaks TLS to strangers and plain HTTP to neighbours; a SIGHUP
// brings a new certificate, and one that cannot be read leaves the old one.
func TestListeners(t *testing.T) {
	folder := t.TempDir()
	cert, key, trust := writePair(t, folder, 1)
	p := newProcess(t, buildNode(t), folder, "--tls-cert", cert, "--tls-key", key, "--log-level",
		"debug")
	socket := filepath.Join(folder, "door")
	p.flags = append(p.flags, "--listen", p.listen+",unix:"+socket)
	p.start(t)
	neighbour := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string,
		string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	if a, err := neighbour.Get("http://localhost/ok"); err != nil || a.StatusCode != 200 {
		t.Errorf("neighbour: %v", err)
	}
	p.awaitLog(t, `"msg":"a neighbour connects","uid":`)
	number := func(trust *x509.CertPool) int64 {
		c, err := tls.Dial("tcp", p.listen, &tls.Config{RootCAs: trust, ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := number(trust); got != 1 {
		t.Errorf("certificate %d", got)
	}
	p.warns(t, "clobd_tls_certificate_end_seconds", "the certificate ends in 1 hours")
	_, metrics := get(t, p.admin, "/metrics")
	_, value, _ := strings.Cut(metrics, "\nclobd_tls_certificate_end_seconds ")
	value, _, _ = strings.Cut(value, "\n")
	if end, err := strconv.ParseFloat(value, 64); err != nil ||
		math.Abs(end-float64(time.Now().Add(time.Hour).Unix())) > 600 {
		t.Errorf("the certificate ends at %q, %v", value, err)
	}
	hangUp := func() {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	_, _, trust = writePair(t, folder, 2)
	hangUp()
	p.awaitLog(t, "certificate read again")
	if got := number(trust); got != 2 {
		t.Errorf("certificate %d after the second pair", got)
	}
	if err := os.WriteFile(key, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	p.awaitLog(t, "the old one stays")
	if got := number(trust); got != 2 {
		t.Errorf("certificate %d after a broken one", got)
	}
	p.stop(t)
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// TestAdminHost: the admin listener answers only to names of its own, so that no page can make its
// name mean the node. Its answers stay in no cache.
func TestAdminHost(t *testing.T) {
	p := newProcess(t, buildNode(t), t.TempDir(), "--admin-host", "desk.example")
	p.start(t)
	for host, want := range map[string]int{"": 200, "localhost": 200, "LOCALHOST:9": 200,
		"[::1]:1": 200, "127.0.0.1": 200, "desk.example": 200, "Desk.Example.:80": 200, "evil.example": 421,
		"10.0.0.1": 421, "localhost.evil.example": 421, "desk.example.evil": 421, "[::2]": 421} {
		r, err := http.NewRequest("GET", "http://"+p.admin+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want || a.Header.Get("X-Content-Type-Options") != "nosniff" ||
			a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("Host %q: %d %v", host, a.StatusCode, a.Header)
		}
	}
	p.stop(t)
}

// TestPublicAdmin: an admin listener that other machines reach is refused, unless it is asked for
// and speaks TLS.
func TestPublicAdmin(t *testing.T) {
	folder := t.TempDir()
	binary := buildNode(t)
	cert, key, trust := writePair(t, folder, 1)
	for says, args := range map[string][]string{
		"error: --admin 0.0.0.0:0 is open": {"--admin", "0.0.0.0:0", "--tls-cert", cert,
			"--tls-key", key},
		"error: --admin :0 would send":    {"--admin", ":0", "--admin-public"},
		"error: --tls-cert and --tls-key": {"--tls-cert", cert},
		"the bots of --demo":              {"--demo", "--tls-cert", cert, "--tls-key", key},
	} {
		code, text := refusedStart(t, binary, append(args, "--data", filepath.Join(folder, "none"))...)
		if code != cli.Usage || !strings.Contains(text, says) || !strings.Contains(text, "hint: ") {
			t.Errorf("%v: code %d\n%s", args, code, text)
		}
	}
	host, err := os.Hostname() // a name that may be anybody's, and is loopback's on most machines
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", host+":0")
	if err != nil || !ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Skipf("SKIPPED: this machine's name %q is not on loopback: %v", host, err)
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	ln.Close()
	p := newProcess(t, binary, folder, "--admin-public", "--tls-cert", cert, "--tls-key", key,
		"--admin", host+":"+port)
	p.launch(t)
	p.awaitLog(t, `"msg":"ready"`)
	browser := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}}
	a, err := browser.Get("https://" + host + ":" + port + "/readyz")
	if err != nil || a.StatusCode != 200 || a.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("over TLS: %v", err)
	}
	if a, err := http.Get("http://" + host + ":" + port + "/readyz"); err == nil && a.StatusCode == 200 {
		t.Error("in the clear")
	}
	check := client.Ready{Admin: host + ":" + port, TLSCert: cert}
	if err := check.Run(t.Context()); err != nil {
		t.Errorf("health check: %v", err)
	}
	check.TLSCert = ""
	if err := check.Run(t.Context()); err == nil {
		t.Error("a health check in the clear")
	}
	t.Setenv("SSL_CERT_FILE", cert) // read at the first use of the process
	o := client.Operator{Admin: "https://" + host + ":" + port, Data: p.data}
	if _, err := o.Post("/admin/mode", map[string]string{"mode": "normal"}, time.Minute); err != nil {
		t.Errorf("operator: %v", err)
	}
	p.stop(t)
}

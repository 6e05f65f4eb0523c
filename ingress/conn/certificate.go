package conn

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"
)

// Certificate is the node's certificate with its key, from two PEM files. Any goroutine may use it.
type Certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// ReadCertificate reads the pair from its files.
func ReadCertificate(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	return c, c.Reload(time.Time{})
}

// Reload reads the pair again. After an error, also if the new certificate ended before now, the
// old pair stays in use.
func (c *Certificate) Reload(now time.Time) error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	if now.After(pair.Leaf.NotAfter) {
		return fmt.Errorf("certificate %s ended at %s", c.certFile, pair.Leaf.NotAfter)
	}
	c.current.Store(&pair)
	return nil
}

// Ends returns when the certificate in use ends.
func (c *Certificate) Ends() time.Time { return c.current.Load().Leaf.NotAfter }

// Config is how a server speaks TLS with the pair: 1.2 at least, and HTTP/1.1 only.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}

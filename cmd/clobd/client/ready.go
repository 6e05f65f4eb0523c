package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"clobd/cmd/cli"
)

// Ready is clobd ready: whether a node takes orders.
type Ready struct {
	Admin   string        `default:"127.0.0.1:8081" help:"The node's admin listener."`
	Wait    time.Duration `help:"Ask again until it is, but no longer than this."`
	TLSCert string        `name:"tls-cert" help:"The node's certificate, as the node has it: beyond loopback its admin listener speaks TLS, and this certificate is trusted."`
}

const readyEvery, readyAnswer = 50 * time.Millisecond, 5 * time.Second // containers wait for 6 s

// Run prints what the node says of itself if it is ready, and fails with the reason if it is not.
func (c *Ready) Run(ctx context.Context) error {
	base, by, err := c.way()
	if err != nil {
		return err
	}
	for end := time.Now().Add(c.Wait); ; {
		if err = c.ask(ctx, by, base+"/readyz"); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyEvery):
		}
	}
}

// way is where to ask, and with which client. A node with a certificate speaks TLS on an admin
// listener that other machines reach, and in the clear on one that only this machine does.
func (c *Ready) way() (base string, client *http.Client, err error) {
	admin := c.Admin
	if c.TLSCert != "" && !strings.Contains(admin, "://") && !LoopbackOnly(admin) {
		admin = "https://" + admin
	}
	base, err = adminURL(admin)
	if err != nil || c.TLSCert == "" || !strings.HasPrefix(base, "https:") {
		return base, http.DefaultClient, err
	}
	trust := &tls.Config{InsecureSkipVerify: true}
	if !LoopbackOnly(strings.TrimPrefix(base, "https://")) {
		trust, err = trusting(c.TLSCert)
	} // a node on this machine need not have read a renewed file yet, and no secret is sent
	return base, &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}, err
}

// trusting trusts the first certificate in a file and no other, by any name and at any time: the
// node itself warns of one that has ended.
func trusting(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	block, rest := pem.Decode(text)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		err = cmp.Or(err, errors.New("it holds none"))
		return nil, fmt.Errorf("read the certificate in %s: %w", file, err)
	}
	same := func(s tls.ConnectionState) error {
		if bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
			return nil
		}
		return fmt.Errorf("the node has another certificate than %s", file)
	}
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: same}, nil
}

func (c *Ready) ask(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyAnswer)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return cli.Hint(fmt.Errorf("reach the node: %w", err),
			"is it running, and is --admin %s its admin listener?", c.Admin)
	}
	defer answer.Body.Close()
	var told struct {
		Ready    bool   `json:"ready"`
		Why      string `json:"why"`
		Version  string `json:"version"`
		Sequence uint64 `json:"sequence"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		return cli.Hint(fmt.Errorf("read the answer of status %d: %w", answer.StatusCode, err),
			"is --admin %s its admin listener? One with TLS wants --tls-cert, as the node", c.Admin)
	}
	if !told.Ready || answer.StatusCode != http.StatusOK {
		return errors.New("not ready: " + told.Why)
	}
	fmt.Printf("ready: clobd %s at Sequence %d\n", told.Version, told.Sequence)
	return nil
}

package lean

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"

	"clobd/ingress/auth"
)

// stencil is a Route made ready for sending: all bytes of its requests but the timestamp, the HMAC,
// the length and the body.
type stencil struct {
	head   []byte    // of an authenticated request up to the value of the timestamp
	mac    hash.Hash // under the sender's secret; nil: not authenticated
	signed []byte    // what the HMAC covers between the timestamp and the body
}

// newStencil makes the stencil of a route for requests to a host.
func newStencil(r *Route, host string) (*stencil, error) {
	s := &stencil{head: fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Path, host)}
	if r.Address == "" {
		return s, nil
	}
	key, err := secretOf(&r.Trio)
	if err != nil {
		return nil, err
	}
	path, _, _ := strings.Cut(r.Path, "?")
	s.mac, s.signed = hmac.New(sha256.New, key), []byte(r.Method+path)
	s.mac.Reset() // which keeps the state of the key, so that no later Reset computes it
	s.head = fmt.Appendf(s.head, "POLY_ADDRESS: %s\r\nPOLY_API_KEY: %s\r\nPOLY_PASSPHRASE: %s\r\n"+
		"POLY_TIMESTAMP: ", r.Address, r.Trio.Key, r.Trio.Passphrase)
	return s, nil
}

// secretOf decodes the secret of an API key: base64 in either alphabet, padded or not.
func secretOf(t *auth.Trio) ([]byte, error) {
	text := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(t.Secret)
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil, errors.New("the secret of an API key is not base64")
	}
	return key, nil
}

// signatureLen is the length of a signature: an HMAC in base64.
const signatureLen = (sha256.Size + 2) / 3 * 4

// sign appends the signature of a request to dst.
func (s *stencil) sign(dst, timestamp, body []byte) []byte {
	var digest [sha256.Size]byte
	s.mac.Reset()
	s.mac.Write(timestamp)
	s.mac.Write(s.signed)
	s.mac.Write(body)
	// The end of dst is on the heap already: a digest of its own would be moved there each time.
	at := len(dst)
	dst = s.mac.Sum(dst)
	copy(digest[:], dst[at:])
	return base64.URLEncoding.AppendEncode(dst[:at], digest[:])
}

// append appends a whole request to dst. timestamp is in seconds after 1970, as text. Without a
// signature it makes one.
func (s *stencil) append(dst, timestamp, signature, body []byte) []byte {
	dst = append(dst, s.head...)
	if s.mac != nil {
		dst = append(append(dst, timestamp...), "\r\nPOLY_SIGNATURE: "...)
		if signature != nil {
			dst = append(dst, signature...)
		} else {
			dst = s.sign(dst, timestamp, body)
		}
		dst = append(dst, "\r\n"...)
	}
	if len(body) > 0 {
		dst = append(dst, "Content-Type: application/json\r\nContent-Length: "...)
		dst = append(strconv.AppendInt(dst, int64(len(body)), 10), "\r\n"...)
	}
	return append(append(dst, "\r\n"...), body...)
}

// Render returns the bytes of request i as they are sent at an instant, for another tool to send.
func (l *Load) Render(i int, at time.Time) ([]byte, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	r := &l.Requests[i]
	s, err := newStencil(&l.Routes[r.Route], l.Addr)
	if err != nil {
		return nil, err
	}
	return s.append(nil, strconv.AppendInt(nil, at.Unix(), 10), nil, r.Body), nil
}

// early are signatures that were made before the clock runs.
type early struct {
	stamp []byte // the time in seconds after 1970, as text, that all of them cover
	at    time.Time
	text  []byte // signatureLen for each request; of one that is not authenticated anything
}

// earlyLasts is how long a signature is used: a node takes timestamps that are up to 60 s old.
const earlyLasts = 45 * time.Second

// signEarly signs all requests of a load that will be over before its signatures are too old. A
// longer load signs as it sends.
func (p *pump) signEarly() {
	if p.Flight > 0 || p.Repeat || p.Duration == 0 || p.Duration > earlyLasts-connectTime {
		return
	}
	at := time.Now()
	p.early = early{stamp: strconv.AppendInt(nil, at.Unix(), 10), at: at,
		text: make([]byte, len(p.Requests)*signatureLen)}
	for i := range p.Requests {
		r := &p.Requests[i]
		if s := p.stencils[r.Route]; s.mac != nil {
			s.sign(p.early.text[i*signatureLen:i*signatureLen], p.early.stamp, r.Body)
		}
	}
}

// signature is the timestamp of request i, and its signature if there is one for that.
func (p *pump) signature(i int) (stamp, signature []byte) {
	if e := &p.early; e.text != nil && p.now < int64(e.at.Add(earlyLasts).Sub(p.began)) {
		return e.stamp, e.text[i*signatureLen:][:signatureLen]
	}
	return p.stamp(), nil
}

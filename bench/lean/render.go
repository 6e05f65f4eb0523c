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

// append appends a whole request to dst. timestamp is in seconds after 1970, as text.
func (s *stencil) append(dst, timestamp, body []byte) []byte {
	dst = append(dst, s.head...)
	if s.mac != nil {
		dst = append(append(dst, timestamp...), "\r\nPOLY_SIGNATURE: "...)
		var digest [sha256.Size]byte
		s.mac.Reset()
		s.mac.Write(timestamp)
		s.mac.Write(s.signed)
		s.mac.Write(body)
		// The end of dst is on the heap already: a digest of its own would be moved there each time.
		at := len(dst)
		dst = s.mac.Sum(dst)
		copy(digest[:], dst[at:])
		dst = append(base64.URLEncoding.AppendEncode(dst[:at], digest[:]), "\r\n"...)
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
	return s.append(nil, strconv.AppendInt(nil, at.Unix(), 10), r.Body), nil
}

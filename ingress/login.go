package ingress

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/ingress/head"
)

// userPath is the path that a login to the user channel signs.
const userPath = "/ws/user"

// The texts for who may not log in. They tell a stranger no more than those over HTTP.
var (
	errLogin  = errors.New(refuseKey.Text)
	errWindow = errors.New(refuseKey.Text +
		": the timestamp is out of the window, set the clock by /time")
)

// waitError is how long the node checks no more credentials, because too many were wrong.
type waitError time.Duration

// Error returns the text that the client gets. It does not say how long to wait.
func (waitError) Error() string { return failedKeys }

// user is GET /ws/user. The client logs in with the first text that it sends.
func (s *sockets) user(ctx *fasthttp.RequestCtx) {
	from := s.ClientAddress(ctx)
	s.open(ctx, func(socket *live.Socket) {
		s.options.User(socket, func(c *wire.Credentials) (wire.Owner, error) {
			return s.logIn(from, c, userPath)
		})
	})
}

// logIn checks the credentials that a client sends on an open socket at path. Failures count like
// those of HTTP requests.
func (s *sockets) logIn(from netip.Addr, c *wire.Credentials, path string) (wire.Owner, error) {
	if s.windows == nil {
		return s.identify(c, path)
	}
	claim, wait := s.windows.Claim(from, c.Key, false)
	if wait > 0 {
		return wire.Owner{}, waitError(wait)
	}
	who, err := s.identify(c, path)
	switch {
	case err == nil:
		s.windows.Proved(&claim)
	case errors.Is(err, errLogin):
		s.windows.Failed(&claim)
	}
	return who, err
}

// identify finds out whose key it is. A secret that a client sends must make the HMAC that the
// client could have sent instead.
func (s *sockets) identify(c *wire.Credentials, path string) (wire.Owner, error) {
	dialect := wire.POLY
	for _, family := range head.Families {
		if strings.EqualFold(strings.TrimSuffix(c.Dialect, "_")+"_", string(family)) {
			dialect = family
		}
	}
	if c.Passphrase == "" && c.Secret == "" && c.Signature == "" {
		address, number, ok := s.keys.readOnly(c.Address, c.Key)
		if !ok {
			return wire.Owner{}, errLogin
		}
		return wire.Owner{Address: address, Class: engine.ReadOnlyKey, Number: number,
			Dialect: dialect}, nil
	}
	now := s.options.Now()
	r := auth.Request{Key: c.Key, Passphrase: c.Passphrase, Timestamp: c.Timestamp,
		Signature: c.Signature, Method: fasthttp.MethodGet, Path: path, RawPath: "/clob" + path}
	if r.Signature == "" {
		trio := auth.Trio{Key: c.Key, Secret: c.Secret, Passphrase: c.Passphrase}
		r.Timestamp = strconv.FormatInt(now.Unix(), 10)
		if trio.Sign(&r) != nil {
			return wire.Owner{}, errLogin
		}
	}
	if r.Address = c.Address; r.Address == "" {
		r.Address = auth.Claimed(c.Passphrase)
	}
	id, err := s.options.Keyring.Authenticate(&r, now)
	switch {
	case errors.Is(err, auth.ErrWindow):
		return wire.Owner{}, errWindow
	case err != nil || s.options.Board.Directory.Revoked(id.Address, id.Nonce):
		return wire.Owner{}, errLogin
	}
	return wire.Owner{Address: id.Address, Class: engine.TradingKey, Number: id.Nonce,
		Dialect: dialect}, nil
}

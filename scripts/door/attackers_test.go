package door

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
)

const (
	answerTime = 20 * time.Second
	// forbearance is the time after which the node hangs up on a peer that takes no bytes.
	forbearance = 10 * time.Second
)

// attacker attacks from one address over one connection until ctx ends. A connection that the node
// ends is replaced after a second: only connect-storm measures what connecting costs.
type attacker func(ctx context.Context, p part, address string, i int)

// attacks are what a stranger without a key does, by name, and the connections of one address.
func attacks() map[string]struct {
	conns int
	act   attacker
} {
	return map[string]struct {
		conns int
		act   attacker
	}{
		"slow-readers":  {1000, neverRead},
		"slow-senders":  {1000, announce("Content-Length: 262144\r\n\r\nx")},
		"slow-chunks":   {1000, announce("Transfer-Encoding: chunked\r\n\r\n40000\r\nx")},
		"idle":          {1024, idle},
		"heads":         {6, askHeads},
		"wrong-keys":    {16, wrongKeys},
		"wrong-orders":  {500, wrongOrders},
		"connect-storm": {16, storm},
		"handshakes":    {250, halfHandshake},
		"mute-sockets":  {250, muteSocket},
	}
}

// attack plays all attackers until input ends.
func attack(p part, input io.Reader) error {
	kind, found := attacks()[p.Attack]
	if !found {
		return fmt.Errorf("no attack %q", p.Attack)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) // fewer connections attack then
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var group sync.WaitGroup
	for f := range p.From {
		address := fmt.Sprintf("127.0.9.%d", 1+f)
		for i := range kind.conns {
			group.Go(func() {
				for ctx.Err() == nil {
					kind.act(ctx, p, address, i)
					rest(ctx, time.Second)
				}
			})
		}
	}
	if err := say("begun"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, input)
	cancel()
	group.Wait()
	return nil
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// open connects with a small receive buffer and sends the first bytes. It returns nil if the node
// takes no connection. The connection ends with ctx.
func open(ctx context.Context, p part, address, send string) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second,
		Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
			})
		}}
	c, err := d.DialContext(ctx, "tcp4", p.Address)
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	_, _ = io.WriteString(c, send) // the node may have hung up
	return c
}

// neverRead asks for the largest answer and takes none of its bytes.
func neverRead(ctx context.Context, p part, address string, _ int) {
	c := open(ctx, p, address,
		"GET /clob/markets?next_cursor=MA== HTTP/1.1\r\nHost: node\r\n\r\n")
	if c == nil {
		return
	}
	defer c.Close()
	rest(ctx, forbearance+time.Second)
}

// announce sends the head of a long body and then a byte now and then.
func announce(rest string) attacker {
	return func(ctx context.Context, p part, address string, _ int) {
		c := open(ctx, p, address, "POST /orders HTTP/1.1\r\nHost: node\r\n"+rest)
		if c == nil {
			return
		}
		defer c.Close()
		go func() {
			for ctx.Err() == nil {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		_, _ = io.Copy(io.Discard, c)
	}
}

// idle asks once and keeps its connection.
func idle(ctx context.Context, p part, address string, _ int) {
	if c := open(ctx, p, address, "GET /time HTTP/1.1\r\nHost: node\r\n\r\n"); c != nil {
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
}

// handshake asks for a socket.
func handshake(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
}

// halfHandshake sends nothing of a handshake, a part of it, all but its end, or a byte a second.
func halfHandshake(ctx context.Context, p part, address string, i int) {
	whole := handshake("/ws/market")
	send, slowly := whole[:[]int{0, 60, len(whole) - 1, 1}[i%4]], i%4 == 3
	linger(ctx, open(ctx, p, address, send), whole[1:], slowly)
}

// muteSocket opens a socket, of markets or of a user, and asks for nothing over it: it is silent,
// or sends a long message a byte a second.
func muteSocket(ctx context.Context, p part, address string, i int) {
	send := handshake([]string{"/ws/market", "/ws/user"}[i%2])
	const long = "\x81\xff\x00\x00\x00\x00\x00\x0f\x00\x00maskmessage"
	linger(ctx, open(ctx, p, address, send), long, i%4 > 1)
}

// linger waits until the node hangs up, and sends bytes slowly meanwhile, or none.
func linger(ctx context.Context, c net.Conn, bytes string, slowly bool) {
	if c == nil {
		return
	}
	defer c.Close()
	if slowly {
		go func() {
			for i := 0; i < len(bytes) && ctx.Err() == nil; i++ {
				if _, err := io.WriteString(c, bytes[i:i+1]); err != nil {
					return
				}
				rest(ctx, time.Second)
			}
		}()
	}
	_, _ = io.Copy(io.Discard, c)
}

// storm connects, asks for nothing and hangs up.
func storm(ctx context.Context, p part, address string, _ int) {
	for ctx.Err() == nil {
		if c := open(ctx, p, address, "GET"); c != nil {
			_ = c.Close()
		}
	}
}

// askHeads asks for the head of the largest page, many times at once.
func askHeads(ctx context.Context, p part, address string, _ int) {
	const head = "HEAD /clob/markets?next_cursor=MA== HTTP/1.1\r\nHost: node\r\n\r\n"
	c := open(ctx, p, address, head)
	if c == nil {
		return
	}
	defer c.Close()
	go func() {
		for many := strings.Repeat(head, 16); ; {
			if _, err := io.WriteString(c, many); err != nil {
				return
			}
		}
	}()
	_, _ = io.Copy(io.Discard, c)
}

// known returns a trader with an API key.
func known(p part, address string, i int) *trader.Client {
	at := net.ParseIP(address).To4()
	c, err := trader.NewClient("http://"+p.Address, p.Chain, [32]byte{29: 9, 30: at[3], 31: byte(i%4 + 1)})
	if err != nil {
		return nil
	}
	c.Host.Dial = from(address)
	c.Host.ReadTimeout = answerTime
	if err := c.Derive(); err != nil {
		return nil
	}
	return c
}

// wrongKeys signs requests with another secret.
func wrongKeys(ctx context.Context, p part, address string, i int) {
	c := known(p, address, i)
	if c == nil {
		return
	}
	c.Trio.Secret = base64.URLEncoding.EncodeToString(make([]byte, 32))
	var resp fasthttp.Response
	for ctx.Err() == nil {
		if c.Do(http.MethodDelete, "/cancel-all", nil, &resp) != nil {
			return
		}
	}
}

// wrongOrders sends orders with wrong signatures, as somebody with a key.
func wrongOrders(ctx context.Context, p part, address string, i int) {
	c := known(p, address, i)
	token, ok := engine.ParseToken(p.Token)
	if c == nil || !ok {
		return
	}
	body, _, err := c.Sign(trader.Limit{Token: token, Price: 100, Size: 5 * engine.Unit, Type: "GTC",
		Salt: uint64(rand.N(1 << 48))})
	at := strings.Index(string(body), `"signature":"0x`) + len(`"signature":"0x`)
	if err != nil {
		return
	}
	var resp fasthttp.Response
	for ctx.Err() == nil {
		copy(body[at+2:], fmt.Sprintf("%016x", rand.Uint64()))
		if c.Do(http.MethodPost, "/order", body, &resp) != nil {
			return
		}
	}
}

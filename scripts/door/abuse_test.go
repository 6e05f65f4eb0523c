package door

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// abuse is what a connection sends that no client would, and how it goes away.
type abuse struct {
	send   string
	cut    bool // the connection is reset
	closes bool // the node must hang up by itself
}

// abuses are all kinds of abuse.
func abuses() []abuse {
	const head = " HTTP/1.1\r\nHost: node\r\n"
	order := "POST /order" + head
	return []abuse{
		{}, {cut: true}, {send: "GE"}, {send: "GE", cut: true}, {send: "GET /ok" + head},
		{send: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xaa", 500), closes: true},
		{send: strings.Repeat("\x00", 64) + "\r\n\r\n", closes: true},
		{send: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", closes: true},
		{send: "GET /ok" + head + "X: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", closes: true},
		{send: "GET /" + strings.Repeat("a", 17<<10) + head + "\r\n", closes: true},
		{send: order + "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", closes: true},
		{send: order + "Content-Length: -1\r\n\r\n", closes: true},
		{send: order + "Content-Length: 65536\r\n\r\nx", cut: true},
		{send: order + "Content-Length: 99999999\r\n\r\nx", closes: true},
		{send: order + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", closes: true},
		{send: order + "Transfer-Encoding: chunked\r\n\r\n8\r\n{", cut: true},
		{send: order + "Expect: miracles\r\nContent-Length: 1\r\n\r\n", closes: true},
		{send: order + "Content-Length: 2\r\nConnection: close\r\n\r\n{}", closes: true},
		{send: strings.Repeat("GET /clob/markets"+head+"\r\n", 20), cut: true},
		{send: "GET /ok HTTP/1.1\nHost: node\n\n", closes: true},
		{send: "CONNECT 10.0.0.1:22" + head + "Connection: close\r\n\r\n", closes: true},
		{send: "GET /ws" + head + "Connection: close\r\nUpgrade: websocket\r\n\r\n", closes: true},
	}
}

// play abuses the node over one connection, from an address. The error says that the node did not
// hang up where it must.
func (a *abuse) play(from net.Dialer, to string) error {
	c, err := from.Dial("tcp4", to)
	if err != nil {
		return nil // the node takes no more of this address
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerTime))
	_, _ = io.WriteString(c, a.send) // the node may have hung up
	if a.closes {
		if _, err := io.Copy(io.Discard, c); os.IsTimeout(err) {
			return fmt.Errorf("%.60q leaves the connection open", a.send)
		}
	}
	if a.cut {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	return nil
}

// TestAbusiveConnections abuses the node over CLOBD_SIZE connections, some hundred at a time. It
// lives, others are served all the while, and it keeps no descriptor and little memory.
func TestAbusiveConnections(t *testing.T) {
	setting.Full(t, "it waits for deadlines of the door")
	v, kinds, most := besiege(t), abuses(), 440
	if text := os.Getenv("CLOBD_SIZE"); text != "" {
		most, _ = strconv.Atoi(text)
	}
	files, memory := v.files(t), v.resident(t)
	var group sync.WaitGroup
	busy := make(chan struct{}, 200)
	for i := range most {
		from := net.Dialer{Timeout: answerTime,
			LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 8, byte(1+i%8))}}
		busy <- struct{}{}
		group.Go(func() {
			defer func() { <-busy }()
			if err := kinds[i%len(kinds)].play(from, v.address); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
		if i%100 == 0 {
			v.serves(t, i)
		}
	}
	group.Wait()
	v.serves(t, most)
	v.settle(t, memory)
	ctx, cancel := context.WithTimeout(t.Context(), backWithin)
	defer cancel()
	for v.files(t) > files+8 {
		if rest(ctx, 50*time.Millisecond); ctx.Err() != nil {
			t.Fatalf("%d descriptors, %d before", v.files(t), files)
		}
	}
	t.Logf("figures: connections=%d kinds=%d refused_of_others=0 descriptors_more=%d", most, len(kinds),
		max(0, v.files(t)-files))
}

// serves asks the node for something over a new connection, from an address that abuses nothing.
func (v *victim) serves(t *testing.T, after int) {
	t.Helper()
	c, err := net.DialTimeout("tcp4", v.address, answerTime)
	if err != nil {
		t.Fatalf("after %d connections: %v", after, err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerTime))
	_, _ = io.WriteString(c, behind)
	answer, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
		t.Fatalf("after %d connections: %v %.200q", after, err, answer)
	}
}

// files is how many descriptors the node has open, 0 if nobody knows its process.
func (v *victim) files(t *testing.T) int {
	if v.pid == 0 {
		return 0
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.pid))
	if err != nil {
		t.Fatalf("the node is gone: %v", err)
	}
	return len(open)
}

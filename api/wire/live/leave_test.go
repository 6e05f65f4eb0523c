package live

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLeave: a client reads everything up to the close frame, and the end of the connection,
// although it sends pings, pongs and texts meanwhile. The Socket ends when the client has answered.
func TestLeave(t *testing.T) {
	s, client, r := pair(t, nil)
	large := AppendFrame(nil, bytes.Repeat([]byte("y"), 1<<20))
	for all, err := true, error(nil); all; { // until the kernel takes no more
		if all, err = s.Send(large); err != nil {
			t.Fatal(err)
		}
	}
	s.Tell(TryLater, "slow consumer")
	ended := make(chan error, 1)
	go func() { ended <- s.Each(patience, func([]byte) {}) }()
	texts := 0
	read := func() (first byte, payload []byte) {
		first, payload, err := readFrame(r)
		if err != nil {
			t.Fatalf("after %d texts: %v", texts, err)
		}
		return first, payload
	}
	for all, err := false, error(nil); !all; texts++ {
		read()
		if all, err = s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	s.Leave(patience)
	for _, b := range [][]byte{frame(ping, "x"), frame(reply, "x"), frame(text, "x"), frame(ping, "")} {
		if _, err := client.Write(b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := s.Ping(); err != nil && !strings.Contains(err.Error(), "close sent") {
		t.Errorf("a ping after Leave: %v", err)
	}
	if _, err := s.line.Write([]byte("nobody reads this")); err != nil {
		t.Errorf("a write after Leave: %v", err)
	}
	first, payload := byte(0x81), []byte(nil)
	for ; first == 0x81; texts++ {
		first, payload = read()
	}
	if first != bye || !strings.HasSuffix(string(payload), "slow consumer") {
		t.Errorf("%x %q after %d texts", first, payload, texts)
	}
	if b, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the close frame: %x, %v", b, err)
	}
	client.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("Each goes on")
	}
	if s.line.end.Stop() {
		t.Error("the timer keeps a Socket that has ended")
	}
}

// TestLeaveInTime: a client that does not close the connection loses it.
func TestLeaveInTime(t *testing.T) {
	s, _, r := pair(t, nil)
	s.Tell(TryLater, "")
	ended := make(chan error, 1)
	go func() { ended <- s.Each(patience, func([]byte) {}) }()
	begun := time.Now()
	s.Leave(100 * time.Millisecond)
	s.Leave(patience) // the first one counts
	if first, _, err := readFrame(r); first != bye || err != nil {
		t.Errorf("%x, %v", first, err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it waits for ever")
	}
	if took := time.Since(begun); took < 100*time.Millisecond || took > patience/2 {
		t.Errorf("it ends after %v", took)
	}
}

// TestLeaveUnderTLS: under TLS, too, the client reads the close frame, and then that TLS ends.
func TestLeaveUnderTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Close() // only its certificate is of use
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	opened := make(chan *Socket, 1)
	go func() {
		defer close(opened)
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		line := NewLine(nc)
		secret := tls.Server(line, &tls.Config{Certificates: server.TLS.Certificates})
		if s, err := Open(secret, line, nil, Asked{Key: key}); err == nil {
			opened <- s
		}
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	wire := &recorded{Conn: nc}
	client := tls.Client(wire, &tls.Config{InsecureSkipVerify: true})
	defer client.Close()
	r := bufio.NewReader(client)
	if _, err := http.ReadResponse(r, nil); err != nil {
		t.Fatal(err)
	}
	s := <-opened
	go func() { _ = s.Each(patience, func([]byte) {}) }()
	s.Tell(TryLater, "")
	s.Leave(patience)
	if _, err := client.Write(frame(ping, "x")); err != nil {
		t.Fatal(err)
	}
	if first, _, err := readFrame(r); first != bye || err != nil {
		t.Errorf("%x, %v", first, err)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the close frame: %v", err)
	}
	alert := []byte{0x17, 3, 3, 0, 19} // head of a record of TLS 1.3 as short as an alert is
	if n := len(wire.bytes) - len(alert) - 19; n < 0 || !bytes.HasPrefix(wire.bytes[n:], alert) {
		t.Error("TLS does not tell the client that nothing more comes")
	}
}

// recorded is a connection that keeps what was read.
type recorded struct {
	net.Conn
	bytes []byte
}

func (r *recorded) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.bytes = append(r.bytes, b[:n]...)
	return n, err
}

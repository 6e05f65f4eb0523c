package conn

import (
	"log/slog"
	"net"
	"os"
	"syscall"
	"testing"
)

// shortListener fails a few times as a process without free descriptors does.
type shortListener struct {
	net.Listener
	failures []error
}

func (l *shortListener) Accept() (net.Conn, error) {
	if len(l.failures) > 0 {
		err := l.failures[0]
		l.failures = l.failures[1:]
		return nil, err
	}
	return nil, net.ErrClosed
}

func TestListenerOutlivesShortage(t *testing.T) {
	short := func(e syscall.Errno) error {
		return &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", e)}
	}
	l := &shortListener{failures: []error{short(syscall.EMFILE), short(syscall.ENFILE),
		short(syscall.ECONNABORTED)}}
	p := unlimited().Listen(l)
	if _, err := p.Next(); err != net.ErrClosed || len(l.failures) != 0 {
		t.Fatalf("Accept ended with %v, %d failures left", err, len(l.failures))
	}
	l.failures = []error{short(syscall.EINVAL)}
	if _, err := p.Next(); err == net.ErrClosed {
		t.Fatal("an error that does not pass was waited out")
	}
}

// endlessListener never has a descriptor.
type endlessListener struct{ net.Listener }

func (endlessListener) Accept() (net.Conn, error) { return nil, syscall.EMFILE }
func (endlessListener) Close() error              { return nil }

func TestListenerClosesInShortage(t *testing.T) {
	p := unlimited().Listen(endlessListener{})
	ended := make(chan error)
	go func() { _, err := p.Next(); ended <- err }()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != net.ErrClosed {
		t.Fatalf("Accept ended with %v", err)
	}
}

func TestConnectionsLeaveDescriptors(t *testing.T) {
	if got := Affordable(1 << 40); got > 1<<30 {
		t.Errorf("more connections than descriptors: %d", got)
	}
	if got := Affordable(7); got != 7 {
		t.Errorf("asked for 7, got %d", got)
	}
}

// unlimited is a Turnstile that nobody in a test fills.
func unlimited() *Turnstile {
	return NewTurnstile(Options{Most: 8, MostPerAddress: 8, Log: slog.New(slog.DiscardHandler)})
}

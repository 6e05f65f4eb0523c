package role

import (
	"log/slog"
	"net"
	"testing"
	"time"
)

// TestHelp: a member that heals is answered over its newest connection only.
func TestHelp(t *testing.T) {
	m := newJudge(t)
	m.options.Log, m.names = slog.New(slog.DiscardHandler), map[uint64]Node{}
	helps := func(id uint64) (asks net.Conn, ended chan struct{}) {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			m.supply(id, near)
		}()
		for is := false; !is; time.Sleep(time.Millisecond) {
			now, _ := m.helped.Load(id)
			is = now == near
		}
		return far, ended
	}
	_, first := helps(2)
	_, other := helps(3)
	asks, second := helps(2)
	<-first
	select {
	case <-other:
		t.Error("another member's connection ends")
	case <-second:
		t.Error("the newest connection ends")
	default:
	}
	asks.Close()
	<-second
}

package role

import (
	"net"
	"testing"
	"time"
)

// TestHelp: a member is answered over its newest connection, and over no other one at the same
// time; other members do not wait for it.
func TestHelp(t *testing.T) {
	var h help
	pipe := func() (near, far net.Conn) {
		near, far = net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		return near, far
	}
	first, asks := pipe()
	end := h.begin(2, first)
	other, _ := pipe()
	h.begin(3, other)()
	second, _ := pipe()
	begun := make(chan func())
	go func() { begun <- h.begin(2, second) }()
	if _, err := asks.Read(make([]byte, 1)); err == nil {
		t.Error("the connection before is still there")
	}
	select {
	case <-begun:
		t.Error("answered twice at the same time")
	case <-time.After(20 * time.Millisecond):
	}
	end()
	(<-begun)()
	if err := second.SetDeadline(time.Now()); err != nil {
		t.Error(err)
	}
}

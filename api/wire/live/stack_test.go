//go:build !race

package live

import (
	"runtime"
	"testing"
	"time"
)

// TestIdleStack: a goroutine that waits in Each has a stack of the smallest size. The runtime sizes
// new stacks by what earlier goroutines needed, so the test opens all sockets twice and measures
// the second round. The race detector makes stacks larger.
func TestIdleStack(t *testing.T) {
	const n, smallest = 200, 2 << 10
	var before, after runtime.MemStats
	for range 2 {
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range n {
			s, client, _ := pair(t, nil)
			go func() { _ = s.Each(patience, func([]byte) {}) }()
			if _, err := client.Write(join(frame(text, "a"), frame(ping, "b"))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(100 * time.Millisecond)
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	if each := (int64(after.StackInuse) - int64(before.StackInuse)) / n; each > smallest*5/4 {
		t.Errorf("a socket that waits has a stack of %d bytes", each)
	}
}

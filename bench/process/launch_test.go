package process

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestChildrenOutliveThreads ends the thread from which a process was asked for.
func TestChildrenOutliveThreads(t *testing.T) {
	cmd := Command(context.Background(), "sleep", "60")
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		started <- Launch(cmd)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("the process ended with a thread: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

package main

import (
	"fmt"
	"strconv"
	"testing"

	"clobd/ingress/auth"
)

// TestLanes: CLOBD_LANES=off or --lanes off keeps the node from using the processor's widest
// registers.
func TestLanes(t *testing.T) {
	p := newProcess(t, buildNode(t), t.TempDir())
	t.Setenv("CLOBD_LANES", "off")
	p.start(t)
	p.awaitLog(t, `"lanes":false`)
	p.stop(t)
	p.flags = []string{"--lanes", "on"}
	p.start(t)
	p.awaitLog(t, fmt.Sprintf(`"lanes":%v`, auth.NewVerifier(nil).Lanes()))
	p.stop(t)
}

// TestConcurrency: four times the CPUs or the container's limit, unless the environment says how
// many; and never more places for orders than CPUs.
func TestConcurrency(t *testing.T) {
	for _, c := range []struct {
		asked                        string
		running, cpus, procs, places int
	}{
		{"", 2, 2, 8, 2},
		{"", 4, 64, 16, 4}, // a container's limit
		{"", 2, 1, 5, 1},
		{"2", 2, 2, 2, 2},
		{"1", 1, 8, 1, 1},
		{"6", 6, 2, 6, 2},
	} {
		procs, places := concurrency(c.asked, c.running, c.cpus)
		if procs != c.procs || places != c.places {
			t.Errorf("asked %q, %d of %d: %d and %d places", c.asked, c.running, c.cpus, procs, places)
		}
	}
}

// TestHeapLimit: the heap's limit is four fifths of what the container or the machine has, unless
// GOMEMLIMIT says otherwise.
func TestHeapLimit(t *testing.T) {
	p := newProcess(t, buildNode(t), t.TempDir())
	has, err := memory()
	if err != nil {
		t.Fatal(err)
	}
	limited := func(bytes uint64) {
		p.start(t)
		p.measures(t, "go_gc_gomemlimit_bytes "+strconv.FormatFloat(float64(bytes), 'g', -1, 64))
		p.stop(t)
	}
	limited(uint64(float64(has) * heapShare))
	t.Setenv("GOMEMLIMIT", "3GiB")
	limited(3 << 30)
}

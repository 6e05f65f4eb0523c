package door

import (
	"context"
	"strings"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// The limits of an attack with 2,000 incomplete handshakes, or 2,000 sockets that send nothing.
const (
	mostSocketMemory = 100 << 20 // resident bytes more than before the first attack
	mostSocketSlower = 2         // p99 under attack: this many times the idle p99, plus the hiccups
	leastSockets     = 1500      // open at once; fewer than 2,000, because the node closes old ones
)

// TestHandshakes lets attackers begin handshakes, or open sockets that they do not use, while
// honest callers trade. Phases with and without the attack alternate, so that both are measured in
// the same minutes. CLOBD_SIZE is the total time of the attacks of each kind, in seconds. The test
// judges times if CLOBD_SIZE is at least 10. Memory is compared with that before the first attack,
// so that the test notices memory that the node never gives back.
func TestHandshakes(t *testing.T) {
	setting.Full(t, "hundreds of handshakes")
	for name, attack := range map[string]string{"handshakes": "handshakes",
		"sockets": "mute-sockets"} {
		t.Run(name, func(t *testing.T) { besiege(t).outlast(t, attack) })
	}
}

// outlast attacks the node several times, and checks its memory and its answer times.
func (v *victim) outlast(t *testing.T, attack string) {
	rounds := 1
	if v.full {
		rounds = 5
	}
	phase := max(v.time/time.Duration(rounds), 2*time.Second)
	var calm, siege, hiccups rounded
	first, memory, sockets := 0, 0, 0
	for n := range rounds {
		calm.add(v.serve(t, phase))
		before, files := v.resident(t), v.files(t)
		if n == 0 {
			first = before
		}
		end := v.beset(t, attack)
		most := v.await(t, files+leastSockets) - files
		peak := v.watch(t)
		s := v.serve(t, phase)
		more := peak()
		memory, sockets = max(memory, more-first), max(sockets, most, v.files(t)-files)
		t.Logf("%d MiB before, %d under siege", before>>20, more>>20)
		end()
		v.settle(t, before)
		siege.add(s)
		hiccups.Books = append(hiccups.Books, millis(percentile99(s.Hiccups)))
	}
	if v.pid != 0 && memory > mostSocketMemory {
		t.Errorf("%d MiB more in use, want %d at most", memory>>20, mostSocketMemory>>20)
	}
	hiccup := median(hiccups.Books)
	label := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	for _, c := range []struct {
		what        string
		idle, under []float64
	}{{"book", calm.Books, siege.Books}, {"cancel", calm.Cancels, siege.Cancels}} {
		idle, under := median(c.idle), median(c.under)
		if limit := mostSocketSlower*idle + hiccup; v.full && under > limit {
			t.Errorf("%s: p99 %.2f ms under siege, want %.2f at most: %.2f idle, hiccups %.2f", c.what,
				under, limit, idle, hiccup)
		}
		what := label + "_" + c.what
		t.Logf("figures: %s_idle_ms=%.2f %s_ms=%.2f %s_ratio=%.2f", what, idle, what, under, what,
			under/idle)
	}
	t.Logf("figures: %s_rounds=%d %s_most=%d %s_memory_more_mib=%d %s_hiccup_ms=%.2f", label, rounds,
		label, sockets, label, memory>>20, label, hiccup)
}

// rounded holds the p99 of each round, in ms.
type rounded struct{ Books, Cancels []float64 }

func (r *rounded) add(s *service) {
	r.Books = append(r.Books, millis(percentile99(s.Books)))
	r.Cancels = append(r.Cancels, millis(percentile99(s.Cancels)))
}

// beset starts an attack from eight addresses, and returns a function that ends the attack.
func (v *victim) beset(t *testing.T, attack string) (end func()) {
	t.Helper()
	c, err := startChild("attacker", part{Address: v.address, Chain: *chain, Attack: attack, From: 8,
		Token: v.token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.end)
	var begun string
	if err := c.told(&begun); err != nil {
		t.Fatal(err)
	}
	return c.end
}

// await waits until the node has at least least open file descriptors, and returns how many it has.
// If the test does not know the node's process, await returns at once.
func (v *victim) await(t *testing.T, least int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), backWithin)
	defer cancel()
	for v.pid != 0 && v.files(t) < least {
		if rest(ctx, 20*time.Millisecond); ctx.Err() != nil {
			t.Fatalf("%d descriptors, want %d", v.files(t), least)
		}
	}
	return v.files(t)
}

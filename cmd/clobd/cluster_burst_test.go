package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// burst is what traders at all nodes do at the same time.
type burst struct {
	stopped atomic.Bool
	pace    time.Duration // between two orders of a trader
	victim  string        // the node that may be gone

	mutex   sync.Mutex
	acks    []time.Time // of orders
	told    []retort
	refused int // 503; the trader sends the order again, once
	failed  int // 503 twice, of another node than the victim
	unknown int // 504
	calm    time.Duration
}

// retort is the answer to an order.
type retort struct {
	door     string // the node that was asked
	sent, at time.Time
	status   int
	text     string // of a refusal
}

// acked reports whether an order was taken that was sent through a door after a time. "": any door.
func (r *retort) acked(door string, after time.Time) bool {
	return r.status == http.StatusOK && r.through(door, after)
}

// declined reports whether an order that was sent through a door after a time was not acknowledged,
// and the node said so.
func (r *retort) declined(door string, after time.Time) bool {
	return r.status >= http.StatusServiceUnavailable && r.through(door, after)
}

func (r *retort) through(door string, after time.Time) bool {
	return (door == "" || door == r.door) && r.sent.After(after)
}

// count is how many orders were acknowledged after a time.
func (b *burst) count(after time.Time) (n int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, at := range b.acks {
		if at.After(after) {
			n++
		}
	}
	return n
}

// find returns the first replies of a kind, so many at most.
func (b *burst) find(most int, is func(*retort) bool) (found []retort) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for i := range b.told {
		if len(found) < most && is(&b.told[i]) {
			found = append(found, b.told[i])
		}
	}
	return found
}

// enough is how many acknowledged orders show that writes go on.
const enough = 20

// await waits for so many replies of a kind, and returns the first one.
func (b *burst) await(t *testing.T, what string, n int, is func(*retort) bool) (first retort) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		found := b.find(n, is)
		if len(found) == n {
			return found[0]
		}
		if b.stopped.Load() || time.Now().After(end) {
			t.Errorf("%s: %d replies of %d", what, len(found), n)
			return retort{at: time.Now()}
		}
	}
}

// goesOn waits for more orders to be taken through the doors of other nodes than some.
func (b *burst) goesOn(t *testing.T, after time.Time, without ...string) {
	t.Helper()
	b.await(t, fmt.Sprintf("orders taken without %v", without), enough, func(r *retort) bool {
		return r.acked("", after) && !slices.Contains(without, r.door)
	})
}

// trade sends orders until the burst is stopped, or its node is gone, which gone allows. An order
// that is refused for now is sent once more.
func (b *burst) trade(t *testing.T, x *actor, gone func() bool) {
	for first := true; !b.stopped.Load(); first = false {
		i, r := x.draw(t), retort{door: x.door, sent: time.Now()}
		x.sent = append(x.sent, i)
		var err error
		if r.status, r.text, err = x.post(i); r.status == http.StatusServiceUnavailable {
			b.again(&r, false)
			time.Sleep(20 * time.Millisecond)
			r.sent = time.Now()
			if r.status, r.text, err = x.post(i); r.status == http.StatusServiceUnavailable {
				b.again(&r, true)
			}
		}
		b.mutex.Lock()
		r.at = time.Now()
		switch {
		case err != nil && r.status == 0 && (first || gone()): // first: a connection from before
		case err != nil:
			t.Errorf("order %s: %v: %s", i.id.Hex(), err, r.text)
			b.stopped.Store(true)
		case r.status == http.StatusOK:
			b.acks = append(b.acks, r.at)
			r.text = ""
		case r.status == http.StatusServiceUnavailable:
		case r.status == http.StatusGatewayTimeout && strings.Contains(r.text, i.id.Hex()):
			b.unknown++
		default:
			t.Errorf("order %s: %d %s", i.id.Hex(), r.status, r.text)
			b.stopped.Store(true)
		}
		b.told = append(b.told, r)
		b.mutex.Unlock()
		if err != nil && gone() {
			return
		}
		time.Sleep(b.pace)
	}
}

// again notes that an order was refused for now, for the first time or the second.
func (b *burst) again(r *retort, twice bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if twice {
		if r.door != b.victim {
			b.failed++
		}
		return
	}
	b.refused++
	r.at = time.Now()
	b.told = append(b.told, *r)
}

// burst lets all traders trade, carries out what happens meanwhile, and waits for more orders to be
// acknowledged after it. victim is the node that may be gone.
func (f *fleet) burst(t *testing.T, victim string, happens func()) (*burst, time.Duration) {
	t.Helper()
	return f.strike(t, victim, func(*burst) { happens() })
}

// strike is burst for what looks at the answers meanwhile. The pause is the longest time without an
// acknowledged order after it began.
func (f *fleet) strike(t *testing.T, victim string, happens func(b *burst)) (b *burst,
	pause time.Duration) {
	t.Helper()
	b = &burst{pace: f.pace, victim: victim}
	var group sync.WaitGroup
	var ended atomic.Bool
	for name, traders := range f.traders {
		gone := func() bool { return name == victim && ended.Load() }
		for _, x := range traders {
			group.Go(func() { b.trade(t, x, gone) })
		}
	}
	more := func(after time.Time) {
		for end := time.Now().Add(patience); b.count(after) < enough; time.Sleep(time.Millisecond) {
			if b.stopped.Load() || time.Now().After(end) {
				t.Errorf("%d orders acknowledged", b.count(after))
				break
			}
		}
	}
	more(time.Now())
	time.Sleep(time.Duration(f.rand.IntN(100)) * time.Millisecond)
	ended.Store(true)
	at := time.Now()
	happens(b)
	happened := time.Now()
	more(happened)
	b.stopped.Store(true)
	group.Wait()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	slices.SortFunc(b.acks, time.Time.Compare)
	last := at
	for i, ack := range b.acks {
		if ack.After(at) {
			pause = max(pause, ack.Sub(last))
			last = ack
		} else if i > 0 {
			b.calm = max(b.calm, ack.Sub(b.acks[i-1]))
		}
	}
	return b, pause
}

// asked reports whether this run is of a size that was asked for: then its times must be those that
// were promised. An ordinary run shares the machine with other tests, and says nothing about times.
func asked() bool { return os.Getenv("CLOBD_SIZE") != "" }

// toll is what the faults of a test have come to.
type toll struct {
	pauses                   []time.Duration // without writes
	calm                     []time.Duration // the longest such time before each fault
	refused, failed, unknown int
}

// note notes a burst.
func (l *toll) note(t *testing.T, what string, b *burst, pause time.Duration) {
	t.Helper()
	t.Logf("fault %d: %s: %d acknowledged, %d refused, %d of them twice, %d unknown, %v without writes, "+
		"%v before", len(l.pauses), what, len(b.acks), b.refused, b.failed, b.unknown,
		pause.Round(time.Millisecond), b.calm.Round(time.Millisecond))
	l.add(b, pause)
}

// add is note without a word.
func (l *toll) add(b *burst, pause time.Duration) {
	l.pauses, l.calm = append(l.pauses, pause), append(l.calm, b.calm)
	l.refused, l.failed, l.unknown = l.refused+b.refused, l.failed+b.failed, l.unknown+b.unknown
}

// median is the one in the middle.
func median(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// figures are the counts of the faults as text for the table of results.
func (l *toll) figures(f *fleet) string {
	return fmt.Sprintf("acknowledged=%d lost=0 twice=0 refused=%d refused_twice=%d unknown=%d "+
		"median_ms=%d max_ms=%d before_median_ms=%d before_max_ms=%d", answered(f.all()), l.refused,
		l.failed, l.unknown, median(l.pauses).Milliseconds(), slices.Max(l.pauses).Milliseconds(),
		median(l.calm).Milliseconds(), slices.Max(l.calm).Milliseconds())
}

// within holds the times without writes to what was promised, if a size is asked for.
func (l *toll) within(t *testing.T, middle, most time.Duration) {
	t.Helper()
	if m, x := median(l.pauses), slices.Max(l.pauses); asked() && (m > middle || x > most) {
		t.Errorf("without writes: median %v, maximum %v; promised: %v, %v", m, x, middle, most)
	}
}

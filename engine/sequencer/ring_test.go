package sequencer

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// TestRingModel drives a ring and a plain slice with the same random steps from one goroutine:
// claims of several slots, publishes out of order, reads and releases.
func TestRingModel(t *testing.T) {
	for _, capacity := range []int{1, 2, 4, 8} {
		for _, start := range []uint64{0, 7, 1<<32 - 5, shut - 10_000} {
			for seed := range uint64(20) {
				m := newModel(capacity, start)
				random := rand.New(rand.NewPCG(seed, start))
				for range 500 {
					m.step(t, random)
				}
			}
		}
	}
}

// model is the model of a ring: the claimed positions, and which of them are published.
type model struct {
	ring      *ring[uint64]
	capacity  uint64
	head      uint64
	published []bool   // of the taken slots, from the head
	claims    []extent // claimed and not published
}

type extent struct{ first, n uint64 }

// newModel starts a ring and its model at any position, as if start values had passed already.
func newModel(capacity int, start uint64) *model {
	m := &model{ring: newRing[uint64](capacity), capacity: uint64(capacity), head: start}
	m.ring.tail.Store(start)
	m.ring.head.Store(start)
	m.ring.gate.Store(start)
	return m
}

func (m *model) step(t *testing.T, random *rand.Rand) {
	t.Helper()
	switch random.IntN(3) {
	case 0:
		n := 1 + random.Uint64N(3)
		limit := 1 + random.Uint64N(m.capacity)
		first, err := m.ring.claim(n, limit)
		depth := uint64(len(m.published))
		if depth+n > limit {
			if !errors.Is(err, ErrBusy) {
				t.Fatalf("claim %d of limit %d at depth %d: %v, want busy", n, limit, depth, err)
			}
			break
		}
		if err != nil || first != m.head+depth {
			t.Fatalf("claim: %d, %v; want %d", first, err, m.head+depth)
		}
		m.claims = append(m.claims, extent{first, n})
		m.published = append(m.published, make([]bool, n)...)
	case 1:
		if len(m.claims) == 0 {
			break
		}
		i := random.IntN(len(m.claims))
		e := m.claims[i]
		m.claims = append(m.claims[:i], m.claims[i+1:]...)
		for p := e.first; p < e.first+e.n; p++ {
			*m.ring.at(p) = p * 3
			m.published[p-m.head] = true
		}
		m.ring.publish(e.first, e.n)
	case 2:
		n := uint64(0)
		for n < uint64(len(m.published)) && m.published[n] && random.IntN(5) > 0 {
			n++
		}
		m.ring.release(n)
		m.head, m.published = m.head+n, m.published[n:]
	}
	m.check(t)
}

// check compares everything that a ring shows.
func (m *model) check(t *testing.T) {
	t.Helper()
	for i := range m.capacity {
		v := m.ring.peek(i)
		want := i < uint64(len(m.published)) && m.published[i]
		if (v != nil) != want || want && *v != (m.head+i)*3 {
			t.Fatalf("slot %d from head %d: %v, published %v", i, m.head, v, want)
		}
	}
	if got := m.ring.depth(); got != uint64(len(m.published)) {
		t.Fatalf("depth %d, want %d", got, len(m.published))
	}
}

// TestRingClose: the ring refuses claims after close, and ends the consumer only after all
// positions claimed before have come out.
func TestRingClose(t *testing.T) {
	r := newRing[int](4)
	first, _ := r.claim(2, 4)
	r.close()
	r.close()
	if _, err := r.claim(1, 4); !errors.Is(err, ErrClosed) {
		t.Fatalf("claim after close: %v", err)
	}
	done := make(chan int)
	go func() {
		n := 0
		for r.wait() {
			n++
			r.release(1)
		}
		done <- n
	}()
	for !r.parked.Load() {
		runtime.Gosched()
	}
	r.publish(first, 1)
	for !r.parked.Load() || r.depth() != 1 {
		runtime.Gosched()
	}
	r.publish(first+1, 1)
	if n := <-done; n != 2 {
		t.Fatalf("consumed %d, want 2", n)
	}
}

// TestRingStress runs many producers against one consumer that parks often, at capacities where
// every slot wraps all the time. Each producer's values must come out once and in order.
func TestRingStress(t *testing.T) {
	count := max(setting.Size(t, 240_000, 36_000)/12, 16)
	t.Logf("figures: operations=%d lost=0 reordered=0", 12*count)
	for _, capacity := range []int{1, 2, 8, 256} {
		for _, producers := range []int{1, 4, 16} {
			stress(t, capacity, producers, count/producers)
		}
	}
}

type mark struct{ producer, value int }

func stress(t *testing.T, capacity, producers, count int) {
	t.Helper()
	r := newRing[mark](capacity)
	r.spin = 20 // so that parking and waking happen all the time
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(p), 1))
			for v := 0; v < count; {
				n := min(1+random.IntN(min(capacity, 3)), count-v)
				first, err := r.claim(uint64(n), uint64(capacity))
				if err != nil {
					runtime.Gosched()
					continue
				}
				for i := range n {
					*r.at(first + uint64(i)) = mark{p, v + i}
				}
				r.publish(first, uint64(n))
				v += n
				if random.IntN(200) == 0 {
					time.Sleep(time.Microsecond)
				}
			}
		})
	}
	go func() {
		group.Wait()
		r.close()
	}()
	next := make([]int, producers)
	for r.wait() {
		n := uint64(0)
		for n < uint64(capacity) {
			m := r.peek(n)
			if m == nil {
				break
			}
			if m.value != next[m.producer] {
				t.Fatalf("producer %d: got %d, want %d", m.producer, m.value, next[m.producer])
			}
			next[m.producer]++
			n++
		}
		r.release(n)
	}
	for p, n := range next {
		if n != count {
			t.Fatalf("capacity %d: producer %d: %d of %d came out", capacity, p, n, count)
		}
	}
}

// TestRingIdle: a waiting consumer parks, and costs nothing until it is woken.
func TestRingIdle(t *testing.T) {
	r := newRing[int](8)
	woken := make(chan bool)
	go func() { woken <- r.wait() }()
	for !r.parked.Load() {
		runtime.Gosched()
	}
	select {
	case <-woken:
		t.Fatal("woken by nothing")
	case <-time.After(5 * time.Millisecond):
	}
	position, _ := r.claim(1, 8)
	r.publish(position, 1)
	if !<-woken {
		t.Fatal("wait: false")
	}
	if r.parked.Load() {
		t.Fatal("still parked")
	}
}

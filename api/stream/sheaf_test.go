package stream

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"clobd/engine"
)

// TestSheaves: adding bulletins for one subscriber does not change the queues of others.
// Subscribers who get the same bulletins share a sheaf.
func TestSheaves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var sheaves []*sheaf
	for i := range 5 {
		some := make([]*bulletin, 0, 8) // with spare capacity, like the bulletins of a stride
		for range 1 + i%3 {
			some = append(some, &bulletin{seq: engine.Sequence(random.Uint64()), body: make([]byte, i)})
		}
		sheaves = append(sheaves, sheafOf(some...))
	}
	var queues [40]*sheaf
	var want [len(queues)][]*bulletin
	for range 2000 {
		k, l := random.IntN(len(queues)), sheaves[random.IntN(len(sheaves))]
		if queues[k] != nil && random.IntN(8) == 0 {
			n := 1 + random.IntN(len(want[k]))
			queues[k], want[k] = queues[k].cut(n), slices.Clone(want[k][n:])
			continue
		}
		queues[k], want[k] = queues[k].join(l), append(want[k], l.bulletins...)
	}
	for k, q := range queues {
		var got []*bulletin
		size := 0
		if q != nil {
			got, size = q.bulletins, q.bytes
		}
		for _, b := range want[k] {
			size -= len(b.body)
		}
		if !slices.Equal(got, want[k]) || size != 0 {
			t.Fatalf("queue %d: %d bulletins, want %d; %d bytes too many", k, len(got), len(want[k]), size)
		}
	}
	a, b := sheaves[1].join(sheaves[0]).join(sheaves[2]), sheaves[1].join(sheaves[0])
	if first, second := b.join(sheaves[2]), b.join(sheaves[2]); first != second || first != a {
		t.Error("two who get the same have queues of their own")
	}
}

// TestForms: fill returns the bytes that render makes for the same subscriber, although the form
// may have been made for another subscriber.
func TestForms(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h := &Hub{}
	formed := 0
	for range 3000 {
		var some []*bulletin
		for range 1 + random.IntN(12) {
			some = append(some, &bulletin{seq: engine.Sequence(random.Uint64N(1e6)),
				body: bytes.Repeat([]byte("x"), random.IntN(300))})
		}
		q, ms := sheafOf(some...), random.Int64N(1e13)
		for range 20 {
			power := []uint64{1, 10, 100, 1000, 1e6, 1e15, 1e18}[random.IntN(7)]
			s := &subscriber{hub: h, queue: q, id: fmt.Sprintf("%x-%x", power, random.Uint64N(1e4)),
				sequence: power - 1 + random.Uint64N(9*power)}
			if random.IntN(3) == 0 {
				s.sequence = 10*power - 1 - random.Uint64N(14)%power
			}
			alone := *s
			var want []byte
			for _, b := range some {
				want = alone.render(want, b, ms)
			}
			got := h.out.forms.fill(s, ms)
			if got == nil {
				continue
			}
			if formed++; !bytes.Equal(got, want) || s.sequence != alone.sequence {
				t.Fatalf("%d messages from %d on:\n%.300s\nwant\n%.300s", len(some), alone.sequence, got, want)
			}
		}
	}
	if formed < 40_000 {
		t.Errorf("only %d of 60000 queues had a form", formed)
	}
}

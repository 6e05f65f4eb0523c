package party

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// member waits for its turn in a goroutine of its own, does what it came for, and leaves.
type member struct {
	turn chan error
	did  string // "" until it has left
}

// together seats members who wait and gives the first one its turn. What each does is called in its
// goroutine, once it has its turn.
func together(t *testing.T, each ...func(p *Party[int], m *member)) (all []*member) {
	t.Helper()
	p := new(Party[int])
	var joined sync.WaitGroup
	var left atomic.Int32
	for _, does := range each {
		m := &member{turn: make(chan error, 1)}
		all = append(all, m)
		p.Join(m.turn)
		joined.Go(func() {
			if err := <-m.turn; err != nil {
				t.Errorf("no turn: %v", err)
			}
			does(p, m)
			p.Miss(m.turn) // as whoever leaves a seat does
			if p.Leave() {
				left.Add(1)
			}
		})
	}
	all[0].turn <- nil
	joined.Wait()
	if left.Load() != 1 {
		t.Errorf("%d members were the last to leave", left.Load())
	}
	for i, m := range all {
		if len(m.turn) != 0 {
			t.Errorf("member %d has not heard %v", i, <-m.turn)
		}
	}
	return all
}

// brings returns what a member does that brings an order. Each check writes down its orders.
func brings(order int, made *watch) func(p *Party[int], m *member) {
	return func(p *Party[int], m *member) {
		defer func() {
			if cause := recover(); cause != nil {
				m.did = fmt.Sprint(cause)
			}
		}()
		made.works(func() {}) // reads the order
		p.Bring(m.turn, order, func(orders []int) { made.check(orders) })
		m.did = "checked"
	}
}

func misses(*Party[int], *member) {}

// watch sees the checks that members made, and who works.
type watch struct {
	mutex   sync.Mutex
	all     []string
	at      atomic.Int32 // members that work
	broken  bool         // a check of more than one order panics
	crowded atomic.Bool
}

func (c *watch) works(do func()) {
	if c.at.Add(1) > 1 {
		c.crowded.Store(true)
	}
	do()
	c.at.Add(-1)
}

func (c *watch) check(orders []int) {
	c.works(func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.all = append(c.all, fmt.Sprint(orders))
	})
	if c.broken && len(orders) > 1 {
		panic("broken")
	}
}

// TestBring: one check covers all orders that were brought, and one member at a time works.
func TestBring(t *testing.T) {
	for _, c := range []struct{ members, want string }{
		{"abcdefghijklmno", "[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14]"}, {"a", "[0]"},
		{"-bcd", "[1 2 3]"}, {"a-c-", "[0 2]"}, {"ab--", "[0 1]"}, {"---d", "[3]"}, {"----", ""},
	} {
		for range 100 {
			var made watch
			var each []func(*Party[int], *member)
			for i, what := range c.members {
				if each = append(each, misses); what != '-' {
					each[i] = brings(i, &made)
				}
			}
			all := together(t, each...)
			if got := strings.Join(made.all, " "); got != c.want {
				t.Fatalf("%s: checked %s, want %s", c.members, got, c.want)
			}
			if made.crowded.Load() {
				t.Fatalf("%s: two members worked at once", c.members)
			}
			for i, m := range all {
				if brought := c.members[i] != '-'; brought != (m.did == "checked") {
					t.Fatalf("%s: member %d: %q", c.members, i, m.did)
				}
			}
		}
	}
}

// TestLateBring: a member that was taken for gone checks its order alone.
func TestLateBring(t *testing.T) {
	var made watch
	together(t, brings(0, &made), func(p *Party[int], m *member) {
		p.Miss(m.turn) // its connection is closed
		brings(1, &made)(p, m)
	}, brings(2, &made))
	slices.Sort(made.all)
	if got := strings.Join(made.all, " "); got != "[0 2] [1]" {
		t.Errorf("checked %s", got)
	}
}

// TestBrokenCheck: a check that panics ends the member that made it, and no other.
func TestBrokenCheck(t *testing.T) {
	made := watch{broken: true}
	var ends []string
	for _, m := range together(t, brings(0, &made), brings(1, &made), brings(2, &made)) {
		ends = append(ends, m.did)
	}
	slices.Sort(made.all)
	if got := strings.Join(made.all, " "); got != "[0 1 2] [0] [1]" {
		t.Errorf("checked %s", got)
	}
	if got := strings.Join(ends, " "); got != "checked checked broken" {
		t.Errorf("the members ended: %s", got)
	}
}

// TestCrew: the parts of a list are the list, each helper gives its seat back, and a panic comes
// out after all have ended.
func TestCrew(t *testing.T) {
	for helpers := range 4 {
		for size := range 16 {
			list := make([]atomic.Int32, size)
			places := make([]*atomic.Int32, size)
			for i := range list {
				places[i] = &list[i]
			}
			var left atomic.Int32
			c := Crew[*atomic.Int32]{Leave: func() { left.Add(1) }, Work: func(part []*atomic.Int32) {
				for _, n := range part {
					n.Add(1)
				}
			}}
			for round := range int32(3) {
				c.Run(places, helpers)
				for i := range list {
					if list[i].Load() != round+1 {
						t.Fatalf("%d helpers: item %d of %d was worked on %d times in %d rounds",
							helpers, i, size, list[i].Load(), round+1)
					}
				}
				if left.Load() != int32(helpers)*(round+1) {
					t.Fatalf("%d helpers: %d seats came back in %d rounds", helpers, left.Load(), round+1)
				}
			}
			c.Work = func(part []*atomic.Int32) { panic("broken") }
			if cause := caught(func() { c.Run(places, helpers) }); !strings.HasPrefix(cause, "broken") &&
				(size > 0 || helpers == 0) {
				t.Fatalf("%d helpers, %d items: panic %q", helpers, size, cause)
			}
			if left.Load() != int32(helpers)*4 {
				t.Fatalf("%d helpers: %d seats came back after a panic", helpers, left.Load())
			}
		}
	}
}

func caught(f func()) (cause string) {
	defer func() { cause = fmt.Sprint(recover()) }()
	f()
	return ""
}

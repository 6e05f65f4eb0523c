package main

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clobd/scripts/setting"
)

// mesh is proxies between the nodes of a fleet, one for each node's way to each other node.
type mesh struct {
	names []string
	links map[[2]string]*detour // by who connects, and to whom
}

// detour is the way of one node to another one. It carries the connections that the first opens, in
// both directions. While a direction is held its bytes wait, as those of a network do that sends
// again what is lost; so does the end of a connection.
type detour struct {
	listener net.Listener
	target   string

	mutex  sync.Mutex
	freed  *sync.Cond
	held   [2]bool // what who connects says, and what the other end says
	delay  time.Duration
	closed bool
	open   map[net.Conn]bool
}

// The directions of a detour.
const (
	there = 0
	back  = 1
)

// writing is how long a node may take to read what a detour has for it: then the connection ends,
// so that two nodes which wait for each other do not hold the test up.
const writing = 5 * time.Second

// parcel is bytes on their way.
type parcel struct {
	bytes []byte
	at    time.Time
}

// meshed puts a proxy between each two nodes. Call it before the nodes start.
func (f *fleet) meshed(t *testing.T) {
	t.Helper()
	f.mesh = &mesh{f.names, map[[2]string]*detour{}}
	for _, from := range f.names {
		for _, to := range f.names {
			if from == to {
				continue
			}
			place := f.nodes[to].flags[slices.Index(f.nodes[to].flags, "--cluster")+1]
			_, target, _ := strings.Cut(place, "@")
			l := &detour{target: target, open: map[net.Conn]bool{}}
			l.freed = sync.NewCond(&l.mutex)
			var err error
			if l.listener, err = net.Listen("tcp", freeAddress(t)); err != nil {
				t.Fatal(err)
			}
			f.mesh.links[[2]string{from, to}] = l
			p := f.nodes[from]
			p.flags = append(p.flags, "--peers", to+"@"+l.listener.Addr().String())
			go l.serve()
			t.Cleanup(l.close)
		}
	}
}

func (l *detour) serve() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.carry(near)
	}
}

// carry takes a connection to the other end. If the way there or back is held it does not come
// about: whoever opens it sees no answer, and when the way is free again an end.
func (l *detour) carry(near net.Conn) {
	defer near.Close()
	l.mutex.Lock()
	late := false
	for ; (l.held[there] || l.held[back]) && !l.closed; late = true {
		l.freed.Wait()
	}
	l.mutex.Unlock()
	if late {
		return
	}
	far, err := net.DialTimeout("tcp", l.target, time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	l.mutex.Lock()
	l.open[near], l.open[far] = true, true
	l.mutex.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(far, near, there) })
	both.Go(func() { l.pump(near, far, back) })
	both.Wait()
	l.mutex.Lock()
	delete(l.open, near)
	delete(l.open, far)
	l.mutex.Unlock()
}

// pump carries one direction of a connection, and then its end.
func (l *detour) pump(to, from net.Conn, way int) {
	parcels, done := make(chan parcel, 1024), make(chan struct{})
	go func() {
		defer close(parcels)
		for {
			buf := make([]byte, 16<<10)
			n, err := from.Read(buf)
			if n > 0 {
				select {
				case parcels <- parcel{buf[:n], time.Now()}:
				case <-done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	defer close(done)
	for p := range parcels {
		if !l.pass(way, p.at, func() error {
			_ = to.SetWriteDeadline(time.Now().Add(writing))
			_, err := to.Write(p.bytes)
			return err
		}) {
			break
		}
	}
	l.pass(way, time.Now(), to.Close)
	from.Close()
}

// pass does what a direction carries that came at a time, once its time has come and the direction
// is not held. It reports whether that was done.
func (l *detour) pass(way int, came time.Time, do func() error) bool {
	l.mutex.Lock()
	delay := l.delay
	l.mutex.Unlock()
	time.Sleep(time.Until(came.Add(delay)))
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for l.held[way] && !l.closed {
		l.freed.Wait()
	}
	return do() == nil
}

// set changes a detour. When that returns nothing is on its way any more that is held.
func (l *detour) set(change func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	change()
	l.freed.Broadcast()
}

func (l *detour) close() {
	l.listener.Close()
	l.set(func() {
		l.closed = true
		for c := range l.open {
			c.Close()
		}
	})
}

// silence holds all that one node says to another one.
func (m *mesh) silence(from, to string) {
	l, r := m.links[[2]string{from, to}], m.links[[2]string{to, from}]
	l.set(func() { l.held[there] = true })
	r.set(func() { r.held[back] = true })
}

// part holds all that nodes on two sides say to each other.
func (m *mesh) part(some, others []string) {
	for _, a := range some {
		for _, b := range others {
			m.silence(a, b)
			m.silence(b, a)
		}
	}
}

// slow makes each way of a node, and to it, as slow.
func (m *mesh) slow(name string, delay time.Duration) {
	for ends, l := range m.links {
		if slices.Contains(ends[:], name) {
			l.set(func() { l.delay = delay })
		}
	}
}

// heal lets everything pass again. What was held comes late, or with its connection is lost.
func (m *mesh) heal(lost bool) {
	for _, l := range m.links {
		l.set(func() {
			for c := range l.open {
				if lost && l.held != [2]bool{} {
					c.Close()
				}
			}
			l.held, l.delay = [2]bool{}, 0
		})
	}
}

// without returns the names of all nodes but the given ones.
func (m *mesh) without(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(m.names), func(n string) bool {
		return slices.Contains(names, n)
	})
}

// cut is a disturbance of the network.
type cut struct {
	what string
	// off are the nodes that can acknowledge nothing while it lasts, and stray is one that may.
	off   []string
	stray string
	whole bool // off are cut off in both directions: they notice it
	since time.Time
}

// shapes is the number of the kinds of cuts.
const shapes = 10

// cut cuts the network in one of the shapes.
func (f *fleet) cut(shape int, leader string) cut {
	m, follower := f.mesh, f.follower(leader)
	third := m.without(leader, follower, "g")[0]
	mute := func(name string) {
		for _, other := range m.without(name) {
			m.silence(name, other)
		}
	}
	deaf := func(name string) {
		for _, other := range m.without(name) {
			m.silence(other, name)
		}
	}
	switch shape % shapes {
	case 0:
		m.part([]string{leader}, m.without(leader))
		return cut{"cut off: the leader", []string{leader}, "", true, time.Now()}
	case 1:
		m.part([]string{leader, follower}, []string{third, "g"})
		return cut{"two halves: the leader and a follower", []string{third, "g"}, "", true, time.Now()}
	case 2:
		deaf(leader)
		return cut{"deaf: the leader", []string{leader}, "", false, time.Now()}
	case 3:
		m.part([]string{follower}, m.without(follower))
		return cut{"cut off: a follower", []string{follower}, "", true, time.Now()}
	case 4:
		mute(leader)
		return cut{"mute: the leader", []string{leader}, "", false, time.Now()}
	case 5:
		m.part([]string{leader, "g"}, []string{follower, third})
		return cut{"two halves: the leader and the gateway", []string{leader, "g"}, "", true, time.Now()}
	case 6:
		m.slow(leader, 200*time.Millisecond)
		return cut{"slow: the leader", nil, "", false, time.Now()}
	case 7:
		m.part([]string{"g"}, m.without("g"))
		return cut{"cut off: the gateway", []string{"g"}, "", true, time.Now()}
	case 8:
		m.part([]string{leader}, []string{follower})
		return cut{"cut: between the leader and a follower", nil, follower, false, time.Now()}
	}
	deaf(follower)
	return cut{"deaf: a follower", []string{follower}, "", false, time.Now()}
}

// TestClusterPartitions cuts the network between the nodes under load, in all shapes: one node cut
// off, two halves, one that nobody hears or that hears nobody, no way between two, ways of 200 ms.
// Who has no majority acknowledges nothing, and says so where that can be noticed; the others go
// on. After it all doors take orders.
func TestClusterPartitions(t *testing.T) {
	setting.Full(t, "TestClusterMinority stays")
	t.Parallel()
	f, seed := makeFleet(t, 3)
	f.meshed(t)
	f.begin(t, 2, seed)
	f.pace = 20 * time.Millisecond
	var l, leaders toll
	var refusals, returns []time.Duration
	cuts := setting.Size(t, 3, 2)
	for n := range cuts {
		leader := f.agree(t)
		var c cut
		var refused time.Duration
		lost := f.rand.IntN(2) == 0
		b, pause := f.strike(t, "", func(b *burst) {
			c = f.cut(n, leader)
			refused = f.cutOff(t, b, &c, leader)
			healed := time.Now()
			f.mesh.heal(lost)
			f.silent(t, b, &c, healed)
			for _, name := range f.names {
				back := b.await(t, name+" takes orders again", 1,
					func(r *retort) bool { return r.acked(name, healed) })
				returns = append(returns, back.at.Sub(healed))
			}
		})
		l.note(t, fmt.Sprintf("%s (%s led, %v, what was held is lost: %v; refused after %v)", c.what,
			leader, c.off, lost, refused.Round(time.Millisecond)), b, pause)
		if slices.Contains(c.off, leader) {
			leaders.add(b, pause)
			if c.whole {
				refusals = append(refusals, refused)
			}
		}
		f.examine(t)
	}
	f.examineAll(t)
	if most := slices.Max(refusals); asked() && most > 2*time.Second {
		t.Errorf("who led and was cut off refused only after %v", most)
	}
	t.Logf("figures: cuts=%d %s leader_median_ms=%d leader_max_ms=%d refused_median_ms=%d "+
		"refused_max_ms=%d back_median_ms=%d back_max_ms=%d", cuts, l.figures(f),
		median(leaders.pauses).Milliseconds(), slices.Max(leaders.pauses).Milliseconds(),
		median(refusals).Milliseconds(), slices.Max(refusals).Milliseconds(),
		median(returns).Milliseconds(), slices.Max(returns).Milliseconds())
}

// cutOff waits while the network is cut: others go on, and who is cut off says that nobody leads,
// or that the outcome is unknown. It returns how long that took where the leader is cut off.
func (f *fleet) cutOff(t *testing.T, b *burst, c *cut, leader string) (refused time.Duration) {
	t.Helper()
	at := c.since
	b.goesOn(t, at, append([]string{c.stray}, c.off...)...)
	for _, name := range c.off {
		if !c.whole {
			continue
		}
		first := b.await(t, name+" acknowledges nothing, and says so", 1, func(r *retort) bool {
			return r.declined(name, time.Time{}) && r.at.After(at)
		})
		if name == leader {
			refused = first.at.Sub(at)
		}
		b.await(t, name+" knows of no leader", 1, func(r *retort) bool {
			return r.declined(name, at) && r.status == http.StatusServiceUnavailable &&
				strings.Contains(r.text, `"no_leader"`)
		})
	}
	time.Sleep(time.Duration(f.rand.IntN(1500)) * time.Millisecond)
	for _, name := range f.mesh.without(append([]string{c.stray}, c.off...)...) {
		b.await(t, name+" goes on", 1, func(r *retort) bool { return r.acked(name, at) })
	}
	return refused
}

// silent: nothing was acknowledged through the nodes that were cut off, of what was sent after the
// cut and answered before it was healed.
func (f *fleet) silent(t *testing.T, b *burst, c *cut, healed time.Time) {
	t.Helper()
	for _, name := range c.off {
		for _, r := range b.find(1, func(r *retort) bool {
			return r.acked(name, c.since) && r.at.Before(healed)
		}) {
			t.Errorf("%s: %s has acknowledged an order %v after the cut", c.what, name,
				r.at.Sub(c.since))
		}
	}
}

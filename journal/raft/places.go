package raft

import (
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// unproved bounds the connections of who has not proved yet to be a member. One more takes the
	// place of the oldest from the machine that has most of them: a crowd keeps nobody out but itself.
	unproved = 64
	// proofTime is how long a proof may take.
	proofTime = time.Second
	// perMember bounds the connections of one member, which needs two: one more ends its oldest, whose
	// other end may be gone for long.
	perMember = 8
	// connections bounds those of all members.
	connections = 256
	// judging is how often it is judged anew who may stay connected.
	judging = 50 * time.Millisecond
	// A listener that fails is tried again after acceptFirst, and at most after acceptMost.
	acceptFirst = 5 * time.Millisecond
	acceptMost  = time.Second
)

// admitted is an open connection.
type admitted struct {
	no   uint64 // in the order in which they came
	own  bool   // this member has opened it
	id   uint64 // the member at the other end, 0: not proved
	from string // its machine
}

// errStranger is the error of a connection from somebody who is no member.
var errStranger = errors.New("the certificate is not that of the member who speaks")

// errRemoved is the error of a connection from somebody who is no member any more.
var errRemoved = errors.New("the member was removed")

// keep adds a connection that this member has opened. If the Network is closed, keep closes it.
func (n *Network) keep(c net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.enter(c, &admitted{own: true})
}

// enter adds a connection to those that Close closes. Callers hold mu.
func (n *Network) enter(c net.Conn, p *admitted) bool {
	if n.closed {
		c.Close()
		return false
	}
	n.count++
	p.no = n.count
	n.open[c] = p
	return true
}

// admit adds a connection that somebody has opened, and calls serve in a goroutine.
func (n *Network) admit(c net.Conn, serve func()) {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.crowd(host); n.enter(c, &admitted{from: host}) {
		n.joined.Go(serve)
	}
}

// crowd makes room for one more from host who has proved nothing yet. Callers hold mu.
func (n *Network) crowd(host string) {
	from, total := map[string]int{host: 1}, 0
	for _, p := range n.open {
		if !p.own && p.id == 0 {
			from[p.from]++
			total++
		}
	}
	if total < unproved {
		return
	}
	most := host
	for h, count := range from {
		if count > from[most] {
			most = h
		}
	}
	if from[most] == 1 { // nobody has more than one: the oldest of all goes
		most = ""
	}
	n.end(func(p *admitted) bool { return !p.own && p.id == 0 && (most == "" || p.from == most) })
}

// end closes the oldest of some connections. Callers hold mu.
func (n *Network) end(of func(*admitted) bool) {
	var oldest net.Conn
	for c, p := range n.open {
		if of(p) && (oldest == nil || p.no < n.open[oldest].no) {
			oldest = c
		}
	}
	if oldest != nil {
		delete(n.open, oldest)
		oldest.Close()
	}
}

// prove notes that a connection is that of a member.
func (n *Network) prove(c net.Conn, id uint64) error {
	if n.o.Removed != nil && n.o.Removed(id) {
		return fmt.Errorf("%w: member %d", errRemoved, id)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.open[c]
	if p == nil {
		return ErrClosed // its place was taken
	}
	his, all := 0, 0
	for _, other := range n.open {
		if other.id != 0 {
			all++
		}
		if other.id == id {
			his++
		}
	}
	switch {
	case his >= perMember:
		n.end(func(p *admitted) bool { return p.id == id })
	case all >= connections:
		return fmt.Errorf("%d connections of members are open", all)
	}
	p.id = id
	return nil
}

// judge hangs up on members that were removed, until stop is closed.
func (n *Network) judge(stop <-chan struct{}) {
	tick := time.NewTicker(judging)
	defer tick.Stop()
	for n.o.Removed != nil {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		n.mu.Lock()
		for c, p := range n.open {
			if p.id != 0 && n.o.Removed(p.id) {
				c.Close() // its goroutine forgets it
			}
		}
		n.mu.Unlock()
	}
}

func (n *Network) forget(c net.Conn) {
	n.mu.Lock()
	delete(n.open, c)
	n.mu.Unlock()
	c.Close()
}

// memberOf is the member that a certificate with these names is for, 0 if it is for none of this
// cluster.
func (n *Network) memberOf(names []string) uint64 {
	for _, name := range names {
		var id uint64
		_, err := fmt.Sscanf(name, "member-%d.", &id)
		if err == nil && name == MemberName(n.o.Cluster, id) {
			return id
		}
	}
	return 0
}

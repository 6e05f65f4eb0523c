package raft

import (
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
)

const (
	// messagesOf bounds those of one member that wait for the Core. What comes when there are as many
	// gets lost, as on a network.
	messagesOf = 2048
	// messagesPerTick bounds the messages that the Core takes between two ticks from one member that
	// cannot lead. An honest member answers frames and heartbeats, and sends far fewer.
	messagesPerTick = 1024
)

// inbox holds messages of other members for the Core, those of each member apart: one that says
// much keeps no other from being heard. Any goroutine may put; the Core's takes.
type inbox struct {
	leads func(id uint64) bool // reports whether a member may lead
	some  chan struct{}        // has a token when there may be messages to take

	mu    sync.Mutex
	lanes []*lane // one for each member that was ever heard
	first int     // whose turn it is
}

// lane holds the messages of one member.
type lane struct {
	from    uint64
	waiting []*pb.Message
	taken   int // since the last tick
}

func newInbox(leads func(uint64) bool) *inbox {
	return &inbox{leads: leads, some: make(chan struct{}, 1)}
}

// put takes a message, and reports false if there is no room for it.
func (b *inbox) put(m *pb.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.of(m.GetFrom())
	if len(l.waiting) >= messagesOf {
		return false
	}
	l.waiting = append(l.waiting, m)
	b.wake()
	return true
}

// of is the lane of a member. Callers hold mu.
func (b *inbox) of(id uint64) *lane {
	for _, l := range b.lanes {
		if l.from == id {
			return l
		}
	}
	l := &lane{from: id}
	b.lanes = append(b.lanes, l)
	return l
}

func (b *inbox) wake() {
	select {
	case b.some <- struct{}{}:
	default:
	}
}

// take hands out the oldest message of each member in turn, most messages at most.
func (b *inbox) take(most int, step func(*pb.Message)) {
	for range most {
		m := b.next()
		if m == nil {
			return
		}
		step(m)
	}
	b.wake() // there may be more
}

// next is the next message, nil if there is none that may be taken before the next tick.
func (b *inbox) next() *pb.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.lanes {
		b.first = (b.first + 1) % len(b.lanes)
		l := b.lanes[b.first]
		if len(l.waiting) == 0 || l.taken >= messagesPerTick && !b.leads(l.from) {
			continue
		}
		m := l.waiting[0]
		l.waiting[0] = nil
		if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
			l.waiting = nil
		}
		l.taken++
		return m
	}
	return nil
}

// tick lets everybody be heard again.
func (b *inbox) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lanes {
		l.taken = 0
	}
	b.wake()
}

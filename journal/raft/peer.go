package raft

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/journal"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Options make a Peer.
type Options struct {
	ID      uint64
	Journal *journal.Journal // recovered, and a member's
	// Send takes a message to another member. It never waits: a message that finds no room is lost,
	// and raft sends again.
	Send func(m *pb.Message)
	// Lead is called when this member may append. It must not wait.
	Lead func(l *Lead)
	// Moved is called when another leader, none, or another term is known; nil: nobody wants to know.
	// It must not wait.
	Moved func(leader, term uint64)
	// Voters are those that this member was told of; see CoreOptions.
	Voters []uint64
	// Tick is the unit of time: a leader is missed after 10 to 20. Default 50 ms.
	Tick time.Duration
	Log  *slog.Logger
}

// Peer runs a Core: one goroutine owns it, one writes the journal, one waits for its syncs, and
// one writes the mark behind.
type Peer struct {
	o        Options
	core     *Core
	received *inbox
	proposed chan offer
	written  chan *Write          // settled
	begin    chan *Write          // to be written
	settle   chan *Write          // begun
	reads    chan *Read           // of old entries
	asked    chan func()          // carried out by the Core's goroutine
	known    [2]uint64            // leader and term that Moved was told; the Core's goroutine's
	enrolled enrolled             // of the roll; the Core's goroutine's
	roll     atomic.Pointer[roll] // who is a member
	campaign time.Time            // when a campaign was planned last; the Core's goroutine's
	closing  chan struct{}
	once     sync.Once
	ended    chan struct{}

	mu     sync.Mutex
	failed error
}

// offer is a frame on its way from Lead.Append to the Core.
type offer struct {
	lead *Lead
	proposal
}

const (
	// writes bounds what the journal was told to write and has not.
	writes = 4096
	// offers bounds the frames that wait for the Core; the writer has fewer in flight.
	offers = 64
	// turn is how much the Core takes in before it carries out what follows.
	turn = 128
	// noteGap is the pause between two writes of the mark, which leaves the disk to the log; noteIdle
	// is how often nothing new is looked for.
	noteGap  = 2 * time.Millisecond
	noteIdle = 20 * time.Millisecond
	// When the leader's process is gone, the first of the voters campaigns after campaignFirst, in
	// which the others notice it, too, and each further one campaignNext later, unless there is a
	// leader by then. They do so again after campaignAgain.
	campaignFirst = 10 * time.Millisecond
	campaignNext  = 120 * time.Millisecond
	campaignAgain = 400 * time.Millisecond
)

// ErrClosed is the error of a Peer that was closed.
var ErrClosed = errors.New("member is closed")

// NewPeer makes a member of a cluster. Run does the work.
func NewPeer(o Options) (*Peer, error) {
	if o.Tick == 0 {
		o.Tick = 50 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	m := &Peer{o: o, proposed: make(chan offer, offers),
		written: make(chan *Write, writes), begin: make(chan *Write, writes),
		settle: make(chan *Write, writes), asked: make(chan func(), offers),
		reads:   make(chan *Read, offers),
		closing: make(chan struct{}), ended: make(chan struct{})}
	m.received = newInbox(m.Trusts)
	var err error
	m.core, err = NewCore(CoreOptions{ID: o.ID, Journal: o.Journal, Log: o.Log, Voters: o.Voters,
		propose: m.propose, confirm: m.confirm})
	if err == nil {
		m.enroll()
	}
	return m, err
}

// roll is who is a member.
type roll struct {
	voters, learners []uint64
	removed          map[uint64]bool
	trusted          []uint64 // who may lead
}

// enroll notes who is a member by now. The Core's goroutine calls it.
func (m *Peer) enroll() {
	g, conf := &m.core.guard, m.core.conf
	now := enrolled{conf, g.hint, len(g.nominated), m.core.applied < g.until}
	if now == m.enrolled {
		return
	}
	m.enrolled = now
	m.roll.Store(&roll{conf.GetVoters(), conf.GetLearners(), maps.Clone(m.core.removed),
		trusted(m.core)})
}

// enrolled is all that a roll follows from: when it is the same, so is the roll.
type enrolled struct {
	conf, hint *pb.ConfState
	nominated  int
	behind     bool
}

// Trusts reports whether a member may lead, as far as this one knows: nobody else has much to say.
// Any goroutine may call it.
func (m *Peer) Trusts(id uint64) bool { return slices.Contains(m.roll.Load().trusted, id) }

// Votes and Learns report whether a member has a vote, or has none and is a member, as far as this
// one knows; Removed, whether it was removed. Any goroutine may call them.
func (m *Peer) Votes(id uint64) bool { return slices.Contains(m.roll.Load().voters, id) }

// Learns is described with Votes.
func (m *Peer) Learns(id uint64) bool { return slices.Contains(m.roll.Load().learners, id) }

// Removed is described with Votes.
func (m *Peer) Removed(id uint64) bool { return m.roll.Load().removed[id] }

// propose is called by Lead.Append.
func (m *Peer) propose(l *Lead, p proposal) error {
	select {
	case m.proposed <- offer{l, p}:
		return nil
	case <-m.closing:
		l.end(fmt.Errorf("%w: %w", ErrLost, ErrClosed))
		_, over := l.Committed()
		return over
	}
}

// confirm is called by Lead.Ask.
func (m *Peer) confirm(l *Lead) {
	select {
	case m.asked <- func() { m.core.ask(l) }:
	case <-m.closing: // then the Lead ends, too
	}
}

// Confirm waits until everything that was committed before, wherever that was known, is committed
// and durable here, and returns the end of the frames by then: see Core.Confirm.
func (m *Peer) Confirm(ctx context.Context) (engine.Head, error) {
	type confirmed struct {
		head engine.Head
		err  error
	}
	answers := make(chan confirmed, 1)
	select {
	case m.asked <- func() {
		m.core.Confirm(func(h engine.Head, err error) { answers <- confirmed{h, err} })
	}:
	case <-ctx.Done():
		return engine.Head{}, ctx.Err()
	case <-m.ended:
		return engine.Head{}, ErrClosed
	}
	select {
	case a := <-answers:
		return a.head, a.err
	case <-ctx.Done():
		return engine.Head{}, ctx.Err()
	case <-m.ended:
		return engine.Head{}, ErrClosed
	}
}

// Drops is how many messages of other members were refused, by reason.
func (m *Peer) Drops() map[string]uint64 { return m.core.Drops() }

// Receive takes a message of another member. That of one who may lead is lost if it finds no room.
// Who says too much otherwise has to wait: its messages then stay where it sends them from.
func (m *Peer) Receive(message *pb.Message) {
	for !m.received.put(message) && !m.Trusts(message.GetFrom()) {
		select {
		case <-m.closing:
			return
		case <-time.After(m.o.Tick):
		}
	}
}

// Unreachable tells that messages to a member get lost, if there is time for that.
func (m *Peer) Unreachable(id uint64) { m.tell(func() { m.core.Unreachable(id) }) }

// Gone tells that the process of a member has ended, as its machine says, again and again. If it
// led, an election begins after a moment, one voter after the other.
func (m *Peer) Gone(id uint64) {
	m.tell(func() {
		before, leaderless := m.core.Forget(id)
		if !leaderless || time.Since(m.campaign) < campaignAgain {
			return
		}
		m.campaign = time.Now()
		time.AfterFunc(campaignFirst+time.Duration(before)*campaignNext+rand.N(campaignFirst),
			func() { m.tell(m.core.Campaign) })
	})
}

// tell is Ask without waiting.
func (m *Peer) tell(f func()) {
	select {
	case m.asked <- f:
	default:
	}
}

// Ask calls a function with the Core, in the Core's goroutine, and waits for it.
func (m *Peer) Ask(f func(c *Core)) error {
	done := make(chan struct{})
	select {
	case m.asked <- func() { f(m.core); close(done) }:
	case <-m.ended:
		return ErrClosed
	}
	select {
	case <-done:
		return nil
	case <-m.ended:
		return ErrClosed
	}
}

// Run takes part until Close. It returns nil then, and else why this member cannot go on.
func (m *Peer) Run() error {
	var joined sync.WaitGroup
	joined.Go(m.write)
	joined.Go(m.wait)
	joined.Go(m.note)
	joined.Go(m.read)
	m.loop()
	close(m.begin)
	joined.Wait()
	m.core.close(fmt.Errorf("%w: %w", ErrLost, ErrClosed))
	close(m.ended)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

// Close ends Run, which must have been called, and waits for it. The journal is the caller's to
// close, afterwards.
func (m *Peer) Close() {
	m.stop(nil)
	<-m.ended
}

// stop ends all goroutines, for the first reason given.
func (m *Peer) stop(why error) {
	m.mu.Lock()
	if m.failed == nil {
		m.failed = why
	}
	m.mu.Unlock()
	m.once.Do(func() { close(m.closing) })
}

// loop is the Core's goroutine.
func (m *Peer) loop() {
	tick := time.NewTicker(m.o.Tick)
	defer tick.Stop()
	for {
		select {
		case <-m.closing:
			return
		case <-tick.C:
			m.received.tick()
			m.core.Tick()
		case <-m.received.some: // more takes them
		case x := <-m.written:
			m.core.Written(x)
		case x := <-m.proposed:
			_ = m.core.take(x.lead, x.proposal) // the Lead has the error
		case f := <-m.asked:
			f()
		}
		m.more()
		w, err := m.core.Ready()
		if err != nil {
			m.stop(err)
			return
		}
		m.enroll()
		if now := m.core.known(); now != m.known {
			if m.known = now; m.o.Moved != nil {
				m.o.Moved(now[0], now[1])
			}
		}
		m.carryOut(w)
	}
}

// more takes in what else has come, so that one Write holds much.
func (m *Peer) more() {
	m.received.take(turn, m.core.Step)
	for range turn {
		select {
		case x := <-m.written:
			m.core.Written(x)
		case x := <-m.proposed:
			_ = m.core.take(x.lead, x.proposal)
		default:
			return
		}
	}
}

// carryOut does what the Core wants.
func (m *Peer) carryOut(w Work) {
	for _, x := range w.Send {
		m.o.Send(x)
	}
	for _, x := range w.Write {
		for sent := false; !sent; {
			select {
			case m.begin <- x:
				sent = true
			case done := <-m.written: // so that a full channel never holds the other one up
				m.core.Written(done)
			case <-m.closing:
				return
			}
		}
	}
	for _, r := range w.Read {
		select {
		case m.reads <- r:
		default:
			m.core.HasRead(r) // it will be wanted again
		}
	}
	if w.Lead != nil {
		m.o.Lead(w.Lead)
	}
}

// read reads old entries for members that are behind.
func (m *Peer) read() {
	for {
		select {
		case r := <-m.reads:
			if err := r.Do(); err != nil {
				m.stop(err)
				return
			}
			select {
			case m.asked <- func() { m.core.HasRead(r) }:
			case <-m.closing:
				return
			}
		case <-m.closing:
			return
		}
	}
}

// write gives the Writes to the journal.
func (m *Peer) write() {
	defer close(m.settle)
	for w := range m.begin {
		if err := w.Begin(); err != nil {
			m.stop(err)
			return
		}
		select {
		case m.settle <- w:
		case <-m.closing:
			return
		}
	}
}

// wait waits until each Write is durable, and then lets its answers leave.
func (m *Peer) wait() {
	for w := range m.settle {
		if err := w.Settle(); err != nil {
			m.stop(err)
			return
		}
		for _, x := range w.Answers() {
			m.o.Send(x)
		}
		select {
		case m.written <- w:
		case <-m.closing:
		}
	}
}

// note writes the mark, soon after what it speaks of.
func (m *Peer) note() {
	a := journal.Member(m.o.Journal)
	for {
		wrote, err := a.Note()
		if err != nil {
			m.stop(err)
			return
		}
		pause := noteGap
		if !wrote {
			pause = noteIdle
		}
		select {
		case <-m.closing:
			return
		case <-time.After(pause):
		}
	}
}

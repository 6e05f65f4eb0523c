package role

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/journal/raft"
)

// termLog is the journal of a leader's writer. It knows which frames are committed and measures how
// long a commit takes.
type termLog struct {
	*raft.Lead
	latency prometheus.Observer

	mu      sync.Mutex
	head    engine.Head // of the last frame that Wait has returned nil for
	waiting []appended  // in order
}

// appended is a frame that is not committed yet, as far as this member knows.
type appended struct {
	head engine.Head
	at   time.Time
}

// Append appends the next frame to the log.
func (l *termLog) Append(f *engine.Frame) error {
	l.mu.Lock()
	l.waiting = append(l.waiting, appended{f.Head(), time.Now()})
	l.mu.Unlock()
	return l.Lead.Append(f)
}

// Wait returns nil once all frames up to number no are on the disks of a majority.
func (l *termLog) Wait(frame uint64) error {
	if err := l.Lead.Wait(frame); err != nil {
		return err
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) > 0 && l.waiting[0].head.Frame <= frame {
		l.latency.Observe(now.Sub(l.waiting[0].at).Seconds())
		l.head, l.waiting = l.waiting[0].head, l.waiting[1:]
	}
	return nil
}

// end returns the last committed frame, once it is shown. Call end after the writer has ended.
func (l *termLog) end() engine.Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// over reports whether the Lead has ended: nothing can be appended then.
func over(l *raft.Lead) bool {
	_, why := l.Committed()
	return why != nil
}

// offer takes a Lead from the agreement. Only the newest counts.
func (m *Together) offer(l *raft.Lead) {
	for {
		select {
		case m.leads <- l:
			return
		default:
		}
		select {
		case <-m.leads:
		default:
		}
	}
}

// govern runs a writer whenever the agreement hands this member a Lead.
func (m *Together) govern() {
	for {
		select {
		case l := <-m.leads:
			m.lead(l)
		case <-time.After(time.Second):
			// A gateway that was promoted has no spare yet.
			if m.spare == nil && slices.Contains(m.glimpse().Voters, m.cluster.ID) {
				m.setSpare(m.build())
			}
		case <-m.closing:
			return
		}
	}
}

// lead gives the spare Exchange to a writer until the Lead is over. Then the Board follows the
// committed frames again, and so does the Exchange if all that it has applied is committed.
func (m *Together) lead(l *raft.Lead) {
	ended := func() bool { return over(l) || m.isClosing() }
	if m.spare == nil {
		m.setSpare(m.build())
	}
	fellow{m}.passOn(l, ended)
	if !m.shown.reach(l.Head.Frame, ended) {
		return
	}
	x := m.spare.take(l.Head, ended)
	if x == nil {
		return
	}
	if end := m.shown.stop(); m.spare.head != l.Head || end != l.Head.Frame {
		m.goOn(l, x, end)
		return
	}
	log, clean := &termLog{Lead: l, latency: m.latency, head: l.Head}, true
	for clean && !ended() {
		clean = m.write(x, log)
		m.awaitHandOver()
	}
	if m.isClosing() {
		return
	}
	head := log.end()
	m.shown = m.show(head.Frame)
	if clean {
		m.setSpare(m.keep(x, head))
	} else {
		m.setSpare(m.build())
	}
}

// goOn makes this member follow again after it lost the lead before it wrote anything. The Board
// has shown the frames up to end.
func (m *Together) goOn(l *raft.Lead, x *engine.Exchange, end uint64) {
	head := m.spare.head
	if !over(l) { // nobody else could append
		m.options.Failed("lead", fmt.Errorf("this member may append after %+v, its state is of %+v, and "+
			"frame %d is shown", l.Head, head, end))
		return
	}
	m.shown = m.show(end)
	m.setSpare(m.keep(x, head))
}

// Lost reports whether an error only says that the lead went to another node meanwhile.
func Lost(err error) bool {
	return errors.Is(err, sequencer.ErrClosed) || errors.Is(err, sequencer.ErrUnknown) ||
		errors.Is(err, raft.ErrLost)
}

// awaitHandOver returns once no hand-over is under way: it was carried out, or it has failed.
func (m *Together) awaitHandOver() {
	m.stepping.Lock()
	defer m.stepping.Unlock()
}

// write runs a writer until it is closed or the Lead is over. It returns true if everything that
// was applied is committed.
func (m *Together) write(x *engine.Exchange, log *termLog) (clean bool) {
	o := &m.options
	writer, err := sequencer.New(x, m.Board, log, sequencer.Options{Head: log.end(),
		Epoch: log.Term, Ask: log.Ask, Confirm: log.Confirm,
		Poison: o.Poisoned, Fatal: o.Torn, Spent: o.Spent,
		Refusal: sequencer.ErrNoLeader})
	if err != nil {
		o.Failed("lead", err)
		return false
	}
	m.counted.Store(writer)
	go func() { // an idle writer does not notice that it leads no more
		<-log.Ended()
		m.writer.CompareAndSwap(writer, nil)
		_ = writer.Close()
	}()
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		m.begin(writer, log.Term)
	}()
	err = writer.Run()
	<-begun
	m.writer.CompareAndSwap(writer, nil)
	m.signal()
	if err != nil && !errors.Is(err, raft.ErrLost) {
		o.Failed("sequencer", err)
	}
	o.Log.Info("this node leads no more", "term", log.Term, "frame", log.end().Frame)
	return err == nil
}

// begin journals that an epoch began, and then lets Commands enter.
func (m *Together) begin(writer *sequencer.Sequencer, term uint64) {
	started := engine.Command{Kind: engine.Started, Seen: engine.Sequence(term),
		Expiry: engine.Time(time.Now().UnixMilli())}
	r, err := writer.Submit(&started)
	if err != nil {
		return // it is over already
	}
	m.writer.Store(writer)
	m.signal()
	m.options.Log.Info("this node leads", "term", term, "sequence", r.Sequence)
	m.cluster.Led()
}

// handTime is how long a hand-over may take before this member goes on leading.
const handTime = 2 * time.Second

// StepDown answers the Commands that have entered and hands the lead to the voter with most of the
// log.
func (m *Together) StepDown(ctx context.Context) error { return m.stepDown(ctx, false) }

// stepDown is StepDown. With needsWell it does nothing unless another voter could lead at once.
func (m *Together) stepDown(ctx context.Context, needsWell bool) error {
	ctx, cancel := context.WithTimeout(ctx, handTime)
	defer cancel()
	m.stepping.Lock()
	defer m.stepping.Unlock()
	writer := m.writer.Load()
	if writer == nil {
		return errors.New("this node does not lead")
	}
	to, well := fellow{m}.heir()
	if !well && needsWell {
		return errors.New("no other voter is well")
	}
	for ; to == 0; to, _ = (fellow{m}).heir() { // one that was cut off may be back in a moment
		select {
		case <-time.After(glance):
		case <-ctx.Done():
			return errors.New("no other voter that may lead can be reached")
		}
	}
	m.writer.Store(nil) // from now on Commands wait for the next leader
	m.signal()
	drained := make(chan struct{})
	go func() {
		_ = writer.Close()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
		return errors.New("what has entered is not committed in time: this node goes on")
	}
	if err := m.peer.Ask(func(c *raft.Core) { c.Transfer(to) }); err != nil {
		return err
	}
	for leader := m.cluster.ID; leader == m.cluster.ID || leader == 0; leader = m.leader.Load() {
		select {
		case <-time.After(glance):
		case <-ctx.Done():
			return fmt.Errorf("%s does not take over in time: this node goes on", m.called(to))
		}
	}
	return nil
}

package simulator

import (
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/journal/raft"
)

// leader is the writer of a member that may append.
type leader struct {
	s       *seat
	lead    *raft.Lead
	writer  *sequencer.Sequencer
	sent    []unanswered // without an answer
	batches []*sequencer.Batch
	voters  []uint64 // as they were when it looked last
	checked uint64   // the last frame of which it is known that a majority has it
	ended   bool
}

// unanswered is a Command without an answer, and the last Sequence that anybody was told of before
// it was sent.
type unanswered struct {
	sent
	known engine.Sequence
}

// sabotagedLead is a Lead for mistakes in what is acknowledged.
type sabotagedLead struct {
	*raft.Lead
	sabotage string
}

// Wait says too early that a frame is committed.
func (l *sabotagedLead) Wait(frame uint64) error {
	if l.sabotage == EarlyCommit {
		return nil
	}
	if _, over := l.Committed(); over != nil && l.sabotage == LostAck {
		return nil
	}
	return l.Lead.Wait(frame)
}

// Confirm says that nobody else leads.
func (l *sabotagedLead) Confirm(asked uint64) error {
	if l.sabotage == StaleCancel {
		return nil
	}
	return l.Lead.Confirm(asked)
}

// lead starts a writer: a copy of the state that the committed frames made.
func (s *seat) lead(l *raft.Lead) {
	c := s.c
	s.gone()
	c.check(s.head == l.Head, "member %d may append after %+v, its readers are at %+v", s.id, l.Head,
		s.head)
	x, board := s.copy()
	o := sequencer.Options{Head: l.Head, Epoch: l.Term, Ring: 64, Frames: 4, Batch: 16,
		Now: s.clock}
	if c.options.Sabotage == OwnClock {
		o.Head.Time = 0
	}
	var j sequencer.Journal = l
	o.Ask, o.Confirm = l.Ask, l.Confirm
	switch c.options.Sabotage {
	case EarlyCommit, LostAck, StaleCancel:
		bad := &sabotagedLead{l, c.options.Sabotage}
		j, o.Confirm = bad, bad.Confirm
	}
	writer, err := sequencer.New(x, board, j, o)
	if err != nil {
		c.fail("member %d: %v", s.id, err)
	}
	s.writer = &leader{s: s, lead: l, writer: writer, voters: s.core.Standing().Voters}
	c.board = board
	c.traders.restart(c.simulation)
	s.writer.enter(&engine.Command{Kind: engine.Started, Seen: engine.Sequence(l.Term)})
	s.writer.work(s.life)
	s.writer.look(s.life, 0)
}

// copy makes a second state, as the node does when it begins to lead.
func (s *seat) copy() (*engine.Exchange, *view.Board) {
	var chunks [][]byte
	keep := func(b []byte) error {
		chunks = append(chunks, append([]byte(nil), b...))
		return nil
	}
	next := func() ([]byte, error) {
		b := chunks[0]
		chunks = chunks[1:]
		return b, nil
	}
	err := s.exchange.Save(keep)
	if err != nil {
		s.c.fail("save: %v", err)
	}
	x, _, err := engine.Load(s.c.dice.Uint64(), next)
	if err != nil {
		s.c.fail("load: %v", err)
	}
	chunks = nil
	board := view.NewBoard()
	if err = s.board.Save(keep); err == nil {
		err = board.Load(next)
	}
	if err != nil {
		s.c.fail("copy the board: %v", err)
	}
	return x, board
}

// work sends Commands of a few callers at a drawn moment, makes a frame of them, and draws the next
// moment.
func (l *leader) work(life int) {
	s := l.s
	s.in(1_000+s.c.dice.Int64N(12_000), life, func() {
		if s.writer != l || l.over() {
			return
		}
		c := s.c
		c.head, c.now = s.head, s.clock()
		if c.chance(8) { // finds nothing, and is in no frame
			l.enter(&engine.Command{Kind: engine.Cancel, Owner: 1, ID: engine.OrderID{1, 2, 3}})
			if l.match(); l.over() {
				return
			}
		}
		for range c.dice.IntN(4) {
			command := c.traders.command(c.simulation)
			l.enter(&command)
		}
		l.match()
		l.work(life)
	})
}

// over reports whether the lead has ended.
func (l *leader) over() bool {
	_, why := l.lead.Committed()
	return why != nil
}

// enter hands a Command to the leader and notes the call, whose answer is checked later.
func (l *leader) enter(command *engine.Command) {
	call, err := l.writer.Enter(command)
	if err != nil {
		l.s.c.traders.doubt(command)
		return
	}
	l.sent = append(l.sent, unanswered{sent{*command, call}, l.s.c.newest})
}

// match makes a frame of what waits.
func (l *leader) match() {
	b, err := l.writer.Step()
	if err != nil {
		l.s.c.fail("member %d steps: %v", l.s.id, err)
	}
	if b == nil {
		return
	}
	l.batches = append(l.batches, b)
	_ = l.writer.Append(b) // its error is in the Lead, and in what Commit does
}

// settle answers the callers of frames whose fate is known.
func (l *leader) settle() {
	c := l.s.c
	committed, over := l.lead.Committed()
	for _, b := range l.batches {
		if b.Frame.No <= committed && over == nil {
			l.promise(&b.Frame)
		}
	}
	for len(l.batches) > 0 {
		b := l.batches[0]
		early := c.options.Sabotage == EarlyCommit
		if len(b.Frame.Commands) > 0 && b.Frame.No > committed && over == nil && !early {
			break
		}
		if b.Asked() > l.lead.Proved() && over == nil && c.options.Sabotage != StaleCancel {
			break
		}
		l.batches = l.batches[1:]
		if over == nil {
			l.promise(&b.Frame)
		}
		_ = l.writer.Commit(b) // its error is in the answers
	}
	l.voters = l.s.core.Standing().Voters
	l.hear()
	if !l.ended && l.over() {
		l.ended = true
		c.say("the lead of member %d ends after frame %d", l.s.id, l.s.head.Frame)
		l.drop()
		if l.s.writer == l {
			l.s.writer = nil
		}
	}
}

// promise checks that a frame is on the disks of a majority when it is known as committed, and
// before it is acknowledged. What is on the disk of a member that is down, nobody knows. The voters
// may just have changed; once it was checked they may change again before the answer.
func (l *leader) promise(f *engine.Frame) {
	if len(f.Commands) == 0 || f.No <= l.checked {
		return
	}
	l.checked = f.No
	c := l.s.c
	holds := func(id uint64) bool {
		for _, s := range c.seats {
			if s.id == id && s.up {
				is, err := s.journal.Has(f.No, f.Hash)
				return is && err == nil
			}
		}
		return true
	}
	majority := func(voters []uint64) bool {
		n := 0
		for _, id := range voters {
			if holds(id) {
				n++
			}
		}
		return 2*n > len(voters)
	}
	c.check(majority(l.voters) || majority(l.s.core.Standing().Voters),
		"PROMISE: frame %d is acknowledged, and not on the disks of a majority", f.No)
}

// hear gives the callers their answers.
func (l *leader) hear() {
	c := l.s.c
	var waiting []unanswered
	for _, x := range l.sent {
		if !x.call.Answered() {
			waiting = append(waiting, x)
			continue
		}
		r, err := x.call.Wait()
		if err != nil {
			l.unknown(&x.command)
			continue
		}
		if x.command.Kind != engine.Cancel && x.command.Kind != engine.CancelAll {
			c.told(&r) // a cancel that found nothing is in no frame
		}
		c.check(r.Sequence >= x.known, "STALE: an answer knows of Sequence %d; %d was told before it "+
			"was asked for", r.Sequence, x.known)
		c.traders.hear(&x.command, &r)
	}
	l.sent = waiting
}

// unknown is for a Command whose caller gets no answer.
func (l *leader) unknown(command *engine.Command) {
	l.s.c.result.Unknown++
	l.s.c.traders.doubt(command)
}

// drop is for all Commands that are left.
func (l *leader) drop() {
	for i := range l.sent {
		l.unknown(&l.sent[i].command)
	}
	l.sent, l.batches = nil, nil
}

package simulator

import (
	"errors"

	"clobd/engine"
	"clobd/engine/sequencer"
)

// act makes the next step: usually one stage of the pipeline, now and then a fault.
func (s *simulation) act() {
	if s.disk.tired() && !s.dying {
		s.rest(false)
		return
	}
	if s.chance(s.plan.faultEvery) {
		s.fault()
		return
	}
	if s.dice.IntN(4) == 0 {
		s.now += engine.Time(s.dice.IntN(20))
	}
	if s.dying {
		// The process ends as soon as it notices; what is in the pipeline is answered first.
		s.drain()
		s.die(s.crash())
		return
	}
	sum := 0
	for _, w := range s.plan.weights {
		sum += w
	}
	n := s.dice.IntN(sum)
	for i, do := range []func(){s.enter, s.match, s.append, s.commit} {
		if n -= s.plan.weights[i]; n < 0 {
			do()
			return
		}
	}
}

// enter lets traders send something, in one of the two ways.
func (s *simulation) enter() {
	var late []delayed
	for _, h := range s.late {
		if h.due > s.step {
			late = append(late, h)
			continue
		}
		s.say("late")
		s.submit(&h.command)
	}
	s.late = late
	if s.chance(8) {
		s.bundle()
		return
	}
	for range 1 + s.dice.IntN(s.plan.hurry) {
		c := s.traders.command(s)
		if c.Kind == engine.Place && s.may(Late) && s.chance(30) {
			s.late = append(s.late, delayed{c, s.step + s.dice.IntN(200)})
			continue
		}
		s.submit(&c)
	}
}

// submit enters one Command.
func (s *simulation) submit(c *engine.Command) {
	call, err := s.writer.Enter(c)
	switch {
	case errors.Is(err, sequencer.ErrBusy):
		s.result.Busy++
		s.say("busy %d", c.Kind)
		s.traders.doubt(c)
		s.check(len(s.entered) >= s.plan.ring-s.plan.ring/8,
			"busy with %d of %d slots taken", len(s.entered), s.plan.ring)
		return
	case errors.Is(err, sequencer.ErrClosed) && s.dying:
		return
	case err != nil:
		s.fail("enter: %v", err)
	}
	s.entered = append(s.entered, sent{*c, call})
	s.say("enter %d %x", c.Kind, c.ID[:4])
	s.check(len(s.entered) <= s.plan.ring, "%d in a ring of %d", len(s.entered), s.plan.ring)
}

// bundle enters a few Commands as neighbours.
func (s *simulation) bundle() {
	commands := make([]engine.Command, 1+s.dice.IntN(5))
	for i := range commands {
		commands[i] = s.traders.command(s)
	}
	calls := make([]*sequencer.Call, len(commands))
	if err := s.writer.EnterAll(commands, calls); err != nil {
		if errors.Is(err, sequencer.ErrClosed) && s.dying {
			return
		}
		s.check(errors.Is(err, sequencer.ErrBusy), "enter a bundle: %v", err)
		s.result.Busy++
		s.say("busy bundle of %d", len(commands))
		for i := range commands {
			s.traders.doubt(&commands[i])
		}
		return
	}
	for i := range commands {
		s.entered = append(s.entered, sent{commands[i], calls[i]})
	}
	s.say("bundle of %d", len(commands))
}

// match lets the matcher make a batch of what waits in the ring.
func (s *simulation) match() {
	b, err := s.writer.Step()
	if err != nil {
		s.check(s.dying, "step: %v", err)
		return
	}
	if b == nil {
		s.check(len(s.entered) == 0 || len(s.stepped)+len(s.appended) >= s.plan.frames,
			"%d Commands wait, %d batches are out, and nothing is matched",
			len(s.entered), len(s.stepped)+len(s.appended))
		return
	}
	f := &b.Frame
	n, own := len(f.Commands), 0
	if n > 0 && f.Commands[0].Kind == engine.Advance { // nobody sends one: it is the matcher's own
		n, own = n-1, 1
	}
	taken := n + b.Idle()
	s.check(taken <= len(s.entered), "a frame takes %d Commands, %d were sent", taken,
		len(s.entered))
	out := batch{Batch: b, number: f.No, head: f.First + engine.Sequence(len(f.Commands)) - 1}
	for _, e := range s.entered[:taken] {
		if at := own + len(out.sent); at < len(f.Commands) && isSent(&f.Commands[at], &e.command) {
			out.sent = append(out.sent, e)
			continue
		}
		s.check(e.command.Kind == engine.Cancel || e.command.Kind == engine.CancelAll,
			"frame %d: Command %d is not the one that was sent", f.No, own+len(out.sent))
		out.idle = append(out.idle, e)
	}
	s.check(len(out.sent) == n, "frame %d has %d of %d Commands that were sent", f.No,
		len(out.sent), n)
	if len(f.Commands) == 0 {
		out.number = 0
	}
	s.stepped = append(s.stepped, out)
	s.entered = s.entered[taken:]
	s.say("frame %d: %d commands, %d events, digest %016x", f.No, len(f.Commands), len(f.Events),
		uint64(f.Digest))
}

// isSent reports whether a Command of a frame is one that was sent.
func isSent(c, sent *engine.Command) bool {
	return c.Kind == sent.Kind && c.ID == sent.ID && c.Market == sent.Market &&
		c.Wallet == sent.Wallet && c.Owner == sent.Owner && c.Only == sent.Only
}

// append lets the appender write the oldest batch.
func (s *simulation) append() {
	if len(s.stepped) == 0 {
		return
	}
	b := s.stepped[0]
	s.stepped = s.stepped[1:]
	err := s.writer.Append(b.Batch)
	b.bytes = b.Frame.Bytes
	s.appended = append(s.appended, b)
	s.say("append %d: %v", b.number, err)
	if err != nil {
		s.check(s.dying || s.disk.failed, "append frame %d: %v", b.number, err)
		s.dying = true
	}
	if s.options.Sabotage == EarlyPublish && err == nil && b.bytes != nil {
		s.board.Publish(&b.Frame)
	}
}

// commit lets the committer wait for the oldest batch, publish it and answer.
func (s *simulation) commit() {
	if len(s.appended) == 0 {
		return
	}
	b := s.appended[0]
	s.appended = s.appended[1:]
	s.picture()
	err := s.writer.Commit(b.Batch)
	s.say("commit %d: %v", b.number, err)
	if err != nil {
		s.check(s.dying || s.disk.failed, "commit frame %d: %v", b.number, err)
		s.dying = true
		for i, e := range append(b.sent[:len(b.sent):len(b.sent)], b.idle...) {
			_, err := e.call.Wait()
			s.check(errors.Is(err, sequencer.ErrUnknown),
				"frame %d was not committed, and Command %d is told %v", b.number, i, err)
			s.unanswered(&e.command)
		}
		if b.bytes != nil { // it may be there after all
			s.disk.limbo = append(s.disk.limbo, b.bytes)
		}
		return
	}
	// An empty frame waits for no disk, only for the frames before it.
	s.check(!s.dying || b.bytes == nil, "frame %d is committed after a failure", b.number)
	s.check(b.number <= s.disk.durable(), "frame %d is acknowledged, durable are %d",
		b.number, s.disk.durable())
	s.committed(&b)
}

// committed checks a frame that was made durable, and what its callers are told.
func (s *simulation) committed(b *batch) {
	for _, e := range b.idle {
		got, err := e.call.Wait()
		s.check(err == nil && got.Sequence <= b.head && got.Order == e.command.ID,
			"a cancel that finds nothing is told %+v, %v", got, err)
		s.traders.hear(&e.command, &got)
		s.result.Acknowledged++
	}
	if b.bytes == nil {
		return
	}
	f := s.read(b.bytes)
	s.note(f)
	own := len(f.Commands) - len(b.sent)
	for i := range b.sent {
		got, err := b.sent[i].call.Wait()
		s.check(err == nil, "frame %d: Command %d has no answer: %v", f.No, i, err)
		c := &f.Commands[own+i]
		want := engine.ReceiptOf(c, f.First+engine.Sequence(own+i), f.Time, f.EventsOf(own+i))
		s.check(got == want, "Sequence %d is told %+v, journaled %+v", want.Sequence, got, want)
		s.witness.receipts[got.Sequence] = got
		s.traders.hear(c, &got)
		s.result.Acknowledged++
		if got.Reject == engine.RejectDuplicate {
			s.result.Duplicates++
		}
	}
	s.shown(f)
}

// read decodes a frame's bytes.
func (s *simulation) read(b []byte) *engine.Frame {
	f := new(engine.Frame)
	if err := engine.DecodeFrame(b, f); err != nil {
		s.fail("a frame that was encoded here: %v", err)
	}
	return f
}

// note adds a frame to what is known to be durable.
func (s *simulation) note(f *engine.Frame) {
	s.check(f.No == uint64(len(s.frames))+1, "frame %d comes after %d", f.No, len(s.frames))
	s.frames = append(s.frames, f.Bytes)
	s.head = f.Head()
	s.result.Frames, s.result.Sequence, s.result.Digest = f.No, f.Last(), f.Digest
	if err := s.witness.frame(f); err != nil {
		s.fail("frame %d: %v", f.No, err)
	}
	s.result.Trades = s.witness.fills
}

// unanswered remembers a Command that got no answer.
func (s *simulation) unanswered(c *engine.Command) {
	s.result.Unknown++
	s.traders.doubt(c)
}

// drain finishes the pipeline after the writer has failed.
func (s *simulation) drain() {
	for len(s.stepped) > 0 {
		s.append()
	}
	for len(s.appended) > 0 {
		s.commit()
	}
}

// picture keeps a Snapshot of some market, to check later that it has not changed.
func (s *simulation) picture() {
	if s.dice.IntN(10) > 0 {
		return
	}
	l := &s.plan.markets[s.dice.IntN(len(s.plan.markets))]
	if p := s.board.Condition(l.Condition); p != nil {
		s.pictures = append(s.pictures, p)
	}
	if len(s.pictures) > 8 {
		s.pictures = s.pictures[1:]
	}
}

// rest commits everything, ends the process in order and starts the next one. A bit may flip in
// between.
func (s *simulation) rest(flip bool) {
	if s.dying {
		s.drain()
	} else {
		s.disk.relax()
	}
	for !s.dying && len(s.entered)+len(s.stepped)+len(s.appended) > 0 {
		s.match()
		s.append()
		s.commit()
	}
	e := s.crash()
	e.orderly = !s.dying
	e.flip = flip && e.orderly
	s.die(e)
}

// finish ends the run: it commits everything, starts once more, and compares.
func (s *simulation) finish() {
	s.say("end")
	s.rest(false)
	s.check(len(s.frames) == int(s.head.Frame), "%d frames, the last is %d", len(s.frames),
		s.head.Frame)
	s.all()
	s.disk.index()
}

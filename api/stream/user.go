package stream

import (
	"fmt"
	"strconv"
	"time"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
)

// OwnerOptions are the settings and functions that the user channel needs. All are required.
type OwnerOptions struct {
	// Next waits for the next durable frame; the first is number Frame. Its error ends Hub.RunOwners.
	Next  func() ([]byte, error)
	Frame uint64
	// Frames returns a function that reads durable frames from a number on. false: there are no more.
	Frames func(from uint64) func() ([]byte, bool, error)
	// FrameOf returns the number of the frame that has a Sequence, or of the next one to come.
	FrameOf func(engine.Sequence) (uint64, error)
	// Touched returns the next frames, not before from, in which orders of an owner may have changed.
	Touched func(owner engine.WalletNo, from uint64) (first, last uint64, err error)
	// Indexed waits a while until the index holds a Sequence, and reports whether it does.
	Indexed func(engine.Sequence) bool
	// Tell returns how many messages there are for an owner about a Command of a frame, which the
	// index holds. message renders one: its market, and its body without the closing brace.
	Tell func(f *engine.Frame, command int, owner engine.WalletNo, d wire.Dialect) (
		n int, message func(i int) (engine.MarketNo, []byte, error))
	// Failed gets the error for which a reader was not served. The reader does not see the error.
	Failed func(error)
}

// userPart holds what only a reader of the user channel has. The Hub's mutex guards it.
//
//	run ──► a live reader gets the messages of a frame at once
//	           │ no room                 ▲ has caught up
//	           ▼                         │
//	        reclaim reads frames again, at the pace at which the reader takes messages
type userPart struct {
	who   wire.Owner
	owner engine.WalletNo // 0: the address has no account yet
	// markets are those that the reader asked for; nil: all.
	markets map[engine.MarketNo]struct{}
	live    bool // gets the messages of each frame at once
	// frame and seq say how far the reader was told. They are valid only while he is not live.
	frame uint64
	seq   engine.Sequence
	// after is the last message that the reader had when he resumed. He gets only later messages.
	after place
}

// place identifies a message of the user channel by its Sequence and its part.
type place struct {
	seq  engine.Sequence
	part int
}

// roomLive is how many bytes may wait for a live reader. Beyond it, reclaim serves the reader.
const roomLive = maxBehind / 4

// owners is a Hub's part for the user channel. The Hub's mutex guards all fields but the options.
type owners struct {
	hub     *Hub
	o       *OwnerOptions // nil: there is no user channel
	at      uint64        // the number of the last frame that live readers were told
	seq     engine.Sequence
	readers map[*subscriber]struct{}
	busy    chan struct{} // has a value for each reader that reads frames again right now
}

// maxBusy is how many readers may read frames again at once. The others wait.
const maxBusy = 4

// run tells readers of the user channel what happens to their orders, until Next fails.
func (p *owners) run() error {
	var f engine.Frame
	for {
		b, err := p.o.Next()
		if err != nil {
			return err
		}
		if err := engine.DecodeUnhashed(b, &f); err != nil {
			return fmt.Errorf("read frame for users: %w", err)
		}
		if p.unread(&f) {
			continue
		}
		p.hub.await(f.Last())
		going := true
		if !p.hub.survives("the user channel", func() { going = p.tellOwners(&f) }) {
			p.hub.beginAnew()
			p.pass(&f)
		}
		if !going {
			_, err := p.o.Next() // the journal closes
			return err
		}
		p.hub.rouse()
	}
}

// unread skips a frame if there are no readers, and reports whether it has.
func (p *owners) unread(f *engine.Frame) bool {
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	if len(p.readers) > 0 {
		return false
	}
	p.at, p.seq = f.No, f.Last()
	return true
}

// pass skips a frame whose messages could not be sent because of a panic.
func (p *owners) pass(f *engine.Frame) {
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	p.at, p.seq = f.No, f.Last()
}

// inTurn calls do once fewer than maxBusy readers are reading frames again.
func (p *owners) inTurn(do func() error) error {
	p.busy <- struct{}{}
	defer func() { <-p.busy }()
	return do()
}

// audience identifies the readers who get the same bytes: those of one owner, in one dialect.
type audience struct {
	owner   engine.WalletNo
	dialect wire.Dialect
}

// letter is a message to an owner about a Command of a frame.
type letter struct {
	market engine.MarketNo
	place
	body []byte
}

// tellOwners gives the messages of a frame to the live readers whom it touches. It returns false
// when the Hub ends.
func (p *owners) tellOwners(f *engine.Frame) bool {
	wanted := p.touched(f)
	told := make(map[audience][]letter, len(wanted))
	for len(wanted) > 0 && !p.o.Indexed(f.Last()) {
		select {
		case <-p.hub.ended:
			return false
		case <-time.After(retryPause): // a slow disk can delay the index for long
		}
	}
	for a := range wanted {
		letters, whole, err := p.letters(f, a)
		if err != nil {
			p.o.Failed(err)
		}
		if whole && err == nil {
			told[a] = letters
		}
	}
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	p.at, p.seq = f.No, f.Last()
	touched := ownersOf(f)
	for s := range p.readers {
		r := s.user
		if p.find(r); !r.live || !touched[r.owner] {
			continue
		}
		letters, rendered := told[audience{r.owner, r.who.Dialect}]
		if size := sizeOf(letters); !rendered || s.behind+size > roomLive && s.behind > 0 {
			r.live, r.frame, r.seq = false, f.No-1, f.First-1
			go p.reclaim(s)
			continue
		}
		for i := range letters {
			s.tell(&letters[i])
		}
	}
	p.cutRevoked(f)
	return true
}

// sizeOf returns the total length of the bodies of letters, in bytes.
func sizeOf(letters []letter) (n int) {
	for i := range letters {
		n += len(letters[i].body)
	}
	return n
}

// tell queues a message, if the reader wants its market and did not have it when he resumed.
func (s *subscriber) tell(l *letter) {
	if a := s.user.after; l.seq < a.seq || l.seq == a.seq && l.part <= a.part {
		return
	}
	if _, wanted := s.user.markets[l.market]; wanted || s.user.markets == nil {
		s.enqueue(&bulletin{market: l.market, seq: l.seq, outcome: both, body: l.body})
	}
}

// find looks up the account of a reader whose address had none.
func (p *owners) find(r *userPart) {
	if r.owner == 0 {
		r.owner, _ = p.hub.o.Board.Directory.Wallet(r.who.Address)
	}
}

// touched returns the audiences of the live readers whose orders a frame changes.
func (p *owners) touched(f *engine.Frame) map[audience]struct{} {
	changed := ownersOf(f)
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	some := make(map[audience]struct{})
	for s := range p.readers {
		if p.find(s.user); s.user.live && changed[s.user.owner] {
			some[audience{s.user.owner, s.user.who.Dialect}] = struct{}{}
		}
	}
	return some
}

// ownersOf returns the owners whose orders a frame may change.
func ownersOf(f *engine.Frame) map[engine.WalletNo]bool {
	owners := make(map[engine.WalletNo]bool)
	for i := range f.Commands {
		if f.Commands[i].Kind == engine.Place {
			owners[f.Commands[i].Owner] = true
		}
	}
	for i := range f.Events {
		if k := f.Events[i].Kind; k == engine.Filled || k == engine.Cancelled {
			owners[f.Events[i].Owner] = true
		}
	}
	delete(owners, 0)
	return owners
}

// letters renders the messages of a frame for an audience. whole is false if they exceed roomLive.
func (p *owners) letters(f *engine.Frame, a audience) (some []letter, whole bool, err error) {
	if !p.hub.survives("the messages of an owner", func() {
		some, whole, err = p.renderAll(f, a)
	}) {
		return nil, false, nil // its readers read the frame again; a panic there closes their sockets
	}
	return some, whole, err
}

func (p *owners) renderAll(f *engine.Frame, a audience) (some []letter, whole bool, err error) {
	size := 0
	for i := range f.Commands {
		n, message := p.o.Tell(f, i, a.owner, a.dialect)
		for k := range n {
			market, body, err := message(k)
			if err != nil {
				return nil, false, err
			}
			some = append(some, letter{market, place{f.First + engine.Sequence(i), k + 1}, body})
			if size += len(body); size > roomLive {
				return nil, false, nil
			}
		}
	}
	return some, true, nil
}

// cutRevoked closes the sockets of the keys that a frame revokes.
func (p *owners) cutRevoked(f *engine.Frame) {
	for i := range f.Commands {
		c, events := &f.Commands[i], f.EventsOf(i)
		if c.Kind != engine.SetKey || !c.Revoke || events[len(events)-1].Kind != engine.KeySet {
			continue
		}
		for s := range p.readers {
			r := s.user
			if r.owner == c.Owner && r.who.Class == c.Class && r.who.Number == c.Key {
				s.close(live.Forbidden, "the key is revoked")
			}
		}
	}
}

// reclaim tells a reader all that he has missed, and then makes him live.
func (p *owners) reclaim(s *subscriber) {
	var err error
	whole := p.hub.survives("the past of a reader", func() { err = p.catch(s) })
	if whole && err == nil {
		return
	}
	if err != nil {
		p.o.Failed(err)
	}
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	if whole {
		s.close(live.TryLater, "the past cannot be read now")
	} else {
		s.close(live.Broken, failed)
	}
}

func (p *owners) catch(s *subscriber) error {
	r := s.user
	if r.after.seq > 0 && r.frame == 0 {
		if err := p.seek(s); err != nil {
			return err
		}
	}
	for {
		owner, end, caught := p.step(s)
		if caught {
			return nil
		}
		if owner == 0 {
			p.advance(s, end, r.seq)
			continue
		}
		var first, last uint64
		if err := p.inTurn(func() (err error) {
			first, last, err = p.o.Touched(owner, r.frame+1)
			return err
		}); err != nil {
			return err
		}
		if first > end {
			p.advance(s, end, r.seq)
		} else if err := p.reread(s, owner, first, min(last, end)); err != nil {
			return err
		}
	}
}

// seekPause is how long seek waits until run has passed the Sequence from which a reader resumes.
const seekPause = time.Second

// seek finds the frame from which a reader resumes. If the journal has no such Sequence, seek tells
// the reader so, and the reader gets only new messages.
func (p *owners) seek(s *subscriber) error {
	r := s.user
	for end := time.Now().Add(seekPause); ; time.Sleep(retryPause) {
		first, err := p.o.FrameOf(r.after.seq)
		if err != nil {
			return err
		}
		p.hub.mutex.Lock()
		at, source := p.at, ""
		r.frame = min(first-1, at)
		switch {
		case first <= at:
			source = "journal"
		case time.Now().After(end):
			source = "unknown"
			missing := strconv.FormatUint(uint64(r.after.seq), 10)
			r.after, r.seq = place{}, p.seq
			p.hub.fail(s, "unknown_seq", "the node has no Sequence "+missing+
				": ask for your orders and trades over HTTP")
		}
		if source != "" {
			p.hub.figures.resumes.WithLabelValues(source).Inc()
		}
		p.hub.mutex.Unlock()
		if source != "" {
			return nil
		}
	}
}

// step returns the owner whose messages a reader must read, and the last frame to read. caught is
// true if nothing is left to read: step has made the reader live, or the reader is gone.
func (p *owners) step(s *subscriber) (owner engine.WalletNo, end uint64, caught bool) {
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	r := s.user
	if r.frame == p.at {
		r.live = true
	}
	return r.owner, p.at, r.live || s.cut
}

// advance notes that a reader was told all up to a frame.
func (p *owners) advance(s *subscriber, frame uint64, seq engine.Sequence) {
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	s.user.frame, s.user.seq = frame, seq
}

// reread reads the frames from first to last again, and tells a reader their messages.
func (p *owners) reread(s *subscriber, owner engine.WalletNo, first, last uint64) error {
	next := p.o.Frames(first)
	var f engine.Frame
	for no := first; no <= last; no++ {
		found := false
		err := p.inTurn(func() error {
			b, more, err := next()
			if found = more; err == nil && found {
				err = engine.DecodeFrame(b, &f)
			}
			return err
		})
		if err != nil || !found {
			return fmt.Errorf("read frame %d again for a user (%v): %w", no, found, err)
		}
		for !p.o.Indexed(f.Last()) {
			if time.Sleep(retryPause); p.gone(s) {
				return nil
			}
		}
		for i := range f.Commands {
			if err := p.retell(s, owner, &f, i); err != nil {
				return err
			}
		}
		if p.advance(s, no, f.Last()); p.gone(s) {
			return nil
		}
	}
	return nil
}

// gone reports whether the socket of a subscriber is closed or about to be closed.
func (p *owners) gone(s *subscriber) bool {
	p.hub.mutex.Lock()
	defer p.hub.mutex.Unlock()
	return s.cut
}

// retell tells a reader the messages about a Command, as fast as the reader takes them.
func (p *owners) retell(
	s *subscriber, owner engine.WalletNo, f *engine.Frame, command int,
) error {
	after, seq := s.user.after, f.First+engine.Sequence(command)
	if seq < after.seq {
		return nil
	}
	n, message := p.o.Tell(f, command, owner, s.user.who.Dialect)
	for i := range n {
		if seq == after.seq && i < after.part {
			continue
		}
		market, body, err := message(i)
		if err != nil {
			return err
		}
		if !p.put(s, &letter{market, place{seq, i + 1}, body}) {
			return nil
		}
	}
	return nil
}

// put waits until there is room for a message and puts it into the queue. It returns false if the
// reader is gone.
func (p *owners) put(s *subscriber, l *letter) bool {
	for ; ; time.Sleep(retryPause) {
		p.hub.mutex.Lock()
		if gone, room := s.cut, s.behind < roomLive; gone || room {
			if !gone {
				s.tell(l)
			}
			p.hub.mutex.Unlock()
			p.hub.rouse()
			return !gone
		}
		p.hub.mutex.Unlock()
	}
}

// lastOf returns the Sequence up to which a reader was told.
func (p *owners) lastOf(r *userPart) engine.Sequence {
	if r.live {
		return p.seq
	}
	return min(r.seq, p.seq)
}

// join makes a subscriber a reader: from now on, or from where it resumes.
func (p *owners) join(s *subscriber, who *wire.Owner, resume *place) {
	r := &userPart{who: *who, live: resume == nil}
	p.find(r)
	s.user = r
	p.readers[s] = struct{}{}
	p.hub.figures.readers.Inc()
	if resume == nil {
		return
	}
	if r.after = *resume; r.after.seq == 0 { // otherwise seek counts the resume
		p.hub.figures.resumes.WithLabelValues("journal").Inc()
	}
	go p.reclaim(s)
}

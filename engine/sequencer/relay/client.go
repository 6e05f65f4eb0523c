package relay

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"sync"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
)

// Options make a Client.
type Options struct {
	// Timeout is how long a caller waits for his answer; default 10 s.
	Timeout time.Duration
	// Patience is how long a Command waits while there is no connection; default 1 s.
	Patience time.Duration
	// Most is how many Commands may be on their way, orders 7 of 8 of them; default 4,096.
	Most int
	// Shown is the last Sequence that this node shows; whoever makes it grow calls Client.Arrive.
	Shown func() engine.Sequence
}

// Client takes Commands on a node that does not lead. Any goroutine may call Enter, EnterAll and
// Arrive; one at a time calls Carry.
type Client struct {
	o     Options
	calls *sequencer.Calls

	mu       sync.Mutex
	queue    []queued  // not handed to a connection
	sent     []*flying // handed to the connection, in order
	bounced  time.Time // when the other end said last that it does not lead
	resting  bool      // nothing more is handed to the connection
	arrived  []landing // answered, and not shown here yet
	held     int       // Commands in all three
	carrying net.Conn  // nil: there is no connection
	closed   bool
	more     chan struct{} // has a token when the queue may have grown
	sweeping *time.Timer   // fires when the first of the queue has waited too long
}

// queued is a bundle in the queue.
type queued struct {
	bundle
	until time.Time // when it is given up if there is no connection
}

// flying is a bundle that was handed to the connection.
type flying struct {
	queued
	next     int // the Command whose answer comes next
	homeless int // Commands that found no leader: they did not happen
}

// landing is an answer that waits until this node shows its Sequence.
type landing struct {
	answer
	call *sequencer.Call
}

// bounce is how long nothing is sent to a node that has said that it does not lead.
const bounce = 5 * time.Millisecond

// writeTime is how long a write may take before the connection is given up.
const writeTime = 10 * time.Second

// NewClient makes a Client without a connection.
func NewClient(o Options) *Client {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Patience = cmp.Or(o.Patience, time.Second)
	o.Most = cmp.Or(o.Most, 4096)
	c := &Client{o: o, calls: sequencer.NewCalls(o.Timeout), more: make(chan struct{}, 1)}
	c.sweeping = time.AfterFunc(time.Hour, c.sweep)
	c.sweeping.Stop()
	return c
}

// Enter takes a copy of a Command and does not wait: the Call has the answer. Errors: those of
// Sequencer.Enter.
func (c *Client) Enter(command *engine.Command) (*sequencer.Call, error) {
	calls := make([]*sequencer.Call, 1)
	err := c.enter(1, calls, func(int) *engine.Command { return command })
	return calls[0], err
}

// EnterAll takes copies of Commands that are to be neighbours in the journal, or none of them. It
// fills calls, which is as long as commands.
func (c *Client) EnterAll(commands []engine.Command, calls []*sequencer.Call) error {
	return c.enter(len(commands), calls, func(i int) *engine.Command { return &commands[i] })
}

func (c *Client) enter(n int, calls []*sequencer.Call, at func(int) *engine.Command) error {
	limit := c.o.Most
	for i := range n {
		if at(i).Kind == engine.Place {
			limit = c.o.Most - c.o.Most/8 // the rest is for cancels
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return sequencer.ErrClosed
	case c.held+n > limit:
		return sequencer.ErrBusy
	}
	w := queued{until: time.Now().Add(c.o.Patience),
		bundle: bundle{make([]engine.Command, n), make([]*sequencer.Call, n)}}
	for i := range n {
		calls[i] = c.calls.Prepare(&w.commands[i], at(i))
		w.calls[i] = calls[i]
	}
	c.held += n
	if c.queue = append(c.queue, w); len(c.queue) == 1 && c.carrying == nil {
		c.sweeping.Reset(c.o.Patience)
	}
	c.wake()
	return nil
}

func (c *Client) wake() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// sweep gives up what has waited too long for a connection.
func (c *Client) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for c.carrying == nil && len(c.queue) > 0 {
		w := c.queue[0]
		if left := w.until.Sub(now); left > 0 {
			c.sweeping.Reset(left)
			return
		}
		c.queue = c.queue[1:]
		c.refuse(w.calls, sequencer.ErrNoLeader)
	}
}

// refuse answers calls with an error. Callers hold mu.
func (c *Client) refuse(calls []*sequencer.Call, err error) {
	for _, call := range calls {
		call.Answer(engine.Receipt{}, nil, err)
	}
	c.held -= len(calls)
}

// Carry lets Commands travel over a connection until that breaks, and closes it. The error says why
// it broke. What was on its way then has an unknown outcome.
func (c *Client) Carry(conn net.Conn) error {
	c.mu.Lock()
	if c.closed || c.carrying != nil {
		c.mu.Unlock()
		conn.Close()
		return sequencer.ErrClosed
	}
	c.carrying, c.resting = conn, false
	c.mu.Unlock()
	c.wake()
	over, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		c.write(conn, over)
	}()
	err := c.read(conn)
	close(over)
	conn.Close()
	<-joined
	c.mu.Lock()
	defer c.mu.Unlock()
	c.carrying = nil
	for _, b := range c.sent {
		c.refuse(b.calls[b.next-b.homeless:], sequencer.ErrUnknown)
	}
	c.sent = nil
	now := time.Now()
	for i := range c.queue { // the clock of their patience begins now
		c.queue[i].until = now.Add(c.o.Patience)
	}
	if len(c.queue) > 0 {
		c.sweeping.Reset(c.o.Patience)
	}
	return fmt.Errorf("the way to the leader ends: %w", err)
}

// Rest hands nothing more to a connection, because another node leads now, and waits until what
// was handed over before is answered, or for some time: the node that led knows what came of it. It
// does nothing to another connection that is used by now.
func (c *Client) Rest(conn net.Conn, limit time.Duration) {
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		done := c.carrying != conn || len(c.sent) == 0
		c.resting = c.resting || c.carrying == conn
		c.mu.Unlock()
		if done || time.Now().After(end) {
			return
		}
	}
}

// write sends what is queued until the connection is over.
func (c *Client) write(conn net.Conn, over <-chan struct{}) {
	var w commandWriter
	for {
		all, pause := c.take()
		if len(all) == 0 {
			select {
			case <-c.more:
			case <-time.After(pause):
			case <-over:
				return
			}
			continue
		}
		b := w.encode(all)
		err := conn.SetWriteDeadline(time.Now().Add(writeTime))
		if err == nil {
			_, err = conn.Write(b)
		}
		if err != nil {
			conn.Close() // then read ends, too
			return
		}
	}
}

// take returns the oldest bundles of the queue, as many as one frame holds. If none may be sent
// now, take returns none, and how long to wait before the next look.
func (c *Client) take() (all []bundle, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pause = bounce - time.Since(c.bounced); pause > 0 {
		return nil, pause
	}
	n := 0
	for len(c.queue) > 0 && !c.resting {
		w := c.queue[0]
		if n += len(w.commands); n > engine.FrameCommands && len(all) > 0 {
			break
		}
		all, c.queue = append(all, w.bundle), c.queue[1:]
		c.sent = append(c.sent, &flying{queued: w})
	}
	return all, time.Hour
}

// read takes answers until the connection breaks.
func (c *Client) read(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, buffered)
	var buf []byte
	for {
		var err error
		if buf, err = readMessage(in, buf); err != nil {
			return err
		}
		for b := buf; len(b) > 0; {
			var a answer
			if b, err = a.take(b); err != nil {
				return err
			}
			if !c.answer(&a) {
				return fmt.Errorf("%w: an answer to nothing", errMalformed)
			}
		}
	}
}

// answer hands an answer to the first of those who wait for one, once its Sequence is shown.
func (c *Client) answer(a *answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sent) == 0 {
		return false
	}
	b := c.sent[0]
	call := b.calls[b.next]
	b.next++
	switch {
	case a.err == sequencer.ErrNoLeader && b.homeless == b.next-1:
		b.homeless++ // as all before it in the bundle
	case a.err == nil && a.receipt.Sequence > c.o.Shown():
		c.arrived = append(c.arrived, landing{*a, call})
	default:
		c.held--
		call.Answer(a.receipt, a.canceled, a.err)
	}
	if b.next == len(b.calls) {
		c.sent = c.sent[1:]
		c.shelter(b)
	}
	return true
}

// shelter puts a bundle that did not happen back into the queue. If a part of it did, or it has
// waited too long, its callers are told. Callers hold mu.
func (c *Client) shelter(b *flying) {
	switch now := time.Now(); {
	case b.homeless == 0:
	case b.homeless == len(b.calls) && now.Before(b.until) && !c.closed:
		c.bounced = now
		c.queue = append(c.queue, b.queued)
		c.wake()
	default:
		c.refuse(b.calls[:b.homeless], sequencer.ErrNoLeader)
	}
}

// Heard tells the node that leads of an API key that this one has heard from, and reports whether
// that is on its way.
func (c *Client) Heard(owner engine.WalletNo, key uint32) bool {
	_, err := c.Enter(&engine.Command{Kind: heard, Owner: owner, Key: key})
	return err == nil
}

// Arrive tells that this node shows more.
func (c *Client) Arrive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.arrived) == 0 {
		return
	}
	shown, left := c.o.Shown(), c.arrived[:0]
	for i := range c.arrived {
		a := &c.arrived[i]
		if a.receipt.Sequence > shown {
			left = append(left, *a)
			continue
		}
		c.held--
		a.call.Answer(a.receipt, a.canceled, nil)
	}
	clear(c.arrived[len(left):])
	c.arrived = left
}

// Held is how many Commands are on their way.
func (c *Client) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// Close refuses what waits, and what comes. The caller ends Carry by closing its connection.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for i := range c.queue {
		c.refuse(c.queue[i].calls, sequencer.ErrNoLeader)
	}
	c.queue = nil
	for i := range c.arrived {
		a := &c.arrived[i]
		c.held--
		a.call.Answer(engine.Receipt{}, nil, sequencer.ErrUnknown)
	}
	c.arrived = nil
}

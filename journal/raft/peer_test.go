package raft

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/journal"

	"github.com/cockroachdb/pebble/v2/vfs"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

var _ sequencer.Journal = (*Lead)(nil)

// soon is how long a test waits until it says that something does not come.
const soon = time.Minute

// box is one member in a test, with its disk.
type box struct {
	t       testing.TB
	id      uint64
	fs      vfs.FS
	dir     string
	journal *journal.Journal
	member  *Peer
	leads   chan *Lead
	ended   chan error
}

// cluster is the members, and the network between them.
type cluster struct {
	t     testing.TB
	nodes []*box
	mu    sync.Mutex
	up    map[uint64]*Peer
	told  []uint64            // voters that members are told of when they start
	over  func(m *pb.Message) // carries messages instead; nil: they arrive at once
}

const clusterID = 99

// newCluster makes and starts the first voters of a cluster.
func newCluster(t *testing.T, voters ...uint64) *cluster {
	t.Helper()
	c := &cluster{t: t, up: map[uint64]*Peer{}, told: voters}
	for _, id := range voters {
		words, ballot, err := genesis(engine.Head{}, voters...)
		if err != nil {
			t.Fatal(err)
		}
		c.add(id, words, ballot)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if n.member != nil {
				c.stop(n)
			}
		}
	})
	return c
}

// add makes a member with an empty journal, and starts it.
func (c *cluster) add(id uint64, words []journal.Entry, ballot journal.Ballot) *box {
	c.t.Helper()
	n := &box{t: c.t, id: id, fs: vfs.NewCrashableMem(), dir: "data", leads: make(chan *Lead, 100)}
	c.put(n, words, ballot)
	return n
}

// put enrolls and starts a member.
func (c *cluster) put(n *box, words []journal.Entry, ballot journal.Ballot) {
	c.t.Helper()
	j := n.open()
	if _, err := journal.Enroll(j, words, ballot); err != nil {
		c.t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.nodes = append(c.nodes, n)
	c.start(n)
}

// open opens the journal of a node, and replays it.
func (n *box) open() *journal.Journal {
	n.t.Helper()
	j, err := journal.Open(journal.Options{Dir: n.dir, FS: n.fs, ID: clusterID,
		Log: slog.New(slog.DiscardHandler), Words: io.Discard, Exit: func(int) {}})
	if err == nil {
		_, err = j.Recover(engine.NewExchange(1), nil)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return j
}

func (c *cluster) start(n *box) {
	c.t.Helper()
	n.journal, n.ended = n.open(), make(chan error, 1)
	var err error
	n.member, err = NewPeer(Options{ID: n.id, Journal: n.journal, Tick: 20 * time.Millisecond,
		Send: c.send, Lead: func(l *Lead) { n.leads <- l }, Log: slog.New(slog.DiscardHandler),
		Voters: c.told})
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.up[n.id] = n.member
	c.mu.Unlock()
	go func() { n.ended <- n.member.Run() }()
}

func (c *cluster) send(m *pb.Message) {
	c.mu.Lock()
	to, over := c.up[m.GetTo()], c.over
	c.mu.Unlock()
	if over != nil {
		over(m)
	} else if to != nil {
		to.Receive(proto.Clone(m).(*pb.Message))
	}
}

func (c *cluster) stop(n *box) {
	c.t.Helper()
	c.mu.Lock()
	delete(c.up, n.id)
	c.mu.Unlock()
	n.member.Close()
	if err := errors.Join(<-n.ended, n.journal.Close()); err != nil {
		c.t.Error(err)
	}
	n.member = nil
}

// leader waits for the next member that may append.
func (c *cluster) leader(but *box) (*box, *scribe) {
	c.t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, n := range c.nodes {
			if n == but || n.member == nil {
				continue
			}
			select {
			case l := <-n.leads:
				if _, over := l.Committed(); over == nil {
					return n, newScribe(c.t, n.journal, l)
				}
			default:
			}
		}
	}
	c.t.Fatal("nobody leads")
	return nil, nil
}

// scribe makes frames after a Lead's head, as a matcher would.
type scribe struct {
	*Lead
	x    *engine.Exchange
	head engine.Head
}

func newScribe(t testing.TB, j *journal.Journal, l *Lead) *scribe {
	t.Helper()
	w := &scribe{Lead: l, x: engine.NewExchange(7)}
	tail := j.Tail(1)
	for w.head.Frame < l.Head.Frame {
		b, there, err := tail.Poll()
		var f engine.Frame
		if err != nil || !there || engine.DecodeFrame(b, &f) != nil || w.x.ApplyFrame(&f) != nil {
			t.Fatalf("frame %d of %d: there %v, %v", w.head.Frame+1, l.Head.Frame, there, err)
		}
		w.head = f.Head()
	}
	if w.head != l.Head {
		t.Fatalf("the lead begins at %+v, the frames end at %+v", l.Head, w.head)
	}
	return w
}

// frame makes the next frame.
func (w *scribe) frame() *engine.Frame {
	c := engine.Command{Kind: engine.Deposit, Address: engine.Address{byte(w.head.Frame)}, Cash: 1}
	f := &engine.Frame{Engine: engine.Version, Epoch: w.Term, No: w.head.Frame + 1,
		First: w.head.Sequence + 1, Time: w.head.Time + 1, Commands: []engine.Command{c}}
	f.Events = w.x.Apply(&c, f.First, f.Time, nil)
	f.Ends, f.Digest = []uint32{uint32(len(f.Events))}, w.x.Digest()
	f.Encode(w.head.Hash)
	w.head = f.Head()
	return f
}

// write appends frames and waits for them.
func (w *scribe) write(t *testing.T, frames int) (all [][]byte) {
	t.Helper()
	for range frames {
		f := w.frame()
		if err := w.Append(f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f.Bytes)
	}
	if err := w.Wait(w.head.Frame); err != nil {
		t.Fatal(err)
	}
	return all
}

// holds waits until the frames from number from on are those that readers of a node see.
func (n *box) holds(from uint64, frames [][]byte) {
	n.t.Helper()
	tail := n.journal.Tail(from)
	stop := time.AfterFunc(soon, tail.Close)
	defer stop.Stop()
	for i, want := range frames {
		if b, err := tail.Next(); err != nil || !bytes.Equal(b, want) {
			n.t.Fatalf("node %d, frame %d: %v", n.id, from+uint64(i), err)
		}
	}
}

// TestMembersAgree: what one leader appended is at all members; after its end another one goes on
// there, and it follows when it is back.
func TestMembersAgree(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	n, w := c.leader(nil)
	frames := w.write(t, 40)
	for _, x := range c.nodes {
		x.holds(1, frames)
	}
	c.stop(n)
	if err := w.Append(w.frame()); !errors.Is(err, ErrLost) {
		t.Fatal("appended after the end:", err)
	}
	if err := w.Wait(41); !errors.Is(err, ErrLost) {
		t.Fatal("waited after the end:", err)
	}
	if err := w.Wait(40); err != nil {
		t.Fatal("what is committed stays so:", err)
	}
	_, w = c.leader(n)
	if w.Head.Frame != 40 {
		t.Fatalf("the next lead begins after frame %d", w.Head.Frame)
	}
	frames = append(frames, w.write(t, 30)...)
	c.start(n)
	for _, x := range c.nodes {
		x.holds(1, frames)
	}
}

// TestLeaderAlone: without a majority nothing is committed, and the leader gives up by itself.
func TestLeaderAlone(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	n, w := c.leader(nil)
	frames := w.write(t, 3)
	for _, x := range c.nodes {
		if x != n {
			c.stop(x)
		}
	}
	lost := w.frame()
	if err := w.Append(lost); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(4); !errors.Is(err, ErrLost) {
		t.Fatal("committed alone:", err)
	}
	c.stop(n)
	for _, x := range c.nodes {
		if x != n {
			c.start(x)
		}
	}
	_, w = c.leader(n)
	frames = append(frames, w.write(t, 2)...)
	if bytes.Equal(frames[3], lost.Bytes) {
		t.Fatal("the lost frame came from nowhere")
	}
	c.start(n) // its tail is replaced
	n.holds(1, frames)
}

// TestMembersChange: a learner gets everything, votes once it is promoted, and a member that is
// removed is not needed.
func TestMembersChange(t *testing.T) {
	c := newCluster(t, 1)
	n, w := c.leader(nil)
	frames := w.write(t, 20)
	change := func(what pb.ConfChangeType, id uint64) {
		t.Helper()
		for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
			err := ErrChange
			if e := n.member.Ask(func(c *Core) { err = c.Change(what, id) }); e != nil {
				t.Fatal(e)
			}
			if err == nil {
				return
			} else if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	if err := n.member.Ask(func(c *Core) {
		for id, what := range map[uint64]pb.ConfChangeType{1: Remove, 2: Promote, 3: Remove} {
			if err := c.Change(what, id); !errors.Is(err, ErrChange) {
				t.Error(what, id, err)
			}
		}
		if err := c.Change(AddLearner, 1); !errors.Is(err, ErrChange) {
			t.Error("a voter becomes a learner:", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for id := uint64(2); id <= 3; id++ {
		change(AddLearner, id)
		x := c.add(id, nil, journal.Ballot{})
		x.holds(1, frames)
		change(Promote, id)
	}
	frames = append(frames, w.write(t, 20)...)
	change(Remove, 1)
	_, w = c.leader(n)
	frames = append(frames, w.write(t, 20)...)
	c.stop(n)
	frames = append(frames, w.write(t, 20)...)
	for _, x := range c.nodes[1:] {
		x.holds(1, frames)
		var s Standing
		if err := x.member.Ask(func(c *Core) { s = c.Standing() }); err != nil || len(s.Voters) != 2 {
			t.Error(s, err)
		}
		c.stop(x)
	}
	c.start(c.nodes[1]) // the members are read from the log
	c.start(c.nodes[2])
	_, w = c.leader(nil)
	if w.Head.Frame != 80 {
		t.Error("a lead from frame", w.Head.Frame)
	}
}

// TestOldJournal: the frames that a node wrote alone are the beginning of its cluster's log, which
// a new member gets as a whole.
func TestOldJournal(t *testing.T) {
	c := &cluster{t: t, up: map[uint64]*Peer{}, told: []uint64{1}}
	n := &box{t: t, id: 1, fs: vfs.NewCrashableMem(), dir: "data", leads: make(chan *Lead, 100)}
	j, alone := n.open(), &scribe{Lead: &Lead{Term: 5}, x: engine.NewExchange(7)}
	var frames [][]byte
	for range 12 {
		f := alone.frame()
		if err := errors.Join(j.Append(f), j.Wait(f.No)); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, f.Bytes)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	words, ballot, err := genesis(alone.head, 1)
	if err != nil || ballot.Term != 5 {
		t.Fatal(ballot, err)
	}
	c.put(n, words, ballot)
	_, w := c.leader(nil)
	if w.Head != alone.head || w.Term <= 5 {
		t.Fatalf("term %d goes on after %+v", w.Term, w.Head)
	}
	frames = append(frames, w.write(t, 10)...)
	if err := n.member.Ask(func(c *Core) { err = c.Change(AddLearner, 2) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.add(2, nil, journal.Ballot{}).holds(1, frames)
	for _, x := range c.nodes {
		c.stop(x)
	}
	c.start(c.nodes[1]) // a learner alone shows what is committed
	c.nodes[1].holds(1, frames)
	c.stop(c.nodes[1])
}

// TestHandOver: the leader hands over without a failed frame once its writer has stopped.
func TestHandOver(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	n, w := c.leader(nil)
	w.write(t, 10)
	to := n.id%3 + 1
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := n.member.Ask(func(c *Core) { c.Transfer(to) }); err != nil {
			t.Fatal(err)
		}
		select {
		case l := <-c.nodes[to-1].leads:
			newScribe(t, c.nodes[to-1].journal, l).write(t, 10)
			return
		default:
		}
	}
	t.Fatal("it stays where it was")
}

// genesis is Found for voters without names.
func genesis(head engine.Head, voters ...uint64) ([]journal.Entry, journal.Ballot, error) {
	founders := make([]Founder, len(voters))
	for i, id := range voters {
		founders[i].ID = id
	}
	return Found(head, founders)
}

package role

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/copies"
	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/relay"
	"clobd/ingress"
	"clobd/ingress/limits"
	"clobd/journal"
	"clobd/journal/raft"
)

// Cluster are the options of a member.
type Cluster struct {
	Name string // of this member
	ID   uint64
	// Journal is the ID of the cluster's journal.
	Journal uint64
	Listen  string // where it takes connections of other members
	// Passport names the member, its cluster and its journal.
	Passport *papers.Passport
	// Known are the members of the day on which this one joined. The journal has the later ones.
	// Addresses, by name, replace the addresses in both.
	Known     []papers.Fellow
	Addresses map[string]string
	TLS       *tls.Config // with this member's certificate, and the cluster's authority
	// Faucet is the most that a client may have paid into a wallet. Links: clients may link wallets.
	Faucet engine.Cash
	Links  bool
	// Quarantined reports whether a Command has once made the engine panic on this node.
	Quarantined func(*engine.Command) bool
	// Windows are those of the door; nil: there are no limits.
	Windows *limits.Windows
	// Proved checks the evidence of an order. nil: nobody checks.
	Proved func(*engine.Command) error
	// Shun stores the fingerprint of a Command that made the engine panic on another node.
	Shun func(fingerprint [32]byte) error
	// Settings are the flags that must be the same for all members, as texts by their names. The
	// others refuse a member that differs.
	Settings func() map[string]string
	// Secrets returns the files of secrets that all members share, by their names.
	Secrets func() (map[string][]byte, error)
	// Heard is called with an API key whose heartbeat came to another node.
	Heard func(owner engine.WalletNo, key uint32)
	// Priority ranks the voters that could lead: the highest leads. A voter with 0 leads only while
	// no other can.
	Priority int
	// Clock is compared with the clocks of the others; nil: time.Now.
	Clock func() time.Time
	// Led is called when this member begins to lead. It must not wait.
	Led func()
}

// Together is a member of a cluster. It shows what is committed, whoever leads.
type Together struct {
	*Common
	cluster *Cluster
	peer    *raft.Peer
	network *raft.Network
	client  *relay.Client
	server  *relay.Server
	latency prometheus.Histogram

	leads        chan *raft.Lead
	leader, term atomic.Uint64 // as they are known
	terms        atomic.Uint64 // how often the term has changed
	lies         atomic.Uint64 // orders of other nodes that nobody signed
	liars        sync.Map      // when each node was last caught with one, by its id
	full         atomic.Uint64 // bundles of other nodes that found a window full
	refused      sync.Map      // members that this one refuses, with the reason that was logged
	moved        chan struct{} // has a token when who takes Commands may have changed
	seen         atomic.Pointer[glimpse]
	damaged      atomic.Bool                  // the journal is, and heals soon
	giver        copies.Giver                 // of copies for new members
	heard        atomic.Int64                 // when the leader was heard last, in unix nanoseconds
	refusal      atomic.Pointer[refusedError] // the last refusal of a member that led; nil: none
	caught       atomic.Bool                  // what is shown is no older than the start
	goal         engine.Sequence              // shown, nothing of before is missing; 0: unknown
	questions    questions
	clocks       clocks                             // of the others
	helped       sync.Map                           // members that heal, each with its connection
	surveyed     atomic.Pointer[map[uint64]welcome] // how others were lately
	unled        atomic.Bool                        // this voter is not to lead
	removal      atomic.Pointer[string]             // who says that it was removed; nil: nobody
	book         papers.Invitations                 // of the invitations that it has given
	turned       atomic.Uint64                      // how often who wanted to join was not let in
	warned       atomic.Int64                       // when that was logged last, in unix nanoseconds

	writer   atomic.Pointer[sequencer.Sequencer] // takes Commands; nil: another node does, or none
	counted  atomic.Pointer[sequencer.Sequencer] // the last writer
	stepping sync.Mutex                          // held while the lead is handed over

	// Of govern's goroutine.
	shown *frameReader          // stopped while a writer shows what it has committed
	spare *spare                // nil: none was needed so far
	next  atomic.Pointer[spare] // spare, for others to look at

	mutex sync.Mutex // guards names
	names map[uint64]Node

	running bool          // Start has got as far as to need a Close
	broken  chan struct{} // closed after the first failure
	closing chan struct{}
	once    sync.Once
	joined  sync.WaitGroup
}

// Node is a member as others see it.
type Node struct {
	Name    string `json:"node"`
	ID      uint64 `json:"id"`
	Address string `json:"address"`
	Role    string `json:"role"`
	// Match is the last entry that the node is known to have, and Lag how many more the leader has.
	// Both are known to the leader only.
	Match  uint64 `json:"match,omitempty"`
	Lag    uint64 `json:"lag"`
	Sent   uint64 `json:"sentBytes"`             // to it, by this node
	Copied uint64 `json:"copiedBytes,omitempty"` // of the copy that it takes of this node now
	// Rules is the latest version of the rules that its program knows, if this node has asked lately.
	Rules uint16 `json:"rules,omitempty"`
}

// The roles of a member.
const (
	Leader  = "leader"
	Backup  = "follower"
	Gateway = "gateway"
)

// Standing is a member's view of its cluster.
type Standing struct {
	Node     string          `json:"node"`
	Role     string          `json:"role"`
	Leader   string          `json:"leader"` // "" if none is known
	Term     uint64          `json:"term"`
	Sequence engine.Sequence `json:"sequence"` // that it shows
	Commit   uint64          `json:"commit"`   // index of the last entry that is committed and here
	Lag      uint64          `json:"lag"`      // entries that are here and not committed
	Rules    uint16          `json:"rules"`    // the version of the rules in force
	// Age is how old what the node shows may be, in seconds: the time since it has heard the leader.
	Age   float64 `json:"ageSeconds"`
	Nodes []Node  `json:"nodes"`
}

func newTogether(c *Common) *Together {
	m := &Together{Common: c, cluster: c.options.Cluster, leads: make(chan *raft.Lead, 1),
		moved: make(chan struct{}, 1), names: map[uint64]Node{}, closing: make(chan struct{}),
		broken: make(chan struct{}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "clobd",
			Subsystem: "cluster", Name: "commit_seconds",
			Help:    "From a frame's append until a majority has it, while this node leads.",
			Buckets: prometheus.ExponentialBuckets(0.000125, 2, 16)})}
	failed, first := c.options.Failed, sync.OnceFunc(func() { close(m.broken) })
	c.options.Failed = func(what string, err error) {
		if err != nil && journal.CanHeal(err) && !m.cluster.lonely() {
			m.damaged.Store(true)
			if e := NoteDamage(c.options.Data, JournalPart, err); e != nil {
				c.options.Log.Error("the next start does not know of the damage", "error", e)
			}
		}
		failed(what, err)
		if err != nil {
			first()
		}
	}
	return m
}

// Start joins the agreement: the member follows from now on, and leads when it is elected.
func (m *Together) Start() error {
	o, c := &m.options, m.cluster
	m.client = relay.NewClient(relay.Options{Shown: m.Board.Shown})
	m.server = &relay.Server{Enter: fellow{m}.enterForwarded,
		EnterAll: fellow{m}.enterAllForwarded, Heard: c.Heard, Shun: c.Shun}
	m.Enter = m.enter
	m.Submit = func(c *engine.Command) (engine.Receipt, error) {
		call, err := m.enter(c)
		if err != nil {
			return engine.Receipt{}, err
		}
		return call.Wait()
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return cli.Hint(fmt.Errorf("listen for members: %w", err), "--cluster NAME@HOST:PORT names an "+
			"address of this machine that is free")
	}
	cluster, err := c.Passport.ClusterID()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	m.network = raft.NewNetwork(raft.NetworkOptions{ID: c.ID, Cluster: cluster, TLS: c.TLS,
		Receive:     fellow{m}.receive,
		Unreachable: func(id uint64) { m.peer.Unreachable(id) },
		Gone:        func(id uint64) { m.peer.Gone(id) },
		Removed:     func(id uint64) bool { return m.peer.Removed(id) },
		Brief:       func(id uint64) bool { return !m.peer.Trusts(id) },
		Stream:      fellow{m}.serve, Guest: fellow{m}.guest,
		Farewell: fellow{m}.bid, Log: o.Log})
	m.peer, err = raft.NewPeer(raft.Options{ID: c.ID, Journal: m.Journal, Send: m.network.Send,
		Lead: m.offer, Moved: m.move, Log: o.Log, Voters: c.told()})
	if err != nil {
		return errors.Join(fmt.Errorf("take part in the cluster: %w", err), l.Close())
	}
	m.lend()
	m.questions.ask = m.peer.Confirm
	o.Metrics.MustRegister(m.metrics(m.counted.Load, m.term.Load)...)
	o.Metrics.MustRegister(fellow{m}.collectors()...)
	x, head := m.restored.State.Exchange, m.restored.Head
	if err := m.follow(); err != nil {
		return errors.Join(err, l.Close())
	}
	m.shown, m.running = m.show(head.Frame), true
	m.heard.Store(time.Now().UnixNano())
	go func() { o.Failed("membership", m.peer.Run()) }()
	m.look()
	if s := m.glimpse(); slices.Contains(s.Voters, c.ID) || len(s.Voters) == 0 {
		m.setSpare(m.keep(x, head)) // a gateway needs none
	}
	m.joined.Go(func() { o.Failed("listen for members", m.network.Serve(l)) })
	m.joined.Go(m.govern)
	m.joined.Go(fellow{m}.carry)
	m.joined.Go(fellow{m}.route)
	m.joined.Go(fellow{m}.observe)
	m.joined.Go(fellow{m}.watchDisk)
	m.joined.Go(fellow{m}.expelled)
	m.joined.Go(contest{fellow{m}}.compare)
	if why := Noted(o.Data, JournalPart); why != nil { // it was not in the way of this start
		m.Damaged(JournalPart, why)
	}
	return nil
}

// told returns the voters of the day on which this member joined.
func (c *Cluster) told() (voters []uint64) {
	for _, n := range c.Known {
		if !n.Gateway {
			voters = append(voters, n.ID)
		}
	}
	return voters
}

// Begin does nothing: each leader journals its own beginning.
func (m *Together) Begin() error { return nil }

// Supply sets Enter, EnterAll and Confirm of the door, and lets the node that leads watch
// heartbeats.
func (m *Together) Supply(door *ingress.Options) {
	door.Enter, door.EnterAll = m.enter, m.enterAll
	door.Watches, door.Heard = m.Leads, m.client.Heard
	door.Confirm = func(d time.Duration) (engine.Sequence, error) {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		return m.Confirm(ctx)
	}
}

// Writer returns the counters of this node's last writer, and zeros if there was none.
func (m *Together) Writer() (counts sequencer.Counters, stalled time.Duration) {
	if w := m.writer.Load(); w != nil {
		return w.Counters(), w.Stalled()
	}
	return counts, 0
}

// Leads reports whether this node gives Commands their Sequence.
func (m *Together) Leads() bool { return m.writer.Load() != nil }

// enter hands a Command to this node's writer, or to the node that leads.
func (m *Together) enter(c *engine.Command) (*sequencer.Call, error) {
	call, err := m.enterHere(c)
	if errors.Is(err, sequencer.ErrClosed) {
		return m.client.Enter(c)
	}
	return call, err
}

// enterAll is enter for Commands that are to be neighbours in the journal.
func (m *Together) enterAll(commands []engine.Command, calls []*sequencer.Call) error {
	err := m.enterAllHere(commands, calls)
	if errors.Is(err, sequencer.ErrClosed) {
		return m.client.EnterAll(commands, calls)
	}
	return err
}

func (m *Together) enterHere(c *engine.Command) (*sequencer.Call, error) {
	w := m.writer.Load()
	if w == nil {
		return nil, sequencer.ErrNoLeader
	}
	call, err := w.Enter(c)
	if errors.Is(err, sequencer.ErrClosed) {
		err = sequencer.ErrNoLeader
	}
	return call, err
}

func (m *Together) enterAllHere(commands []engine.Command, calls []*sequencer.Call) error {
	w := m.writer.Load()
	if w == nil {
		return sequencer.ErrNoLeader
	}
	err := w.EnterAll(commands, calls)
	if errors.Is(err, sequencer.ErrClosed) {
		err = sequencer.ErrNoLeader
	}
	return err
}

// move notes who leads, and in which term.
func (m *Together) move(leader, term uint64) {
	m.leader.Store(leader)
	if m.term.Swap(term) != term {
		m.terms.Add(1)
	}
	m.signal()
	m.options.Log.Info("leader", "node", m.called(leader), "term", term)
}

func (m *Together) signal() {
	select {
	case m.moved <- struct{}{}:
	default:
	}
}

// target returns the member to which Commands go, 0 if there is none.
func (m *Together) target() uint64 {
	to := m.leader.Load()
	if to == m.cluster.ID && m.writer.Load() == nil {
		return 0
	}
	return to
}

// lastWords is how long a former leader may take to answer the last Commands.
const lastWords = 250 * time.Millisecond

// redial is the first pause before the next attempt to connect to the leader. It doubles up to
// redialMost, to spare a leader that is slow or refuses this member.
const (
	redial     = 20 * time.Millisecond
	redialMost = time.Second
)

// carry sends the Commands of this node's door to the leader. When this node begins to lead itself,
// the waiting Commands enter its own writer.
func (m fellow) carry() {
	for again := redial; !m.isClosing(); {
		to := m.target()
		var conn net.Conn
		var err error
		switch to {
		case 0:
		case m.cluster.ID:
			near, far := net.Pipe()
			go func() {
				_ = m.server.Serve(far, relay.Visitor{Allowed: func(c *engine.Command) bool {
					return m.trusted(true, c)
				}}) // this node's door has counted them
			}()
			conn = near
		default:
			conn, err = m.connect(to)
		}
		if conn == nil {
			pause := time.Hour
			if err != nil {
				m.options.Log.Debug("no way to the leader", "node", m.called(to), "error", err)
				pause, again = again, min(2*again, redialMost)
			}
			select {
			case <-m.moved:
				again = redial
			case <-m.closing:
			case <-time.After(pause):
			}
			continue
		}
		done := make(chan struct{})
		again = redial
		go m.hangUp(conn, to, done)
		err = m.client.Carry(conn)
		close(done)
		m.options.Log.Debug("commands", "to", m.called(to), "error", err)
	}
}

// connect opens a connection for Commands to the member that leads.
func (m fellow) connect(to uint64) (net.Conn, error) {
	conn, err := m.network.Dial(to)
	if err != nil {
		return nil, err
	}
	_, err = m.greet(conn, to, false)
	var refused *refusedError
	if !errors.As(err, &refused) {
		m.refusal.Store(nil)
	} else if m.refusal.Swap(refused) == nil {
		m.options.Log.Error("this node is refused", "by", m.called(refused.by), "why", refused.why)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// A connection for Commands is closed when its node heard nothing of the leader at so many looks in
// a row. A gateway begins no election, so nothing else tells it that it is cut off. The looks are
// counted, not the time: a node that was held still itself first reads what has come meanwhile.
const (
	looking    = 250 * time.Millisecond
	silentMost = 8
)

// hangUp closes the connection to the leader when another one leads, or this one is silent.
func (m fellow) hangUp(conn net.Conn, to uint64, done <-chan struct{}) {
	look := time.NewTicker(looking)
	defer look.Stop()
	for last, silent := m.heard.Load(), 0; ; {
		select {
		case <-look.C:
			silent++
			if now := m.heard.Load(); now != last || to == m.cluster.ID {
				last, silent = now, 0
			}
			if silent < silentMost {
				continue
			}
			m.options.Log.Warn("the leader is silent: Commands wait", "node", m.called(to))
		case <-m.moved:
			if m.target() == to {
				continue
			}
			m.client.Rest(conn, lastWords)
		case <-m.closing:
		case <-done:
			m.signal() // the token may have been meant for carry
			return
		}
		conn.Close()
		m.signal()
		return
	}
}

func (m *Together) isClosing() bool {
	select {
	case <-m.closing:
		return true
	default:
		return false
	}
}

// Close hands the lead over, ends the membership, and stops the follower, which writes a last
// checkpoint before ctx ends.
func (m *Together) Close(ctx context.Context) error {
	if !m.running {
		return nil
	}
	if m.Leads() {
		if err := m.StepDown(ctx); err != nil {
			m.options.Log.Warn("the lead is not handed over: the others elect a leader", "error", err)
		}
	}
	m.once.Do(func() { close(m.closing) })
	m.client.Close()
	m.network.Close()
	m.giver.Clear(true)
	m.peer.Close()
	m.joined.Wait()
	end := time.Now().Add(time.Second) // subscribers are to hear of what is committed
	m.shown.reach(m.Journal.Last(), func() bool { return time.Now().After(end) })
	m.shown.stop()
	if m.spare != nil {
		m.spare.end()
	}
	m.Follower.Close(ctx)
	return nil
}

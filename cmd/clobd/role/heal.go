package role

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/copies"
	"clobd/cmd/clobd/papers"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/raft"
)

// The parts of a member's folder that can be made anew. A file with a part's name and damagedSuffix
// makes the next start do that before anything else.
const (
	JournalPart   = "journal"
	IndexPart     = "index"
	damagedSuffix = ".damaged"
	foundBefore   = "found before: "
)

// NoteDamage makes the next start make a part anew.
func NoteDamage(data, part string, why error) error {
	f, err := os.Create(filepath.Join(data, part+damagedSuffix))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strings.TrimPrefix(why.Error(), foundBefore))
	err = errors.Join(err, f.Sync(), f.Close())
	return errors.Join(err, disk.SyncFolder(disk.Filesystem(nil), data))
}

// Noted returns the damage that an earlier process has noted of a part; nil: none.
func Noted(data, part string) error {
	text, err := os.ReadFile(filepath.Join(data, part+damagedSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(fmt.Errorf(foundBefore+"%.400s", text), err)
}

// Renewed removes the note of a part that is whole again.
func Renewed(data, part string) error {
	err := os.Remove(filepath.Join(data, part+damagedSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, disk.SyncFolder(disk.Filesystem(nil), data))
}

// patient heals the journal of one member, or takes a copy of another one's. That member neither
// votes nor answers the others meanwhile.
type patient struct {
	*Options
	healing atomic.Bool
	heals   atomic.Uint64
	copying atomic.Bool
	copied  atomic.Uint64 // bytes
	chunks  uint64        // of them that were asked for and are right
	liars   []uint64      // members whose copies were bad
}

// says tells how the healing gets on.
func (p *patient) says(how string) { p.Renewing("healing: "+how, "clobd_cluster_healing") }

// collectors returns the metrics of healing.
func (p *patient) collectors() []prometheus.Collector {
	const of disk.Subsystem = "cluster"
	return []prometheus.Collector{
		of.Flag("healing", "1 while this node makes its damaged journal anew, of its good frames and "+
			"of those that others give.", p.healing.Load),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd", Subsystem: "cluster",
			Name: "heals_total", Help: "Damaged journals that this node has made anew since it started."},
			func() float64 { return float64(p.heals.Load()) }),
		of.Flag("copying", "1 while this node takes a copy of another member's journal and index.",
			p.copying.Load),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd", Subsystem: "cluster",
			Name: "copied_bytes_total", Help: "Bytes of such copies that have come since it started."},
			func() float64 { return float64(p.copied.Load()) }),
	}
}

// healPause is how long to wait after an attempt that failed.
const healPause = 2 * time.Second

// heal makes the journal anew. It tries until it succeeds, because only a leader can say which
// entries are committed. It returns an error if no attempt can succeed, or if ctx ends.
func (p *patient) heal(ctx context.Context, why error) error {
	if p.Cluster.lonely() {
		return cli.Hint(why, "this member knows no others that have what is damaged: restore a copy")
	}
	p.healing.Store(true)
	defer p.healing.Store(false)
	defer p.Renewing("", "")
	p.Log.Error("the journal is damaged: this member votes no more, and heals it from the others",
		"damage", plainly(why))
	begun := time.Now()
	for {
		p.says("the journal is damaged, and is made anew with the help of the others")
		h, err := p.attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			p.heals.Add(1)
			p.Log.Warn("the journal is whole again", "entry", h.Last.Index, "term", h.Last.Term,
				"frame", h.Head.Frame, "sequence", h.Head.Sequence, "own", h.Own, "fetched", h.Fetched,
				"unread", h.Unread, "took", time.Since(begun).String())
			return nil
		case journal.IsForgotten(err):
			return Advised(err)
		}
		p.Log.Error("the journal is not whole yet", "error", plainly(err), "again_in",
			healPause.String())
		select {
		case <-time.After(healPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const (
	// stepsDown is how long a leader may lead that has lost its majority, with time to spare, and
	// elects how long the others may then take to elect one without this member.
	stepsDown = 2 * time.Second
	elects    = 3 * time.Second
)

// needed stays away for some seconds and reports whether nobody leads without this member. If its
// vote is needed the others have no leader that could help it to heal.
func (p *patient) needed(ctx context.Context) bool {
	s, err := newHelpers(p)
	if err != nil {
		return false // as healing will say
	}
	defer p.Renewing("", "")
	defer s.close()
	select {
	case <-time.After(stepsDown):
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(ctx, elects)
	defer cancel()
	_, err = s.Goal(ctx, 0)
	return err != nil
}

// lonely reports whether this member knows no other one.
func (c *Cluster) lonely() bool { return len(c.Known) < 2 && len(c.Addresses) < 2 }

// plainly returns the text of an error without the advice that holds for a lone node only.
func plainly(err error) string { return disk.Plain(err, journal.Advice(err)) }

// attempt tries once to heal the journal.
func (p *patient) attempt(ctx context.Context) (*journal.Healed, error) {
	s, err := newHelpers(p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	each := func(done, goal uint64) {
		p.says(fmt.Sprintf("entry %d of %d is there", done, goal))
	}
	h, err := journal.Heal(ctx, journal.HealOptions{Goal: s.Goal, Supply: s.Supply, Each: each,
		Options: journal.Options{Dir: p.Data, Log: p.Log, Claim: p.Claim, ID: p.Cluster.Journal,
			Witnesses: p.witnesses}})
	if err != nil {
		return nil, err
	}
	return h, Renewed(p.Data, JournalPart)
}

// helpers asks the other members for the missing entries. The leader may be a member that this one
// has never heard of. Then one of the voters that this member knew when it joined must name that
// leader.
type helpers struct {
	*patient
	network *raft.Network
	known   map[uint64]bool // the voters that may name a leader
	routes  map[uint64]string
	conn    net.Conn // to the leader; nil: none
	leader  uint64   // that had conn last; 0: none
	told    time.Time
}

func newHelpers(p *patient) (*helpers, error) {
	c := p.Cluster
	cluster, err := c.Passport.ClusterID() // after a restore that is not the journal's
	if err != nil {
		return nil, err
	}
	s := &helpers{patient: p, known: map[uint64]bool{}, routes: map[uint64]string{}, told: time.Now()}
	s.network = raft.NewNetwork(raft.NetworkOptions{ID: c.ID, Cluster: cluster, TLS: c.TLS,
		Log: slog.New(slog.DiscardHandler)})
	for _, n := range c.Known {
		if n.ID == c.ID {
			continue
		}
		s.known[n.ID] = !n.Gateway
		address := n.Address
		if moved := c.Addresses[n.Name]; moved != "" {
			address = moved
		}
		s.route(n.ID, address)
	}
	return s, nil
}

func (s *helpers) route(id uint64, address string) {
	s.routes[id] = address
	s.network.Route(id, address)
}

func (s *helpers) close() {
	s.hangUp()
	s.network.Close()
}

func (s *helpers) hangUp() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// healQuestion asks how far the log goes, or for a part of the log.
type healQuestion struct {
	Goal bool             `json:"goal,omitempty"`
	Low  uint64           `json:"low,omitempty"`
	Omit []journal.Frames `json:"omit,omitempty"`
	Copy *copies.Question `json:"copy,omitempty"` // nil: it is about none
}

// healAnswer answers a healQuestion.
type healAnswer struct {
	Error   string          `json:"error,omitempty"`
	Leads   bool            `json:"leads,omitempty"`
	Goal    journal.Goal    `json:"goal"` // if it leads
	Leader  uint64          `json:"leader,omitempty"`
	Address string          `json:"address,omitempty"` // of Leader
	Supply  *journal.Supply `json:"supply,omitempty"`
	Copy    *copies.Answer  `json:"copy,omitempty"`
}

const (
	// longestSupply bounds an answer: a frame of one Command with all its Events is the largest, and
	// grows by a third as text.
	longestSupply = 96 << 20
	// supplyTime is how long one question and its answer may take.
	supplyTime = 30 * time.Second
	// askPause is the pause between two looks for a leader.
	askPause = 200 * time.Millisecond
	// askSay is the time between two lines of the log about that.
	askSay = 10 * time.Second
	// helpPause is the pause after each answer, because an answer costs much and questions cost
	// little.
	helpPause = 20 * time.Millisecond
	// lateCommit is how long the end of a leader's log may wait for its commit.
	lateCommit = 5 * time.Second
)

// exchange sends one question to the leader and returns its answer.
func (s *helpers) exchange(conn net.Conn, q healQuestion) (a healAnswer, err error) {
	err = errors.Join(conn.SetDeadline(time.Now().Add(supplyTime)), papers.Say(conn, &q))
	if err == nil {
		err = papers.Listen(conn, &a, longestSupply)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// open opens a connection to a member that answers such questions.
func (s *helpers) open(id uint64) (net.Conn, error) {
	conn, err := s.network.Dial(id)
	if err != nil {
		return nil, err
	}
	var w welcome
	err = errors.Join(conn.SetDeadline(time.Now().Add(greetTime)),
		papers.Say(conn, &hello{Heals: true, Settings: s.Cluster.Settings(), Knows: known()}))
	if err == nil {
		err = papers.Listen(conn, &w, longestHello)
	}
	if err == nil && w.Refused != "" {
		err = errors.New(w.Refused)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Goal waits for a member that leads in a term not before the given one.
func (s *helpers) Goal(ctx context.Context, term uint64) (journal.Goal, error) {
	for {
		s.hangUp()
		goal, err := s.goal(term)
		if err == nil || ctx.Err() != nil {
			return goal, errors.Join(err, ctx.Err())
		}
		if time.Since(s.told) > askSay {
			s.told = time.Now()
			s.Log.Warn("nobody can help this member to heal yet", "why", err.Error())
		}
		s.says("the journal is damaged; nobody can help yet")
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return goal, ctx.Err()
		}
	}
}

// goal asks all that this member knows, and then the one that leads.
func (s *helpers) goal(term uint64) (goal journal.Goal, err error) {
	var problems []error
	for id, votes := range s.known {
		if !votes {
			continue
		}
		a, err := s.ask(id)
		if err == nil && !a.Leads && a.Leader != 0 && a.Leader != s.Cluster.ID {
			if id = a.Leader; s.routes[id] == "" && a.Address != "" {
				s.route(id, a.Address)
			}
			a, err = s.ask(id)
		}
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("member %d: %w", id, err))
		case !a.Leads:
			problems = append(problems, fmt.Errorf("member %d: %w", id, errNobody))
		case a.Goal.Term < term:
			// It cannot know what this member has answered later. It hears of the term, and another
			// begins.
			s.network.Send(raft.Later(s.Cluster.ID, id, term))
			problems = append(problems, fmt.Errorf("member %d leads in term %d, this one was in term %d", id,
				a.Goal.Term, term))
		default:
			return a.Goal, nil
		}
	}
	return goal, errors.Join(append(problems, errNobody)...)
}

// ask asks a member how far its log goes, and keeps the connection if that member leads.
func (s *helpers) ask(id uint64) (a healAnswer, err error) {
	conn, err := s.open(id)
	if err != nil {
		return a, err
	}
	a, err = s.exchange(conn, healQuestion{Goal: true})
	if err != nil || !a.Leads {
		return a, errors.Join(err, conn.Close())
	}
	s.hangUp()
	s.conn, s.leader = conn, id
	return a, nil
}

// Supply asks the leader for a part of its log, and waits for the commit of the log's end.
func (s *helpers) Supply(ctx context.Context, low uint64, omit []journal.Frames) (
	*journal.Supply, error) {
	for end := time.Now().Add(lateCommit); ; {
		if s.conn == nil {
			return nil, net.ErrClosed
		}
		a, err := s.exchange(s.conn, healQuestion{Low: low, Omit: omit})
		if err == nil && a.Supply == nil {
			err = errors.New("an empty answer")
		}
		if err != nil {
			s.hangUp()
			return nil, err
		}
		if len(a.Supply.Entries) > 0 || time.Now().After(end) || ctx.Err() != nil {
			return a.Supply, ctx.Err()
		}
		time.Sleep(catchGap)
	}
}

// supply answers the questions of a member that heals, or takes a copy.
func (m fellow) supply(from uint64, conn net.Conn) {
	if before, is := m.helped.Swap(from, conn); is { // one at a time
		_ = before.(net.Conn).Close()
	}
	m.options.Log.Info("a member makes its journal with the help of this one", "node", m.called(from))
	for {
		var q healQuestion
		err := conn.SetDeadline(time.Now().Add(supplyTime))
		if err == nil {
			err = papers.Listen(conn, &q, longestHello)
		}
		if err != nil {
			return
		}
		a := healAnswer{}
		switch {
		case q.Copy != nil && q.Copy.Begin && !m.peer.Learns(from): // its vote may be needed
			a.Copy = &copies.Answer{Refused: "only a member without a vote takes a copy"}
		case q.Copy != nil:
			a.Copy = m.giver.Answer(from, q.Copy)
		case q.Goal:
			a = howFar(m)
		default:
			a.Supply, err = raft.Supply(m.Journal, q.Low, q.Omit)
		}
		if err != nil {
			a.Error = "it cannot be read here"
			m.options.Log.Error("what a member needs to heal cannot be read", "node", m.called(from),
				"error", err)
			if journal.CanHeal(err) {
				m.Damaged(JournalPart, err)
			}
		}
		err = errors.Join(conn.SetDeadline(time.Now().Add(supplyTime)), papers.Say(conn, &a))
		if err == nil && a.Copy != nil {
			_, err = conn.Write(a.Copy.Data)
		}
		if err != nil {
			return
		}
		time.Sleep(helpPause)
	}
}

// howFar answers how far this member's log goes, if it leads.
func howFar(m fellow) (a healAnswer) {
	a.Leader = m.leader.Load()
	m.mutex.Lock()
	a.Address = m.names[a.Leader].Address
	m.mutex.Unlock()
	writes := m.Leads()
	var s raft.Standing
	if m.peer.Ask(func(c *raft.Core) { s = c.Standing() }) != nil {
		return healAnswer{}
	}
	if a.Leads = writes && s.Leads; a.Leads {
		a.Goal = journal.Goal{Term: s.Term, Last: s.Last, Created: uint64(m.Journal.Created.UnixMilli())}
	}
	return a
}

// Damaged notes damage of a part that is not needed now. The member makes the part anew as soon as
// a majority can do without it: until then it serves as before.
func (m *Together) Damaged(part string, why error) {
	if !m.damaged.CompareAndSwap(false, true) {
		return
	}
	m.options.Log.Error("old data is damaged: this member makes it anew as soon as the others can do "+
		"without it", "part", part, "damage", plainly(why))
	if err := NoteDamage(m.options.Data, part, why); err != nil {
		m.options.Log.Error("the next start does not know of the damage", "error", err)
	}
	go func() {
		for !m.isClosing() {
			if (fellow{m}).dispensable() {
				m.options.Failed(part, why)
				return
			}
			select {
			case <-time.After(healPause):
			case <-m.closing:
			}
		}
	}()
}

// dispensable reports whether a majority votes and answers without this member. Of several that are
// damaged the one with the lowest id makes its data anew first: all at once would wait for each
// other.
func (m fellow) dispensable() bool {
	m.look()
	s := m.glimpse()
	if !slices.Contains(s.Voters, m.cluster.ID) {
		return s.Leader != 0
	}
	answers := canvass(m, s.Voters, 2*greetTime)
	for id, w := range answers {
		if w.Damaged && id < m.cluster.ID {
			return false
		}
	}
	return s.Leader != 0 && len(answers) > len(s.Voters)/2
}

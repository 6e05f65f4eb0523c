package role

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/engine"
	"clobd/journal/disk"
	"clobd/journal/raft"
)

// glimpse is a copy of the agreement's state, at most observing old. Requests read the copy, so
// that they do not keep the agreement from its work.
type glimpse struct {
	raft.Standing
	match map[uint64]uint64
}

// observing is how old a glimpse gets.
const observing = 50 * time.Millisecond

// look takes a new glimpse. Once the agreement has ended the last glimpse stays.
func (m *Together) look() {
	g := &glimpse{match: map[uint64]uint64{}}
	err := m.peer.Ask(func(c *raft.Core) {
		g.Standing = c.Standing()
		for _, id := range slices.Concat(g.Voters, g.Learners) {
			g.match[id] = c.Match(id)
		}
	})
	if err == nil {
		m.seen.Store(g)
	}
}

// glimpse returns the newest glimpse.
func (m *Together) glimpse() *glimpse {
	if g := m.seen.Load(); g != nil {
		return g
	}
	return &glimpse{}
}

// observe takes a glimpse every observing, until the member closes.
func (m fellow) observe() {
	tick := time.NewTicker(observing)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.look()
		case <-m.closing:
			return
		}
	}
}

// at stands between the name and the address of a member in the journal.
const at = "@"

// routing is how often new members are looked for.
const routing = 250 * time.Millisecond

// route keeps the network's addresses of all members up to date.
func (m fellow) route() {
	known := map[uint64]Node{}
	for _, n := range m.cluster.Known {
		known[n.ID] = Node{Name: n.Name, ID: n.ID, Address: n.Address}
	}
	for {
		s := m.glimpse()
		for id, text := range s.Names {
			name, address, _ := strings.Cut(text, at)
			known[id] = Node{Name: name, ID: id, Address: address}
		}
		all := slices.Concat(s.Voters, s.Learners)
		for id, n := range known {
			if len(all) > 0 && !slices.Contains(all, id) { // it was removed
				n.Address = ""
			} else if moved := m.cluster.Addresses[n.Name]; moved != "" {
				n.Address = moved
			}
			m.mutex.Lock()
			if m.names[id] = n; n.Address == "" {
				delete(m.names, id)
			}
			m.mutex.Unlock()
			m.network.Route(id, n.Address)
		}
		select {
		case <-time.After(routing):
		case <-m.closing:
			return
		}
	}
}

// called returns the name of a member, "" for id 0.
func (m *Together) called(id uint64) string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	switch n, known := m.names[id]; {
	case known:
		return n.Name
	case id == m.cluster.ID:
		return m.cluster.Name
	case id == 0:
		return ""
	}
	return fmt.Sprintf("member-%d", id)
}

// Standing returns this member's view of its cluster.
func (m *Together) Standing() *Standing {
	s, leader := m.glimpse(), m.leader.Load()
	out := &Standing{Node: m.cluster.Name, Leader: m.called(leader), Term: m.term.Load(),
		Sequence: m.Board.Sequence(), Commit: s.Applied, Lag: s.Last - s.Applied,
		Age: fellow{m}.age().Seconds(), Rules: m.version()}
	found := m.surveyed.Load()
	for _, id := range slices.Concat(s.Voters, s.Learners) {
		m.mutex.Lock()
		n := m.names[id]
		m.mutex.Unlock()
		n.Name, n.ID, n.Role, n.Sent = m.called(id), id, Backup, m.network.Sent(id)
		switch {
		case id == leader:
			n.Role = Leader
		case slices.Contains(s.Learners, id):
			n.Role = Gateway
		}
		if id == m.cluster.ID {
			out.Role, n.Rules = n.Role, engine.Version
		} else if found != nil {
			n.Rules = (*found)[id].Knows[1]
		}
		if n.Match = s.match[id]; n.Match > 0 && n.Match < s.Last {
			n.Lag = s.Last - n.Match
		}
		n.Copied = m.giver.Given(id)
		out.Nodes = append(out.Nodes, n)
	}
	if out.Role == "" { // it has not heard yet that it is a member
		out.Role = Gateway
	}
	return out
}

func (m fellow) collectors() []prometheus.Collector {
	const of disk.Subsystem = "cluster"
	return []prometheus.Collector{m.latency, &others{m.Together},
		of.Gauge("term", "The term that this node knows of.",
			func() float64 { return float64(m.term.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd", Subsystem: "cluster",
			Name: "term_changes_total", Help: "How often another term has begun."},
			func() float64 { return float64(m.terms.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd", Subsystem: "cluster",
			Name: "unsigned_orders_total", Help: "Orders of other nodes that nobody had signed, of those " +
				"that were looked at while this node led."},
			func() float64 { return float64(m.lies.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "clobd", Subsystem: "cluster",
			Name: "limited_total", Help: "Requests that other nodes had let in and that found a window of " +
				"their account full here, while this node led."},
			func() float64 { return float64(m.full.Load()) }),
		of.Flag("leads", "1 while this node leads.", m.Leads),
		of.Flag("leader_known", "1 while this node knows who leads.",
			func() bool { return m.leader.Load() != 0 }),
		of.Gauge("clock_off_seconds", "How far the median of the voters' clocks is ahead of this node's at "+
			"least; 0 if they may be equal.", func() float64 { return contest{m}.off().Seconds() }),
		of.Flag("unfit", "1 while this voter is not to lead: for its clock, or because it was told so.",
			m.unled.Load),
		of.Gauge("leader_silent_seconds", "Time since this node has heard the leader: what it shows may "+
			"be as old.", func() float64 { return m.age().Seconds() }),
		of.Gauge("forwarded_waiting", "Commands of this node's door that are on their way to the leader "+
			"and back.", func() float64 { return float64(m.client.Held()) }),
	}
}

// others collects what this node knows of each other member.
type others struct{ m *Together }

var (
	lagOf = prometheus.NewDesc("clobd_cluster_lag_entries",
		"Entries that a member is not known to have, as the leader knows; 0 elsewhere.",
		[]string{"node"}, nil)
	sentTo = prometheus.NewDesc("clobd_cluster_sent_bytes_total",
		"Bytes of messages to a member.", []string{"node"}, nil)
	refused = prometheus.NewDesc("clobd_cluster_refused_messages_total",
		"Messages of other members that this one did not take, by reason: stranger (only a voter may "+
			"say it), form, log, frame (it cannot be), address, kind, often.", []string{"reason"}, nil)
)

// Describe describes the metrics.
func (o *others) Describe(to chan<- *prometheus.Desc) {
	to <- lagOf
	to <- refused
	to <- sentTo
}

// Collect reads the agreement's state.
func (o *others) Collect(to chan<- prometheus.Metric) {
	for why, n := range o.m.peer.Drops() {
		to <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n), why)
	}
	for _, n := range o.m.Standing().Nodes {
		if n.ID == o.m.cluster.ID {
			continue
		}
		to <- prometheus.MustNewConstMetric(lagOf, prometheus.GaugeValue, float64(n.Lag), n.Name)
		to <- prometheus.MustNewConstMetric(sentTo, prometheus.CounterValue, float64(n.Sent), n.Name)
	}
}

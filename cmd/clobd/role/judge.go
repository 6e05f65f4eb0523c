package role

import (
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/relay"
	"clobd/ingress"
	"clobd/ingress/limits"
)

// proofs: the evidence of one in so many orders from other nodes is checked.
const proofs = 64

// liarPause is how long no Command is taken from a node that has handed over what nobody signed.
const liarPause = time.Minute

// serve takes the Commands of another node.
func (m fellow) serve(from uint64, c net.Conn) {
	defer c.Close()
	if !m.peer.Votes(from) && !m.peer.Learns(from) {
		m.options.Log.Warn("a node that is no member wants to enter commands", "member", from)
		return
	}
	commands, knows := m.answer(from, c)
	if !commands {
		return
	}
	gateway := from
	if m.peer.Votes(from) {
		gateway = 0 // believed in all that it says of its callers
	}
	err := m.server.Serve(c, relay.Visitor{Old: !knows, Charge: func(b []engine.Command) error {
		return charge(m, b, gateway)
	}, Allowed: func(command *engine.Command) bool { return allows(m, from, command, c) }})
	m.options.Log.Debug("a node's connection for commands ends", "node", m.called(from), "error", err)
}

// allows reports whether a node may enter a Command here. A node that hands over an order that
// nobody signed is hung up, and for liarPause may enter nothing over its other connections either.
func allows(m fellow, from uint64, command *engine.Command, c net.Conn) bool {
	if lied(m, from) || !m.trusted(m.peer.Votes(from), command) {
		return false
	}
	err := m.doubt(command, rand.N(proofs))
	if err != nil {
		m.liars.Store(from, time.Now())
		m.lies.Add(1)
		m.options.Log.Error("a node has handed over an order that nobody signed: it is hung up",
			"node", m.called(from), "order", command.ID.Hex(), "error", err)
		c.Close()
	}
	return err == nil
}

// lied reports whether a node has handed over such an order less than liarPause ago.
func lied(m fellow, id uint64) bool {
	at, is := m.liars.Load(id)
	return is && time.Since(at.(time.Time)) < liarPause
}

// trusted reports whether another node, with a vote or without, may enter a Command here.
func (m fellow) trusted(votes bool, c *engine.Command) bool {
	switch {
	case relay.IsNote(c):
		return votes || !relay.IsWarning(c)
	case m.cluster.Quarantined(c):
		return false
	case c.Kind == engine.Place && m.revoked(c):
		return false
	case votes:
		return c.Kind != engine.Started && c.Kind != engine.Advance && c.Kind != engine.Raise
	}
	return m.caused(c)
}

// revoked reports whether the API key of an order is revoked. The other node may not know yet.
func (m fellow) revoked(c *engine.Command) bool {
	d := m.Board.Directory
	owner, known := d.Address(c.Owner)
	return known && d.Revoked(owner, c.Key)
}

// longestList is how many Commands of one request count at most. A list that is longer than a
// window only fills it, so there must be a bound.
const longestList = 1000

// charge counts a bundle that another node's door has let in, in the account windows of this one's
// door: so the limits of an account hold over all doors together. Nothing but the Commands says
// what they cost, and whom. Those of a bundle that count belong to one account. gateway is the id
// of a node without a vote, 0 for any other.
func charge(m fellow, b []engine.Command, gateway uint64) error {
	if m.cluster.Windows == nil {
		return nil
	}
	if !m.Leads() {
		return sequencer.ErrNoLeader // who leads counts them
	}
	var owner engine.WalletNo
	n := 0
	for i := range b {
		switch c := &b[i]; {
		case !limits.Counts(c):
		case n > 0 && owner != c.Owner, n == longestList:
			return relay.ErrKind
		default:
			owner = c.Owner
			n++
		}
	}
	account, known := m.Board.Directory.Address(owner)
	if !known { // nothing counts, or the engine refuses it
		return nil
	}
	v := m.cluster.Windows.Forwarded(account, b, gateway)
	if v.Wait > 0 {
		m.full.Add(1)
		return &sequencer.LimitedError{Wait: v.Wait, Window: v.Row}
	}
	return nil
}

// doubt checks the evidence of an order if the draw is 0, and returns what is wrong with it.
func (m fellow) doubt(c *engine.Command, draw int) error {
	if c.Kind != engine.Place || draw != 0 || m.cluster.Proved == nil {
		return nil
	}
	return m.cluster.Proved(c)
}

// caused reports whether clients can cause a Command. A gateway may enter no other.
func (m fellow) caused(c *engine.Command) bool {
	switch c.Kind {
	case engine.Place, engine.Cancel, engine.SplitTokens, engine.MergeTokens, engine.RedeemTokens,
		engine.Arm, engine.SetKey:
		return true
	case engine.CancelAll:
		return c.Owner != 0 && c.Reason != engine.ByOperator
	case engine.Link:
		return m.cluster.Links
	case engine.Deposit:
		return m.cluster.Faucet > 0 && c.Cash == m.cluster.Faucet && c.Market == 0 &&
			c.ID == ingress.GiftID(c.Address)
	}
	return false
}

// warnTime is how long Warn waits for all other members together.
const warnTime = time.Second

// Warn tells all other members the fingerprint of a Command that made the engine panic here, so
// that the same Command does not end the next leader. It returns once they have stored the
// fingerprint, or after warnTime.
func (m *Together) Warn(fingerprint [32]byte) {
	end := time.Now().Add(warnTime)
	var told sync.WaitGroup
	for id := range (fellow{m}).others() {
		told.Go(func() {
			conn, err := m.network.Dial(id)
			if err == nil {
				_, err = fellow{m}.greet(conn, id, false)
			}
			if err == nil {
				err = conn.SetDeadline(end)
			}
			if err == nil {
				err = relay.Warn(conn, fingerprint)
				conn.Close()
			}
			if err != nil {
				m.options.Log.Error("a member does not know of a command that panicked", "node", m.called(id),
					"error", err)
			}
		})
	}
	within(&told, time.Until(end))
}

// others returns the members whose addresses this one knows.
func (m fellow) others() map[uint64]Node {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	all := maps.Clone(m.names)
	delete(all, m.cluster.ID)
	return all
}

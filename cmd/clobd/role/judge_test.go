package role

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/cmd/clobd/papers"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/sequencer/memory"
	"clobd/engine/sequencer/relay"
	"clobd/engine/view"
	"clobd/ingress"
	"clobd/ingress/limits"
	"clobd/journal/raft"
)

// newJudge makes a member that knows an owner with a trading key, number 3, that is revoked.
func newJudge(t *testing.T) fellow {
	t.Helper()
	board := view.NewBoard()
	s, err := sequencer.New(engine.NewExchange(1), board, new(memory.Journal), sequencer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	a := engine.Address{1}
	for _, c := range []engine.Command{{Kind: engine.Deposit, Address: a, Cash: 5},
		{Kind: engine.Link, Address: a, Holder: a}, {Kind: engine.SetKey, Owner: 1, Key: 3},
		{Kind: engine.SetKey, Owner: 1, Key: 3, Revoke: true}} {
		if r, err := s.Submit(&c); err != nil || r.Reject != engine.Accepted {
			t.Fatalf("%+v: %+v %v", c, r, err)
		}
	}
	if err := errors.Join(s.Close(), <-ended); err != nil {
		t.Fatal(err)
	}
	return fellow{&Together{Common: &Common{Board: board}, cluster: &Cluster{Faucet: 9,
		Quarantined: func(c *engine.Command) bool { return c.ID == engine.OrderID{66} },
		Proved: func(c *engine.Command) error {
			if len(c.Proof) == 0 {
				return errors.New("no evidence")
			}
			return nil
		}}}}
}

// TestTrusted: what the leader takes of other nodes: of a gateway what clients can cause, and of
// nobody an order under a revoked key, or a Command that has made the engine panic.
func TestTrusted(t *testing.T) {
	m, a := newJudge(t), engine.Address{2}
	gift := engine.Command{Kind: engine.Deposit, Address: a, Cash: 9, ID: ingress.GiftID(a)}
	change := func(f func(*engine.Command)) engine.Command {
		c := gift
		f(&c)
		return c
	}
	for name, x := range map[string]struct {
		c              engine.Command
		voter, gateway bool
	}{
		"an order":            {engine.Command{Kind: engine.Place, Owner: 1, Key: 4}, true, true},
		"a revoked key":       {engine.Command{Kind: engine.Place, Owner: 1, Key: 3}, false, false},
		"its cancel":          {engine.Command{Kind: engine.Cancel, Owner: 1, Key: 3}, true, true},
		"poison":              {engine.Command{Kind: engine.Place, ID: engine.OrderID{66}}, false, false},
		"a start":             {engine.Command{Kind: engine.Started}, false, false},
		"later rules":         {engine.Command{Kind: engine.Raise, Seen: 7}, false, false},
		"the time":            {engine.Command{Kind: engine.Advance}, false, false},
		"a withdrawal":        {engine.Command{Kind: engine.Withdraw}, true, false},
		"a gift":              {gift, true, true},
		"a gift under an id":  {change(func(c *engine.Command) { c.ID[5]++ }), true, false},
		"a gift without one":  {change(func(c *engine.Command) { c.ID = engine.OrderID{} }), true, false},
		"another wallet's":    {change(func(c *engine.Command) { c.Address[3]++ }), true, false},
		"a larger gift":       {change(func(c *engine.Command) { c.Cash++ }), true, false},
		"a gift of tokens":    {change(func(c *engine.Command) { c.Market = 1 }), true, false},
		"a heartbeat":         {engine.Command{Owner: 1, Key: 4}, true, true},
		"a warning":           {engine.Command{ID: engine.OrderID{1}}, true, false},
		"an operator's sweep": {engine.Command{Kind: engine.CancelAll}, true, false},
	} {
		if m.trusted(true, &x.c) != x.voter || m.trusted(false, &x.c) != x.gateway {
			t.Errorf("%s: voter %v, gateway %v", name, m.trusted(true, &x.c), m.trusted(false, &x.c))
		}
	}
}

// TestDoubt: the evidence of an order is looked at when the draw falls on it, and that of nothing
// else.
func TestDoubt(t *testing.T) {
	m := newJudge(t)
	signed := engine.Command{Kind: engine.Place, Proof: []byte{1}}
	if m.doubt(&engine.Command{Kind: engine.Place}, 0) == nil || m.doubt(&signed, 0) != nil ||
		m.doubt(&engine.Command{Kind: engine.Place}, 1) != nil ||
		m.doubt(&engine.Command{Kind: engine.Cancel}, 0) != nil {
		t.Error("what is looked at")
	}
}

// TestLiar: of a node that was caught with an order that nobody signed nothing is taken for a time,
// over whichever connection. It is told so when it greets: it would connect again and again, and
// what it hands over then would have an unknown outcome.
func TestLiar(t *testing.T) {
	m := newJudge(t)
	m.options.Log, m.names = slog.New(slog.DiscardHandler), map[uint64]Node{}
	m.options.Full = func() bool { return false }
	m.cluster.Settings = func() map[string]string { return nil }
	var err error
	if m.peer, err = raft.NewPeer(raft.Options{ID: 1, Journal: giving(t, 7)}); err != nil {
		t.Fatal(err)
	}
	greets := func(h hello) (w welcome, commands bool) {
		near, far := net.Pipe()
		defer near.Close()
		answered := make(chan bool, 1)
		go func() {
			commands, _ := m.answer(7, far)
			answered <- commands
		}()
		err := errors.Join(papers.Say(near, &h), papers.Listen(near, &w, longestHello))
		if err != nil {
			t.Fatal(err)
		}
		return w, <-answered
	}
	signed := engine.Command{Kind: engine.Place, Owner: 1, Key: 4, Proof: []byte{1}}
	unsigned := engine.Command{Kind: engine.Place, Owner: 1, Key: 4}
	one, other := net.Pipe()
	for allows(m, 7, &unsigned, one) {
	}
	if _, err := one.Write(nil); !errors.Is(err, io.ErrClosedPipe) || m.lies.Load() != 1 {
		t.Errorf("it is not hung up: %v", err)
	}
	if allows(m, 7, &signed, other) || !allows(m, 8, &signed, other) {
		t.Error("who is believed over another connection")
	}
	if w, commands := greets(hello{}); commands || !strings.Contains(w.Refused, "nobody signed") {
		t.Errorf("it may connect again: %+v", w)
	}
	if w, _ := greets(hello{Asks: true}); w.Refused != "" {
		t.Errorf("it is no member any more: %+v", w)
	}
	m.liars.Store(uint64(7), time.Now().Add(-liarPause))
	if w, commands := greets(hello{}); !commands || !allows(m, 7, &signed, other) {
		t.Errorf("for ever: %+v", w)
	}
}

// TestCharge: Commands of another door count in this node's windows while it leads: for the account
// that owns them, who must be one. What nobody asked for does not count.
func TestCharge(t *testing.T) {
	m := newJudge(t)
	place := engine.Command{Kind: engine.Place, Owner: 1, Key: 4}
	other := engine.Command{Kind: engine.Cancel, Owner: 2}
	if err := charge(m, []engine.Command{place}, 7); err != nil {
		t.Error("without limits:", err)
	}
	m.cluster.Windows = limits.New(time.Now)
	if err := charge(m, []engine.Command{place}, 7); !errors.Is(err, sequencer.ErrNoLeader) {
		t.Error("while another one leads:", err)
	}
	m.writer.Store(new(sequencer.Sequencer))
	gift := engine.Command{Kind: engine.Deposit, Address: engine.Address{5}}
	for name, x := range map[string]struct {
		b    []engine.Command
		want error
	}{
		"an order":               {[]engine.Command{place}, nil},
		"two owners":             {[]engine.Command{place, other}, relay.ErrKind},
		"a gift beside":          {[]engine.Command{place, gift}, nil},
		"nobody's":               {[]engine.Command{gift}, nil},
		"two, one of them none":  {[]engine.Command{{Kind: engine.Cancel}, place}, relay.ErrKind},
		"no request":             {slices.Repeat([]engine.Command{place}, 1001), relay.ErrKind},
		"an owner not shown yet": {[]engine.Command{{Kind: engine.Place, Owner: 99}}, nil},
	} {
		if err := charge(m, x.b, 7); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := new(sequencer.LimitedError)
	for _, n := range []int{1000, 1000, 398} {
		if err := charge(m, slices.Repeat([]engine.Command{place}, n), 7); err != nil {
			t.Error(err)
		}
	}
	if err := charge(m, []engine.Command{place}, 0); !errors.As(err, &full) || full.Wait <= 0 ||
		m.full.Load() != 1 {
		t.Errorf("%v, %d counted", err, m.full.Load())
	}
	if v := m.cluster.Windows.Account(engine.Address{1}, limits.Demand{Scope: limits.OrderScope,
		N: 1}); v.Wait == 0 {
		t.Error("this node's own door has room")
	}
}

package role

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"clobd/cmd/clobd/papers"
	"clobd/engine"
)

// fellow is a member's side towards the others: greetings, Commands on their way to the leader, and
// the search for a voter that is fit to lead.
type fellow struct{ *Together }

// hello are the first words on a connection that one member opens to another.
type hello struct {
	// Asks is true if the sender only wants the answer. Otherwise Commands follow.
	Asks bool `json:"asks,omitempty"`
	// Heals is true if the sender's journal is damaged. Its questions follow.
	Heals bool `json:"heals,omitempty"`
	// Settings are the flags that must be the same for all members, as texts by their names.
	Settings map[string]string `json:"settings"`
	// Knows are the versions of the rules that the sender's program can apply.
	Knows knows `json:"knows"`
	// Limits is true if the sender's program knows the answer that a window of an account is full.
	Limits bool `json:"limits,omitempty"`
	// Admits is the candidate that the leader is to admit; nil: none.
	Admits *candidate `json:"admits,omitempty"`
}

// welcome is the answer to a hello: the state of the answering member.
type welcome struct {
	Refused  string          `json:"refused,omitempty"` // why it refuses the sender
	Removed  bool            `json:"removed,omitempty"` // the reason: the sender is no member any more
	Leads    bool            `json:"leads,omitempty"`
	Spare    bool            `json:"spare,omitempty"`   // it has an Exchange to lead with
	Full     bool            `json:"full,omitempty"`    // its disk has no room
	Unfit    bool            `json:"unfit,omitempty"`   // it is not to lead
	Damaged  bool            `json:"damaged,omitempty"` // its journal is; it heals once the others can do without it
	Priority int             `json:"priority"`
	Clock    int64           `json:"clock"`    // Unix time in microseconds
	Sequence engine.Sequence `json:"sequence"` // the last one on its Board
	Knows    knows           `json:"knows"`    // as in hello

	// Of the candidate: Admitted, or the reason: ids up to Taken were given before, or Member has its
	// name or address, or Failed says why.
	Admitted bool   `json:"admitted,omitempty"`
	Taken    uint64 `json:"taken,omitempty"`
	Member   string `json:"member,omitempty"`
	Failed   string `json:"failed,omitempty"`
}

const (
	// greetTime is how long two members may take to greet each other.
	greetTime = 500 * time.Millisecond
	// longestHello bounds what is read of a hello or a welcome.
	longestHello = 64 << 10
)

// refusedError is the error of a hello that another member has refused.
type refusedError struct {
	by        uint64
	name, why string
	removed   bool // because this one is no member any more
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s refuses this node: %s", e.name, e.why)
}

// greet says hello on a connection that this member has opened, and reads the answer.
func (m fellow) greet(conn net.Conn, to uint64, asks bool) (w welcome, err error) {
	before := m.cluster.now()
	err = errors.Join(conn.SetDeadline(time.Now().Add(greetTime)),
		papers.Say(conn, &hello{Asks: asks, Settings: m.cluster.Settings(), Knows: known(),
			Limits: true}),
		papers.Listen(conn, &w, longestHello),
		conn.SetDeadline(time.Time{}))
	if err == nil {
		m.clocks.note(to, time.UnixMicro(w.Clock), before, m.cluster.now())
	}
	if err == nil && w.Refused != "" {
		err = &refusedError{to, m.called(to), w.Refused, w.Removed}
	}
	return w, err
}

// ask returns the welcome of another member, on a connection of its own.
func (m fellow) ask(to uint64) (w welcome, err error) {
	conn, err := m.network.Dial(to)
	if err != nil {
		return w, err
	}
	defer conn.Close()
	return m.greet(conn, to, true)
}

// canvass asks several members at once and returns the answers that come in time.
func canvass(m fellow, ids []uint64, limit time.Duration) map[uint64]welcome {
	var mu sync.Mutex
	var asked sync.WaitGroup
	found := map[uint64]welcome{}
	for _, id := range ids {
		if id == m.cluster.ID {
			continue
		}
		asked.Go(func() {
			if w, err := m.ask(id); err == nil {
				mu.Lock()
				found[id] = w
				mu.Unlock()
			}
		})
	}
	within(&asked, limit)
	mu.Lock()
	defer mu.Unlock()
	return maps.Clone(found) // the late ones go on
}

// within waits until all goroutines of a group have ended, no longer than a limit.
func within(group *sync.WaitGroup, limit time.Duration) {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// answer answers the hello of another member, and reports whether Commands follow, and what hello
// says of Limits.
func (m fellow) answer(from uint64, conn net.Conn) (commands, limits bool) {
	var h hello
	err := errors.Join(conn.SetDeadline(time.Now().Add(greetTime)),
		papers.Listen(conn, &h, longestHello))
	if err != nil {
		m.options.Log.Debug("no greeting", "node", m.called(from), "error", err)
		return false, false
	}
	w := welcome{Leads: m.Leads(), Spare: m.spared(), Full: m.options.Full(),
		Unfit: m.unled.Load(), Damaged: m.damaged.Load(), Priority: m.cluster.Priority,
		Clock: m.cluster.now().UnixMicro(), Sequence: m.Board.Sequence(), Knows: known(),
		Refused: differences(m.called(from), h.Settings, m.cluster.Name, m.cluster.Settings())}
	if w.Refused == "" && m.Leads() {
		w.Refused = h.Knows.misfit(m.version())
	}
	if said, _ := m.refused.Swap(from, w.Refused); w.Refused != "" && said != w.Refused {
		m.options.Log.Warn("a member is refused", "node", m.called(from), "why", w.Refused)
	}
	if w.Refused == "" && !h.Asks && !h.Heals && lied(m, from) { // else it would connect at once again
		w.Refused = "it has handed over an order that nobody signed"
	}
	if h.Admits != nil && w.Refused == "" {
		_ = conn.SetDeadline(time.Now().Add(papers.JoinTime)) // an error comes again with the answer
		m.admits(from, h.Admits, &w)
	}
	err = errors.Join(papers.Say(conn, &w), conn.SetDeadline(time.Time{}))
	if err == nil && w.Refused == "" && h.Heals {
		m.supply(from, conn)
		return false, false
	}
	return err == nil && w.Refused == "" && !h.Asks, h.Limits
}

// differences says what two members are set to that should be equal; "" if all is.
func differences(a string, ofA map[string]string, b string, ofB map[string]string) string {
	names := map[string]string{}
	maps.Copy(names, ofA)
	maps.Copy(names, ofB)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if ofA[name] != ofB[name] {
			all = append(all, fmt.Sprintf("%s is %q at %s and %q at %s", name, ofA[name], a, ofB[name], b))
		}
	}
	return strings.Join(all, "; ")
}

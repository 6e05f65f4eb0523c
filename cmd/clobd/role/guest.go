package role

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/papers"
	"clobd/journal/raft"
)

// candidate is a new member that another one wants admitted as a gateway.
type candidate struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Address string `json:"address"`
}

// highestID bounds the ids of members: numbers of API keys begin with 16 bits of them.
const highestID = 1<<16 - 1

const (
	// longestName and longestAddress bound what the log says of a member.
	longestName    = 64
	longestAddress = 256
)

// Invite makes a token for a new member, NAME@HOST:PORT. The token is good once and for an hour.
// Only a voter with the key of the cluster's authority can make one.
func (m *Together) Invite(place string) (*Invitation, error) {
	name, address, err := papers.Place(place)
	if err == nil {
		_, _, err = net.SplitHostPort(address)
	}
	if err == nil && (len(name) > longestName || len(address) > longestAddress) {
		err = errors.New("it is too long")
	}
	if err == nil && strings.ContainsFunc(place, func(r rune) bool { return r <= ' ' || r > '~' }) {
		err = errors.New("it has letters that do not belong there")
	}
	if err != nil {
		return nil, cli.Hint(fmt.Errorf("%q names no member: %w", place, err), "NAME@HOST:PORT says what "+
			"it is to be called, and where the others will reach it")
	}
	authority, err := (fellow{m}).authority()
	if err != nil {
		return nil, err
	}
	m.look()
	for _, n := range (fellow{m}).fellows() {
		if n.Name == name || n.Address == address {
			return nil, cli.Hint(fmt.Errorf("%s@%s is a member already", n.Name, n.Address), "another "+
				"name and another address; a member that is lost: clobd cluster remove %s", n.Name)
		}
	}
	token, told, err := m.book.Invite(m.cluster.Passport, authority.Root(), name, address)
	if err != nil {
		return nil, err
	}
	m.options.Log.Info("a new member is invited", "node", name, "address", address, "until", told.Until)
	return &Invitation{Token: token.String(), Name: name, Address: address,
		From: (fellow{m}).address(), Until: told.Until}, nil
}

// Invitation is the answer to Invite.
type Invitation struct {
	Token   string    `json:"token"`
	Name    string    `json:"node"`
	Address string    `json:"address"`
	From    string    `json:"from"` // the address of the member that knows the token
	Until   time.Time `json:"until"`
}

// address returns the address at which the others reach this member.
func (m fellow) address() string {
	for _, n := range m.fellows() {
		if n.ID == m.cluster.ID {
			return n.Address
		}
	}
	return m.cluster.Listen
}

// fellows returns all members that this one knows, itself included.
func (m fellow) fellows() (all []papers.Fellow) {
	s := m.glimpse()
	for _, id := range slices.Concat(s.Voters, s.Learners) {
		name, address, _ := strings.Cut(s.Names[id], at)
		if moved := m.cluster.Addresses[name]; moved != "" && id != m.cluster.ID {
			address = moved
		}
		all = append(all, papers.Fellow{Name: name, ID: id, Address: address,
			Gateway: slices.Contains(s.Learners, id)})
	}
	return all
}

// authority returns the cluster's authority, or an error if this member may not use it.
func (m fellow) authority() (*papers.Authority, error) {
	if !m.peer.Votes(m.cluster.ID) {
		return nil, cli.Hint(errors.New("this node has no vote: it lets nobody in"),
			"ask the voter that has cluster/ca.key in its folder")
	}
	a, err := papers.ReadAuthority(m.options.Data)
	if errors.Is(err, papers.ErrNoAuthority) {
		return nil, cli.Hint(err, "ask the voter that has it, the first one at the beginning, or copy "+
			"cluster/ca.key from its folder")
	}
	return a, err
}

// guest serves the connection of a machine that is no member yet.
func (m fellow) guest(c net.Conn) {
	defer c.Close()
	a := new(papers.Application)
	if err := papers.Listen(c, a, papers.MostAsked); err != nil {
		m.options.Log.Debug("no application", "from", c.RemoteAddr().String(), "error", err)
		return
	}
	from, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	ctx, cancel := context.WithTimeout(context.Background(), papers.JoinTime)
	defer cancel()
	err := c.SetDeadline(time.Now().Add(papers.JoinTime + time.Second))
	if err != nil {
		return
	}
	given, err := m.letIn(ctx, from.Addr(), a)
	if err != nil {
		m.turned.Add(1)
		given = &papers.Admission{Refused: err.Error()}
		if advised := new(cli.HintError); errors.As(err, &advised) {
			given.Hint = advised.Hint
		}
		// One line a second: strangers must not fill the log.
		if now, last := time.Now().UnixNano(), m.warned.Load(); now-last >= int64(time.Second) &&
			m.warned.CompareAndSwap(last, now) {
			m.options.Log.Warn("somebody is not let in", "from", from.Addr().String(), "error", err,
				"so_far", m.turned.Load())
		}
	}
	if err := papers.Say(c, given); err != nil {
		m.options.Log.Warn("a new member does not hear the answer: it can ask again", "error", err)
	}
	clear(given.Secrets)
}

// letIn answers an Application: it checks the token and has the new member admitted.
func (m fellow) letIn(ctx context.Context, from netip.Addr, a *papers.Application) (
	*papers.Admission, error) {
	var request *x509.CertificateRequest
	i, err := m.book.Redeem(from, a, func() (key [32]byte, err error) {
		request, key, err = papers.ReadRequest(a.Request)
		return key, err
	})
	if err != nil {
		return nil, err
	}
	i.Turn.Lock()
	defer i.Turn.Unlock()
	authority, err := m.authority()
	if err == nil {
		err = m.admit(ctx, i)
	}
	if err != nil {
		return nil, err
	}
	m.look()
	who := *m.cluster.Passport // the ids of cluster and journal are the same
	who.Name, who.ID, who.Address, who.Members = i.Name, i.ID, i.Address, m.fellows()
	given, err := authority.Admit(&who, request)
	if err == nil {
		given.Settings = m.cluster.Settings()
		given.Secrets, err = m.cluster.Secrets()
	}
	if err == nil {
		m.options.Log.Info("a new member is let in", "node", i.Name, "address", i.Address, "member", i.ID,
			"from", from.String())
	}
	return given, err
}

// takenError is the leader's error for an id that was given before.
type takenError struct{ highest uint64 }

func (e *takenError) Error() string { return fmt.Sprintf("members had ids up to %d", e.highest) }

// admit has the leader admit an invited member. The caller holds the Invitation's Turn.
func (m fellow) admit(ctx context.Context, i *papers.Invitation) error {
	for {
		if i.ID == 0 {
			m.look()
			i.ID = m.glimpse().Highest + 1
		}
		err := m.admitAt(ctx, &candidate{i.ID, i.Name, i.Address})
		var taken *takenError
		var hint *cli.HintError
		switch {
		case err == nil || errors.As(err, &hint):
			return err
		case errors.As(err, &taken):
			i.ID = taken.highest + 1
		}
		select {
		case <-time.After(10 * catchGap):
		case <-m.closing:
			return raft.ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("nobody could be admitted for %v: %w", papers.JoinTime, err)
		}
	}
}

// admitAt has the leader, which may be this member, admit a candidate.
func (m fellow) admitAt(ctx context.Context, c *candidate) error {
	to := m.leader.Load()
	switch to {
	case 0:
		return errNobody
	case m.cluster.ID:
		return m.admitHere(ctx, c)
	}
	conn, err := m.network.Dial(to)
	if err != nil {
		return err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	w := welcome{}
	err = errors.Join(conn.SetDeadline(end),
		papers.Say(conn, &hello{Asks: true, Settings: m.cluster.Settings(), Knows: known(), Admits: c}),
		papers.Listen(conn, &w, longestHello))
	switch {
	case err != nil:
		return err
	case w.Refused != "":
		return &refusedError{by: to, name: m.called(to), why: w.Refused}
	case w.Taken > 0:
		return &takenError{w.Taken}
	case w.Member != "":
		return isMember(w.Member)
	case !w.Admitted:
		return fmt.Errorf("%s does not admit it: %s", m.called(to), w.Failed)
	}
	return nil
}

func isMember(name string) error {
	return cli.Hint(fmt.Errorf("%s has that name or address, and is a member by now", name),
		"clobd cluster invite with another name and another address")
}

// errNotLeading is the error of a member that is asked for what only the leader can do.
var errNotLeading = errors.New("this node does not lead")

// admitHere admits a candidate as a gateway, if this member leads, and waits for the commit. It is
// no error if the candidate is a member already.
func (m fellow) admitHere(ctx context.Context, x *candidate) error {
	text := x.Name + at + x.Address
	for {
		if !m.Leads() {
			return errNotLeading
		}
		var err error
		in := false
		over := m.peer.Ask(func(c *raft.Core) {
			s := c.Standing()
			all := slices.Concat(s.Voters, s.Learners)
			in = slices.Contains(all, x.ID) && s.Names[x.ID] == text
			switch {
			case in:
				return
			case x.ID <= s.Highest:
				err = &takenError{s.Highest}
			case x.ID > highestID:
				err = cli.Hint(fmt.Errorf("%d members there were: no id is left", highestID),
					"clobd cluster restore makes a cluster with ids from 1 on")
			}
			for _, id := range all {
				if name, address, _ := strings.Cut(s.Names[id], at); name == x.Name ||
					address == x.Address {
					err = isMember(name)
				}
			}
			if err == nil {
				err = c.Admit(x.ID, text)
			}
		})
		var taken *takenError
		var hint *cli.HintError
		switch {
		case in:
			return nil
		case over != nil:
			return over
		case errors.As(err, &taken), errors.As(err, &hint):
			return err
		}
		select { // proposed, or there is another change on its way
		case <-time.After(catchGap):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// admits answers a voter that wants a candidate admitted.
func (m fellow) admits(from uint64, c *candidate, w *welcome) {
	if !m.peer.Votes(from) {
		w.Failed = "a node without a vote lets nobody in"
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), papers.JoinTime/2)
	defer cancel()
	err := m.admitHere(ctx, c)
	var taken *takenError
	var hint *cli.HintError
	switch {
	case errors.As(err, &taken):
		w.Taken = taken.highest
	case errors.As(err, &hint):
		w.Member = c.Name
	case err != nil:
		w.Failed = err.Error()
	default:
		w.Admitted = true
	}
}

// bid tells another node that it was removed, once it has said hello.
func (m fellow) bid(from uint64, c net.Conn) {
	defer c.Close()
	var h hello
	if papers.Listen(c, &h, longestHello) != nil {
		return
	}
	w := welcome{Refused: "it was removed from the cluster", Removed: true}
	if said, _ := m.refused.Swap(from, w.Refused); said != w.Refused {
		m.options.Log.Warn("a node that was removed asks", "member", from)
	}
	_ = papers.Say(c, &w) // it asks again
}

// expelled asks the voters, one after the other while nobody is heard to lead, whether this member
// was removed. Members that know of the removal say nothing else to it.
func (m fellow) expelled() {
	tick := time.NewTicker(doubtful)
	defer tick.Stop()
	for turn := 0; ; turn++ {
		if m.peer.Removed(m.cluster.ID) {
			m.expel("the journal")
			return
		}
		if ids := judges(m); len(ids) > 0 && m.age() > doubtful {
			_, err := m.ask(ids[turn%len(ids)])
			if refused := new(refusedError); errors.As(err, &refused) && refused.removed {
				m.expel(refused.name)
				return
			}
		}
		select {
		case <-tick.C:
		case <-m.closing:
			return
		}
	}
}

// doubtful is how long a member hears of no leader before it asks whether it has been removed.
const doubtful = 400 * time.Millisecond

// judges returns the other voters that this member knows of.
func judges(m fellow) (ids []uint64) {
	in := m.peer.Votes(m.cluster.ID) || m.peer.Learns(m.cluster.ID)
	for id := range m.others() {
		if m.peer.Votes(id) || !in && slices.Contains(m.cluster.told(), id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// expel notes for good that this member was removed.
func (m fellow) expel(by string) {
	text := by + " says that this node was removed from the cluster"
	m.removal.Store(&text)
	m.options.Log.Error("this node was removed from the cluster", "says", by)
}

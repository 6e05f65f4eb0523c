package papers

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// The limits of what strangers can make grow.
const (
	tokenLife  = time.Hour
	mostOpen   = 16   // tokens that a member knows, used and expired ones included
	mostTries  = 8    // of one token, in vain
	mostWrong  = 5    // attempts in vain from one machine; one more is allowed each wrongPause
	machines   = 1024 // that were wrong lately; all others count as one then
	wrongPause = time.Second
)

// Invitations are those that a member has given. They are in memory only: after a restart no token
// is good, and none ever again.
type Invitations struct {
	Now func() time.Time // nil: time.Now

	mu    sync.Mutex
	open  map[[8]byte]*Invitation
	wrong map[netip.Prefix]*vain
}

// Invitation is what a token is good for.
type Invitation struct {
	Name, Address string
	Until         time.Time
	Turn          sync.Mutex // held by the one who lets the new member in
	ID            uint64     // that it gets, 0: not known yet. Guarded by Turn

	secret [32]byte // its SHA-256
	tries  int
	key    [32]byte // SHA-256 of the key whose owner has used it; zero: nobody has
}

// vain counts the attempts of a machine. It forgets one each wrongPause.
type vain struct {
	count int
	since time.Time
}

func (b *Invitations) now() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

// Invite makes the token of a new member. An older one for the same name is over. The caller has
// made sure that no member has the name or the address.
func (b *Invitations) Invite(who *Passport, root []byte, name, address string) (*Token, *Invitation,
	error) {
	cluster, err := who.ClusterID()
	if err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for no, i := range b.open {
		if i.Name == name || now.After(i.Until.Add(tokenLife)) { // for so long it is told what it was
			delete(b.open, no)
		}
	}
	if len(b.open) >= mostOpen {
		return nil, nil, fmt.Errorf("%d invitations are known: each is forgotten after 2 hours",
			len(b.open))
	}
	t := newToken(cluster, who.ID, root)
	i := &Invitation{Name: name, Address: address, Until: now.Add(tokenLife),
		secret: sha256.Sum256(t.Secret[:])}
	if b.open == nil {
		b.open = map[[8]byte]*Invitation{}
	}
	b.open[t.No] = i
	return &t, i, nil
}

// The errors of tokens that are good for nothing.
var (
	ErrOften   = errors.New("too many wrong tokens came from this machine: wait some seconds")
	errUnknown = errors.New("the token is not one that this node knows: it is wrong, or the node " +
		"was started again since")
	errExpired = errors.New("the token is over: it was good for an hour")
	errUsed    = errors.New("the token was used by somebody else: a token lets one new member in")
	errTried   = errors.New("the token was tried in vain too often")
)

// Redeem returns what a token from a machine is good for. From then on it is good for the owner of
// one key only, who may ask again if he has lost the answer. The key is not looked at, which costs
// more than all else, for who does not know the token.
func (b *Invitations) Redeem(from netip.Addr, a *Application, key func() ([32]byte, error)) (
	*Invitation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	machine := b.machineOf(from, now)
	v := b.wrong[machine]
	if v != nil && now.Sub(v.since) >= wrongPause {
		v.count = max(0, v.count-int(now.Sub(v.since)/wrongPause))
		v.since = now
	}
	if v != nil && v.count >= mostWrong {
		return nil, ErrOften
	}
	i, err := b.find(a, key, now)
	if err == nil {
		return i, nil
	}
	if v == nil {
		if b.wrong == nil {
			b.wrong = map[netip.Prefix]*vain{}
		}
		v = &vain{since: now}
		b.wrong[machine] = v
	}
	v.count++
	return nil, err
}

// find is the invitation behind a token. It takes equally long whatever is wrong with the secret.
func (b *Invitations) find(a *Application, key func() ([32]byte, error), now time.Time) (
	*Invitation, error) {
	i, known := b.open[a.No]
	if !known {
		i = &Invitation{}
	}
	given := sha256.Sum256(a.Secret[:])
	same := subtle.ConstantTimeCompare(given[:], i.secret[:]) == 1
	switch {
	case !known:
		return nil, errUnknown
	case i.tries >= mostTries:
		return nil, errTried
	case !same:
		i.tries++
		return nil, errUnknown
	case now.After(i.Until):
		return nil, errExpired
	}
	owner, err := key()
	switch {
	case err != nil:
	case i.key != [32]byte{} && i.key != owner:
		err = errUsed
	case i.Name != a.Name || i.Address != a.Address:
		err = fmt.Errorf("the token is for %s@%s, not for %s@%s", i.Name, i.Address, a.Name, a.Address)
	default:
		i.key = owner
		return i, nil
	}
	i.tries++
	return nil, err
}

// machineOf is what attempts are counted by: a network of IPv6 is one machine, and so are all that
// find no room any more.
func (b *Invitations) machineOf(from netip.Addr, now time.Time) netip.Prefix {
	bits := 32
	if from = from.Unmap(); from.Is6() {
		bits = 64
	}
	p, _ := from.Prefix(bits)
	if _, known := b.wrong[p]; known || len(b.wrong) < machines {
		return p
	}
	for m, v := range b.wrong {
		if now.Sub(v.since) > mostWrong*wrongPause {
			delete(b.wrong, m)
		}
	}
	if len(b.wrong) < machines {
		return p
	}
	return netip.Prefix{}
}

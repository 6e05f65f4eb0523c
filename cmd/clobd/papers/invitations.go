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

// The limits of what strangers can make a member remember.
const (
	tokenLife  = time.Hour
	mostOpen   = 16   // tokens that a member remembers, used and expired ones included
	mostTries  = 8    // wrong attempts with one token
	mostWrong  = 5    // wrong attempts of one machine; each wrongPause allows one more
	machines   = 1024 // machines with wrong attempts lately; all further ones count as one machine
	wrongPause = time.Second
)

// Invitations are the tokens that one member has issued. They are in memory only: a restart of the
// member ends them all.
type Invitations struct {
	Now func() time.Time // nil: time.Now

	mu    sync.Mutex
	open  map[[8]byte]*Invitation
	wrong map[netip.Prefix]*vain
}

// Invitation is what the issuer remembers of a token.
type Invitation struct {
	Name, Address string
	Until         time.Time
	Turn          sync.Mutex // held while an Application with this token is answered
	ID            uint64     // of the new member; 0: not drawn yet. Guarded by Turn

	secret [32]byte // its SHA-256
	tries  int
	key    [32]byte // SHA-256 of the public key that has used the token; zero: unused
}

// vain counts the wrong attempts of a machine. Each wrongPause takes one off.
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

// Invite makes a token for a new member, and ends an older token for the same name. root is the
// authority's certificate, DER. The caller has made sure that no member has the name or the
// address.
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
		if i.Name == name || now.After(i.Until.Add(tokenLife)) { // until then Redeem says why
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

// The errors of Redeem.
var (
	ErrOften   = errors.New("too many wrong tokens came from this machine: wait some seconds")
	errUnknown = errors.New("the token is not one that this node knows: it is wrong, or the node " +
		"was started again since")
	errExpired = errors.New("the token is over: it was good for an hour")
	errUsed    = errors.New("the token was used by somebody else: a token lets one new member in")
	errTried   = errors.New("the token was tried in vain too often")
)

// Redeem returns the Invitation of the token in an Application that came from a machine. From the
// first success on the token is bound to one key, whose owner may ask again if the answer was lost.
// key returns the SHA-256 of the public key in the Application; Redeem calls it, which costs more
// than all else, only if the token is right. The error is ErrOften, or says why the token is not
// good.
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

// find returns the Invitation of a token. The time that it takes says nothing about the secret.
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

// machineOf returns the addresses that count as one machine: one address of IPv4, a /64 of IPv6, or
// the zero Prefix for all addresses that the table has no room for.
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

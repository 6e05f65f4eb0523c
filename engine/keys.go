package engine

// KeyClass says what an API key is for. A key itself is derived from its owner's address and its
// number and stored nowhere: what is journaled is that an owner has it, or has it no more.
type KeyClass uint8

// The classes.
const (
	TradingKey KeyClass = iota
	ReadOnlyKey
	BuilderKey

	keyClasses
)

// How many keys of each class an owner may have on record that are good; and of trading keys, how
// many may be armed at once.
const (
	MaxTradingKeys  = 64
	MaxReadOnlyKeys = 16
	MaxBuilderKeys  = 16
)

// MaxKeyRecords bounds what is kept of an owner's keys of one class when they are given up and
// others take their place, which may go on for years: a revoked key must stay known as such.
const MaxKeyRecords = 1024

// most is the bound of a class.
func (c KeyClass) most() uint32 {
	return [keyClasses]uint32{MaxTradingKeys, MaxReadOnlyKeys, MaxBuilderKeys}[c]
}

// keyRecord names one key.
type keyRecord struct {
	owner  WalletNo
	number uint32
	class  KeyClass
}

// keyring is all keys on record, in the order in which they came there, and how many each owner has
// of each class.
type keyring struct {
	all     slab[keyRecord]
	revoked map[keyRecord]bool
	counts  map[keyRecord]keyCount // by owner and class, number 0
}

// keyCount is how many keys are on record, and how many of them are revoked.
type keyCount struct{ all, revoked uint32 }

func newKeyring() keyring {
	return keyring{revoked: make(map[keyRecord]bool), counts: make(map[keyRecord]keyCount)}
}

// judge says whether a key may come on record, be revoked or be restored. What is on record can
// always be revoked, and so can a key that was only ever derived: it is good until then. A trading
// key can be restored, as its owner derives it again; the others are dead for good, because they
// were handed to somebody else.
func (r *keyring) judge(k keyRecord, revoke bool) (refused Reject, limit int64) {
	was, known := r.revoked[k]
	n := r.counts[keyRecord{owner: k.owner, class: k.class}]
	full := n.all >= MaxKeyRecords
	if revoke {
		full = n.revoked >= MaxKeyRecords // one that is restored makes room
	}
	switch most := k.class.most(); {
	case known && (revoke || !was):
		return Accepted, 0
	case known && k.class != TradingKey:
		return RejectKeyGone, 0
	case !known && full:
		return RejectKeyRecords, MaxKeyRecords
	case !revoke && n.all-n.revoked >= most:
		return RejectKeys, int64(most)
	}
	return Accepted, 0
}

// set puts a key on record, or changes what is there.
func (r *keyring) set(k keyRecord, revoke bool) {
	of := keyRecord{owner: k.owner, class: k.class}
	was, known := r.revoked[k]
	n := r.counts[of]
	if !known {
		n.all++
		*r.all.at(r.all.next()) = k
	}
	if was {
		n.revoked--
	}
	if revoke {
		n.revoked++
	}
	r.revoked[k], r.counts[of] = revoke, n
}

// setKey answers SetKey. What is on record stays there, revoked or not.
func (x *Exchange) setKey(c *Command, events []Event) []Event {
	switch {
	case c.Owner == 0 || uint32(c.Owner) > x.accounts.used:
		return refuse(events, c, RejectWallet)
	case c.Class >= keyClasses:
		return refuse(events, c, RejectType)
	}
	k := keyRecord{c.Owner, c.Key, c.Class}
	if refused, limit := x.keys.judge(k, c.Revoke); refused != Accepted {
		return refuse(events, c, refused, limit)
	}
	if was, known := x.keys.revoked[k]; known {
		x.digest -= k.leaf(was)
	}
	x.keys.set(k, c.Revoke)
	x.digest += k.leaf(c.Revoke)
	gone := int64(0)
	if c.Revoke {
		gone = 1
	}
	return append(events, Event{
		Kind: KeySet, Owner: c.Owner, Args: [3]int64{int64(c.Key), int64(c.Class), gone},
		Order: c.ID})
}

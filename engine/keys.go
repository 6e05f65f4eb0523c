package engine

// KeyClass is the purpose of an API key, which is derived from its owner's address and its number.
type KeyClass uint8

// The classes.
const (
	TradingKey KeyClass = iota
	ReadOnlyKey
	BuilderKey

	keyClasses
)

// The limits of good keys on record of one owner, by class. MaxTradingKeys also limits armed keys.
const (
	MaxTradingKeys  = 64
	MaxReadOnlyKeys = 16
	MaxBuilderKeys  = 16
)

// MaxKeyRecords bounds the records of an owner's keys of one class, revoked ones included.
const MaxKeyRecords = 1024

func (c KeyClass) most() uint32 {
	return [keyClasses]uint32{MaxTradingKeys, MaxReadOnlyKeys, MaxBuilderKeys}[c]
}

type keyRecord struct {
	owner  WalletNo
	number uint32
	class  KeyClass
}

// keyring holds all keys on record, oldest first, and their numbers by owner and class.
type keyring struct {
	all     slab[keyRecord]
	revoked map[keyRecord]bool
	counts  map[keyRecord]keyCount // by owner and class, number 0
}

type keyCount struct{ all, revoked uint32 }

// judge decides whether a key may come on record, be revoked or be restored, and returns the limit
// that refuses it. Every valid key can be revoked. Only a trading key can be restored, since its
// owner derives it again; keys of other classes were handed to somebody else.
func (r *keyring) judge(k keyRecord, revoke bool) (refused Reject, limit int64) {
	was, known := r.revoked[k]
	n := r.counts[keyRecord{owner: k.owner, class: k.class}]
	full := n.all >= MaxKeyRecords
	if revoke {
		full = n.revoked >= MaxKeyRecords // a restored key makes room
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
	return append(events, Event{Kind: KeySet, Owner: c.Owner, Order: c.ID,
		Args: [3]int64{int64(c.Key), int64(c.Class), int64(bit(c.Revoke))}})
}

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

// How many keys of each class one owner may ever have had on record; and of trading keys, how many
// may be armed at once.
const (
	MaxTradingKeys  = 64
	MaxReadOnlyKeys = 16
	MaxBuilderKeys  = 16
)

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
	all     []keyRecord
	revoked map[keyRecord]bool
	counts  map[keyRecord]uint32 // by owner and class, number 0
}

func newKeyring() keyring {
	return keyring{revoked: make(map[keyRecord]bool), counts: make(map[keyRecord]uint32)}
}

// setKey answers SetKey. What is on record stays there: a key can be revoked and restored.
func (x *Exchange) setKey(c *Command, events []Event) []Event {
	switch {
	case c.Owner == 0 || uint32(c.Owner) > x.accounts.used:
		return refuse(events, c, refusal{reject: RejectWallet})
	case c.Class >= keyClasses:
		return refuse(events, c, refusal{reject: RejectType})
	}
	k, of := keyRecord{c.Owner, c.Key, c.Class}, keyRecord{owner: c.Owner, class: c.Class}
	was, known := x.keys.revoked[k]
	if known {
		x.digest -= k.leaf(was)
	} else if limit := c.Class.most(); x.keys.counts[of] >= limit {
		return refuse(events, c, refusal{reject: RejectKeys, args: [3]int64{int64(limit)}})
	} else {
		x.keys.counts[of]++
		x.keys.all = append(x.keys.all, k)
	}
	x.keys.revoked[k] = c.Revoke
	x.digest += k.leaf(c.Revoke)
	gone := int64(0)
	if c.Revoke {
		gone = 1
	}
	return append(events, Event{
		Kind: KeySet, Owner: c.Owner, Args: [3]int64{int64(c.Key), int64(c.Class), gone},
		Order: c.ID})
}

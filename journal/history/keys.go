package history

import (
	"encoding/binary"
	"errors"
	"math"

	"clobd/engine"

	"github.com/cockroachdb/pebble/v2"
)

// The key spaces of the index: the first byte of every key. No letter is ever used again for
// anything else. Numbers in keys are big endian, so that keys sort as numbers do.
const (
	spaceState = 'm' // the state of the index itself, by name

	spaceOrder  = 'o' // rows of orders, by OrderID
	spaceTrades = 't' // full chunks of an order's trades, by OrderID and chunk number
	spaceDeals  = 'd' // chunks of trades, by the number of the first trade
	// spaceLists: runs of numbers of trades, by owner, market (0: all) and first number.
	spaceLists   = 'w'
	spaceResting = 'v' // the log of resting orders, by Sequence
	spaceMarks   = 's' // the first Sequence at a time, by unix milliseconds
	spaceRules   = 'g' // price step and fee rate, by market
	spaceBuilder = 'u' // the number of a builder, by BuilderCode

	spacePurse    = 'a' // collateral, by wallet
	spaceLink     = 'l' // who trades for whom, by owner and wallet
	spacePosition = 'p' // what a wallet has of both tokens, by wallet and market
	spaceHolder   = 'h' // the holders of a token, by market, outcome, inverted size and wallet
	spaceMove     = 'k' // splits, merges and redemptions, by wallet and Sequence
	spaceRequest  = 'r' // the Sequence of a split, merge or redemption, by the id of the request
	// spaceNotice: what others did to orders and markets, by day, owner, Sequence and Event.
	spaceNotice = 'c'
	spaceTouch  = 'y' // frames in which orders of an owner changed, by owner and block of frames
	spaceMarket = 'q' // volume and last price, by market
	spacePoint  = 'x' // prices, by market and minute since 1970
	spaceVolume = 'n' // volume at the end of an hour, by market and hour since 1970
)

const (
	shortKeyLen  = 1 + 4
	numberKeyLen = 1 + 8
	pairKeyLen   = 1 + 4 + 4
	moveKeyLen   = 1 + 4 + 8
	listKeyLen   = 1 + 8 + 8
	noticeKeyLen = 1 + 4 + 4 + 8 + 4
	holderKeyLen = 1 + 4 + 1 + 8 + 4
	orderKeyLen  = 1 + 32
	chunkKeyLen  = orderKeyLen + 4
)

func stateKey(name string) []byte { return append([]byte{spaceState}, name...) }

func orderKey(id *engine.OrderID) [orderKeyLen]byte {
	k := [orderKeyLen]byte{spaceOrder}
	copy(k[1:], id[:])
	return k
}

func chunkKey(id *engine.OrderID, no uint32) [chunkKeyLen]byte {
	k := [chunkKeyLen]byte{spaceTrades}
	copy(k[1:], id[:])
	binary.BigEndian.PutUint32(k[orderKeyLen:], no)
	return k
}

func requestKey(id *engine.OrderID) [orderKeyLen]byte {
	k := orderKey(id)
	k[0] = spaceRequest
	return k
}

func builderKey(code *BuilderCode) [orderKeyLen]byte {
	k := orderKey((*engine.OrderID)(code))
	k[0] = spaceBuilder
	return k
}

func numberKey(space byte, no uint64) [numberKeyLen]byte {
	k := [numberKeyLen]byte{space}
	binary.BigEndian.PutUint64(k[1:], no)
	return k
}

func numberOf(key []byte) (uint64, bool) {
	if len(key) != numberKeyLen {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

func shortKey[N ~uint32](space byte, no N) [shortKeyLen]byte {
	k := [shortKeyLen]byte{space}
	binary.BigEndian.PutUint32(k[1:], uint32(no))
	return k
}

func pairKey[A ~uint32](space byte, a A, b uint32) [pairKeyLen]byte {
	k := [pairKeyLen]byte{space}
	binary.BigEndian.PutUint32(k[1:], uint32(a))
	binary.BigEndian.PutUint32(k[5:], b)
	return k
}

func moveKey(w engine.WalletNo, seq engine.Sequence) [moveKeyLen]byte {
	k := [moveKeyLen]byte{spaceMove}
	binary.BigEndian.PutUint32(k[1:], uint32(w))
	binary.BigEndian.PutUint64(k[5:], uint64(seq))
	return k
}

func listKey(list listNo, no uint64) [listKeyLen]byte {
	k := [listKeyLen]byte{spaceLists}
	binary.BigEndian.PutUint64(k[1:], uint64(list))
	binary.BigEndian.PutUint64(k[9:], no)
	return k
}

// holderKey inverts the size: the largest holder comes first, and of equal ones the lowest number.
func holderKey(m engine.MarketNo, o engine.Outcome, x Holder) [holderKeyLen]byte {
	k := [holderKeyLen]byte{spaceHolder}
	binary.BigEndian.PutUint32(k[1:], uint32(m))
	k[5] = byte(o)
	binary.BigEndian.PutUint64(k[6:], ^uint64(x.Size))
	binary.BigEndian.PutUint32(k[14:], uint32(x.Wallet))
	return k
}

// eachHolder calls visit with the holders of a market's tokens, until it returns false.
func (h *History) eachHolder(m engine.MarketNo, tokens [2]engine.Outcome,
	visit func(engine.Outcome, Holder) bool) error {
	h.walked.Store(true)
	from := holderKey(m, tokens[0], Holder{0, math.MaxInt64})
	to := holderKey(m, tokens[1], Holder{math.MaxUint32, 1})
	return each(h.db, from[:], append(to[:], 0), func(key, _ []byte) (bool, error) {
		if len(key) != holderKeyLen || key[5] > 1 {
			return false, errRow
		}
		return visit(engine.Outcome(key[5]), Holder{
			engine.WalletNo(binary.BigEndian.Uint32(key[14:])),
			engine.Size(^binary.BigEndian.Uint64(key[6:]))}), nil
	})
}

// read lets decode read the value of a key; false if there is none. decode keeps nothing of it.
func read(db *pebble.DB, key []byte, decode func([]byte) error) (bool, error) {
	b, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(decode(b), closer.Close())
}

func iterate(db *pebble.DB, space byte) (*pebble.Iterator, error) {
	return db.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
}

// each calls visit with the keys in [from, to) and their values, until false or an error.
func each(db *pebble.DB, from, to []byte, visit func(key, value []byte) (bool, error)) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		more := false
		if err == nil {
			more, err = visit(it.Key(), value)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	return it.Close()
}

package engine

import (
	"encoding/binary"
	"math"
)

// An encoded Command or Event is its Kind, a three-byte mask of the present fields, and these
// fields in the order of the mask's bits. An absent field is zero, or has the value of an Event's
// Command. Each value has one encoding. Decoding checks the form only: replay refuses a bad
// Command.

// The fields of a Command.
const (
	hasType = 1 << iota
	hasSide
	hasOutcome
	hasMarket
	hasWallet
	hasOwner
	hasKey
	hasSize
	hasCash
	hasExpiry
	hasSeen
	hasID
	hasAddress
	hasHolder
	hasListing
	hasProof
	hasFlags
	hasReason
	hasState
	hasMode
	hasPrevention
	hasPrice
	hasFeeBound
	hasDeadline
	commandMask = 1<<iota - 1
)

// The flags of a Command, as bits: PostOnly, the two of Only, Revoke, the eight of Class. Above
// them lie the other bits of Only, which have no meaning: Apply refuses them, also in a replay.
const (
	flagPostOnly = 1
	flagRevoke   = 1 << 3

	onlyShift  = 1
	classShift = 4
	moreShift  = 12 - 2 // of the other bits of Only
	flagsMost  = 1<<18 - 1
)

// The fields of an Event.
const (
	hasEventSettlement = 1 << iota
	hasEventReason
	hasEventState
	hasEventSide
	hasEventOutcome
	hasEventPrice
	hasEventReject
	hasEventMarket
	hasEventWallet
	hasEventOwner
	hasEventSize
	hasEventRemaining
	hasEventArgs
	hasEventFirst
	hasEventOrder
	hasEventMode
	hasEventPrevention
	hasEventFee
	eventMask = 1<<iota - 1
)

// writer appends one Command or Event. A field that differs from its default sets its bit.
type writer struct {
	b    []byte
	at   int // of the mask
	mask uint32
}

func newWriter(b []byte, kind byte) writer {
	return writer{append(b, kind, 0, 0, 0), len(b) + 1, 0}
}

func (w *writer) done() []byte {
	w.b[w.at], w.b[w.at+1], w.b[w.at+2] = byte(w.mask), byte(w.mask>>8), byte(w.mask>>16)
	return w.b
}

// number appends v if it differs from its default, as a varint.
func (w *writer) number(bit uint32, v, fallback uint64) {
	if v != fallback {
		w.mask |= bit
		w.b = binary.AppendUvarint(w.b, v)
	}
}

// signed appends v if it is not zero.
func (w *writer) signed(bit uint32, v int64) {
	if v != 0 {
		w.mask |= bit
		w.b = binary.AppendVarint(w.b, v)
	}
}

// bytes appends b if it is present.
func (w *writer) bytes(bit uint32, present bool, b []byte) {
	if present {
		w.mask |= bit
		w.b = append(w.b, b...)
	}
}

func appendCommand(b []byte, c *Command) []byte {
	w := newWriter(b, byte(c.Kind))
	w.number(hasType, uint64(c.Type), 0)
	w.number(hasSide, uint64(c.Side), 0)
	w.number(hasOutcome, uint64(c.Outcome), 0)
	w.number(hasMarket, uint64(c.Market), 0)
	w.number(hasWallet, uint64(c.Wallet), 0)
	w.number(hasOwner, uint64(c.Owner), 0)
	w.number(hasKey, uint64(c.Key), 0)
	w.signed(hasSize, int64(c.Size))
	w.signed(hasCash, int64(c.Cash))
	w.signed(hasExpiry, int64(c.Expiry))
	w.number(hasSeen, uint64(c.Seen), 0)
	w.bytes(hasID, c.ID != (OrderID{}), c.ID[:])
	w.bytes(hasAddress, c.Address != (Address{}), c.Address[:])
	w.bytes(hasHolder, c.Holder != (Address{}), c.Holder[:])
	if c.Listing != nil {
		w.mask |= hasListing
		w.b = appendListing(w.b, c.Listing)
	}
	if len(c.Proof) != 0 {
		w.mask |= hasProof
		w.b = binary.AppendUvarint(w.b, uint64(len(c.Proof)))
		w.b = append(w.b, c.Proof...)
	}
	w.number(hasFlags, c.flags(), 0)
	w.number(hasReason, uint64(c.Reason), 0)
	w.number(hasState, uint64(c.State), 0)
	w.number(hasMode, uint64(c.Mode), 0)
	w.number(hasPrevention, uint64(c.Prevention), 0)
	w.number(hasPrice, uint64(c.Price), 0)
	w.number(hasFeeBound, uint64(c.FeeBound), 0)
	w.signed(hasDeadline, int64(c.Deadline))
	return w.done()
}

func (c *Command) flags() uint64 {
	f := bit(c.PostOnly)*flagPostOnly | bit(c.Revoke)*flagRevoke
	f |= uint64(c.Only&allOnly)<<onlyShift | uint64(c.Only&^allOnly)<<moreShift
	return f | uint64(c.Class)<<classShift
}

func appendListing(b []byte, l *Listing) []byte {
	b = append(b, l.Condition[:]...)
	b = append(b, l.Tokens[0][:]...)
	b = append(b, l.Tokens[1][:]...)
	b = binary.AppendUvarint(b, l.Group)
	b = binary.AppendUvarint(b, uint64(l.Tick))
	b = binary.AppendVarint(b, int64(l.MinSize))
	b = binary.AppendVarint(b, int64(l.MinBuy))
	b = binary.AppendUvarint(b, uint64(l.Fee.Rate))
	b = append(b, l.Fee.Exponent)
	return append(b, byte(bit(l.NegRisk)|bit(l.Open)<<1))
}

func appendEvent(b []byte, e *Event, c *Command) []byte {
	w := newWriter(b, byte(e.Kind))
	w.number(hasEventSettlement, uint64(e.Settlement), 0)
	w.number(hasEventReason, uint64(e.Reason), 0)
	w.number(hasEventState, uint64(e.State), 0)
	w.number(hasEventSide, uint64(e.Side), uint64(c.Side))
	w.number(hasEventOutcome, uint64(e.Outcome), uint64(c.Outcome))
	w.number(hasEventPrice, uint64(e.Price), 0)
	w.number(hasEventReject, uint64(e.Reject), 0)
	w.number(hasEventMarket, uint64(e.Market), uint64(c.Market))
	w.number(hasEventWallet, uint64(e.Wallet), uint64(c.Wallet))
	w.number(hasEventOwner, uint64(e.Owner), uint64(c.Owner))
	w.signed(hasEventSize, int64(e.Size))
	w.signed(hasEventRemaining, int64(e.Remaining))
	if e.Args != ([3]int64{}) {
		w.mask |= hasEventArgs
		for _, v := range e.Args {
			w.b = binary.AppendVarint(w.b, v)
		}
	}
	w.number(hasEventFirst, uint64(e.First), 0)
	w.bytes(hasEventOrder, e.Order != c.ID, e.Order[:])
	w.number(hasEventMode, uint64(e.Mode), 0)
	w.number(hasEventPrevention, uint64(e.Prevention), 0)
	w.signed(hasEventFee, int64(e.Fee))
	return w.done()
}

// reader reads a body. The first malformed field sets bad; then every read returns zero.
type reader struct {
	rest []byte
	mask uint32
	bad  bool
}

func (r *reader) head() byte {
	b := r.bytes(4)
	if b == nil {
		r.mask = 0
		return 0
	}
	r.mask = uint32(b[1]) | uint32(b[2])<<8 | uint32(b[3])<<16
	return b[0]
}

// bytes reads the next n bytes, nil if there are fewer.
func (r *reader) bytes(n int) []byte {
	if r.bad || len(r.rest) < n {
		r.bad = true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// uvarint reads a varint in its shortest form.
func (r *reader) uvarint() uint64 {
	if len(r.rest) != 0 && r.rest[0] < 0x80 && !r.bad {
		v := uint64(r.rest[0])
		r.rest = r.rest[1:]
		return v
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || (n > 1 && r.rest[n-1] == 0) || r.bad {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// number reads a field of at most limit, or returns its default if the field is absent. A written
// default is malformed.
func (r *reader) number(bit uint32, limit, fallback uint64) uint64 {
	if r.mask&bit == 0 {
		return fallback
	}
	v := r.uvarint()
	if v == fallback || v > limit {
		r.bad = true
		return 0
	}
	return v
}

// signed reads a field that is zero if absent.
func (r *reader) signed(bit uint32) int64 {
	if r.mask&bit == 0 {
		return 0
	}
	v := r.varint()
	if v == 0 {
		r.bad = true
	}
	return v
}

func (r *reader) command(c *Command) {
	c.Kind = Kind(r.head())
	c.Type = OrderType(r.number(hasType, math.MaxUint8, 0))
	c.Side = Side(r.number(hasSide, math.MaxUint8, 0))
	c.Outcome = Outcome(r.number(hasOutcome, math.MaxUint8, 0))
	c.Market = MarketNo(r.number(hasMarket, math.MaxUint32, 0))
	c.Wallet = WalletNo(r.number(hasWallet, math.MaxUint32, 0))
	c.Owner = WalletNo(r.number(hasOwner, math.MaxUint32, 0))
	c.Key = uint32(r.number(hasKey, math.MaxUint32, 0))
	c.Size = Size(r.signed(hasSize))
	c.Cash = Cash(r.signed(hasCash))
	c.Expiry = Time(r.signed(hasExpiry))
	c.Seen = Sequence(r.number(hasSeen, math.MaxUint64, 0))
	mask := r.mask
	if mask&hasID != 0 {
		copy(c.ID[:], r.bytes(32))
		r.bad = r.bad || c.ID == (OrderID{})
	}
	if mask&hasAddress != 0 {
		copy(c.Address[:], r.bytes(20))
		r.bad = r.bad || c.Address == (Address{})
	}
	if mask&hasHolder != 0 {
		copy(c.Holder[:], r.bytes(20))
		r.bad = r.bad || c.Holder == (Address{})
	}
	if mask&hasListing != 0 {
		c.Listing = r.listing()
	}
	if mask&hasProof != 0 {
		n := r.uvarint()
		if n == 0 || n > uint64(len(r.rest)) {
			r.bad = true
			return
		}
		c.Proof = r.bytes(int(n))
	}
	r.controls(c)
	r.bad = r.bad || mask&^uint32(commandMask) != 0
}

// controls reads the fields behind the Proof.
func (r *reader) controls(c *Command) {
	flags := r.number(hasFlags, flagsMost, 0)
	c.PostOnly, c.Revoke = flags&flagPostOnly != 0, flags&flagRevoke != 0
	c.Only = Only(flags>>onlyShift)&allOnly | Only(flags>>moreShift)&^allOnly
	c.Class = KeyClass(flags >> classShift)
	c.Reason = Reason(r.number(hasReason, math.MaxUint8, 0))
	c.State = MarketState(r.number(hasState, math.MaxUint8, 0))
	c.Mode = Mode(r.number(hasMode, math.MaxUint8, 0))
	c.Prevention = Prevention(r.number(hasPrevention, math.MaxUint8, 0))
	c.Price = Price(r.number(hasPrice, math.MaxUint16, 0))
	c.FeeBound = uint16(r.number(hasFeeBound, math.MaxUint16, 0))
	c.Deadline = Time(r.signed(hasDeadline))
}

func (r *reader) listing() *Listing {
	l := new(Listing)
	copy(l.Condition[:], r.bytes(32))
	copy(l.Tokens[0][:], r.bytes(32))
	copy(l.Tokens[1][:], r.bytes(32))
	l.Group = r.uvarint()
	tick := r.uvarint()
	l.Tick = Price(tick)
	l.MinSize = Size(r.varint())
	l.MinBuy = Cash(r.varint())
	rate := r.uvarint()
	l.Fee.Rate = uint16(rate)
	b := r.bytes(2)
	if b == nil || b[1] > 3 || tick > math.MaxUint16 || rate > math.MaxUint16 {
		r.bad = true
		return nil
	}
	l.Fee.Exponent = b[0]
	l.NegRisk, l.Open = b[1]&1 != 0, b[1]&2 != 0
	return l
}

func (r *reader) event(e *Event, c *Command) {
	e.Kind = EventKind(r.head())
	r.bad = r.bad || e.Kind == 0 || e.Kind > lastEvent
	e.Settlement = Settlement(r.number(hasEventSettlement, math.MaxUint8, 0))
	e.Reason = Reason(r.number(hasEventReason, math.MaxUint8, 0))
	e.State = MarketState(r.number(hasEventState, math.MaxUint8, 0))
	e.Side = Side(r.number(hasEventSide, math.MaxUint8, uint64(c.Side)))
	e.Outcome = Outcome(r.number(hasEventOutcome, math.MaxUint8, uint64(c.Outcome)))
	e.Price = Price(r.number(hasEventPrice, math.MaxUint16, 0))
	e.Reject = Reject(r.number(hasEventReject, uint64(len(Rejects)-1), 0))
	e.Market = MarketNo(r.number(hasEventMarket, math.MaxUint32, uint64(c.Market)))
	e.Wallet = WalletNo(r.number(hasEventWallet, math.MaxUint32, uint64(c.Wallet)))
	e.Owner = WalletNo(r.number(hasEventOwner, math.MaxUint32, uint64(c.Owner)))
	e.Size = Size(r.signed(hasEventSize))
	e.Remaining = Size(r.signed(hasEventRemaining))
	if r.mask&hasEventArgs != 0 {
		for i := range e.Args {
			e.Args[i] = r.varint()
		}
		r.bad = r.bad || e.Args == ([3]int64{})
	}
	e.First = Sequence(r.number(hasEventFirst, math.MaxUint64, 0))
	e.Order = c.ID
	if r.mask&hasEventOrder != 0 {
		copy(e.Order[:], r.bytes(32))
		r.bad = r.bad || e.Order == c.ID
	}
	e.Mode = Mode(r.number(hasEventMode, math.MaxUint8, 0))
	e.Prevention = Prevention(r.number(hasEventPrevention, math.MaxUint8, 0))
	e.Fee = Cash(r.signed(hasEventFee))
	r.bad = r.bad || r.mask&^uint32(eventMask) != 0
}

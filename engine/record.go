package engine

// Version is the latest version of the rules that this program knows, and Oldest the earliest: it
// may rise once no journal has to be replayed from its first frame. Any change of an outcome of
// Apply makes a new one. Which is in force is a part of the Exchange.
const (
	Version = 6 + next
	Oldest  = 6
)

// Digest is the additive hash of all trading state after a frame, without Sequences and without
// Times that decide nothing. Independent Commands in another order lead to the same Digest, unless
// they bind ids.
type Digest uint64

// Hash is the SHA-256 of an encoded Frame: the next one carries it as Prev.
type Hash [32]byte

// Head is the end of a journal, which the next Frame follows. The zero Head is an empty journal.
type Head struct {
	Frame    uint64 // number of the last frame, 0 if none
	Sequence Sequence
	Epoch    uint64
	Time     Time
	Hash     Hash
	Digest   Digest
}

// Limits of one Frame. FrameBytes does not count the Events of the last Command.
const (
	FrameCommands = 256
	FrameBytes    = 64 << 10
)

// Frame is a batch of Records (a stamped Command and its Events), chained to the frame before it,
// with the Digest after it. Command i has Sequence First+i and the Events [Ends[i-1], Ends[i]).
type Frame struct {
	Engine    uint16 // the version in force after it: a Raise is alone in its frame
	Partition uint16
	Epoch     uint64
	No        uint64 // from 1, without gaps
	First     Sequence
	Time      Time
	Prev      Hash
	Digest    Digest

	Commands []Command
	Events   []Event
	Ends     []uint32

	Bytes []byte // the encoded form, made once and then never changed; Hash is its SHA-256
	Hash  Hash

	scratch []byte // of Encode, reused from frame to frame
}

// Last returns the Sequence of the frame's last Command.
func (f *Frame) Last() Sequence { return f.First + Sequence(len(f.Commands)) - 1 }

// EventsOf returns the Events of Command i.
func (f *Frame) EventsOf(i int) []Event {
	from := uint32(0)
	if i > 0 {
		from = f.Ends[i-1]
	}
	return f.Events[from:f.Ends[i]]
}

// Head returns the journal's end after this frame.
func (f *Frame) Head() Head {
	return Head{f.No, f.Last(), f.Epoch, f.Time, f.Hash, f.Digest}
}

// Status is the fate of an order.
type Status uint8

// The statuses.
const (
	NoStatus Status = iota
	Live
	Matched
	Canceled
)

// Receipt is the answer to a Command: a value without pointers.
type Receipt struct {
	Sequence Sequence
	Time     Time
	Order    OrderID
	Reject   Reject // 0: accepted
	Args     [3]int64
	First    Sequence // of a duplicate: the Sequence that bound the id
	Status   Status
	Reason   Reason // why the order, or its remainder, was cancelled; 0: neither was
	Market   MarketNo
	Wallet   WalletNo
	// Making and Taking are what the order gave and got so far, in base units. For a split, merge or
	// redemption, Taking is the amount that it moved.
	Making, Taking int64
	Remaining      Size
	Fee            Cash
	Trades         uint32 // number of trades: one per execution price
}

// ReceiptOf folds the Events of Command c, stamped seq and now, into its Receipt.
func ReceiptOf(c *Command, seq Sequence, now Time, events []Event) Receipt {
	r := Receipt{Sequence: seq, Time: now, Order: c.ID}
	last := Price(0)
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case Filled:
			price := e.Price
			if e.Outcome != c.Outcome {
				price = PriceOne - price
			}
			if r.Trades == 0 || price != last {
				r.Trades, last = r.Trades+1, price
			}
			r.add(c.Side, e.Size, price)
			r.Fee += e.Fee
		case Placed:
			r.Status, r.Remaining = Live, e.Remaining
		case Completed:
			r.Status, r.Remaining, r.Reason = Matched, e.Remaining, e.Reason
			if e.Reason == SelfTrade || r.Trades == 0 {
				r.Status = Canceled
			}
		case Cancelled:
			if c.Kind == Cancel {
				r.Status, r.Remaining = Canceled, e.Remaining
				r.Market, r.Wallet = e.Market, e.Wallet
			}
		case Rejected:
			r.Reject, r.Args, r.First = e.Reject, e.Args, e.First
		case Split, Merged, Redeemed:
			r.Taking = int64(e.Size)
		}
		if e.Kind != Filled && e.Kind != Cancelled {
			r.Market, r.Wallet = e.Market, e.Wallet
		}
	}
	return r
}

// add counts one fill of size at the order's own price.
func (r *Receipt) add(side Side, size Size, price Price) {
	cash := int64(Cost(size, price))
	if side == Buy {
		r.Making, r.Taking = r.Making+cash, r.Taking+int64(size)
		return
	}
	r.Making, r.Taking = r.Making+int64(size), r.Taking+cash
}

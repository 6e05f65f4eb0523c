package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"clobd/engine"
)

// Funds of every bench trader: enough that no order is ever refused for want of balance.
const (
	TraderCash   = 10_000_000 * engine.Unit
	TraderShares = 1_000_000 * engine.Unit
)

// proofSize is the length of the evidence of a typical order, in bytes.
const proofSize = 150

// Hashed is the condition, the token or the order of a number: spread like real ones.
func Hashed(kind string, n int) [32]byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	return sha256.Sum256(append([]byte(kind), b[:]...))
}

// TraderAddress is the wallet of trader t in runs without signatures.
func TraderAddress(t int) engine.Address {
	h := Hashed("trader", t)
	return engine.Address(h[:20])
}

// Tokens are the two tokens of a book.
func Tokens(book int) [2]engine.Token {
	return [2]engine.Token{Hashed("token 0", book), Hashed("token 1", book)}
}

// Setup is what a workload needs before its first operation: it lists the books and funds the
// traders with collateral, and with both tokens of the books that they trade in. Trader t has
// WalletNo t+1; book b has MarketNo b+1.
func (w *Workload) Setup() (setup []engine.Command) {
	for b := range w.Books {
		setup = append(setup, engine.Command{Kind: engine.List,
			Listing: &engine.Listing{
				Condition: Hashed("condition", b),
				Tokens:    Tokens(b),
				Group:     uint64(b), Tick: w.Tick, MinSize: engine.Unit, Open: true}})
	}
	for t := range Traders {
		setup = append(setup, engine.Command{Kind: engine.Deposit,
			Address: TraderAddress(t), Cash: TraderCash})
	}
	for t := range Traders {
		for b := range w.Books {
			if !w.Trades(t, b) {
				continue
			}
			for outcome := range engine.Outcome(2) {
				setup = append(setup, engine.Command{Kind: engine.Deposit,
					Address: TraderAddress(t), Market: engine.MarketNo(b + 1),
					Outcome: outcome, Size: TraderShares})
			}
		}
	}
	return setup
}

// Commands turns the operations [from, to) into Commands without signatures. Their evidence only
// has the length of a typical order's. Reads are left out: the levels without HTTP have none.
func Commands(ops []Op, from, to int) []engine.Command {
	proof := make([]byte, proofSize)
	out := make([]engine.Command, 0, to-from)
	for i := from; i < to; i++ {
		op := &ops[i]
		wallet := engine.WalletNo(op.Trader) + 1
		switch {
		case op.Read != 0:
		case op.All != 0:
			out = append(out, cancelAll(op))
		case op.Cancel:
			out = append(out, engine.Command{Kind: engine.Cancel, Owner: wallet,
				ID: Hashed("order", int(op.Target))})
		default:
			kind := engine.GTC
			if op.FAK {
				kind = engine.FAK
			}
			out = append(out, engine.Command{Kind: engine.Place, Type: kind, Side: op.Side,
				Outcome: op.Outcome, Market: engine.MarketNo(op.Book) + 1, Wallet: wallet,
				Owner: wallet, Size: op.Size, Cash: engine.Cost(op.Size, op.Price),
				ID: Hashed("order", i), Proof: proof})
		}
	}
	return out
}

// cancelAll is the Command of a cancel of many orders.
func cancelAll(op *Op) engine.Command {
	wallet := engine.WalletNo(op.Trader) + 1
	c := engine.Command{Kind: engine.CancelAll, Wallet: wallet, Owner: wallet, Reason: engine.ByOwner}
	if op.All != AllOrders {
		c.Market = engine.MarketNo(op.Book) + 1
	}
	if op.All == AllInToken {
		c.Only, c.Outcome = engine.OnlyToken, op.Outcome
	}
	return c
}

// Tally counts the results of a run, from its Events.
type Tally struct {
	Fills     int64
	Volume    engine.Size
	Rejected  int64
	Live      int64
	Commands  int64
	Completed int64

	Mints, Merges, Killed, SelfTrades int64 // as in Expected
}

// Add counts the Events of one Command.
func (t *Tally) Add(events []engine.Event) {
	t.Commands++
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case engine.Filled:
			t.Fills++
			t.Volume += e.Size
			switch e.Settlement {
			case engine.Mint:
				t.Mints++
			case engine.Merge:
				t.Merges++
			}
			if e.Remaining == 0 {
				t.Live--
			}
		case engine.Placed:
			t.Live++
		case engine.Completed:
			t.Completed++
			if e.Reason == engine.Unfilled {
				t.Killed++
			}
		case engine.Cancelled:
			t.Live--
			if e.Reason == engine.SelfTrade {
				t.SelfTrades++
			}
		case engine.Rejected:
			t.Rejected++
		}
	}
}

// expected is the tally in the words of a model.
func (t *Tally) expected() Expected {
	return Expected{Fills: t.Fills, Volume: t.Volume, Live: t.Live, Missed: t.Rejected,
		Mints: t.Mints, Merges: t.Merges, Killed: t.Killed, SelfTrades: t.SelfTrades}
}

// String is the end state for people.
func (e Expected) String() string {
	return fmt.Sprintf("%d fills of %s shares (%d mints, %d merges), %d live, %d refused, "+
		"%d killed, %d cancelled by their own wallets", e.Fills, e.Volume, e.Mints, e.Merges, e.Live,
		e.Missed, e.Killed, e.SelfTrades)
}

// Check compares a tally with what the generator's own model ended with. It holds for runs that
// keep the operations' order.
func (t *Tally) Check(exp Expected) error {
	if had := t.expected(); had != exp {
		return fmt.Errorf("the run ended with %s; the model with %s", had, exp)
	}
	return nil
}

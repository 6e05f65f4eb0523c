package bench

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"clobd/engine"
)

// World is what a workload needs before its first operation: listed markets and funded wallets.
// Trader t has WalletNo t+1; book b has MarketNo b+1.
type World struct {
	Setup []engine.Command
}

// Funds of every bench trader: enough that no order is ever refused for want of balance.
const (
	traderCash   = 10_000_000 * engine.Unit
	traderShares = 1_000_000 * engine.Unit
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

// NewWorld lists the workload's books and funds its traders with collateral and both tokens.
func NewWorld(w Workload) World {
	var world World
	for b := range w.Books {
		world.Setup = append(world.Setup, engine.Command{Kind: engine.List,
			Listing: &engine.Listing{
				Condition: Hashed("condition", b),
				Tokens:    [2]engine.Token{Hashed("token 0", b), Hashed("token 1", b)},
				Group:     uint64(b), Tick: w.Tick, MinSize: engine.Unit, Open: true}})
	}
	for t := range Traders {
		world.Setup = append(world.Setup, engine.Command{Kind: engine.Deposit,
			Address: TraderAddress(t), Cash: traderCash})
	}
	for t := range Traders {
		for b := range w.Books {
			for outcome := range engine.Outcome(2) {
				world.Setup = append(world.Setup, engine.Command{Kind: engine.Deposit,
					Address: TraderAddress(t), Market: engine.MarketNo(b + 1),
					Outcome: outcome, Size: traderShares})
			}
		}
	}
	return world
}

// Commands turns operations into Commands without signatures. Their evidence only has the length of
// a typical order's.
func Commands(ops []Op) []engine.Command { return commandsFrom(ops, 0, len(ops)) }

// commandsFrom is Commands for the operations [from, to).
func commandsFrom(ops []Op, from, to int) []engine.Command {
	proof := make([]byte, proofSize)
	out := make([]engine.Command, to-from)
	for k := range out {
		i := from + k
		op := &ops[i]
		wallet := engine.WalletNo(op.Trader) + 1
		if op.Cancel {
			out[k] = engine.Command{Kind: engine.Cancel, Owner: wallet,
				ID: Hashed("order", int(op.Target))}
			continue
		}
		out[k] = engine.Command{Kind: engine.Place, Type: engine.GTC, Side: op.Side,
			Outcome: op.Outcome, Market: engine.MarketNo(op.Book) + 1, Wallet: wallet,
			Owner: wallet, Size: op.Size, Cash: engine.Cost(op.Size, op.Price),
			ID: Hashed("order", i), Proof: proof}
	}
	return out
}

// Tally counts the results of a run, from its Events.
type Tally struct {
	Fills     int64
	Volume    engine.Size
	Rejected  int64
	Live      int64
	Commands  int64
	Completed int64
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
			if e.Remaining == 0 {
				t.Live--
			}
		case engine.Placed:
			t.Live++
		case engine.Completed:
			t.Completed++
		case engine.Cancelled:
			t.Live--
		case engine.Rejected:
			t.Rejected++
		}
	}
}

// Check compares a tally with what the generator's own model ended with. It holds for runs that
// keep the operations' order.
func (t *Tally) Check(exp Expected) error {
	if t.Fills != exp.Fills || t.Volume != exp.Volume || t.Live != exp.Live ||
		t.Rejected != exp.Missed {
		return fmt.Errorf("the run ended with %d fills of %s shares, %d live, %d refused; "+
			"the model with %d of %s, %d, %d", t.Fills, t.Volume, t.Live, t.Rejected,
			exp.Fills, exp.Volume, exp.Live, exp.Missed)
	}
	return nil
}

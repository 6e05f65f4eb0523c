package cases

import (
	"crypto/sha256"
	"encoding/binary"

	"clobd/engine"
)

// venue is an Exchange with one market, and what its Events tell of it.
type venue struct {
	x       *engine.Exchange
	seq     engine.Sequence
	market  engine.MarketNo
	ladder  ladder
	wallets map[string]engine.WalletNo
	ids     uint64
	events  []engine.Event // of the last Command

	paidIn  engine.Cash    // all collateral that came in, that behind tokens included
	outside [2]engine.Size // tokens that the outside got when their complement came in

	commands []engine.Command // all that were applied
	broken   error            // Apply panicked: the Exchange is of no use any more
}

// now is the Time of all Commands: none of the cases waits for anything.
const now engine.Time = 1

// newVenue opens a market of the finest tick, a minimum of one lot and that fee.
func newVenue(fee engine.Fee) (*venue, error) {
	v := &venue{x: engine.NewExchange(1), wallets: map[string]engine.WalletNo{}}
	v.ladder.live = map[engine.OrderID]*order{}
	last, err := v.apply(engine.Command{Kind: engine.List, Listing: &engine.Listing{
		Condition: engine.Condition{1}, Tokens: [2]engine.Token{{1}, {2}}, Tick: 1,
		MinSize: engine.Lot, Fee: fee, Open: true,
	}})
	if err != nil {
		return nil, err
	}
	v.market = last.Market
	return v, v.accepted("List", last)
}

// apply carries out a Command and folds its Events. It returns the last of them, which says how the
// Command ended.
func (v *venue) apply(c engine.Command) (engine.Event, error) {
	v.seq++
	c.Seen = v.seq
	v.commands = append(v.commands, c)
	if v.carry(&c); v.broken != nil {
		return engine.Event{}, v.broken
	}
	if len(v.events) == 0 {
		return engine.Event{}, differ("events", "a last word", "none")
	}
	return v.events[len(v.events)-1], v.ladder.fold(v.events)
}

// carry applies a Command. A panic is a bug of the engine and ends the case, not the replay: other
// cases have other Exchanges.
func (v *venue) carry(c *engine.Command) {
	defer func() {
		if cause := recover(); cause != nil {
			v.broken = differ("engine", "an answer", cause)
		}
	}()
	if v.broken == nil {
		v.events = v.x.Apply(c, v.seq, now, v.events[:0])
	}
}

// accepted returns a mismatch if a Command that prepares a case was refused.
func (v *venue) accepted(what string, last engine.Event) error {
	if last.Kind == engine.Rejected {
		return differ(what, "accepted", refusal(last))
	}
	return nil
}

// refusal is what a refused Command is told, without its values.
func refusal(last engine.Event) string {
	return "rejected (" + engine.Rejects[last.Reject].Code + ")"
}

// addressOf makes an address of a name.
func addressOf(name string) engine.Address {
	sum := sha256.Sum256([]byte(name))
	return engine.Address(sum[:20])
}

// wallet is the number of an account. A new one is linked to itself, which numbers it.
func (v *venue) wallet(account string) (engine.WalletNo, error) {
	if no, ok := v.wallets[account]; ok {
		return no, nil
	}
	a := addressOf(account)
	last, err := v.apply(engine.Command{Kind: engine.Link, Address: a, Holder: a})
	if err != nil {
		return 0, err
	}
	v.wallets[account] = last.Wallet
	return last.Wallet, v.accepted("Link", last)
}

// asset is what an account holds: an outcome's token, or collateral.
type asset uint8

const collateral asset = 2

// move makes a Deposit or Withdraw of an asset.
func (v *venue) move(kind engine.Kind, account string, a asset, amount int64) engine.Command {
	c := engine.Command{Kind: kind, Address: addressOf(account), Cash: engine.Cash(amount)}
	if a != collateral {
		c.Market, c.Outcome = v.market, engine.Outcome(a)
		c.Cash, c.Size = 0, engine.Size(amount)
	}
	return c
}

// deposit pays in, in base units. Nothing is paid in if amount is 0.
func (v *venue) deposit(account string, a asset, amount int64) error {
	if _, err := v.wallet(account); err != nil || amount == 0 {
		return err
	}
	last, err := v.apply(v.move(engine.Deposit, account, a, amount))
	if err != nil {
		return err
	}
	fresh := amount // what is outside comes back first, and nobody pays for it again
	if a != collateral {
		fresh -= min(amount, int64(v.outside[a]))
		v.outside[a] -= engine.Size(amount - fresh)
		v.outside[engine.Outcome(a).Other()] += engine.Size(fresh)
	}
	v.paidIn += engine.Cash(fresh)
	return v.accepted("Deposit", last)
}

// balance is what an account holds and how much of it is reserved, in base units: the refusal of a
// withdrawal that is too large says so, and changes nothing.
func (v *venue) balance(account string, a asset) (total, held int64, err error) {
	last, err := v.apply(v.move(engine.Withdraw, account, a, engine.MaxAmount))
	if err != nil {
		return 0, 0, err
	}
	if last.Kind == engine.Rejected && last.Reject == engine.RejectWallet {
		return 0, 0, nil
	}
	if last.Kind != engine.Rejected || last.Reject != engine.RejectBalance {
		return 0, 0, differ("withdrawal of all that can be", "rejected (balance)", last.Kind)
	}
	return last.Args[0], last.Args[1], nil
}

// stray is the market's surplus of an asset beyond the backing of existing tokens: collateral
// without an owner, or tokens issued to nobody.
func (v *venue) stray(a asset) (int64, error) {
	owned := [3]int64{int64(v.outside[0]), int64(v.outside[1])}
	for account := range v.wallets {
		for i := range owned {
			total, _, err := v.balance(account, asset(i))
			if err != nil {
				return 0, err
			}
			owned[i] += total
		}
	}
	vault := int64(v.paidIn) - owned[collateral]
	if a == collateral {
		return vault - max(owned[0], owned[1]), nil
	}
	return vault - owned[a], nil
}

// offer is an order in the engine's units.
type offer struct {
	account string
	side    engine.Side
	outcome engine.Outcome
	kind    engine.OrderType
	price   engine.Price
	size    engine.Size
	cash    engine.Cash // signed collateral
	rests   bool        // post-only: it must not trade at once
}

// limit makes an offer for outcome 0 whose two amounts are size and exactly size * price.
func limit(account string, side engine.Side, price engine.Price, size engine.Size) offer {
	return offer{account: account, side: side, price: price, size: size,
		cash: engine.Cost(size, price)}
}

// complement is the offer that is the same in the ladder: BUY A at p for SELL B at 1-p.
func (o offer) complement() offer {
	o.side, o.outcome = o.side.Other(), o.outcome.Other()
	o.price = engine.PriceOne - o.price
	o.cash = engine.Cost(o.size, o.price)
	return o
}

// parts cuts an offer larger than the engine's limit into several, each a multiple of unit. One
// behind the other, they look the same to everybody else. The last part gets the rest.
func (o offer) parts(unit engine.Size) []offer {
	most := engine.MaxOrder / unit * unit
	if o.size <= most {
		return []offer{o}
	}
	var all []offer
	for left := o.size; left > 0; left -= most {
		part := o
		part.size = min(left, most)
		part.cash = engine.Cost(part.size, o.price)
		all = append(all, part)
	}
	return all
}

// fund pays in what an offer needs.
func (v *venue) fund(o *offer) error {
	if o.side == engine.Buy {
		return v.deposit(o.account, collateral, int64(o.cash))
	}
	return v.deposit(o.account, asset(o.outcome), int64(o.size))
}

// place sends an offer and returns its id and how it ended.
func (v *venue) place(o *offer) (engine.OrderID, engine.Event, error) {
	no, err := v.wallet(o.account)
	if err != nil {
		return engine.OrderID{}, engine.Event{}, err
	}
	id := v.nextID()
	last, err := v.apply(engine.Command{
		Kind: engine.Place, Market: v.market, Wallet: no, Owner: no, ID: id, Type: o.kind,
		Side: o.side, Outcome: o.outcome, Size: o.size, Cash: o.cash, PostOnly: o.rests,
	})
	return id, last, err
}

// nextID is an id that no order had yet.
func (v *venue) nextID() (id engine.OrderID) {
	v.ids++
	binary.BigEndian.PutUint64(id[:], v.ids)
	return id
}

// cancel sends a Cancel of an order in an account's name.
func (v *venue) cancel(account string, id engine.OrderID) (engine.Event, error) {
	no, err := v.wallet(account)
	if err != nil {
		return engine.Event{}, err
	}
	return v.apply(engine.Command{Kind: engine.Cancel, Owner: no, ID: id})
}

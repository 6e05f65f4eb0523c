package ingress

import (
	"crypto/sha256"
	"errors"
	"net/netip"
	"sync/atomic"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/ingress/limits"
)

// faucet gives paper collateral to wallets without an account. The address is the id of the
// Deposit, and the engine takes an id once: so no wallet gets two gifts.
type faucet struct {
	*door
	callers *limits.Windows
	pending atomic.Int64 // gifts on their way
}

// GiftID is the id of the Deposit that gives a wallet its gift.
func GiftID(a engine.Address) engine.OrderID {
	return sha256.Sum256(append([]byte("faucet"), a[:]...))
}

// give deposits the gift, if there is one and the wallet has no account yet. If the gift does not
// enter, the next derivation tries again, unless a Link has made the account meanwhile.
func (f *faucet) give(a engine.Address, from netip.Addr) {
	if f.options.Faucet == 0 {
		return
	}
	if _, known := f.options.Board.Directory.Wallet(a); known || !f.mayGive(from) {
		return
	}
	gift := engine.Command{Kind: engine.Deposit, Address: a, Cash: f.options.Faucet, ID: GiftID(a)}
	defer f.pending.Add(-1) // also if it panics
	_, err := f.deposit(&gift)
	if errors.Is(err, sequencer.ErrUnknown) || errors.Is(err, sequencer.ErrNoLeader) {
		_, _ = f.deposit(&gift) // the leader ended or changed; the engine takes the id once
	}
}

// mayGive counts one gift, if the caller's window has room and there are not too many wallets. The
// window holds even with no Options.Windows.
func (f *faucet) mayGive(from netip.Addr) bool {
	// A gift that ends between the two counts must be in one of them, so the wallets are second.
	others := f.pending.Add(1) - 1
	wallets := int64(f.options.Board.Counters().Wallets)
	may := others+wallets < int64(f.options.FaucetWallets) && f.callers.Gift(from)
	if !may {
		f.pending.Add(-1)
	}
	return may
}

// enterFor enters a Command of an operator and waits for its Receipt.
func (f *faucet) enterFor(c *engine.Command) (engine.Receipt, error) {
	if c.Kind != engine.Deposit {
		return f.submit(c)
	}
	r, err := f.deposit(c)
	if err == nil && (r.Reject == engine.Accepted || r.Reject == engine.RejectDuplicate) {
		f.claim(c.Address) // the Link may have failed to enter with the Deposit
	}
	return r, err
}

// deposit enters a Deposit and waits for it. Where wallets are linked on first use, a Link of the
// address to itself enters with it, before a stranger could claim the wallet; see claim.
func (f *faucet) deposit(c *engine.Command) (engine.Receipt, error) {
	given, err := f.enter(c)
	if err != nil {
		return engine.Receipt{}, err
	}
	d := f.options.Board.Directory
	if wallet, _ := d.Wallet(c.Address); f.options.LinkOnFirstUse && d.Owner(wallet) == 0 {
		own := engine.Command{Kind: engine.Link, Address: c.Address, Holder: c.Address}
		if linked, err := f.enter(&own); err == nil {
			_, _ = linked.Wait() // claim checks the result
		}
	}
	return given.Wait()
}

// claim links a proven address to itself, before somebody else signs for it. If it fails, the next
// derivation or the first order tries again.
func (f *faucet) claim(a engine.Address) {
	d := f.options.Board.Directory
	if wallet, known := d.Wallet(a); f.options.LinkOnFirstUse && known && d.Owner(wallet) == 0 {
		_, _ = f.submit(&engine.Command{Kind: engine.Link, Address: a, Holder: a})
	}
}

package ingress

import (
	"errors"
	"time"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/ingress/answer"
)

// An order is taken at most once. Sent again, it gets its first result with its status of today,
// which this file finds. The index may lag behind the engine, so there are three ways here.
//
//	before it enters: the index knows the order                   replay
//	after it entered: the engine knows it, the index not yet      replayUnseen
//	its unsigned terms make no sense                              replayBeside

// recheckWait is how long an order waits for the index, once for each look at it.
const recheckWait = 250 * time.Millisecond

// waitForIndex is what to do while nobody can tell whether an order was taken before.
const waitForIndex = "the index has not yet seen the latest writes; nothing was entered, send again"

var (
	refuseLagging = wire.Refuse(503, "index_lagging", "service not ready", waitForIndex)
	refuseRecheck = wire.Refuse(503, "recheck", "service not ready", waitForIndex)
)

// refuseUntold is the answer about an order that was taken before and of which nobody knows more.
func refuseUntold(id *engine.OrderID) *wire.Refusal {
	return wire.Refuse(504, "index_lagging", "order timed out", "").With(answer.OrderID(id))
}

// await waits without a seat until the index holds seq. It returns false if that takes too long.
func (s *orders) await(at *seat, seq engine.Sequence) bool {
	at.leave()
	defer at.back()
	return s.options.Await(seq, recheckWait)
}

// told returns the Sequence that the index must reach for an answer about a wallet: what this node
// has shown of the wallet and, in a cluster, what any node had told when the request first asked.
// False: the cluster did not answer.
func (s *orders) told(p *placement, wallet engine.WalletNo) (engine.Sequence, bool) {
	if s.options.Confirm != nil && p.told == 0 && p.asked == nil {
		p.seat.leave()
		p.told, p.asked = s.options.Confirm(recheckWait)
		p.seat.back()
	}
	return max(p.told, s.options.Board.Directory.LastNamed(wallet)), p.asked == nil
}

var errLagging = errors.New("the index lags")

// upToDate reads an order's result again if the order's wallet was told of more than the index had,
// of a cancel for example, perhaps by another node. It returns errLagging if that takes too long.
func (s *orders) upToDate(p *placement, past *engine.Receipt, seen engine.Sequence) error {
	last, known := s.told(p, past.Wallet)
	switch {
	case known && seen >= last:
		return nil
	case !known || !s.await(p.seat, last):
		return errLagging
	}
	again, known, _, err := s.options.Past(p.command.ID)
	if err == nil && !known {
		err = errors.New("the index has lost an order")
	}
	*past = again
	return err
}

// replay answers an order that the index knows. The index had reached Sequence p.command.Seen.
func (s *orders) replay(p *placement) *wire.Refusal {
	err := p.unread
	if err == nil {
		err = s.upToDate(p, &p.past, p.command.Seen)
	}
	switch {
	case err == errLagging:
		return refuseUntold(&p.command.ID)
	case err != nil:
		return s.refuseIndex(err)
	}
	p.answer(&p.past, true)
	return nil
}

// replayUnseen answers an order that the engine had taken before, at first, and that the index did
// not know yet. The order may be live: without its result the answer is 504 and its id.
func (s *orders) replayUnseen(p *placement, first engine.Sequence) *wire.Refusal {
	for range rechecks {
		s.await(p.seat, first)
		past, known, seen, err := s.options.Past(p.command.ID)
		if err == nil && known {
			err = s.upToDate(p, &past, seen)
		}
		if err == errLagging {
			continue
		} else if err != nil {
			s.options.Log.Error("look up an order", "error", err)
			break
		}
		if known {
			p.answer(&past, true)
			return nil
		}
	}
	return refuseUntold(&p.command.ID)
}

// replayBeside answers an order with bad terms: a refusal, unless the order was taken before. To
// exclude that, the index must have come as far as the wallet's last frame.
func (s *orders) replayBeside(p *placement) *wire.Refusal {
	last, caughtUp := s.told(p, p.command.Wallet)
	caughtUp = caughtUp && s.await(p.seat, last)
	past, known, _, err := s.options.Past(p.command.ID)
	switch {
	case err != nil:
		return s.refuseIndex(err)
	case known && !caughtUp:
		return refuseUntold(&p.command.ID)
	case known:
		p.answer(&past, true)
		return nil
	case !caughtUp:
		return refuseLagging
	}
	return p.terms
}

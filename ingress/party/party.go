package party

import (
	"errors"
	"sync"
)

// Bounds of the number of members. Two or three members would lose more time by waiting for each
// other than their common check saves.
const (
	Least = 4
	Most  = 15
)

// Why a member that has brought an order must check.
var (
	errLead  = errors.New("check all orders: the last member has brought none")
	errAlone = errors.New("check your order alone: the check of all panicked")
)

// Party is the members that share a seat, and the orders that they have brought. The zero Party has
// no members.
type Party[T any] struct {
	mutex  sync.Mutex
	inside int          // members that have not left
	coming []chan error // of members that may still bring an order; it is the first one's turn
	orders []T
	turns  []chan error // of who has brought the orders
}

// Join adds a member that waits. Once all have joined, the caller gives the first one its turn.
func (p *Party[T]) Join(turn chan error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.inside++
	p.coming = append(p.coming, turn)
}

// Bring adds the order of the member whose turn it is, and returns once check was called with it:
// by this member or by another, with all orders that were brought. If a check of all panics, each
// order is checked alone, as is that of a member that has left.
func (p *Party[T]) Bring(turn chan error, order T, check func([]T)) {
	p.mutex.Lock()
	ours := p.pass(turn)
	if ours {
		p.orders, p.turns = append(p.orders, order), append(p.turns, turn)
	}
	last, told := len(p.coming) == 0, errLead
	p.mutex.Unlock()
	if !ours {
		check([]T{order})
		return
	}
	if !last {
		told = <-turn
	}
	switch told {
	case errLead:
		p.lead(turn, check)
	case errAlone:
		check([]T{order})
	}
}

// lead checks all orders and tells the other members. The party keeps none of them: members may
// keep the party.
func (p *Party[T]) lead(turn chan error, check func([]T)) {
	orders, turns, told := p.orders, p.turns, errAlone
	p.orders, p.turns = nil, nil
	defer func() {
		for _, other := range turns {
			if other != turn {
				other <- told
			}
		}
	}()
	check(orders)
	told = nil
}

// Miss passes on the turn of a member that has not brought an order, and does nothing otherwise.
func (p *Party[T]) Miss(turn chan error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.pass(turn) && len(p.coming) == 0 && len(p.turns) > 0 {
		p.turns[0] <- errLead
	}
}

// pass passes the turn on, and reports whether this member had it.
func (p *Party[T]) pass(turn chan error) bool {
	if len(p.coming) == 0 || p.coming[0] != turn {
		return false
	}
	if p.coming = p.coming[1:]; len(p.coming) > 0 {
		p.coming[0] <- nil
	}
	return true
}

// Leave ends the work of a member, and reports whether all have left.
func (p *Party[T]) Leave() (last bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.inside--
	return p.inside == 0
}

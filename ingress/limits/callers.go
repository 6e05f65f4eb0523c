package limits

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"clobd/engine"
	"clobd/ingress/conn"
)

// shards bounds contention. Each shard keeps at most shardCallers callers and forgets the one that
// was silent longest. 16 * 2,048 callers with 23 counters of 32 bytes are 24 MB. A counter whose
// caller sent something in each slot has 520 bytes more.
const (
	shards       = 16
	shardCallers = 2048
)

// Windows holds the counters of all callers. Any goroutine may use it.
type Windows struct {
	now       func() time.Time
	seed      maphash.Seed
	addresses [shards]shard
	accounts  [shards]shard
}

// shard is a part of the callers, the most recent first.
type shard struct {
	mutex   sync.Mutex
	callers map[[20]byte]*list.Element
	order   list.List
}

// caller is one address or account with its counters.
type caller struct {
	key      [20]byte
	counters []counter
}

// New makes counters that know no caller yet. now is the wall clock.
func New(now func() time.Time) *Windows {
	w := &Windows{now: now, seed: maphash.MakeSeed()}
	for i := range shards {
		w.addresses[i].callers = make(map[[20]byte]*list.Element)
		w.accounts[i].callers = make(map[[20]byte]*list.Element)
	}
	return w
}

// Address counts a request in all windows of scope, or in none: then it returns how long to wait.
func (w *Windows) Address(a netip.Addr, scope []int) time.Duration {
	return w.decide(&w.addresses, addressWindows, conn.AddressKey(a), Demand{scope, 1})
}

// Account is Address for the windows of an account.
func (w *Windows) Account(a engine.Address, d Demand) time.Duration {
	return w.decide(&w.accounts, accountWindows[:], a, d)
}

// Gift counts a gift of the faucet that an address causes, and reports whether its window has room.
func (w *Windows) Gift(a netip.Addr) bool {
	return w.decide(&w.accounts, giftWindows[:], conn.AddressKey(a), Demand{[]int{0}, 1}) == 0
}

func (w *Windows) decide(
	set *[shards]shard, table []Window, key [20]byte, d Demand,
) time.Duration {
	s := &set[maphash.Bytes(w.seed, key[:])%shards]
	t := w.now().UnixNano()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := s.caller(key, len(table))
	longest := time.Duration(0) // every window is asked before any of them counts
	for _, i := range d.Scope {
		longest = max(longest, c.counters[i].wait(table[i], t, d.N))
	}
	if longest > 0 {
		return longest
	}
	for _, i := range d.Scope {
		c.counters[i].count(table[i], t, d.N)
	}
	return 0
}

// caller returns the counters of a key and moves them to the front.
func (s *shard) caller(key [20]byte, n int) *caller {
	if e := s.callers[key]; e != nil {
		s.order.MoveToFront(e)
		return e.Value.(*caller)
	}
	if s.order.Len() >= shardCallers {
		last := s.order.Back()
		delete(s.callers, s.order.Remove(last).(*caller).key)
	}
	c := &caller{key, make([]counter, n)}
	s.callers[key] = s.order.PushFront(c)
	return c
}

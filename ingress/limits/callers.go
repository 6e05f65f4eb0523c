package limits

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"clobd/engine"
	"clobd/ingress/conn"
)

// shards bounds contention. Each shard keeps at most shardCallers callers and shardSlots slots of
// their counters, and forgets the caller that was silent longest. A table has 16 * 2,048 callers:
// with 400 bytes for one who asks in three windows these are 13 MB, and the slots of all are 16 MB.
const (
	shards       = 16
	shardCallers = 2048
	shardSlots   = 1 << 17
)

// Windows holds the counters of all callers. Any goroutine may use it.
type Windows struct {
	now       func() time.Time
	seed      maphash.Seed
	policy    atomic.Pointer[Policy]
	addresses throng
	accounts  throng
	pairs     throng // an address and a key that has succeeded from there
	strangers throng // an address and a key that has only failed from there
}

// throng holds callers of one kind.
type throng [shards]shard

// shard is a part of the callers, the most recent first.
type shard struct {
	mutex   sync.Mutex
	callers map[[20]byte]*list.Element
	order   list.List
	slots   int // of all counters
}

// caller is one address or account with the counters of the windows that it has used.
type caller struct {
	key      [20]byte
	counters []counter
}

// Demand is the windows that a request counts in, and how often: a list counts once an entry. What
// counts more often than a window allows fills it.
type Demand struct {
	Scope *Scope
	N     uint32 // at least 1
}

// New makes counters that know no caller yet, for the standard limits. now is the wall clock.
func New(now func() time.Time) *Windows {
	w := &Windows{now: now, seed: maphash.MakeSeed()}
	for _, t := range []*throng{&w.addresses, &w.accounts, &w.pairs, &w.strangers} {
		for i := range t {
			t[i].callers = make(map[[20]byte]*list.Element)
		}
	}
	w.Use(Standard())
	return w
}

// Use makes p the limits that hold from now on. What was counted still counts, unless the period of
// its window is another.
func (w *Windows) Use(p *Policy) { w.policy.Store(p) }

// Address counts a request in all windows of scope, or in none: then the Verdict has a wait.
func (w *Windows) Address(a netip.Addr, scope *Scope) Verdict {
	p := w.policy.Load()
	v := w.decide(&question{&w.addresses, conn.AddressKey(a), p.address, scope.rows, 1, w.time()})
	v.Policy, v.Name = p.texts[scope.no], addressTable[v.Row].name
	return v
}

// Account is Address for the windows of an account.
func (w *Windows) Account(a engine.Address, d Demand) Verdict { return w.account(a, d, w.time()) }

func (w *Windows) account(a engine.Address, d Demand, t int64) Verdict {
	return w.keyed(a, a, d, t)
}

// keyed is account with the counters of another key.
func (w *Windows) keyed(a engine.Address, key [20]byte, d Demand, t int64) Verdict {
	tier := w.policy.Load().tier(a)
	q := w.asked(a, key, d, t)
	v := w.decide(&q)
	v.Policy, v.Name, v.Tier = tier.texts[d.Scope.no], accountTable[v.Row].name, tier.name
	return v
}

func (w *Windows) asked(a engine.Address, key [20]byte, d Demand, t int64) question {
	return question{&w.accounts, key, w.policy.Load().tier(a).account[:], d.Scope.rows, d.N, t}
}

// Cancel counts n cancels of an account at an address. A sweep, of everything or of a market, that
// finds these windows used up counts in small windows of its own: the emergency exit stays open.
func (w *Windows) Cancel(from netip.Addr, a engine.Address, n uint32, sweep bool) Verdict {
	v := w.cancel(from, a, cancels, Demand{CancelScope, n})
	if v.Wait == 0 || !sweep {
		return v
	}
	if last := w.cancel(from, a, sweeps, Demand{SweepScope, 1}); last.Wait < v.Wait {
		return last
	}
	return v
}

// cancel counts d in the account's windows and in a row of the address's, or in none of them.
func (w *Windows) cancel(from netip.Addr, a engine.Address, row uint8, d Demand) Verdict {
	p, t := w.policy.Load(), w.time()
	here := question{&w.addresses, conn.AddressKey(from), p.address, onlyRows[row], d.N, t}
	first := w.decide(&here)
	if first.Wait > 0 {
		first.Policy = p.tier(a).texts[d.Scope.no]
		first.Name, first.Tier = addressTable[row].name, p.tier(a).name
		return first
	}
	v := w.account(a, d, t)
	if v.Wait > 0 {
		w.refund(&here)
	}
	return v
}

// Gift counts a gift of the faucet that an address causes, and reports whether its window has room.
func (w *Windows) Gift(a netip.Addr) bool {
	return w.decide(&question{&w.addresses, conn.AddressKey(a), w.policy.Load().address,
		onlyRows[gifts], 1, w.time()}).Wait == 0
}

func (w *Windows) time() int64 { return w.now().UnixNano() }

// question asks whether n requests of a caller have room in some windows at time t.
type question struct {
	in      *throng
	key     [20]byte
	windows []Window // of the table, by row
	rows    []uint8  // those that the requests count in
	n       uint32
	t       int64
}

func (q *question) shard(seed maphash.Seed) *shard {
	return &q.in[maphash.Bytes(seed, q.key[:])%shards]
}

// window returns a row's window, and how often the question counts in it.
func (q *question) window(row uint8) (Window, uint32) {
	return q.windows[row], min(q.n, q.windows[row].Limit)
}

// decide counts a question in all its windows, or in none: then the Verdict has a wait.
func (w *Windows) decide(q *question) Verdict {
	s := q.shard(w.seed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := s.caller(q.key)
	longest := time.Duration(0) // every window is asked before any of them counts
	for _, row := range q.rows {
		window, n := q.window(row)
		longest = max(longest, s.counter(c, row, window).wait(window, q.t, n))
	}
	v := Verdict{Wait: longest}
	least := uint64(1<<64 - 1)
	for _, row := range q.rows {
		window, n := q.window(row)
		counter := s.counter(c, row, window)
		if longest == 0 {
			s.count(counter, window, q.t, n)
		}
		left := window.Limit - min(counter.sum, window.Limit)
		if share := uint64(left) << 32 / uint64(window.Limit); share < least {
			least, v.Row, v.Left, v.More = share, row, left, counter.more(window, q.t)
		}
	}
	v.More = max(v.More, longest)
	s.evict()
	return v
}

// look returns how long a question would wait, and whether its caller is known. It counts nothing.
func (w *Windows) look(q question) (wait time.Duration, known bool) {
	s := q.shard(w.seed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.callers[q.key]
	if e == nil {
		return 0, false
	}
	s.order.MoveToFront(e)
	c := e.Value.(*caller)
	for i := range c.counters {
		if row := c.counters[i].row; row == q.rows[0] {
			window, n := q.window(row)
			return s.counter(c, row, window).wait(window, q.t, n), true
		}
	}
	return 0, true
}

// note counts a question in its windows even where there is no room.
func (w *Windows) note(q question) {
	s := q.shard(w.seed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := s.caller(q.key)
	for _, row := range q.rows {
		window, n := q.window(row)
		counter := s.counter(c, row, window)
		counter.forget(window, q.t)
		s.count(counter, window, q.t, n)
	}
	s.evict()
}

// refund takes back what decide has counted.
func (w *Windows) refund(q *question) {
	s := q.shard(w.seed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	c := s.caller(q.key)
	for _, row := range q.rows {
		window, n := q.window(row)
		s.counter(c, row, window).refund(window, q.t, n)
	}
}

// caller returns the counters of a key and moves them to the front.
func (s *shard) caller(key [20]byte) *caller {
	if e := s.callers[key]; e != nil {
		s.order.MoveToFront(e)
		return e.Value.(*caller)
	}
	c := &caller{key: key}
	s.callers[key] = s.order.PushFront(c)
	return c
}

// evict forgets the callers that were silent longest, until the others fit. The front stays.
func (s *shard) evict() {
	for n := s.order.Len(); n > shardCallers || s.slots > shardSlots && n > 1; n-- {
		last := s.order.Remove(s.order.Back()).(*caller)
		delete(s.callers, last.key)
		for i := range last.counters {
			s.slots -= cap(last.counters[i].sent)
		}
	}
}

// counter returns a caller's counter of a window, until the next call.
func (s *shard) counter(c *caller, row uint8, w Window) *counter {
	for i := range c.counters {
		at := &c.counters[i]
		if at.row == row {
			if at.period != w.Period { // other limits hold now
				s.slots -= cap(at.sent)
				*at = counter{row: row, period: w.Period}
			}
			return at
		}
	}
	c.counters = append(c.counters, counter{row: row, period: w.Period})
	return &c.counters[len(c.counters)-1]
}

func (s *shard) count(c *counter, w Window, t int64, n uint32) {
	before := cap(c.sent)
	c.count(w, t, n)
	s.slots += cap(c.sent) - before
}

package stream

import (
	"sync"
	"time"

	"clobd/engine"
	"clobd/engine/view"
)

// Options are the settings of a Hub and its functions. All but Single and Owners are required.
type Options struct {
	Board *view.Board
	// Next waits for the next durable frame and returns it encoded. Its error ends Hub.Run.
	Next func() ([]byte, error)
	// Stopping is closed when the node stops. The Board may never show some durable frames then,
	// and subscribers of markets do not hear of those. If Stopping is nil, the Board shows all.
	Stopping <-chan struct{}
	// Book returns the answer of GET /book.
	Book func(*view.Snapshot, engine.Outcome) []byte
	// Hash returns the hash in that answer. One goroutine at a time calls Hash.
	Hash func(*view.Snapshot, engine.Outcome) [40]byte
	// JournalID is the id of the journal behind the Board. All hashes of transactions depend on it.
	JournalID uint64
	Now       func() time.Time
	// Announce describes a market that was listed, as a JSON object without its closing brace; nil if
	// the catalog does not describe it yet.
	Announce func(*view.Market) []byte
	// ID returns the id that Announce gives a market, "" if the catalog does not describe the market.
	ID func(engine.Condition) string
	// Label returns the name of an outcome.
	Label func(engine.Condition, engine.Outcome) string
	// Panicked counts and logs a panic. The Hub calls it before the stack of the panic is gone.
	Panicked func(where string, cause any) (id string)
	// Single keeps the Hub from using io_uring: each write takes a system call.
	Single bool
	// Owners are the options of the user channel; nil: there is no user channel.
	Owners *OwnerOptions
}

const (
	maxRecent  = 64 << 20              // bytes of bulletins that are kept for those who resume
	maxBehind  = 1 << 20               // bytes that may wait for a subscriber
	maxRests   = 128 << 20             // bytes that sockets have taken and not sent, in all
	mostStuck  = 10 * time.Second      // how long a full socket may take no byte
	firstWish  = 10 * time.Second      // for the first subscription or the login
	beatPause  = time.Second           // between two heartbeats
	retryPause = 5 * time.Millisecond  // until the next look at sockets without room
	pingBeats  = 20                    // seconds between two pings of a subscriber
	patience   = 60 * time.Second      // for a sign of life of a subscriber
	announces  = 16                    // new markets that one round announces
	patient    = time.Minute           // how long a new market may lack a description
	linger     = time.Minute           // how long a market without subscribers is still told
	mostAhead  = 50 * time.Millisecond // how long a first book waits until its Sequence is told
	settle     = 20 * time.Microsecond // until the next look whether a frame is visible
	glances    = 100                   // such looks before the first pause
	errorLimit = 256                   // bytes of an error's text
	turns      = 32                    // writes between two chances for other threads to run
)

// Hub tells its subscribers what changes in the markets that they name. Run it once; any number of
// goroutines may call Serve.
type Hub struct {
	o     Options
	heap  heap
	wake  chan struct{}
	ended chan struct{}

	figures figures

	mutex       sync.Mutex // guards what follows, and all subscribers
	watches     map[engine.MarketNo]*watch
	subscribers map[*subscriber]struct{}
	streams     uint64 // sockets so far
	recent      []*bulletin
	issue       []*bulletin     // buffer of tell, for the bulletins of one change
	kept        int             // bytes of recent
	forgotten   engine.Sequence // newest Sequence of the bulletins that were dropped from recent
	waiting     []waiting
	told        engine.Sequence
	born        engine.Sequence // a former Hub may have told changes up to here
	gone        engine.Sequence // forgotten watches may have told changes up to here
	out         outbox
	sent, bytes int       // messages, and bytes of frames, still to be added to the metrics
	beat        time.Time // when the last heartbeats were sent
	beats       int64     // Unix time of the last pings, in seconds
	owners      owners
	effort      effort
	listed      []listed // markets to be announced
	cut         bool     // the node stops, and the Board will not show what was read
}

// watch is a market that somebody has named.
type watch struct {
	market      *view.Market
	told        *view.Snapshot        // the Snapshot that all bulletins so far lead to
	newest      *view.Snapshot        // taken from the Board last: told, or still waiting
	deals       []deal                // that were not told yet
	since       engine.Sequence       // of the first Snapshot
	subscribers map[*subscriber]uint8 // a bit for each outcome
	all         []listener            // cache of listeners; nil: listeners fills it
	left        time.Time             // when the last subscriber left; zero: there is one
	collapsed   collapsed             // the collapse that was rendered last
	hashed      *view.Snapshot        // the Snapshot of hashes
	hashes      [2]string             // of the books of hashed, by outcome; empty: not computed
}

// listener is a subscriber of a market, with the outcomes whose bulletins he gets.
type listener struct {
	*subscriber
	outcomes uint8 // a bit for each
}

// listeners returns the subscribers of a market as a slice: to walk through the map for each
// message would take longer than to queue the message for all of them.
func (w *watch) listeners() []listener {
	if w.all == nil {
		w.all = make([]listener, 0, len(w.subscribers))
		for s, outcomes := range w.subscribers {
			w.all = append(w.all, listener{s, outcomes})
		}
	}
	return w.all
}

// wants sets the outcomes whose bulletins a subscriber gets.
func (w *watch) wants(s *subscriber, outcomes uint8) {
	w.subscribers[s], w.all = outcomes, nil
}

// listed is a market that has opened and was not announced.
type listed struct {
	market *view.Market
	since  time.Time
}

// waiting is a Snapshot that is to be told.
type waiting struct {
	watch    *watch
	snapshot *view.Snapshot
}

// New makes a Hub.
func New(o Options) *Hub {
	h := &Hub{o: o, figures: newFigures(), heap: heap{
		markets: make(map[engine.MarketNo][]deal), spare: make(map[engine.MarketNo][]deal),
		read: o.Board.Shown()},
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
		watches: make(map[engine.MarketNo]*watch), subscribers: make(map[*subscriber]struct{})}
	h.out.hub = h
	h.heap.recall(o.Board.Directory)
	h.told, h.born = h.heap.read, h.heap.read
	h.owners = owners{hub: h, o: o.Owners, readers: make(map[*subscriber]struct{}),
		busy: make(chan struct{}, maxBusy)}
	if o.Owners != nil {
		h.owners.at, h.owners.seq = o.Owners.Frame-1, h.heap.read
	}
	return h
}

// heap holds the markets and trades of frames that follow has read and observe has not taken.
type heap struct {
	mutex   sync.Mutex
	markets map[engine.MarketNo][]deal
	spare   map[engine.MarketNo][]deal // the map that take returned last, for the next call
	free    [][]deal                   // empty ones, for the next markets with trades
	opened  []engine.MarketNo
	ever    []bool          // whether a market has ever been open, by its number
	read    engine.Sequence // last Sequence of all frames so far
}

// opens notes that a market is open, and reports whether it opens for the first time.
func (p *heap) opens(no engine.MarketNo) bool {
	for len(p.ever) <= int(no) {
		p.ever = append(p.ever, false)
	}
	first := !p.ever[no]
	p.ever[no] = true
	return first
}

// recall notes which markets of the directory have been open before.
func (p *heap) recall(d *view.Directory) {
	for no := engine.MarketNo(1); ; no++ {
		m := d.Market(no)
		if m == nil {
			return
		}
		if m.State != engine.Unopened {
			p.opens(no)
		}
	}
}

// deal is a taker's trade at one price.
type deal struct {
	sequence engine.Sequence
	index    uint32 // among the trades of its order
	outcome  engine.Outcome
	side     engine.Side
	price    engine.Price
	size     engine.Size
	time     engine.Time
}

// Reach waits at most d until everything up to a Sequence is told, and reports whether it is.
func (h *Hub) Reach(seq engine.Sequence, d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(time.Millisecond) {
		h.mutex.Lock()
		told := h.told
		if len(h.owners.readers) > 0 {
			told = min(told, h.owners.seq)
		}
		h.mutex.Unlock()
		if told >= seq || time.Now().After(end) {
			return told >= seq
		}
	}
}

// Run tells subscribers what frames change until Next fails, and then closes their sockets.
func (h *Hub) Run() error {
	h.out.open()
	defer h.out.close()
	var group sync.WaitGroup
	group.Go(func() {
		giveWay()
		h.tend()
	})
	err := h.follow()
	close(h.ended)
	group.Wait()
	return err
}

// RunOwners tells the readers of the user channel what happens to their orders, until Next fails.
func (h *Hub) RunOwners() error { return h.owners.run() }

// rouse wakes tend, which sends the messages that are left over.
func (h *Hub) rouse() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// add notes the markets that a frame touches, and its trades.
func (p *heap) add(f *engine.Frame) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for i := range f.Commands {
		c, seq := &f.Commands[i], f.First+engine.Sequence(i)
		trades := uint32(0)
		events := f.EventsOf(i)
		for j := range events {
			e := &events[j]
			if e.Market == 0 {
				continue
			}
			if (e.Kind == engine.Listed || e.Kind == engine.StateChanged) &&
				e.State == engine.Open && p.opens(e.Market) {
				p.opened = append(p.opened, e.Market)
			}
			deals := p.markets[e.Market]
			if e.Kind == engine.Filled {
				d := dealOf(c, e)
				d.sequence, d.time = seq, f.Time
				if n := len(deals); n > 0 && deals[n-1].sequence == seq && deals[n-1].price == d.price {
					deals[n-1].size += d.size
				} else {
					d.index = trades
					trades++
					if free := len(p.free); deals == nil && free > 0 {
						deals, p.free = p.free[free-1], p.free[:free-1]
					}
					deals = append(deals, d)
				}
			}
			p.markets[e.Market] = deals
		}
	}
	p.read = max(p.read, f.Last())
}

// each calls do for each market that was touched since the last take.
func (p *heap) each(do func(engine.MarketNo)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for no := range p.markets {
		do(no)
	}
}

// dealOf returns a fill with the taker's outcome, side and price.
func dealOf(c *engine.Command, e *engine.Event) deal {
	price := e.Price
	if c.Outcome != e.Outcome {
		price = engine.PriceOne - price
	}
	return deal{outcome: c.Outcome, side: c.Side, price: price, size: e.Size}
}

// freeDeals is how many slices of how many deals a heap keeps for later.
const freeDeals = 64

// load is what take returns. It is valid until the next call of take.
type load struct {
	markets map[engine.MarketNo][]deal
	opened  []engine.MarketNo
	read    engine.Sequence
}

// take returns what the heap holds, and empties the heap.
func (p *heap) take() load {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	l := load{p.markets, p.opened, p.read}
	for no, deals := range p.spare {
		if 0 < cap(deals) && cap(deals) <= freeDeals && len(p.free) < freeDeals {
			p.free = append(p.free, deals[:0])
		}
		delete(p.spare, no)
	}
	p.markets, p.spare, p.opened = p.spare, p.markets, nil
	return l
}

package api

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/scripts/mirror"
	"clobd/scripts/setting"
)

// asked is the answer of GET /book about a token, and its X-Sequence.
type asked struct {
	token string
	seq   uint64
	book  string
}

// load changes books as fast as one subscriber can follow, until the test stops it.
type load struct {
	*random
	seen   atomic.Uint64 // the highest Sequence that the subscriber was told
	points chan asked
	over   chan struct{}
	frames int
}

const (
	mostAhead  = 8    // Commands of a market between the load and the subscriber
	sampled    = 16   // each so many frames, a book is asked for
	sweepPause = 3000 // frames after which all orders of a trader are canceled
)

// run is the load. Nobody else changes the node meanwhile.
func (l *load) run() {
	defer close(l.points)
	for ; ; l.frames++ {
		select {
		case <-l.over:
			return
		default:
		}
		l.wait()
		if l.frames%sweepPause == 0 { // or what rests takes all the cash
			w := l.wallets[l.frames/sweepPause%2]
			l.do(engine.Command{Kind: engine.CancelAll, Wallet: w, Owner: w, Reason: engine.ByOwner})
		}
		l.frame()
		if l.frames%sampled == 0 {
			l.sample()
		}
	}
}

// wait lets the subscriber come near: a change that is not told yet would take up more and more of
// the load. Some Commands change nothing, so the wait has an end.
func (l *load) wait() {
	end := time.Now().Add(2 * time.Millisecond)
	for l.seen.Load()+uint64(mostAhead*l.markets) < uint64(l.head.Sequence) && time.Now().Before(end) {
		time.Sleep(20 * time.Microsecond)
	}
}

// sample asks for a book that the last frame has changed, if there is one.
func (l *load) sample() {
	m, changed := 0, false
	for ; m < l.markets && !changed; m++ {
		s, _, _ := l.board.Book(small(10 * (m + 1)))
		changed = s.Sequence == l.board.Shown()
	}
	if !changed {
		return
	}
	token := 10*m + l.rng.IntN(2)
	ctx := ask("GET", fmt.Sprint("/book?token_id=", token))
	l.handler.Public(ctx)
	seq, err := strconv.ParseUint(string(ctx.Response.Header.Peek("X-Sequence")), 10, 64)
	if err != nil || ctx.Response.StatusCode() != fasthttp.StatusOK {
		l.t.Errorf("%d %s %v", ctx.Response.StatusCode(), ctx.Response.Body(), err)
	}
	select {
	case l.points <- asked{fmt.Sprint(token), seq, string(ctx.Response.Body())}:
	default: // the subscriber has enough of them
	}
}

// comparison holds answers of GET /book against what was told at the same Sequence.
type comparison struct {
	told map[string][]asked // the latest books by token, as they were told
	open []asked            // that were not reached yet
	same int
}

// latest is how many books of a token a comparison remembers.
const latest = 64

// note remembers the books that a message has changed.
func (c *comparison) note(books mirror.Books, m *mirror.Message) {
	for i := range m.Changes {
		asset := m.Changes[i].Asset
		some := c.told[asset]
		if n := len(some); n > 0 && some[n-1].seq == m.Seq {
			continue
		}
		if len(some) == latest {
			some = append(some[:0], some[latest/2:]...)
		}
		c.told[asset] = append(some, asked{asset, m.Seq, books[asset].Hash})
	}
}

// check compares all that can be compared. A Sequence that nobody was told was a part of a change.
func (c *comparison) check(t *testing.T, points <-chan asked) {
	t.Helper()
	for more := true; more; {
		select {
		case p, ok := <-points:
			if more = ok; ok {
				c.open = append(c.open, p)
			}
		default:
			more = false
		}
	}
	later := c.open[:0]
	for _, p := range c.open {
		some := c.told[p.token]
		if len(some) == 0 || some[len(some)-1].seq < p.seq {
			later = append(later, p)
			continue
		}
		for _, told := range some {
			if told.seq != p.seq {
				continue
			}
			if c.same++; !strings.Contains(p.book, `"hash":"`+told.book+`"`) {
				t.Fatalf("token %s at %d: told hash %s, asked %s", p.token, p.seq, told.book, p.book)
			}
		}
	}
	c.open = later
}

// TestReconstructionUnderLoad: under load, too, a client that applies every change has the books
// that the hashes name, and those of GET /book at the same X-Sequence. CLOBD_SIZE is how many
// price_changes come, in one book and in 200. Of many, a sample is held against the document.
func TestReconstructionUnderLoad(t *testing.T) {
	for _, markets := range []int{1, 200} {
		t.Run(fmt.Sprint("markets=", markets), func(t *testing.T) {
			reconstruct(t, markets, setting.Size(t, 20_000, 3000))
		})
	}
}

func reconstruct(t *testing.T, markets, changes int) {
	l := &load{random: newRandom(t, markets), points: make(chan asked, 1024),
		over: make(chan struct{})}
	var tokens []int
	var wish []string
	for m := 1; m <= markets; m++ {
		tokens = append(tokens, 10*m, 10*m+1)
		wish = append(wish, fmt.Sprintf(`"%d","%d"`, 10*m, 10*m+1))
	}
	w := watchFrom(t, l.streams(), `{"type":"MARKET","heartbeat":true,"assets_ids":[`+
		strings.Join(wish, ",")+`]}`, mirror.Books{})
	if w.until(l.node, tokens...); changes > 20_000 {
		w.sample = 16
	}
	c := comparison{told: make(map[string][]asked)}
	w.told = func(m *mirror.Message) {
		if c.note(w.books, m); w.kinds["price_change"]%64 == 0 {
			c.check(t, l.points)
		}
	}
	var group sync.WaitGroup
	defer group.Wait()
	stop := sync.OnceFunc(func() { close(l.over) })
	defer stop()
	began := time.Now()
	group.Go(l.run)
	for w.kinds["price_change"] < changes {
		if _, err := w.hear(); err != nil {
			t.Fatalf("after %d changes: %v", w.kinds["price_change"], err)
		}
		l.seen.Store(w.seq)
	}
	took := time.Since(began)
	stop()
	group.Wait()
	w.until(l.node, tokens...)
	c.check(t, l.points)
	if w.kinds["resync"] != 0 || w.kinds["book"] != len(tokens) || c.same < changes/400 {
		t.Errorf("%v, %d books compared", w.kinds, c.same)
	}
	t.Logf("figures: markets=%d changes=%d hashes=%d trades=%d books_compared=%d frames=%d "+
		"changes_per_second=%.0f", markets, w.kinds["price_change"], w.hashes,
		w.kinds["last_trade_price"], c.same, l.frames, float64(w.kinds["price_change"])/took.Seconds())
}

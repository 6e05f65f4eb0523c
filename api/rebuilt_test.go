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

// asked is an answer of GET /book: the token, the X-Sequence and the book.
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
	mostAhead  = 8    // Commands per market by which the load may be ahead of the subscriber
	sampled    = 16   // frames between two requests for a book
	sweepPause = 3000 // frames after which all orders of a trader are canceled
)

// run makes the load. Nothing else changes the node while it runs.
func (l *load) run() {
	defer close(l.points)
	for ; ; l.frames++ {
		select {
		case <-l.over:
			return
		default:
		}
		l.wait()
		if l.frames%sweepPause == 0 { // otherwise resting orders use up all cash
			w := l.wallets[l.frames/sweepPause%2]
			l.do(engine.Command{Kind: engine.CancelAll, Wallet: w, Owner: w, Reason: engine.ByOwner})
		}
		l.frame()
		if l.frames%sampled == 0 {
			l.sample()
		}
	}
}

// wait lets the subscriber catch up: otherwise more and more of the load would become one change.
// Some Commands change no book, so wait gives up after a while.
func (l *load) wait() {
	end := time.Now().Add(2 * time.Millisecond)
	for l.seen.Load()+uint64(mostAhead*l.markets) < uint64(l.head.Sequence) && time.Now().Before(end) {
		time.Sleep(20 * time.Microsecond)
	}
}

// sample asks for a book that the last frame has changed, if there is such a book.
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
	default: // enough answers wait to be compared
	}
}

// comparison compares answers of GET /book with the books that the subscriber had at the same
// Sequence.
type comparison struct {
	told map[string][]asked // the latest books of the subscriber, by token
	open []asked            // at Sequences that the subscriber has not reached
	same int
}

// latest is how many books of each token a comparison remembers.
const latest = 64

// note remembers the hashes of the books that a message has changed.
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

// check compares all answers whose Sequence the subscriber has reached. It skips a Sequence that
// was merged into a later change.
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
// that the hashes name, and those of GET /book at the same X-Sequence. CLOBD_SIZE is the number of
// price_changes, once in one market and once in 200. Long runs check only a sample of the messages
// against the AsyncAPI document.
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

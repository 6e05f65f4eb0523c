package api

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"clobd/api/catalog"
	"clobd/api/console"
	"clobd/api/stream"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
	"clobd/journal/history"
)

// node is everything behind a Handler: a real Exchange whose frames go into a real journal (in
// memory), its index and a Board.
type node struct {
	t        testing.TB
	exchange *engine.Exchange
	journal  *journal.Journal
	index    *history.Index
	board    *view.Board
	head     engine.Head
	now      engine.Time
	catalog  *catalog.Catalog
	handler  *Handler
	clock    func() time.Time // of windows
	hub      *stream.Hub      // the Hub that streams made last
	running  chan error       // what the index's Run returned
	broken   bool             // the index is closed already
}

// testJournal is the id that all trade ids of the tests carry.
const testJournal = 0x0123456789abcdef

func newNode(t testing.TB) *node {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	n := &node{
		t: t, exchange: engine.NewExchange(1), board: view.NewBoard(),
		now: 1_700_000_000_000, catalog: catalog.Empty(),
		clock: func() time.Time { return time.Unix(1_700_006_400, 0) },
	}
	var err error
	n.journal, err = journal.Open(journal.Options{Dir: "data", FS: vfs.NewMem(), Log: quiet})
	n.must(err)
	n.journal.ID = testJournal
	_, err = n.journal.Recover(n.exchange, nil)
	n.must(err)
	n.index, err = history.Open(n.journal, history.Options{Builder: builderOf})
	n.must(err)
	n.handler, err = New(Options{
		Board: n.board, History: n.index.History, JournalID: n.journal.ID, Log: quiet,
		Catalog:   func() *catalog.Catalog { return n.catalog },
		KeyID:     keyID,
		Checksum:  checksum,
		Exchanges: []engine.Address{trader("exchange"), trader("second")},
		Now:       func() time.Time { return n.clock() },
		Console: console.Facts{Version: "v1", Chain: 80002, Exchanges: []console.Domain{
			{Name: "Exchange", Version: "2", Contract: checksum(trader("exchange")), Markets: "normal"},
			{Name: "Exchange", Version: "2", Contract: checksum(trader("second")), Markets: "neg-risk"}}},
	})
	n.must(err)
	t.Cleanup(func() {
		if !n.broken {
			n.must(n.index.Close())
		}
		if n.running != nil {
			n.must(<-n.running)
		}
		n.must(n.journal.Close())
	})
	return n
}

// builderOf stands in for the real one: the proofs of the tests are nothing but a builder's code.
func builderOf(proof []byte) (code history.BuilderCode) {
	copy(code[:], proof)
	return code
}

// run starts the index; until then account reads lag. From then on they have a minute: an index
// that runs is slow only because the machine is, and no test is about that.
func (n *node) run() {
	n.handler.patience = time.Minute
	done := make(chan error, 1)
	go func() { done <- n.index.Run() }()
	n.running = done
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// do applies commands as one frame and returns the events of each as words.
func (n *node) do(commands ...engine.Command) []engine.Event {
	n.t.Helper()
	f := engine.Frame{
		Engine: engine.Version, Epoch: 1, No: n.head.Frame + 1, First: n.head.Sequence + 1,
		Time: n.now, Commands: commands,
	}
	for i := range commands {
		seq := f.First + engine.Sequence(i)
		f.Events = n.exchange.Apply(&commands[i], seq, n.now, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
	}
	f.Digest = n.exchange.Digest()
	f.Encode(n.head.Hash)
	n.must(n.journal.Append(&f))
	n.must(n.journal.Wait(f.No))
	n.head = f.Head()
	n.board.Publish(&f)
	return f.Events
}

// listing is a market of small round numbers: condition c, tokens 10c and 10c+1.
func listing(c int, tick engine.Price) *engine.Listing {
	return &engine.Listing{
		Condition: engine.Condition{30: byte(c >> 8), 31: byte(c)}, Group: 1,
		Tokens: [2]engine.Token{small(10 * c), small(10*c + 1)},
		Tick:   tick, MinSize: 5 * engine.Unit, Open: true,
	}
}

// small is a token id.
func small(n int) engine.Token {
	t, ok := engine.ParseToken(fmt.Sprint(n))
	if !ok {
		panic("BUG: " + fmt.Sprint(n))
	}
	return t
}

// trader is the address of a name.
func trader(name string) (a engine.Address) {
	copy(a[:], name)
	a[19] = 0xab
	return a
}

// orderID is the id of a named order.
func orderID(name string) (id engine.OrderID) {
	copy(id[:], name)
	id[31] = 0xcd
	return id
}

// keyID stands in for the keyring's: the nonce where one can see it.
func keyID(a engine.Address, nonce uint32) string {
	return fmt.Sprintf("%02x000000-0000-4000-8000-%012d", a[0], nonce)
}

// checksum stands in for the real one: capitals, so that one sees that it was used.
func checksum(a engine.Address) string {
	return "0x" + strings.ToUpper(strings.TrimPrefix(a.Hex(), "0x"))
}

// fund gives a trader cash and both tokens of the market.
func (n *node) fund(name string, market engine.MarketNo, cash, shares int) engine.WalletNo {
	n.t.Helper()
	a := trader(name)
	commands := []engine.Command{
		{Kind: engine.Deposit, Address: a, Cash: engine.Cash(cash) * engine.Unit},
	}
	for o := range engine.Outcome(2) {
		commands = append(commands, engine.Command{
			Kind: engine.Deposit, Address: a, Market: market, Outcome: o,
			Size: engine.Size(shares) * engine.Unit,
		})
	}
	n.do(commands...)
	no, ok := n.board.Directory.Wallet(a)
	if !ok {
		n.t.Fatalf("%s has no wallet", name)
	}
	return no
}

// quote is what a limit order says: lots of 0.01 share at a price.
type quote struct {
	market  engine.MarketNo
	outcome engine.Outcome
	side    engine.Side
	lots    int
	price   engine.Price
}

// place is the Command for a quote.
func place(id string, w engine.WalletNo, q quote) engine.Command {
	size := engine.Size(q.lots) * engine.Lot
	return engine.Command{
		Kind: engine.Place, Type: engine.GTC, Side: q.side, Outcome: q.outcome, Market: q.market,
		Wallet: w, Owner: w, Key: 7, Size: size, Cash: engine.Cost(size, q.price), ID: orderID(id),
	}
}

// ladder rests depth levels on both sides of market 1, which it lists with ticks of 0.001.
func (n *node) ladder(depth int) {
	n.t.Helper()
	n.do(engine.Command{Kind: engine.List, Listing: listing(1, 10)})
	w := n.fund("maker", 1, 1_000_000, 1_000_000)
	for i := range depth {
		below, above := engine.Price(4990-10*i), engine.Price(5010+10*i)
		n.do(
			place(fmt.Sprint("b", i), w, quote{1, 0, engine.Buy, 1000 + i, below}),
			place(fmt.Sprint("s", i), w, quote{1, 0, engine.Sell, 1000 + 7*i, above}),
		)
	}
	s, _, _ := n.board.Book(small(10))
	if s.Depth(0, engine.Buy) != depth || s.Depth(0, engine.Sell) != depth {
		n.t.Fatalf("%d bids and %d asks", s.Depth(0, engine.Buy), s.Depth(0, engine.Sell))
	}
}

package workload

import (
	"fmt"
	"strings"

	"clobd/engine"
)

// Workload is a mix of operations, one of Known or from a file that ReadMix reads.
type Workload struct {
	Name string
	Line string // what it is, in a line for people

	// Read is the share of the steps that read, in percent. The other four share what is left, in
	// percent, and add up to 100.
	Read   int
	New    int // new orders that rest
	Cancel int // cancels
	Cross  int // orders whose limit lies at or beyond the best opposite price
	Quote  int // a maker cancels the list of its quotes and posts a new one

	Books int
	Tick  engine.Price
	Zipf  int // how uneven the books are drawn: the exponent of Zipf's law in hundredths, 0 for evenly

	// Orders are the least and the most that a book holds: below the least a new order takes the place
	// of a cancel, above the most a cancel that of a new order.
	Orders [2]int
	Depth  int    // a new order is on average a Depth-th of all prices away from the middle
	Drift  int    // the middle moves by a Drift-th of all prices a step, on average
	Size   [2]int // of new orders and quotes: least and most, in whole shares
	Taken  [2]int // of orders that cross: the same
	Slip   [2]int // how many ticks beyond the best opposite price they go: least and most
	FAK    int    // how many of them never rest, in percent
	Latest int    // one cancel in so many aims at the book's 64 latest orders; 0: none
	Far    bool   // cancels aim far from the middle

	// Alike makes all orders of a book have one side: BUYs in even ones, so that all fills mint, and
	// SELLs in odd ones, so that all merge.
	Alike bool

	Makers int // the first so many wallets quote and do nothing else
	Rungs  int // orders on each side of a quote, at most 7: a quote is one list
}

// Traders is the number of wallets that a drawn workload trades with.
const Traders = 64

// fewBooks is up to how many books all wallets trade in each of them. In each of more books only a
// crew of wallets does: to fund each wallet in each of a thousand books would take minutes.
const fewBooks = 16

// The sizes of the crews of one book among many.
const (
	crewSize   = 8 // without makers, or beside them
	crewMakers = 4
)

// canonical is the mix that all figures are about, and that the others differ from.
func canonical(name, line string, differ func(w *Workload)) Workload {
	w := Workload{Name: name, Line: line, New: 50, Cancel: 40, Cross: 10, Books: 1, Tick: 100,
		Zipf: 110, Orders: [2]int{0, engine.MaxMarketOrders}, Depth: 25, Drift: 2000,
		Size: [2]int{5, 100}, Taken: [2]int{5, 140}, Slip: [2]int{0, 2}, Latest: 2}
	if differ != nil {
		differ(&w)
	}
	return w
}

// Known are the mixes that a run can ask for by name.
func Known() []Workload {
	shares := func(w *Workload, places, cancels, crosses int) {
		w.New, w.Cancel, w.Cross = places, cancels, crosses
	}
	quoting := func(w *Workload) {
		shares(w, 0, 0, 86)
		w.Quote, w.Makers, w.Rungs, w.Drift, w.FAK = 14, 16, 7, 400, 100
	}
	return []Workload{
		canonical("canonical", "half new orders, 40 % cancels, 10 % orders that cross, one book", nil),
		canonical("canonical-fine", "canonical with a tick of 0.001, so ten times as many levels",
			func(w *Workload) { w.Tick = 10 }),
		canonical("place", "orders alone, 70 % of them cross: what compare and ramp post",
			func(w *Workload) { shares(w, 30, 0, 70) }),
		canonical("quiet", "a small book: 44 % new orders, 54 % cancels far from the middle, few fills",
			func(w *Workload) {
				shares(w, 44, 54, 2)
				w.Orders, w.Depth, w.Latest, w.Far = [2]int{100, 400}, 6, 0, true
			}),
		canonical("cancel-heavy", "as many cancels as new orders, 4 % orders that cross",
			func(w *Workload) { shares(w, 48, 48, 4) }),
		canonical("sweep", "one order in ten eats many levels, half of these FAK and half GTC; tick 0.001",
			func(w *Workload) {
				shares(w, 78, 12, 10)
				w.Tick, w.Depth, w.Orders = 10, 12, [2]int{400, 1200}
				w.Size, w.Taken, w.Slip, w.FAK = [2]int{5, 40}, [2]int{100, 300}, [2]int{40, 200}, 50
			}),
		canonical("hot-market", "canonical over 1,000 books, by Zipf's law: the first gets 17 %",
			func(w *Workload) { w.Books = 1000 }),
		canonical("mint-merge", "two books: in one every fill mints a pair, in the other it merges one",
			func(w *Workload) {
				shares(w, 46, 34, 20)
				w.Books, w.Zipf, w.Alike, w.Taken = 2, 0, true, [2]int{5, 100}
			}),
		canonical("read-mostly", "95 % reads of book, price, midpoint and own orders, 5 % canonical",
			func(w *Workload) { w.Read = 95 }),
		canonical("market-maker", "16 makers quote 7 levels a side in lists and requote; 48 wallets take",
			quoting),
		canonical("market-makers", "market-maker in 300 books, by Zipf's law; 4 makers and 8 takers each",
			func(w *Workload) {
				quoting(w)
				w.Books = 300
			}),
		canonical("streams", "canonical, beside subscribers that listen to its book", nil),
	}
}

// Named finds a mix by name. The error lists all of them.
func Named(name string) (Workload, error) {
	for _, w := range Known() {
		if w.Name == name {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("no workload is called %q: choose one of\n%s", name, Catalogue())
}

// Catalogue lists the workloads for people: name, what it is, and the levels where it runs.
func Catalogue() string {
	var b strings.Builder
	for _, w := range Known() {
		fmt.Fprintf(&b, "  %-15s %-80s %s\n", w.Name, w.Line, w.Levels())
	}
	fmt.Fprintf(&b, "  %-15s %-80s %s", Replay, "a node's own journal, with --data DIR", "L0 to L3")
	return b.String()
}

// Levels says at which levels the workload runs, and as what.
func (w *Workload) Levels() string {
	if w.Read > 0 {
		return "L3; L0 to L2: its orders without its reads"
	}
	return "L0 to L3"
}

// Warmup is how many operations a run begins with before its clock runs, where usual is how many a
// book of many orders wants: all makers have quoted then, or the book has its least.
func (w *Workload) Warmup(usual int) int {
	if w.Quote > 0 {
		return w.Books * w.makersOf() * 2 * w.Rungs
	}
	if w.Orders[0] > 0 {
		return min(usual, w.Books*w.Orders[0])
	}
	return usual
}

// makersOf is how many makers quote in each book.
func (w *Workload) makersOf() int {
	if w.Books <= fewBooks {
		return w.Makers
	}
	return min(w.Makers, crewMakers)
}

// maker is the wallet of maker k, [0, makersOf()), of a book.
func (w *Workload) maker(book, k int) int { return (book*w.makersOf() + k) % w.Makers }

// takersOf is how many wallets that do not quote trade in each book.
func (w *Workload) takersOf() int {
	if w.Books <= fewBooks {
		return Traders - w.Makers
	}
	return min(Traders-w.Makers, crewSize)
}

// taker is the wallet of taker k, [0, takersOf()), of a book.
func (w *Workload) taker(book, k int) int {
	return w.Makers + (book*w.takersOf()+k)%(Traders-w.Makers)
}

// Trades reports whether a wallet trades in a book, and so needs money in it.
func (w *Workload) Trades(wallet, book int) bool {
	if wallet < w.Makers {
		n := w.makersOf()
		return (wallet-book*n%w.Makers+w.Makers)%w.Makers < n
	}
	others, n := Traders-w.Makers, w.takersOf()
	return (wallet-w.Makers-book*n%others+others)%others < n
}

// Most orders and most cancels that the node takes in one request.
const (
	ListSize   = 15
	cancelSize = 1000
)

// Op is one operation of a workload. Price is in the order's own token.
type Op struct {
	Cancel  bool
	FAK     bool   // the order never rests: what is not filled at once is killed
	Read    Read   // no order: one GET, on level L3 only
	All     All    // of a cancel: the orders of Trader instead of the one that Target names
	List    uint32 // operations beside each other with this number travel in one request; 0: alone
	Side    engine.Side
	Outcome engine.Outcome
	Price   engine.Price
	Trader  uint16
	Book    uint16
	Target  uint32 // of a cancel: the index of the Op that placed the order
	Size    engine.Size
}

// Together is how many of the operations at the start are one request.
func Together(ops []Op) int {
	first, most := &ops[0], ListSize
	if first.Cancel {
		most = cancelSize
	}
	n := 1
	for first.List != 0 && n < min(len(ops), most) {
		o := &ops[n]
		if o.List != first.List || o.Trader != first.Trader || o.Cancel != first.Cancel || o.Read != 0 {
			break
		}
		n++
	}
	return n
}

// All says which orders a cancel of many takes: those of its trader everywhere, in the market of
// its Book, or in its token. 0: it cancels one.
type All uint8

// The cancels of many. Only a replay has them.
const (
	AllOrders All = iota + 1
	AllInMarket
	AllInToken
)

// Read is what an operation reads of its book, 0 nothing.
type Read uint8

// The reads of a workload: GET /book, /price and /midpoint of the operation's token, and GET
// /data/orders of its trader.
const (
	ReadBook Read = iota + 1
	ReadPrice
	ReadMidpoint
	ReadOrders
)

// Expected is the end state of a run that keeps the operations' order.
type Expected struct {
	Fills  int64
	Volume engine.Size // sum of the sizes of all fills
	Live   int64       // orders resting at the end
	Missed int64       // refused: cancels of orders that were gone, FAKs that met nothing

	Mints, Merges int64 // fills that made a pair of tokens, or turned one back
	Killed        int64 // FAKs that were filled in part
	SelfTrades    int64 // resting orders that were cancelled because their own wallet met them
}

// Replay names what a node has recorded, where a workload is chosen by name.
const Replay = "replay"

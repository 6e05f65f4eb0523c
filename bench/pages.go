package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api"
	"clobd/api/catalog"
	"clobd/bench/workload"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/history"
)

// Pages says how pages of lists are measured, anywhere in a long history.
type Pages struct {
	Seed    uint64
	Dir     string // where the data folder is made; empty is the system's temporary folder
	Trades  int    // in the history; there are twice as many orders and more
	Rounds  int
	Reads   int    // of a round, for each list
	Self    string // the binary that watches for hiccups
	Version string // what this program was built from, for the report
	Ticker  *Ticker
}

// validate returns all problems at once, or nil.
func (p *Pages) validate() error {
	all := Problems{Of: "pages"}
	all.Add(p.Trades < 1000 || p.Trades > 100_000_000, "the trades are not in [1000, 100000000]")
	all.Add(p.Rounds < 1 || p.Rounds > mostRounds, "the rounds are not in [1, %d]", mostRounds)
	all.Add(p.Reads < 10 || p.Reads > 1_000_000, "the reads of a round are not in [10, 1000000]")
	return all.Err()
}

// Paged is the result.
type Paged struct {
	Conditions Conditions  `json:"conditions"`
	Seed       uint64      `json:"seed"`
	Orders     int         `json:"orders"`
	Trades     int         `json:"trades"`
	Resting    int         `json:"resting"`
	Reads      int         `json:"reads_per_round"`
	Lists      []PagedList `json:"lists"`
}

// PagedList is one list: how many pages it has, and by round how long pages from anywhere took.
type PagedList struct {
	Name   string    `json:"name"`
	Pages  int       `json:"pages"`
	Rounds []Latency `json:"rounds_micros"`
}

// The wallets and markets of the history. The first wallet has a third of all orders.
const (
	pagesWallets = 1000
	pagesMarkets = 100
)

// archive is a long history and what reads it.
type archive struct {
	x       *engine.Exchange
	r       *rand.Rand
	j       *journal.Journal
	board   *view.Board
	head    engine.Head
	frame   engine.Frame
	trades  int
	orders  int
	handler *api.Handler
	ticker  *Ticker
}

// MeasurePages writes the history and reads it.
func MeasurePages(ctx context.Context, p Pages) (out *Paged, err error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	dir, err := makeFolder(p.Dir)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	watch, err := StartWatch(ctx, p.Self)
	if err != nil {
		return nil, err
	}
	defer watch.End()
	out = &Paged{Conditions: NewConditions(p.Version), Seed: p.Seed, Reads: p.Reads}
	out.Conditions.Data = diskOf(dir)
	quietly := slog.New(slog.DiscardHandler)
	j, err := journal.Open(journal.Options{Dir: dir, Async: true, Log: quietly})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	a := &archive{x: engine.NewExchange(p.Seed), r: rand.New(rand.NewPCG(p.Seed, 0x70616765)), j: j,
		board: view.NewBoard()}
	if _, err := j.Recover(a.x, nil); err != nil {
		return nil, err
	}
	index, err := history.Open(j, history.Options{Log: quietly})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- index.Run() }()
	defer func() { err = errors.Join(err, index.Close(), <-ended) }()
	p.Ticker.Plan(1 + 4*p.Rounds)
	p.Ticker.Step("writing a history of %d trades", p.Trades)
	a.ticker = p.Ticker
	if err := a.write(ctx, p.Trades); err != nil {
		return nil, err
	}
	if !index.History.Await(a.head.Sequence, 10*time.Minute) {
		return nil, errors.New("the index does not catch up")
	}
	keyring := auth.NewKeyring([32]byte{9})
	a.handler, err = api.New(api.Options{Board: a.board, History: index.History, JournalID: j.ID,
		Catalog: func() *catalog.Catalog { return nil }, KeyID: keyring.KeyID,
		Checksum: auth.Checksum, Log: quietly})
	if err != nil {
		return nil, err
	}
	out.Orders, out.Trades = a.orders, a.trades
	return out, a.read(ctx, &p, watch, out)
}

// flush makes a frame of what was applied.
func (a *archive) flush() error {
	f := &a.frame
	if len(f.Commands) == 0 {
		return nil
	}
	f.Digest = a.x.Digest()
	f.Encode(a.head.Hash)
	a.head = f.Head()
	if err := a.j.Append(f); err != nil {
		return err
	}
	a.board.Publish(f)
	err := a.j.Wait(f.No)
	a.frame = engine.Frame{}
	return err
}

// do applies a Command.
func (a *archive) do(c engine.Command) error {
	f := &a.frame
	if len(f.Commands) == 0 {
		*f = engine.Frame{Engine: a.x.Version(), Epoch: 1, No: a.head.Frame + 1,
			First: a.head.Sequence + 1,
			Time:  engine.Time(1_700_000_000_000 + a.head.Sequence/4)}
	}
	seq := f.First + engine.Sequence(len(f.Commands))
	binary.BigEndian.PutUint64(c.ID[:], a.r.Uint64())
	binary.BigEndian.PutUint64(c.ID[8:], uint64(seq))
	c.Seen = seq - 1
	f.Commands = append(f.Commands, c)
	at := len(f.Events)
	f.Events = a.x.Apply(&c, seq, f.Time, f.Events)
	f.Ends = append(f.Ends, uint32(len(f.Events)))
	if c.Kind == engine.Place {
		a.orders++
		if len(f.Events)-at > 1 {
			a.trades++
		}
	}
	if len(f.Commands) < engine.FrameCommands {
		return nil
	}
	return a.flush()
}

// pagesAddress is the address of wallet i.
func pagesAddress(i int) engine.Address { return workload.TraderAddress(i) }

// write makes markets and wallets, then trades.
func (a *archive) write(ctx context.Context, trades int) error {
	var problems []error
	do := func(c engine.Command) { problems = append(problems, a.do(c)) }
	for m := range pagesMarkets {
		do(engine.Command{Kind: engine.List, Listing: &engine.Listing{
			Condition: workload.Hashed("condition", m), Group: uint64(m), Tick: 100, Open: true,
			Tokens: workload.Tokens(m)}})
	}
	for i := range pagesWallets {
		do(engine.Command{Kind: engine.Deposit, Address: pagesAddress(i),
			Cash: 1_000_000 * engine.Unit})
		for m := range pagesMarkets {
			do(engine.Command{Kind: engine.Deposit, Address: pagesAddress(i),
				Market: engine.MarketNo(m + 1), Size: 100_000 * engine.Unit})
		}
	}
	began := time.Now()
	for a.trades < trades && ctx.Err() == nil {
		if a.trades%(1<<14) == 0 {
			a.ticker.Did(int64(a.trades), time.Since(began))
		}
		problems = append(problems[:0], errors.Join(problems...))
		m := engine.MarketNo(1 + a.r.IntN(pagesMarkets))
		do(a.place(m, engine.Sell, engine.GTC, 40+a.r.Int64N(20)))
		do(a.place(m, engine.Buy, engine.FAK, 60))
		if a.r.IntN(4) == 0 {
			do(a.place(m, engine.Buy, engine.GTC, 10+a.r.Int64N(10)))
		}
		if a.orders%(1<<18) < 2 { // what rests goes, but for one wallet in eight
			for i := range engine.WalletNo(pagesWallets) {
				if i%8 > 0 {
					do(engine.Command{Kind: engine.CancelAll, Wallet: i + 1, Owner: i + 1,
						Reason: engine.ByOwner})
				}
			}
		}
	}
	return errors.Join(errors.Join(problems...), a.flush(), ctx.Err())
}

// place draws an order.
func (a *archive) place(
	m engine.MarketNo, side engine.Side, kind engine.OrderType, price int64,
) engine.Command {
	w := engine.WalletNo(1)
	if a.r.IntN(3) > 0 {
		w = engine.WalletNo(1 + a.r.IntN(pagesWallets))
	}
	return engine.Command{Kind: engine.Place, Side: side, Type: kind, Wallet: w, Owner: w, Market: m,
		Size: 5 * engine.Unit, Cash: engine.Cash(5 * engine.Unit * price / 100)}
}

// list is one list of an owner: where its pages begin.
type pagesOf struct {
	owner engine.Address
	path  string
	from  []string // cursors
}

// ask reads one page through the handler and returns its next cursor and how many it has.
func (a *archive) ask(l *pagesOf, cursor string) (next string, count int, err error) {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod("GET")
	ctx.Request.SetRequestURI(l.path + "?next_cursor=" + cursor)
	a.handler.Account(&ctx, l.owner, "POLY_")
	if ctx.Response.StatusCode() != 200 {
		return "", 0, fmt.Errorf("%s: status %d: %s", l.path, ctx.Response.StatusCode(),
			ctx.Response.Body())
	}
	var page struct {
		Next  string `json:"next_cursor"`
		Count int    `json:"count"`
	}
	err = json.Unmarshal(ctx.Response.Body(), &page)
	return page.Next, page.Count, err
}

// walk finds all pages of a list, and how many items they have.
func (a *archive) walk(ctx context.Context, l *pagesOf) (items int, err error) {
	for cursor := "MA=="; cursor != "LTE=" && ctx.Err() == nil; {
		next, count, err := a.ask(l, cursor)
		if err != nil {
			return items, err
		}
		l.from = append(l.from, cursor)
		items, cursor = items+count, next
	}
	return items, ctx.Err()
}

// read walks the lists of the wallet that has most and of fifty others, and then reads pages from
// anywhere in them.
func (a *archive) read(ctx context.Context, p *Pages, watch *Watch, out *Paged) error {
	for _, path := range []string{"/data/orders", "/data/trades"} {
		for _, who := range []struct {
			name     string
			from, to int
		}{{"the wallet with a third of all", 0, 1}, {"fifty others", 8, 58}} {
			var lists []*pagesOf
			list := PagedList{Name: path + " of " + who.name}
			for i := who.from; i < who.to; i++ {
				l := &pagesOf{owner: pagesAddress(i), path: path}
				items, err := a.walk(ctx, l)
				if err != nil {
					return err
				}
				if path == "/data/orders" {
					out.Resting += items
				}
				list.Pages += len(l.from)
				lists = append(lists, l)
			}
			if err := a.rounds(ctx, p, &list, lists); err != nil {
				return err
			}
			out.Lists = append(out.Lists, list)
		}
	}
	h, err := watch.Lap()
	out.Conditions.Hiccup = h
	return err
}

// rounds times reads of random pages.
func (a *archive) rounds(ctx context.Context, p *Pages, out *PagedList, lists []*pagesOf) error {
	for round := range p.Rounds {
		p.Ticker.Step("%s, round %d", out.Name, round+1)
		began, rec := time.Now(), NewRecorder()
		for range p.Reads {
			l := lists[a.r.IntN(len(lists))]
			cursor := l.from[a.r.IntN(len(l.from))]
			var ctx fasthttp.RequestCtx
			ctx.Request.Header.SetMethod("GET")
			ctx.Request.SetRequestURI(l.path + "?next_cursor=" + cursor)
			start := time.Now()
			a.handler.Account(&ctx, l.owner, "POLY_")
			rec.Record(time.Since(start))
			if ctx.Response.StatusCode() != 200 {
				return fmt.Errorf("%s: status %d", l.path, ctx.Response.StatusCode())
			}
		}
		out.Rounds = append(out.Rounds, rec.Latency())
		p.Ticker.Did(int64(p.Reads), time.Since(began))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// WriteText prints the medians of the rounds.
func (p *Paged) WriteText(w io.Writer) {
	fmt.Fprintf(w, "pages of 100 from anywhere in %d orders and %d trades of %d wallets, through the "+
		"handler, closed loop, seed %d: medians of %d rounds of %d reads\n", p.Orders, p.Trades,
		pagesWallets, p.Seed, len(p.Lists[0].Rounds), p.Reads)
	for _, l := range p.Lists {
		of := func(get func(Latency) float64) float64 {
			var all []float64
			for _, r := range l.Rounds {
				all = append(all, get(r))
			}
			return Median(all)
		}
		fmt.Fprintf(w, "  %-46s %6d pages  p50 %7.0f  p90 %7.0f  p99 %7.0f µs\n", l.Name, l.Pages,
			of(func(l Latency) float64 { return l.P50 }), of(func(l Latency) float64 { return l.P90 }),
			of(func(l Latency) float64 { return l.P99 }))
	}
	p.Conditions.WriteText(w)
}

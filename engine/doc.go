// Package engine is the domain: the trading rules and nothing else. An Exchange is all trading
// state, and Apply is the only method that changes it:
//
//	x, events, tokens := engine.NewExchange(1), []engine.Event{}, [2]engine.Token{{1}, {2}}
//	for i, c := range []engine.Command{
//		{Kind: engine.List, Listing: &engine.Listing{Tokens: tokens, Tick: 100, Open: true}},
//		{Kind: engine.Deposit, Address: engine.Address{1}, Cash: 6e6},            // wallet 1: 6.00
//		{Kind: engine.Deposit, Address: engine.Address{2}, Market: 1, Size: 4e6}, // wallet 2: 4 shares
//		{Kind: engine.Place, ID: engine.OrderID{1}, Wallet: 1, Owner: 1, Market: 1,
//			Side: engine.Buy, Size: 10e6, Cash: 6e6}, // 10 shares for 6.00: a limit of 0.60
//		{Kind: engine.Place, ID: engine.OrderID{2}, Wallet: 2, Owner: 2, Market: 1,
//			Side: engine.Sell, Size: 4e6, Cash: 2e6}, // 4 shares for 2.00: a limit of 0.50
//	} {
//		events = x.Apply(&c, engine.Sequence(i+1), 0, events[:0])
//	}
//	fmt.Printf("%v shares at %v\n", events[0].Size, events[0].Price) // 4 shares at 0.6
//
// # The house
//
//	socket ► ingress ► sequencer.Enter ► ring ► matcher: Exchange.Apply ► appender: journal.Append
//	            └ ingress/auth                                           committer: journal.Wait
//	socket ◄ api ◄ engine/view: Board, Directory ◄── Publish ◄──────────────┘──► Receipts
//
//	package           secret                         package             secret
//	engine            what trading means             engine/view         readers without a lock
//	engine/sequencer  who may write, and when        engine/pages        memory in huge pages
//	journal           how frames become durable      journal/history     answers about the past
//	journal/disk      what databases stand on        ingress             what a request looks like
//	ingress/conn      who gets a connection          ingress/auth        who signed
//	ingress/limits    who may ask how often          ingress/auth/curve  how signatures are checked
//	ingress/socket    orders on open sockets         ingress/answer      what became of an order
//	api/wire          refusals, queries, cursors     api/account         orders, trades, balances
//	api/wallets       what anybody may ask           api/gamma           catalog answers
//	api/catalog       what markets are about         api/catalog/source  where that comes from
//	api/wire/scan     JSON that clients send         api/catalog/search  the words of the catalog
//	api/stream        changes, as they happen        ingress/operator    what operators may do
//	bench, bench/matching  load, report, matchers    bench/trader        a client that signs, bots
//	api               market data, the routes        cmd/clobd/client    how a node is asked
//	cmd/clobd/role    alone, leader or follower      cmd/clobsim/cases   cases that others wrote
//
// # Contract
//
// Apply is a pure function of the state, the Command, its Sequence and its Time: no clock, no
// random number, no goroutine, no I/O, no float, no range over a map. Place, Cancel and fills
// allocate nothing in steady state. A rejected Command changes nothing but the Sequence; a Reject
// marked Final also binds the order's id. One goroutine owns an Exchange. After Apply no book is
// crossed and every asset sums to zero; with -tags audit each Apply checks the whole state. A
// changed outcome is a new Version: ApplyFrame replays under the frame's, and compares the results.
//
// # Words of the house
//
//	Options   parameters of one process that a caller may leave at zero; journaled ones are Rules
//	Journal   where frames become durable: Append takes them, Wait waits for their sync
//	commands  the subcommands of one program in cmd
//	world     a random history of Commands that the tests of one package apply
//
// # Words of this package
//
//	place      to enter an order; a placement is the remembered id of one
//	replace    to place an order instead of a resting one of the same wallet and owner
//	settle     to post what fills moved; a Settled market has its payout
//	touch      to fetch the memory that Apply will need
//	taker      an arriving order while it is matched; a resting one is an order
//	budget     the signed cash of a BUY that never rests: the bound of that order instead of its size
//	entry      one account of one asset: total and held part; a position has the two of a market
//	vault      a market's collateral: 1.00 for each pair of complementary tokens
//	external   the other side of deposits and withdrawals
//	rank       a counter of the book: an order's priority without Sequence and Time
//	floor      the newest Sequence among the forgotten placements
//	leaf       the share of one thing in the Digest; its fold is the part that never changes
//	hint       the number of an order or position that Touch guesses; Apply verifies it
//	reference  an operator's id of a transfer, resolution or collection: accepted once
//	request    a split, merge or redemption: its id is accepted once within RequestWindow
//	beat       an API key with a heartbeat timeout
//	grid       the prices of a tick; regrid moves a book's levels to another grid
//
// Reading order: testdata/*.txt, units, command, event, reject, exchange, place, taker, fee, order,
// level, book, market, regrid, ledger, wallet, control, timer, seen, table, slab, digest, record,
// codec, wire, replay, savechunks, proof, save, load, audit, touch, fetch. Why: DESIGN.md.
package engine

// Package engine is the domain: the trading rules and nothing else. An Exchange is all trading
// state, and Apply is the only thing that changes it.
//
// # The house
//
//	socket ► ingress ► sequencer.Submit ► ring ► matcher: Exchange.Apply ► appender: journal.Append
//	            │                                                                     │
//	       ingress/auth                                               committer: journal.Wait
//	                                                                          │
//	socket ◄ api ◄ engine/view (Board, Directory) ◄── publish ◄───────────────┘──► receipts
//
//	package           secret                              imports of ours
//	engine            what trading means                  none
//	engine/pages      how memory is put into huge pages   none
//	engine/view       how readers see without a lock      engine
//	engine/sequencer  who may write, and when             engine, view
//	engine/cases      how others' cases are put to it     engine
//	journal           how frames become durable           engine
//	ingress/auth      who signed                          engine, view
//	ingress           what a request looks like           engine, view, sequencer, auth
//	api/catalog       what markets are about, and search  engine
//	api               what an answer looks like           engine, view, journal, catalog
//	bench, cmd        measuring, wiring                   everything above
//
// # Inside
//
//	Command ─► Apply ─► place: find id ► admit ► match ► settle ► rest ─► Events
//	                             │         │       │        │       │
//	                           seen     ledger   book    ledger    book
//
//	book     one ladder per condition, in prices of outcome 0: buying B at p is selling A at 1-p
//	ledger   double entry: wallets, vaults and the outside sum to zero in every asset
//	seen     every live order id and the last 2^18 placements: an order counts once
//	slab     records by number, never moved, never freed: 32 bits wide; a tray has small ones
//	timers   the orders that expire, earliest first; Advance takes them out
//
// # Contract
//
// Apply is a pure function of the state, the Command, its Sequence and its Time. It reads no clock,
// draws no random number, starts nothing, waits for nothing, does no I/O, uses no float and never
// ranges over a map. In steady state Place, Cancel and Fill allocate nothing. A rejected Command
// changes nothing but the Sequence (those marked Final in the table of rejects bind their id). One
// goroutine owns an Exchange; nobody else points into it. Every size that rests or fills is a
// multiple of Lot, so every cost is exact. No book is crossed after Apply. A fill happens at the
// resting order's price; the improvement is the taker's.
//
// Whatever changes an outcome of Apply raises Version: frames are replayed by the version that
// made them, and ApplyFrame compares every Event and the Digest with what was recorded; a panic
// on the way names its Sequence. With -tags audit all state is added up anew after each Apply.
//
// Two Exchanges of one Digest behave alike: whatever comes next has the same Events and leaves the
// same Digest, but for Sequences, which it leaves out: those that Events name as First, and the
// floor. Independent Commands in another order come to the same, except that it numbers the
// remembered ids: in which order they were bound decides which is forgotten next.
//
// # Words of this package
//
//	taker      an arriving order on its way through the book; what rests is an order
//	budget     the signed cash of a BUY that does not rest: it bounds that, not the size
//	entry      one account of one asset: total, and held of it behind open orders
//	position   a wallet's two entries in one market
//	vault      a market's collateral: 1.00 for each pair in being
//	external   the other side of deposits and withdrawals: what is outside
//	pairs      complementary tokens made (mint) or unmade (merge) against 1.00
//	rank       a book's counter: place in the queue, without Sequence and Time
//	placement  a remembered id; the floor is the newest Sequence that was forgotten
//	leaf, fold a thing's share in the Digest; its unchanging part
//	hint       what Touch took for an order or a position: Apply verifies it
//	refusal    why a Command is rejected, before it becomes an Event
//	reference  an operator's name for a transfer, resolution or collection: good once
//	request    a wallet's split, merge or redemption: its id is good once within RequestWindow
//	beat       an API key whose heartbeats are watched, by somebody outside
//	grid       the prices of a tick; regrid moves a book's levels to another one
//
// # Reading order
//
// testdata/*.txt (rules by example), units, command, event, reject, exchange, place, taker, fee,
// order, level, book, market, regrid, ledger, wallet, control, timer, seen, table, slab, digest,
// record, codec, wire, replay, savechunks, proof, save, load, audit, touch, fetch, bare.
package engine

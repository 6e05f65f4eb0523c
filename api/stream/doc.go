// Package stream sends the changes of markets to subscribers over WebSocket.
//
//	durable frames ──► follow ──► heap: markets, trades ──► tell ──► bulletins ──► queues ──► sockets
//	                                                         │                       ▲
//	               view.Board: the newest Snapshot ──────────┤                 own tail each
//	               the Snapshot that was told last ──────────┘
//
//	durable frames ──► run: whose orders? index, render ──► queues ──► sockets
//	                                                           ▲
//	     journal, from where a reader left ──► reclaim ────────┘
//
// A change is the difference between two Snapshots of a market: the one that was told last, and the
// newest. When the node lags, several frames become one change, and nobody is cut off for that. A
// bulletin is rendered once for all subscribers. Each message ends with a tail of its own:
//
//	"stream_id"     names the connection
//	"sequence"      counts its messages from 1: a gap means that one is missing
//	"server_ts_ms"  when the node sent it
//	"seq"           the Sequence that the message shows
//
// # Contract
//
// Whoever applies all changes of a token to its first book has, after each, the book that its hash
// names: that of GET /book at that Sequence. Trades come before the change that they cause. A
// message leaves only after its frame is durable and visible on the Board.
//
// No message shows an earlier Sequence than the one before, but for the books of a new
// subscription. So a subscriber who names the highest Sequence that he saw misses nothing: he gets
// the messages of that Sequence once more, as only a part of them may have arrived, and all later
// ones. If memory has them no longer, he gets "resync" and fresh books. One who reads too slowly is
// closed with 1013: behind the half of a frame that is on its way, if he reads that far.
//
// One who asks to conflate is not, as long as only books change. While his socket has no room, the
// changes of a market become one price_change, which says in "conflated" for how many it stands;
// so do those of its best prices. Trades, and all else, are kept one by one, and bounded as for
// everybody. What has waited leaves at once, in the order of Sequences: one message, or an array.
// So he has, behind each text, all that belongs to earlier Sequences, and may resume. An array that
// would be too long becomes "resync", which says in "conflated" in place of how many changes it
// comes, with the kept messages and fresh books behind it. No heartbeat comes while something
// waits.
//
// After a panic that concerns one subscriber, or one market, those sockets are closed with 1011,
// after any other one all are: the node goes on, and who comes back gets fresh books.
//
// Other rules, which a book shows and no change of levels tells, bring fresh books.
//
// The Hub announces a market that opens for the first time, to who asked for custom features, as
// soon as the catalog describes the market. Such a message belongs to no market that somebody has
// named, and resuming does not bring it again.
//
// A reader, who has logged in to the user channel, is told of his orders and trades. Each message
// has part and parts: its number among those of its Sequence, and how many there are. He misses
// nothing either. The Hub remembers nothing for him: it makes messages of frames and of the index
// whenever he wants them. If he names Sequence and part of his last message, the Hub goes on right
// behind it, however long ago that was. If there is no room for a frame's messages, it reads the
// frame again later. The index holds a Command before its messages leave, so that no request shows
// an earlier state then. The frame that revokes a key closes the sockets of the key with 1008.
//
// Whoever asked for custom features and names a market that has ended is told so behind its book.
//
// A socket that the Hub closes is told why behind what was sent, if the client reads so far within
// 10 s. A subscriber has 10 s for his first subscription or his login, sends at most 20 units a
// second (a message is one, and each 100 names in it), and must take a byte every 10 s while
// something waits for him. What sockets have taken and not sent has a bound over all of them;
// beyond it nothing more is rendered until there is room again.
//
// Goroutines: follow and tend, both in Hub.Run, and run, in Hub.RunOwners; one for each
// subscriber, in Hub.Serve or ServeUser, and one for each reader who reads frames again. follow
// tells what a frame changes, tend what does not come with a frame: heartbeats, and what was left
// because a socket had no room. Neither waits for a socket. Beside many subscribers both have a
// thread of low priority: on a busy machine orders go first, and streams lag and say so.
//
// Reading order: hub.go, tell.go, sheaf.go, outbox.go, subscriber.go, conflate.go, request.go;
// user.go, login.go; survive.go, metrics.go.
package stream

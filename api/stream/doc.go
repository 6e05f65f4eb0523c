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
// newest. When the node lags, several frames become one change, and nobody is disconnected. A
// bulletin is rendered once for all subscribers. Each message ends with a tail of its own:
//
//	"stream_id"     names the connection
//	"sequence"      counts its messages from 1: a gap means that one is missing
//	"server_ts_ms"  when the node sent it
//	"seq"           the Sequence whose state the message shows
//
// # Contract
//
// A client that applies all changes of a token to its first book has, after each change, the book
// that GET /book returns at that Sequence: the change holds the hash of it. Trades come before the
// change that they cause. A message leaves only after its frame is durable and on the Board.
//
// No message shows an earlier Sequence than the message before, except the books of a new
// subscription. So a subscriber who names the highest Sequence that he saw misses nothing: he gets
// the messages of that Sequence once more, because only some of them may have arrived, and all
// later ones. If these are no longer in memory, he gets "resync" and fresh books. The Hub closes
// the socket of a subscriber who reads too slowly with 1013. If half a frame is sent by then, the
// close frame follows the other half.
//
// A subscriber who asks to conflate is not closed while only books change. While his socket is
// full, the changes of a market become one price_change, whose "conflated" says how many changes
// were merged, and the changes of best prices become one message, too. Trades and all other
// messages are kept one by one, within the bound that all subscribers have. Once the socket has
// room, all waiting messages leave together, in the order of Sequences: as one message, or as one
// array. So after each WebSocket message the subscriber has everything that belongs to earlier
// Sequences, and may resume. If the array would be too long, he gets "resync", whose "conflated"
// counts the changes that are left out, then the kept messages and fresh books. He gets no
// heartbeat while anything waits.
//
// A panic that concerns one subscriber or one market closes those sockets with 1011; any other
// panic closes all sockets. The node goes on, and a client that comes back gets fresh books.
//
// When rules change that a book shows, such as its tick, subscribers get fresh books, because a
// change of levels cannot show rules.
//
// The Hub announces a market that opens for the first time to subscribers who asked for custom
// features, as soon as the catalog describes the market. The announcement belongs to no market that
// a subscriber has named, so resuming does not repeat it.
//
// A reader is a subscriber who has logged in to the user channel. The Hub tells him of his orders
// and trades. Each message has part and parts: its number among the messages of its Sequence, and
// how many there are. A reader misses nothing either. The Hub stores no messages for him: it
// renders them from the frames and the index when he needs them. If he names Sequence and part of
// his last message, the Hub continues right after that message, however old it is. If there is no
// room for a frame's messages, the Hub reads the frame again later. The index holds a Command
// before its messages leave, so that a reader who then asks over HTTP sees no earlier state. When a
// frame revokes a key, the Hub closes the sockets of the key with 1008.
//
// A subscriber who asked for custom features gets, after the book of a settled market, the outcome.
//
// When the Hub closes a socket, the reason follows everything that was sent before, provided that
// the client takes a byte every 10 s. A subscriber has 10 s for his first subscription or his
// login, sends at most 20 units a second on average (a message is one, and each 100 names in it),
// and must take a byte every 10 s while something waits for him. A bound limits the unsent bytes of
// all sockets together; beyond the bound the Hub renders nothing until some bytes are sent.
//
// Goroutines: follow and tend, both in Hub.Run; run, in Hub.RunOwners; one for each subscriber, in
// Hub.Serve or ServeUser; and one for each reader who reads frames again. follow tells what a frame
// changes. tend does the rest: heartbeats, and what was left because a socket was full. tend runs
// on a thread of low priority, and so does follow while there is much to tell: orders go first, and
// metrics show the lag.
//
// Reading order: hub.go, follow.go, tell.go, sheaf.go, outbox.go, subscriber.go, conflate.go,
// request.go; user.go, login.go; survive.go, metrics.go.
package stream

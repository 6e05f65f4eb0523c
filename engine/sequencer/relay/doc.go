// Package relay carries verified Commands from a node that does not lead to the one that does, and
// their Receipts back.
//
//	door ─► Client.Enter ─► queue ─► writer ═══ one connection ═══► reader ─► Enter of the Sequencer
//	  ▲                                                                            │ in order
//	  └── this node shows the Sequence ◄── reader ◄══════════════════ writer ◄── Call.Wait
//
// The contract:
//
//   - What comes together travels together: a message holds what was entered while the last one was
//     written, at least one bundle and at most what fills a frame.
//   - A Receipt is handed to its caller once this node shows its Sequence: who was answered finds
//     what he did in the answers of this node.
//   - A Command that was handed to a connection has an unknown outcome when that breaks: nobody
//     sends it again. One that still waited in the queue, or found that the other end does not
//     lead, did not happen: it waits for another connection, for at most Options.Patience.
//   - Everything is bounded: a Client that holds Options.Most Commands says ErrBusy, and a Server
//     that has that many without an answer reads no more.
//   - The Server asks whether the other end may enter a Command, and whether the windows of its
//     account have room for the bundle. It judges nothing else about them. A bundle without room
//     did not happen: the answer says how long to wait.
//
// Commands travel in the form in which the journal keeps them, a frame without Events.
//
// Read client.go, server.go, wire.go.
package relay

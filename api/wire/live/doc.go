// Package live speaks WebSocket over connections that the door has let in.
//
//	request ──► Check ──► key ──► Open ──► Socket ──► Read, Each: text messages
//	               │                         │           protocol: fasthttp/websocket
//	            426, 400                     │
//	               frames ──► Send, Flush ──► TLS? ──► Line ──► socket, without a wait
//	                          Close                   ▲  └─► rest, until there is room
//	     frames for many ──► Batch ───────────────────┘      io_uring: one call for 16 sockets
//
// The library shakes hands and reads: it unmasks, joins fragments, answers pings, and closes with
// the right code when the client breaks a rule. The caller makes the frames to the client, because
// many sockets get nearly the same frames: AppendFrame joins a shared body and a socket's own tail.
// AppendFragments makes a message that is too long for one write.
//
// # Contract
//
// No write waits for the client, not even under TLS. A Line keeps the bytes that the kernel does
// not take at once, and closes itself when they exceed a bound. A Batch writes to many Lines with
// one system call, if the kernel lets this process use io_uring, and gives io_uring up when a call
// fails for good. One goroutine reads a Socket; on a socket that is mostly idle, Each needs the
// least memory. Another goroutine may call Send, and any goroutine may call Close or Leave: Leave
// lets the client read what the kernel has not delivered yet.
//
// A client sends texts in UTF-8, up to a bound. The node never agrees on compression.
//
// Reading order: handshake.go, heads.go, socket.go, ahead.go, each.go, line.go, batch.go,
// ring_linux.go.
package live

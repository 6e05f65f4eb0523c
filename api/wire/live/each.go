package live

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
)

// Each calls hear for each text message that Read would return, until the socket ends. Each saves
// memory on sockets that are mostly idle: while its goroutine waits, the goroutine holds no read
// buffer, and other goroutines do the work that needs a larger stack. The calling goroutine should
// have made no deep calls before, as these make its stack grow.
func (s *Socket) Each(patience time.Duration, hear func(text []byte)) error {
	Apart(func() {
		s.patience = patience
		s.alive()
	})
	for {
		var err error
		if len(s.text.early) == 0 {
			var n int
			n, err = s.text.Conn.Read(s.first[:])
			s.text.early = s.first[:n]
		}
		if err != nil {
			return s.gone(err)
		}
		if err := s.hearAll(hear); err != nil {
			return err
		}
	}
}

// gone closes the socket after a read of the connection has failed, and returns why.
func (s *Socket) gone(err error) error {
	var wait interface{ Timeout() bool }
	if errors.As(err, &wait) && wait.Timeout() {
		return s.ended(err)
	}
	s.End()
	return fmt.Errorf("read socket: %w", err)
}

// hearAll calls hear for all text messages of which at least the first bytes have arrived.
func (s *Socket) hearAll(hear func(text []byte)) (err error) {
	Apart(func() {
		h := &s.text
		room, ok := rooms.Get().(*[1024]byte)
		if !ok {
			panic("BUG: the pool of rooms holds something else")
		}
		h.ahead = room[:]
		for err == nil && len(h.early) > 0 {
			var text []byte
			var some bool
			if text, some, err = s.next(); some {
				hear(text)
			}
		}
		h.early, h.ahead = nil, nil
		rooms.Put(room)
		s.alive()
	})
	return err
}

// rooms are buffers for reading ahead. A socket has one only while messages arrive.
var rooms = sync.Pool{New: func() any { return new([1024]byte) }}

// next returns the next text message. some is false if only pings and pongs have arrived: a call of
// Read would wait for the next message.
func (s *Socket) next() (text []byte, some bool, err error) {
	h := &s.text
	for len(h.early) > 0 {
		n := frameBytes(h.early)
		if n == 0 || isControl(h.early) && n > uint64(len(h.early)) {
			if err := h.fill(); err != nil {
				return nil, false, s.gone(err)
			}
			continue
		}
		if !isControl(h.early) {
			text, err = s.Read(s.patience)
			return text, err == nil, err
		}
		if err := s.control(h.early[:n]); err != nil {
			return nil, false, err
		}
		h.early = h.early[n:]
	}
	return nil, false, nil
}

const (
	maskedBit  = 0x80
	maxControl = 125 // bytes of the payload of a control frame
)

// isControl reports whether b begins with the head of a valid ping or pong. The library handles
// invalid ones, and close frames.
func isControl(b []byte) bool {
	return (b[0] == 0x80|websocket.PingMessage || b[0] == 0x80|websocket.PongMessage) &&
		b[1]&maskedBit != 0 && b[1]&^maskedBit <= maxControl
}

// control handles a ping or a pong.
func (s *Socket) control(frame []byte) error {
	if frame[0] == 0x80|websocket.PongMessage {
		return s.ponged("")
	}
	const head = 2
	mask, payload := frame[head:head+maskBytes], frame[head+maskBytes:]
	for i := range payload {
		payload[i] ^= mask[i%maskBytes]
	}
	return s.pinged(string(payload))
}

// Apart calls do in a new goroutine and waits until do returns, so that the caller's stack does not
// grow. If do panics, Apart panics, with a string that holds the cause and the stack of do.
func Apart(do func()) {
	ended := make(chan any)
	go func() {
		defer func() {
			cause := recover()
			if cause != nil {
				cause = fmt.Sprintf("%v\n\n%s", cause, debug.Stack())
			}
			ended <- cause
		}()
		do()
	}()
	if cause := <-ended; cause != nil {
		panic(cause)
	}
}

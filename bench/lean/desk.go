package lean

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"clobd/ingress/auth"
)

// A lane of a load with a Flight is a desk: a WebSocket over which requests go as text messages
// with a number each, and whose answers come in any order. It has no second connection: its end is
// a failure of all that is in flight on it, and ends the load. A lane without requests is no desk:
// it has nobody to log in, and no connection.

// parley is what a pump does with one lane that is a desk: it speaks WebSocket there, where the
// methods of pump speak HTTP.
type parley struct {
	p *pump
	l *lane
}

// The kinds of frames. A message is one frame.
const (
	frameText  = 0x81
	frameClose = 0x88
	framePing  = 0x89
	framePong  = 0x8a
)

// appendFrame appends a frame, masked with zeros: the server unmasks it all the same.
func appendFrame(dst []byte, kind byte, text []byte) []byte {
	dst = append(dst, kind)
	switch n := len(text); {
	case n < 126:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0x80|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 0x80|127), uint64(n))
	}
	return append(append(dst, 0, 0, 0, 0), text...)
}

// cutFrame cuts a frame off the start of b. It returns size 0 if more of it is to come.
func cutFrame(b []byte) (kind byte, text []byte, size int, err error) {
	if len(b) < 2 {
		return 0, nil, 0, nil
	}
	head, n := 2, uint64(b[1])
	switch {
	case n == 126 && len(b) >= 4:
		head, n = 4, uint64(binary.BigEndian.Uint16(b[2:]))
	case n == 127 && len(b) >= 10:
		head, n = 10, binary.BigEndian.Uint64(b[2:])
	case n == 126 || n == 127:
		return 0, nil, 0, nil
	case n > 127:
		return 0, nil, 0, errors.New("the server masks a frame")
	}
	if n > longestBody {
		return 0, nil, 0, errors.New("a frame above 64 MiB")
	}
	if size = head + int(n); len(b) < size {
		return 0, nil, 0, nil
	}
	return b[0], b[head:size], size, nil
}

// enter makes a desk of a lane's connection and logs in as the sender of its first request. It
// waits for the server: no clock runs yet.
func (d parley) enter(ctx context.Context) error {
	l := d.l
	// A read that a timeout bounds is not begun anew after a signal, and this one looks at ctx.
	limit := syscall.NsecToTimeval(int64(longestWait))
	err := errors.Join(syscall.SetNonblock(l.fd, false),
		syscall.SetsockoptTimeval(l.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit))
	if err != nil {
		return err
	}
	if err := d.login(ctx, &d.p.Routes[d.p.Requests[l.list[0]].Route]); err != nil {
		return fmt.Errorf("open a socket for orders: %w", err)
	}
	return syscall.SetNonblock(l.fd, true)
}

// await reads more from a connection that blocks, and appends it to got.
func (d parley) await(ctx context.Context, got []byte) ([]byte, error) {
	for end := time.Now().Add(connectTime); ; {
		n, err := syscall.Read(d.l.fd, d.p.room)
		switch {
		case err == nil && n > 0:
			return append(got, d.p.room[:n]...), nil
		case err == nil:
			return nil, fmt.Errorf("no answer but %.300q", got)
		case err != syscall.EINTR && err != syscall.EAGAIN:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case time.Now().After(end):
			return nil, fmt.Errorf("no answer in %v", connectTime)
		}
	}
}

// login upgrades a connection that blocks, and sends the first message.
func (d parley) login(ctx context.Context, w *Route) error {
	hello := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", w.Path, d.p.Addr)
	var got []byte
	// more sends a text and reads until what has come is whole.
	more := func(text []byte, whole func() bool) (err error) {
		for n := 0; len(text) > 0; text = text[max(n, 0):] {
			if n, err = syscall.Write(d.l.fd, text); err != nil && err != syscall.EINTR {
				return err
			}
		}
		for !whole() {
			if got, err = d.await(ctx, got); err != nil {
				return err
			}
			if len(got) > longestHead {
				return fmt.Errorf("no answer but %.300q", got)
			}
		}
		return nil
	}
	end := -1
	err := more(hello, func() bool { end = bytes.Index(got, headEnd); return end >= 0 })
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 101 ")) {
		return fmt.Errorf("the server answers %.300q", got)
	}
	got = got[end+len(headEnd):]
	q := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: http.MethodGet,
		Path: w.Path}
	if err := w.Trio.Sign(&q); err != nil {
		return err
	}
	login, err := json.Marshal(map[string]any{"id": 0, "method": "login", "params": map[string]string{
		"apiKey": q.Key, "passphrase": q.Passphrase, "timestamp": q.Timestamp,
		"signature": q.Signature}})
	if err != nil {
		return err
	}
	var text []byte
	size := 0
	var bad error
	err = more(appendFrame(nil, frameText, login), func() bool {
		_, text, size, bad = cutFrame(got)
		return size > 0 || bad != nil
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	if _, r, err := cutAnswer(text); err != nil || r.status != http.StatusOK {
		return errors.Join(err, fmt.Errorf("log in: %.300q", got))
	}
	return d.take(got[size:])
}

// converse sends what has room on a desk, in one write.
func (d parley) converse() {
	p, l := d.p, d.l
	p.out = p.out[:0]
	for l.flying < p.Flight && !p.over {
		if p.open && !p.has(l) {
			break
		}
		if l.next == len(l.list) {
			// What is sent from now on is less than the load says.
			p.over = p.Duration > 0
			break
		}
		i := l.list[l.next]
		l.next++
		r, at := &p.Requests[i], p.clock()
		due := l.filled // as over HTTP: an answer may have come at any time since
		if p.open {
			due = int64(p.Due[i])
		}
		m := p.measured(i)
		note(m.Late, p.pauses.lateness(due, l.free, at))
		if l.flying == 0 {
			l.heard = at
		}
		p.sends[i], p.now = max(at, 1), at
		m.Sent++
		p.left--
		p.inFlight++
		if l.flying++; l.flying == p.Flight {
			l.filled = at
		}
		p.text = strconv.AppendInt(append(p.text[:0], `{"id":`...), int64(i), 10)
		p.text = append(append(p.text, `,"method":"`...), p.Routes[r.Route].Method...)
		p.text = append(append(append(p.text, `","params":`...), r.Body...), '}')
		p.out = appendFrame(p.out, frameText, p.text)
	}
	if len(p.out) > 0 {
		p.transmit(l)
	}
}

// hear handles what epoll reports of a desk.
func (d parley) hear(events uint32) {
	p, l := d.p, d.l
	if events&syscall.EPOLLOUT != 0 && len(l.out) > 0 {
		p.flush(l)
	}
	if l.phase == shut || events&^syscall.EPOLLOUT == 0 {
		return
	}
	if err := d.receive(); err != nil {
		p.lost(l, err)
	} else {
		p.proceed(l)
	}
}

// receive handles what has come.
func (d parley) receive() error {
	n, no := receive(d.l.fd, d.p.room)
	switch {
	case no == syscall.EAGAIN || no == syscall.EINTR:
		return nil
	case no != 0:
		return no
	case n == 0:
		return errors.New("the server closes the connection without a close frame")
	}
	return d.take(d.p.room[:n])
}

// take handles the frames that are whole with the bytes that have come.
func (d parley) take(came []byte) error {
	l := d.l
	l.rest = append(l.rest, came...)
	for b := l.rest; l.phase != shut; {
		kind, text, size, err := cutFrame(b)
		if err == nil && size == 0 {
			l.rest = l.rest[:copy(l.rest, b)]
			return nil
		}
		if err == nil {
			err = d.frame(kind, text)
		}
		if err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// frame handles a frame of the server, also before the start.
func (d parley) frame(kind byte, text []byte) error {
	p := d.p
	switch kind {
	case frameText:
		return d.told(text)
	case framePing:
		p.out = appendFrame(p.out[:0], framePong, text)
		if p.leaf != nil {
			p.transmit(d.l)
		} else if n, no := send(d.l.fd, p.out); n < len(p.out) {
			return fmt.Errorf("answer a ping before the start: %w", no)
		}
		return nil
	case framePong: // nobody has asked, and anybody may say it
		return nil
	case frameClose:
		code := 1005 // none
		if len(text) >= 2 {
			code, text = int(binary.BigEndian.Uint16(text)), text[2:]
		}
		return fmt.Errorf("the server closes the socket: %d %.300q", code, text)
	case frameText &^ 0x80, 0, 0x80:
		return fmt.Errorf("a message in fragments, which a desk does not join: %.300q", text)
	}
	return fmt.Errorf("a frame %#x, which is no text: %.300q", kind, text)
}

// answered marks in pump.sends what is no longer in flight.
const answered = -1

// told handles an answer.
func (d parley) told(text []byte) error {
	p, l := d.p, d.l
	i, r, err := cutAnswer(text)
	if err == nil && (i < 0 || i >= len(p.sends) || p.sends[i] <= 0 ||
		int(p.Requests[i].Lane) != l.number) {
		err = errors.New("an answer to what was not asked")
	}
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, text)
	}
	if l.flying == p.Flight {
		l.free = p.now
	}
	l.flying--
	p.inFlight--
	l.request, l.sent, l.heard = int32(i), p.sends[i], p.now
	p.sends[i] = answered
	p.time(l)
	p.judged(l, &r)
	return nil
}

// cutAnswer scans {"id":N,"status":200,"result":…; the body of the reply begins with the result and
// ends with the message.
func cutAnswer(text []byte) (no int, r reply, err error) {
	id, rest, found := bytes.Cut(text, []byte(`,"status":`))
	digitsOf, ok := bytes.CutPrefix(id, []byte(`{"id":`))
	if !found || !ok || len(rest) < 4 {
		return 0, r, errors.New("an answer without a number or a status")
	}
	if no, err = digits(digitsOf); err == nil {
		r.status, err = digits(rest[:3])
	}
	_, r.body, _ = bytes.Cut(rest, []byte(`":`)) // of the result, or of the error
	return no, r, err
}

// firstValue is the JSON value that b begins with; b if there is none.
func firstValue(b []byte) []byte {
	var value json.RawMessage
	if json.NewDecoder(bytes.NewReader(b)).Decode(&value) != nil {
		return b
	}
	return value
}

// broken fails what is in flight on a desk, and ends the load.
func (d parley) broken(err error) {
	p, l := d.p, d.l
	p.hangUp(l)
	if l.flying == 0 && !p.over {
		p.fail(err.Error())
	}
	p.over = true
	for _, i := range l.list[:l.next] {
		if p.sends[i] == answered {
			continue
		}
		l.request, l.sent = i, p.sends[i]
		p.time(l)
		p.inFlight--
		p.fail(fmt.Sprintf("%s: %v", p.Routes[p.Requests[i].Route].Method, err))
	}
	l.flying = 0
}

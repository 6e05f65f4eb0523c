package crowd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/api/wire/live"
	"clobd/bench/process"
)

// answerTime is how long a subscriber waits for an answer to the handshake or to the wish.
const answerTime = time.Minute

// NumberKey comes before the number of a message.
const NumberKey = `"sequence":`

// listener is the thread that reads all sockets. It reads a socket when epoll reports data there,
// so that the crowd takes little CPU time from the server.
type listener struct {
	Crowd
	ears  []*ear
	byFD  map[int32]*ear
	poll  int
	room  []byte // buffer of one read
	heard Heard
	reads []reading // of the messages that all subscribers get, by their order
	done  []int     // how many subscribers have a burst, by burst
	full  int       // subscribers that have all bursts
}

// reading is a message that all subscribers get.
type reading struct {
	market, seq uint64
	readers     int   // subscribers that have read the message
	at          int64 // when the last of them did, in ns after 1970
}

// ear is a subscriber.
type ear struct {
	fd      int
	rest    []byte // the first bytes of an incomplete frame
	last    int64  // number of the last message
	count   int    // of messages
	answers int    // texts of any kind
	over    bool   // the socket has ended
	seen    Sights // nil: the subscriber is not watched
	keeps   bool   // the subscriber keeps its messages
}

// Run is the main function of the crowd's process. It reads a Crowd, and writes a line when all
// have subscribed. It writes Heard when all messages have arrived or in has ended. It keeps the
// sockets open until in ends.
func Run(in io.Reader, out io.Writer) error {
	var l listener
	lines := bufio.NewReader(in)
	if err := process.ReadLine(lines, &l.Crowd); err != nil {
		return fmt.Errorf("read what to listen to: %w", err)
	}
	answers := json.NewEncoder(out)
	runtime.LockOSThread()
	if l.Pinned {
		process.Pin()
	}
	if err := l.gather(); err != nil {
		return err
	}
	if err := answers.Encode("begun"); err != nil {
		return fmt.Errorf("say that it begins: %w", err)
	}
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, lines) // until the end
		over.Store(true)
		close(ended)
	}()
	if err := l.listen(&over); err != nil {
		return err
	}
	l.heard.Nice, l.heard.Whole = process.Niceness(), l.whole()
	err := answers.Encode(&l.heard)
	<-ended
	return err
}

// gather opens all sockets.
func (l *listener) gather() (err error) {
	l.byFD, l.room = make(map[int32]*ear), make([]byte, 512<<10)
	l.done, l.heard.Last = make([]int, l.Bursts), make([]int64, l.Bursts)
	if l.poll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	to, err := netip.ParseAddrPort(l.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	for range l.Subscribers {
		e, err := l.open(to)
		if err != nil {
			return fmt.Errorf("subscriber %d of %d: %w", len(l.ears)+1, l.Subscribers, err)
		}
		l.ears, l.byFD[int32(e.fd)] = append(l.ears, e), e
	}
	for _, e := range l.ears {
		err := syscall.SetNonblock(e.fd, true)
		if err == nil {
			err = syscall.EpollCtl(l.poll, syscall.EPOLL_CTL_ADD, e.fd,
				&syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(e.fd)})
		}
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	l.choose()
	l.heard.Bytes, l.heard.Gaps = 0, 0 // so far only the first answers have come
	return nil
}

// choose chooses the subscribers that keep Sights, and the one that keeps messages.
func (l *listener) choose() {
	watched := min(l.Watched, len(l.ears))
	for i := range watched {
		e := l.ears[i*len(l.ears)/watched]
		e.seen = make(Sights)
		l.heard.Seen = append(l.heard.Seen, e.seen)
	}
	l.ears[0].keeps = l.Texts
}

// open opens a socket, shakes hands and subscribes.
func (l *listener) open(to netip.AddrPort) (*ear, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	wait := syscall.NsecToTimeval(answerTime.Nanoseconds())
	err = errors.Join(syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		// Close resets the connection, so that thousands of sockets leave no state in the kernel.
		syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}),
		syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}))
	if err != nil {
		return nil, err
	}
	e := &ear{fd: fd}
	if err := l.shake(e); err != nil {
		return nil, err
	}
	if len(l.Wish) == 0 {
		return e, nil
	}
	if _, err := syscall.Write(fd, maskedText(l.Wish)); err != nil {
		return nil, err
	}
	for e.answers == 0 && !e.over {
		if err := l.read(e, false); err != nil {
			return nil, err
		}
	}
	if e.over {
		return nil, errors.New("the socket ends before the first answer")
	}
	e.count = 0
	return e, nil
}

// shake asks for a socket and reads the answer.
func (l *listener) shake(e *ear) error {
	ask := "GET " + l.Path + " HTTP/1.1\r\nHost: " + l.Addr + "\r\nConnection: Upgrade\r\n" +
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	if _, err := syscall.Write(e.fd, []byte(ask)); err != nil {
		return err
	}
	const end = "\r\n\r\n"
	var answer []byte
	for !bytes.Contains(answer, []byte(end)) {
		n, err := syscall.Read(e.fd, l.room)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return errors.Join(fmt.Errorf("no answer to the handshake: %q", answer), err)
		}
		answer = append(answer, l.room[:n]...)
	}
	head, rest, _ := strings.Cut(string(answer), end)
	if !strings.Contains(head, " 101 ") {
		return fmt.Errorf("refused: %s", head)
	}
	e.rest = append(e.rest, rest...)
	return nil
}

// maskedText returns a text frame of a client, with a mask of zeros.
func maskedText(text []byte) []byte {
	frame := live.AppendFrame(nil, text)
	head := len(frame) - len(text)
	frame[1] |= 0x80
	return append(append(append([]byte{}, frame[:head]...), 0, 0, 0, 0), text...)
}

// listen reads until each subscriber has all bursts, or over is set.
func (l *listener) listen(over *atomic.Bool) error {
	events := make([]syscall.EpollEvent, 256)
	for l.full < len(l.ears) && !over.Load() {
		n, err := syscall.EpollWait(l.poll, events, 50)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("listen: %w", err)
		}
		for i := range max(n, 0) {
			e := l.byFD[events[i].Fd]
			err := l.read(e, true)
			if err != nil || e.over {
				e.over = true
				l.heard.Cuts++
				_ = syscall.EpollCtl(l.poll, syscall.EPOLL_CTL_DEL, e.fd, nil)
			}
		}
	}
	return nil
}

// read reads a socket once, and notes if the socket has ended. Before the crowd has begun, sockets
// block, and read counts no messages.
func (l *listener) read(e *ear, begun bool) error {
	n, err := syscall.Read(e.fd, l.room)
	switch {
	case errors.Is(err, syscall.EINTR), begun && errors.Is(err, syscall.EAGAIN):
		return nil
	case err != nil:
		return err
	case n == 0:
		e.over = true
		return nil
	}
	at := int64(0)
	if begun {
		at = time.Now().UnixNano()
	}
	l.take(e, l.room[:n], at)
	return nil
}

// take handles the complete frames in e.rest and b, and keeps the rest. at is when b was read, or 0
// if the crowd has not begun.
func (l *listener) take(e *ear, b []byte, at int64) {
	if len(e.rest) > 0 {
		e.rest = append(e.rest, b...)
		b = e.rest
	}
	had := e.count
	for !e.over {
		head, size, whole := frameAt(b)
		if !whole {
			break
		}
		switch b[0] & 0x0f {
		case 1:
			l.heard.Bytes += int64(head + size)
			l.text(e, b[head:head+size], at)
		case 8:
			e.over = true
		}
		b = b[head+size:]
	}
	e.rest = append(e.rest[:0], b...)
	if at > 0 {
		l.note(e, had, at)
	}
}

// frameAt returns the lengths of the head and the payload of the frame at the start of b. whole
// reports whether b holds all of the frame.
func frameAt(b []byte) (head, size int, whole bool) {
	if len(b) < 2 {
		return 0, 0, false
	}
	head, size = 2, int(b[1])
	switch {
	case size == 126 && len(b) >= 4:
		head, size = 4, int(binary.BigEndian.Uint16(b[2:]))
	case size == 127 && len(b) >= 10:
		head, size = 10, int(binary.BigEndian.Uint64(b[2:]))
	case size > 125:
		return 0, 0, false
	}
	return head, size, len(b) >= head+size
}

// text handles the messages of a text frame: each line with a number is a message.
func (l *listener) text(e *ear, text []byte, at int64) {
	first := e.answers == 0 && len(l.Wish) > 0
	e.answers++
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if string(line) == "{}" { // a ping of centrifuge, which wants the same text back
			_, _ = syscall.Write(e.fd, maskedText(line))
			continue
		}
		number := lastNumber(line, NumberKey)
		switch {
		case number == 0:
			if l.Bursts == 0 { // the stream of a node, whose messages all have numbers
				l.heard.Gaps++
			}
			continue
		case first: // the first answer, whose numbers may begin anywhere
		case number != e.last+1:
			l.heard.Gaps++
		}
		e.last = number
		if e.count++; l.Bursts == 0 && at > 0 {
			l.share(e.count-1, line, at)
		}
		if e.keeps {
			l.heard.Texts = append(l.heard.Texts, bytes.Clone(line))
		}
		if e.seen != nil {
			market, seq := subjectOf(line)
			e.seen.add(market, seq, at)
		}
	}
}

// share notes that one more subscriber has read a message, the nth since the crowd has begun. All
// subscribers name the same tokens, so the nth message of each is the same one.
func (l *listener) share(n int, text []byte, at int64) {
	if n == len(l.reads) {
		market, seq := subjectOf(text)
		l.reads = append(l.reads, reading{market: market, seq: seq})
	}
	r := &l.reads[n]
	r.readers, r.at = r.readers+1, at
}

// whole returns when the last subscriber had read each message that all have read.
func (l *listener) whole() Sights {
	all := make(Sights)
	for _, r := range l.reads {
		if r.readers == len(l.ears) {
			all.add(r.market, r.seq, r.at)
		}
	}
	return all
}

// subjectOf returns the first 8 bytes of the condition of a message's market, and the Sequence that
// the message shows; 0 if the message has no market.
func subjectOf(text []byte) (market, seq uint64) {
	const key = `"market":"0x`
	i := bytes.Index(text, []byte(key))
	if i < 0 || len(text) < i+len(key)+16 {
		return 0, 0
	}
	market, err := strconv.ParseUint(string(text[i+len(key):i+len(key)+16]), 16, 64)
	if err != nil {
		return 0, 0
	}
	return market, uint64(lastNumber(text, `"seq":`))
}

// add notes when a message was read, if the message has a market and a later Sequence than the
// message before.
func (s Sights) add(market, seq uint64, at int64) {
	if seen := s[market]; market != 0 && (len(seen) == 0 || seen[len(seen)-1].Sequence < seq) {
		s[market] = append(seen, Sight{seq, at})
	}
}

// lastNumber returns the number after the last occurrence of key in a text, or 0 if there is none.
func lastNumber(text []byte, key string) int64 {
	i := bytes.LastIndex(text, []byte(key))
	if i < 0 {
		return 0
	}
	n := int64(0)
	for _, c := range text[i+len(key):] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// note counts the messages that a subscriber has read beyond the first had, and the bursts that
// these messages complete.
func (l *listener) note(e *ear, had int, at int64) {
	l.heard.Messages += int64(e.count - had)
	if l.Bursts == 0 {
		return
	}
	for k := had / l.Burst; k < min(e.count/l.Burst, l.Bursts); k++ {
		if l.done[k]++; l.done[k] == len(l.ears) {
			l.heard.Last[k] = at
		}
		if k == l.Bursts-1 {
			l.full++
		}
	}
}

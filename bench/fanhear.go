package bench

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
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/api/wire/live"
)

// fanCrowd is the input of the process that subscribes to a side of a fan-out.
type fanCrowd struct {
	Addr, Path  string
	Wish        []byte // that each sends, and whose answer it waits for; empty: nothing
	Subscribers int
	Burst       int
	Bursts      int // that it waits for
}

// fanHeard is the result of that process.
type fanHeard struct {
	Messages, Bytes, Gaps, Cuts int64
	// Last is by burst when the last subscriber had it, in ns after 1970; 0: never.
	Last []int64
	Nice int
}

// fanNumber comes before the number of a message, in the node's tail and in the texts made of it.
const fanNumber = `"sequence":`

// fanTail is how many bytes at the end of a message hold its number.
const fanTail = 240

// fanCrier is one thread that reads all sockets as the kernel reports them: a lean crowd leaves
// the machine to the server.
type fanCrier struct {
	fanCrowd
	ears  []*ear
	byFD  map[int32]*ear
	poll  int
	room  []byte
	heard fanHeard
	done  []int // by burst: subscribers that have it
	whole int   // subscribers that have all
}

// ear is a subscriber.
type ear struct {
	fd      int
	rest    []byte // of a frame that has not come whole
	last    int64  // number of its last message
	count   int    // of messages
	answers int    // texts of any kind
	over    bool
}

// RunFanCrowd is the main function of the process that subscribes. It reads a fanCrowd, writes a
// line when all are subscribed, fanHeard once all messages are there or in has ended, and keeps the
// sockets until in ends.
func RunFanCrowd(in io.Reader, out io.Writer) error {
	var c fanCrier
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.fanCrowd)
	}
	if err != nil {
		return fmt.Errorf("read what to listen to: %w", err)
	}
	runtime.LockOSThread()
	Pin()
	if err := c.gather(); err != nil {
		return err
	}
	c.heard.Bytes, c.heard.Gaps = 0, 0 // so far it was books
	if _, err := io.WriteString(out, "\"begun\"\n"); err != nil {
		return fmt.Errorf("say that it begins: %w", err)
	}
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, lines) // until the end
		over.Store(true)
		close(ended)
	}()
	if err := c.listen(&over); err != nil {
		return err
	}
	c.heard.Nice = niceness()
	err = json.NewEncoder(out).Encode(&c.heard)
	<-ended
	return err
}

// gather opens all sockets.
func (c *fanCrier) gather() (err error) {
	c.byFD, c.room = make(map[int32]*ear), make([]byte, 512<<10)
	c.done, c.heard.Last = make([]int, c.Bursts), make([]int64, c.Bursts)
	if c.poll, err = syscall.EpollCreate1(0); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	to, err := netip.ParseAddrPort(c.Addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	for range c.Subscribers {
		e, err := c.open(to)
		if err != nil {
			return fmt.Errorf("subscriber %d of %d: %w", len(c.ears)+1, c.Subscribers, err)
		}
		c.ears, c.byFD[int32(e.fd)] = append(c.ears, e), e
	}
	for _, e := range c.ears {
		err := syscall.SetNonblock(e.fd, true)
		if err == nil {
			err = syscall.EpollCtl(c.poll, syscall.EPOLL_CTL_ADD, e.fd,
				&syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(e.fd)})
		}
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	return nil
}

// open opens a socket, shakes hands and subscribes.
func (c *fanCrier) open(to netip.AddrPort) (*ear, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	wait := syscall.NsecToTimeval(answerTime.Nanoseconds())
	err = errors.Join(syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait),
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
		// Closing resets, so that thousands of sockets of one turn leave nothing for the next.
		syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}),
		syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}))
	if err != nil {
		return nil, err
	}
	e := &ear{fd: fd}
	if err := c.shake(e); err != nil {
		return nil, err
	}
	if len(c.Wish) == 0 {
		return e, nil
	}
	if _, err := syscall.Write(fd, maskedText(c.Wish)); err != nil {
		return nil, err
	}
	for e.answers == 0 && !e.over {
		if err := c.read(e, 0); err != nil {
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
func (c *fanCrier) shake(e *ear) error {
	ask := "GET " + c.Path + " HTTP/1.1\r\nHost: " + c.Addr + "\r\nConnection: Upgrade\r\n" +
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	if _, err := syscall.Write(e.fd, []byte(ask)); err != nil {
		return err
	}
	const end = "\r\n\r\n"
	var answer []byte
	for !bytes.Contains(answer, []byte(end)) {
		n, err := syscall.Read(e.fd, c.room)
		if err != nil || n <= 0 {
			return errors.Join(fmt.Errorf("no answer to the handshake: %q", answer), err)
		}
		answer = append(answer, c.room[:n]...)
	}
	head, rest, _ := strings.Cut(string(answer), end)
	if !strings.Contains(head, " 101 ") {
		return fmt.Errorf("refused: %s", head)
	}
	e.rest = append(e.rest, rest...)
	return nil
}

// maskedText is a text of a client, under a mask of zeros.
func maskedText(text []byte) []byte {
	frame := live.AppendFrame(nil, text)
	head := len(frame) - len(text)
	frame[1] |= 0x80
	return append(append(append([]byte{}, frame[:head]...), 0, 0, 0, 0), text...)
}

// listen reads until each subscriber has all messages, or it is over.
func (c *fanCrier) listen(over *atomic.Bool) error {
	events := make([]syscall.EpollEvent, 256)
	for c.whole < len(c.ears) && !over.Load() {
		n, err := syscall.EpollWait(c.poll, events, 50)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("listen: %w", err)
		}
		for i := range max(n, 0) {
			e := c.byFD[events[i].Fd]
			err := c.read(e, time.Now().UnixNano())
			if err != nil || e.over {
				e.over = true
				c.heard.Cuts++
				_ = syscall.EpollCtl(c.poll, syscall.EPOLL_CTL_DEL, e.fd, nil)
			}
		}
	}
	return nil
}

// read reads once what a socket has. A socket that ends is over.
func (c *fanCrier) read(e *ear, now int64) error {
	n, err := syscall.Read(e.fd, c.room)
	switch {
	case errors.Is(err, syscall.EINTR), now > 0 && errors.Is(err, syscall.EAGAIN):
		return nil
	case err != nil:
		return err
	case n == 0:
		e.over = true
		return nil
	}
	c.take(e, c.room[:n], now)
	return nil
}

// take counts the frames that are whole, at an instant after the start; 0: before it.
func (c *fanCrier) take(e *ear, b []byte, now int64) {
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
		c.frame(e, b[0]&0x0f, b[head:head+size])
		b = b[head+size:]
		c.heard.Bytes += int64(head + size)
	}
	e.rest = append(e.rest[:0], b...)
	if now > 0 {
		c.note(e, had, now)
	}
}

// frameAt measures the frame at the start of b, and reports whether all of it is there.
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

// frame counts the messages of a frame: a message is a line with a number near its end.
func (c *fanCrier) frame(e *ear, kind byte, text []byte) {
	switch kind {
	case 1:
	case 8:
		e.over = true
		return
	default:
		return
	}
	first := e.answers == 0 && len(c.Wish) > 0
	e.answers++
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if string(line) == "{}" { // a ping of centrifuge's: it wants the same back
			_, _ = syscall.Write(e.fd, maskedText(line))
			continue
		}
		number := lastNumber(line[max(len(line)-fanTail, 0):], fanNumber)
		switch {
		case number == 0:
			continue
		case first: // books, numbered as messages are
		case number != e.last+1:
			c.heard.Gaps++
		}
		e.last = number
		e.count++
	}
}

// note counts what a subscriber has read, and for each burst who has it.
func (c *fanCrier) note(e *ear, had int, now int64) {
	c.heard.Messages += int64(e.count - had)
	for k := had / c.Burst; k < min(e.count/c.Burst, c.Bursts); k++ {
		if c.done[k]++; c.done[k] == len(c.ears) {
			c.heard.Last[k] = now
		}
		if k == c.Bursts-1 {
			c.whole++
		}
	}
}

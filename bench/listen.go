package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"clobd/api/wire/live"
)

// watched is how many subscribers keep when they read what.
const watched = 64

// Audience is the input of the process that subscribes.
type Audience struct {
	Addr        string
	Wish        []byte // that each sends
	Subscribers int
}

// Sights are the messages of each market that a listener has read, by the market.
type Sights map[uint64][]Sight

// Heard is the result of that process.
type Heard struct {
	Messages, Bytes, Gaps, Cuts int64
	Seen                        []Sights // of those that were watched
	Nice                        int
}

// RunListeners is the main function of the process that subscribes. It reads an Audience, writes a
// line when all have their first books, and Heard once in has ended.
func RunListeners(ctx context.Context, in io.Reader, out io.Writer) error {
	var a Audience
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		return fmt.Errorf("read what to listen to: %w", err)
	}
	var all []*listener
	defer func() { hangUpAll(all) }()
	for range a.Subscribers {
		l, err := listenTo(ctx, a.Addr, a.Wish)
		if l != nil {
			all = append(all, l)
		}
		if err != nil {
			return err
		}
	}
	var group sync.WaitGroup
	var over atomic.Bool
	for i, l := range all {
		l.keeps = i%max(len(all)/watched, 1) == 0
		group.Go(func() { l.listen(&over) })
	}
	if _, err := io.WriteString(out, "begun\n"); err != nil {
		return fmt.Errorf("say that it begins: %w", err)
	}
	_, _ = io.Copy(io.Discard, lines) // until the end
	over.Store(true)
	hangUpAll(all)
	group.Wait()
	h := Heard{Nice: niceness()}
	for _, l := range all {
		h.Messages, h.Bytes, h.Gaps = h.Messages+l.messages, h.Bytes+l.bytes, h.Gaps+l.gaps
		if l.cut {
			h.Cuts++
		}
		if l.keeps {
			h.Seen = append(h.Seen, l.seen)
		}
	}
	return gob.NewEncoder(out).Encode(&h)
}

func hangUpAll(all []*listener) {
	for _, l := range all {
		_ = l.conn.Close()
	}
}

// hall is the process that subscribes, in the process that started it.
type hall struct {
	cmd  *exec.Cmd
	told bytes.Buffer // what it complained of
	in   io.Closer
	out  *bufio.Reader
}

// gather starts a process of self that subscribes, and returns when all have their first books. A
// crowd has a low priority, as a flood has: in production it reads on other machines.
func (a *Audience) gather(ctx context.Context, self string) (*hall, error) {
	c := &hall{cmd: command(ctx, self, "listeners")}
	c.cmd.Stderr = &c.told
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("tell the subscribers: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("hear of the subscribers: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the subscribers: %w", err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	if a.Subscribers > watched {
		err = syscall.Setpriority(syscall.PRIO_PGRP, c.cmd.Process.Pid, max(floodNice, niceness()))
	}
	if err == nil {
		err = json.NewEncoder(in).Encode(a)
	}
	if err == nil {
		_, err = c.out.ReadString('\n')
	}
	if err != nil {
		_ = c.cmd.Process.Kill()
		return nil, fmt.Errorf("start the subscribers: %w\n%s", errors.Join(err, c.cmd.Wait()),
			c.told.Bytes())
	}
	return c, nil
}

// leave ends the process and returns what it heard.
func (c *hall) leave() (*Heard, error) {
	var h Heard
	err := c.in.Close()
	err = errors.Join(err, gob.NewDecoder(c.out).Decode(&h))
	if err = errors.Join(err, c.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("subscribers: %w\n%s", err, c.told.Bytes())
	}
	return &h, nil
}

// Sight is a message of a market: the Sequence that it shows, and when it was read, in ns after
// 1970.
type Sight struct {
	Sequence uint64
	At       int64
}

// listener is a subscriber. It reads frames as they come, and no more of them than it needs.
type listener struct {
	conn  net.Conn
	in    *bufio.Reader
	text  []byte
	keeps bool // notes what it has seen
	seen  Sights

	last, messages, bytes, gaps int64
	cut                         bool
}

// listenTo opens a socket, subscribes and reads the books.
func listenTo(ctx context.Context, addr string, wish []byte) (*listener, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	l := &listener{conn: c, in: bufio.NewReaderSize(c, 8<<10), seen: make(Sights)}
	_ = c.SetDeadline(time.Now().Add(answerTime))
	fmt.Fprint(c, "GET /ws/market HTTP/1.1\r\nHost: "+addr+"\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	a, err := http.ReadResponse(l.in, nil)
	if err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		return l, errors.Join(errors.New("open socket: the node refuses"), err)
	}
	frame := live.AppendFrame(nil, wish)
	masked := append([]byte{frame[0], frame[1] | 0x80}, frame[2:len(frame)-len(wish)]...)
	if _, err := c.Write(append(append(masked, 0, 0, 0, 0), wish...)); err != nil {
		return l, fmt.Errorf("subscribe: %w", err)
	}
	if _, err := l.next(); err != nil {
		return l, fmt.Errorf("read the first books: %w", err)
	}
	l.last = lastNumber(l.text, `"sequence":`)
	return l, c.SetDeadline(time.Time{})
}

// listen reads until the socket ends.
func (l *listener) listen(over *atomic.Bool) {
	for {
		n, err := l.next()
		if err != nil {
			l.cut = !over.Load()
			return
		}
		at := time.Now()
		l.messages, l.bytes = l.messages+1, l.bytes+int64(n)
		if sequence := lastNumber(l.text, `"sequence":`); sequence != l.last+1 {
			l.gaps++
			l.last = sequence
		} else {
			l.last++
		}
		if l.keeps {
			l.note(at)
		}
	}
}

// note keeps when a message was read that shows a state of a market.
func (l *listener) note(at time.Time) {
	const market = `"market":"0x`
	i := bytes.Index(l.text, []byte(market))
	if i < 0 || len(l.text) < i+len(market)+16 {
		return
	}
	m, err := strconv.ParseUint(string(l.text[i+len(market):i+len(market)+16]), 16, 64)
	seq := uint64(lastNumber(l.text, `"seq":`))
	if seen := l.seen[m]; err == nil && (len(seen) == 0 || seen[len(seen)-1].Sequence < seq) {
		l.seen[m] = append(seen, Sight{seq, at.UnixNano()})
	}
}

// lastNumber reads the last member of that name in a message.
func lastNumber(text []byte, member string) int64 {
	i := bytes.LastIndex(text, []byte(member))
	if i < 0 {
		return 0
	}
	n := int64(0)
	for _, c := range text[i+len(member):] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// next reads a text into l.text and returns how many bytes its frame has. It passes over others.
func (l *listener) next() (int, error) {
	for {
		var head [10]byte
		if _, err := io.ReadFull(l.in, head[:2]); err != nil {
			return 0, err
		}
		more := map[byte]int{126: 2, 127: 8}[head[1]]
		if _, err := io.ReadFull(l.in, head[2:2+more]); err != nil {
			return 0, err
		}
		size := int(head[1])
		switch more {
		case 2:
			size = int(binary.BigEndian.Uint16(head[2:]))
		case 8:
			size = int(binary.BigEndian.Uint64(head[2:]))
		}
		l.text = slices.Grow(l.text[:0], size)[:size]
		if _, err := io.ReadFull(l.in, l.text); err != nil {
			return 0, err
		}
		switch head[0] & 0x0f {
		case 1:
			return 2 + more + size, nil
		case 8:
			return 0, io.EOF
		}
	}
}

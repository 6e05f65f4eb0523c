package raft

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// NetworkOptions make a Network.
type NetworkOptions struct {
	ID      uint64 // of this member
	Cluster uint64 // ID of the cluster's journal
	// TLS has this member's certificate, and in RootCAs and ClientCAs the cluster's authority. A
	// certificate names its member by MemberName.
	TLS *tls.Config
	// Receive takes each message. While it waits, nothing more is read from that connection.
	Receive func(m *pb.Message)
	// Unreachable is called when messages to a member got lost; nil: nobody wants to know.
	Unreachable func(id uint64)
	// Gone is called while the machine of a member says that nobody listens there: its process has
	// ended; nil: nobody wants to know.
	Gone func(id uint64)
	// Stream takes a connection that a member has opened with Dial, and closes it; nil: none is taken.
	Stream func(from uint64, c net.Conn)
	// Guest takes a connection of somebody who is no member yet, and closes it. It has one of the few
	// places of those who have proved nothing, and a second to prove something; nil: none is taken.
	Guest func(c net.Conn)
	// Brief reports whether a member has only short messages to send, because it cannot lead: a long
	// one of it is not kept; nil: all may be long. It must not wait.
	Brief func(id uint64) bool
	// Removed reports whether a member was removed: it is hung up, and not let in again; nil: none
	// was. It must not wait.
	Removed func(id uint64) bool
	// Farewell takes a connection that such a member has opened with Dial, and closes it. It has no
	// place of a member, and a second; nil: it is not told why it is hung up.
	Farewell func(from uint64, c net.Conn)
	Log      *slog.Logger // not nil
}

// Network carries messages between members, on one connection in each direction between two of
// them. Both ends prove who they are. A message that cannot be sent at once is lost.
type Network struct {
	o       NetworkOptions
	closing chan struct{}
	joined  sync.WaitGroup

	mu      sync.Mutex
	members map[uint64]*route
	open    map[net.Conn]*admitted
	count   uint64 // of all that were ever open
	closed  bool
}

// route is the way to a member.
type route struct {
	id      uint64
	address string
	queue   chan *pb.Message
	gone    chan struct{}
	bytes   atomic.Uint64 // of the messages sent
}

// streams is the protocol of connections that carry no messages, as TLS names it.
const streams = "clobd-stream"

// Guests is the protocol of connections of those who are no members yet: they have no certificate.
const Guests = "clobd-join"

const (
	// queued bounds the messages that wait for a connection to one member.
	queued = 4096
	// longest bounds one message: a frame of one Command with all its Events is the largest.
	longest = 64 << 20
	// brief bounds those of a member that cannot lead: answers and questions.
	brief = 64 << 10
	// dialTime is how long a connection may take, redial the pause between two attempts.
	dialTime = time.Second
	redial   = 20 * time.Millisecond
	// sendTime is how long one write may take before the connection is given up.
	sendTime = 10 * time.Second
	// buffered is the size of a connection's buffers.
	buffered = 256 << 10
)

// MemberName is the name in a member's certificate.
func MemberName(cluster, id uint64) string {
	return fmt.Sprintf("member-%d.%016x.clobd", id, cluster)
}

// NewNetwork makes a Network without members.
func NewNetwork(o NetworkOptions) *Network {
	return &Network{o: o, closing: make(chan struct{}), members: map[uint64]*route{},
		open: map[net.Conn]*admitted{}}
}

// Route sets the address of a member, and begins to connect. An empty address ends that.
func (n *Network) Route(id uint64, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.members[id]; old != nil {
		if old.address == address {
			return
		}
		close(old.gone)
		delete(n.members, id)
	}
	if n.closed || address == "" || id == n.o.ID {
		return
	}
	r := &route{id: id, address: address, queue: make(chan *pb.Message, queued),
		gone: make(chan struct{})}
	n.members[id] = r
	n.joined.Go(func() { n.carry(r) })
}

// Send takes a message to another member. It never waits: a message that finds no room is lost.
func (n *Network) Send(m *pb.Message) {
	n.mu.Lock()
	r := n.members[m.GetTo()]
	n.mu.Unlock()
	if r == nil {
		return
	}
	select {
	case r.queue <- m:
	default:
		n.lost(r)
	}
}

// Sent is how many bytes of messages went to a member.
func (n *Network) Sent(id uint64) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.members[id]; r != nil {
		return r.bytes.Load()
	}
	return 0
}

// Dial opens a connection to a member that its Stream gets. Both ends have proved who they are.
func (n *Network) Dial(id uint64) (net.Conn, error) {
	n.mu.Lock()
	r := n.members[id]
	n.mu.Unlock()
	if r == nil {
		return nil, fmt.Errorf("no way to member %d is known", id)
	}
	return n.connect(r, streams)
}

func (n *Network) lost(r *route) {
	if n.o.Unreachable != nil {
		n.o.Unreachable(r.id)
	}
}

// carry sends what is queued for a member, until that has no route any more.
func (n *Network) carry(r *route) {
	for {
		c, err := n.dial(r)
		if err == nil {
			err = n.stream(r, c)
			n.forget(c)
		} else if errors.Is(err, syscall.ECONNREFUSED) && n.o.Gone != nil {
			n.o.Gone(r.id)
		}
		select {
		case <-r.gone:
			return
		case <-n.closing:
			return
		case <-time.After(redial):
		}
		n.o.Log.Debug("no connection to a member", "member", r.id, "address", r.address, "error", err)
		n.lost(r)
	}
}

// dial connects to a member for messages, until the Network closes.
func (n *Network) dial(r *route) (net.Conn, error) {
	c, err := n.connect(r)
	if err != nil {
		return nil, err
	}
	if !n.keep(c) {
		return nil, ErrClosed
	}
	return c, nil
}

// connect connects to a member, and makes sure that it is that one.
func (n *Network) connect(r *route, protocols ...string) (net.Conn, error) {
	t := n.o.TLS.Clone()
	t.ServerName, t.MinVersion = MemberName(n.o.Cluster, r.id), tls.VersionTLS13
	t.NextProtos = protocols
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: dialTime}, "tcp", r.address, t)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// stream writes what is queued until something fails. What comes together is sent together. The
// other end sends nothing: a read ends when its process does, long before a write fails.
func (n *Network) stream(r *route, c net.Conn) error {
	broken := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(c, make([]byte, 1))
		broken <- fmt.Errorf("the member hangs up: %w", err)
	}()
	w := bufio.NewWriterSize(c, buffered)
	var buf []byte
	put := func(m *pb.Message) (err error) {
		if buf, err = (proto.MarshalOptions{}).MarshalAppend(append(buf[:0], 0, 0, 0, 0), m); err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(buf, uint32(len(buf)-4))
		r.bytes.Add(uint64(len(buf)))
		_, err = w.Write(buf)
		return err
	}
	for {
		var err error
		select {
		case err = <-broken:
		case m := <-r.queue:
			if err = c.SetWriteDeadline(time.Now().Add(sendTime)); err == nil {
				err = put(m)
			}
		case <-r.gone:
			return nil
		case <-n.closing:
			return nil
		}
		for more := true; more && err == nil; {
			select {
			case m := <-r.queue:
				err = put(m)
			default:
				more = false
			}
		}
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// Serve takes connections of other members until Close. It returns nil then. While the process has
// no files left, and after any other failure that may pass, it tries again.
func (n *Network) Serve(l net.Listener) error {
	t := n.o.TLS.Clone()
	t.ClientAuth, t.MinVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS13
	t.NextProtos = []string{streams}
	t.GetConfigForClient = n.forGuests
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-n.closing:
		case <-stop:
		}
		l.Close()
	}()
	go n.judge(stop)
	pause := acceptFirst
	for {
		c, err := l.Accept()
		select {
		case <-n.closing:
			if err == nil {
				c.Close()
			}
			return nil
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept members: %w", err)
		} else if err != nil {
			n.o.Log.Warn("no member can connect for a moment", "error", err, "again_in", pause)
			select {
			case <-time.After(pause):
			case <-n.closing:
			}
			pause = min(2*pause, acceptMost)
			continue
		}
		pause = acceptFirst
		n.admit(c, func() {
			defer n.forget(c)
			err := n.receive(c, tls.Server(c, t))
			n.o.Log.Debug("a member's connection ends", "from", c.RemoteAddr().String(), "error", err)
		})
	}
}

// forGuests is the TLS of a connection from somebody who says that he is no member yet; nil: from
// anybody else.
func (n *Network) forGuests(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if n.o.Guest == nil || !slices.Equal(hello.SupportedProtos, []string{Guests}) {
		return nil, nil
	}
	t := n.o.TLS.Clone()
	t.ClientAuth, t.MinVersion, t.SessionTicketsDisabled = tls.NoClientCert, tls.VersionTLS13, true
	t.NextProtos = []string{Guests}
	return t, nil
}

// receive reads a member's messages. It takes those only that are from the member whom the
// certificate names, and for this one.
func (n *Network) receive(raw net.Conn, c *tls.Conn) error {
	if err := c.SetDeadline(time.Now().Add(proofTime)); err != nil {
		return err
	}
	if err := c.Handshake(); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	state := c.ConnectionState()
	if state.NegotiatedProtocol == Guests {
		if err := c.SetDeadline(time.Now().Add(proofTime)); err != nil {
			return err
		}
		n.o.Guest(c)
		return nil
	}
	from := n.memberOf(state.PeerCertificates[0].DNSNames)
	if from == 0 {
		return errStranger
	}
	if err := n.prove(raw, from); err != nil {
		if errors.Is(err, errRemoved) && state.NegotiatedProtocol == streams && n.o.Farewell != nil &&
			c.SetDeadline(time.Now().Add(proofTime)) == nil {
			n.o.Farewell(from, c)
		}
		return err
	}
	if state.NegotiatedProtocol == streams {
		if n.o.Stream == nil {
			return errStranger
		}
		n.o.Stream(from, c)
		return nil
	}
	in := bufio.NewReaderSize(c, buffered)
	var buf []byte
	for {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return err
		}
		length := int(binary.LittleEndian.Uint32(size[:]))
		if length > longest {
			return fmt.Errorf("a message of %d bytes", length)
		}
		if length > brief && n.o.Brief != nil && n.o.Brief(from) {
			if _, err := io.CopyN(io.Discard, in, int64(length)); err != nil {
				return err
			}
			continue
		}
		buf = slices.Grow(buf[:0], length)[:length]
		if _, err := io.ReadFull(in, buf); err != nil {
			return err
		}
		m := new(pb.Message) // copies what it needs of buf
		if err := proto.Unmarshal(buf, m); err != nil {
			return err
		}
		if m.GetFrom() != from || m.GetTo() != n.o.ID {
			return fmt.Errorf("%w: from %d to %d", errStranger, m.GetFrom(), m.GetTo())
		}
		n.o.Receive(m)
	}
}

// Close ends all connections.
func (n *Network) Close() {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.closing)
		for c := range n.open {
			c.Close()
		}
	}
	n.mu.Unlock()
	n.joined.Wait()
}

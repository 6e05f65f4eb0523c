package raft

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// authority makes the certificates of a cluster.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.cert, a.key = a.make(&x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}, nil)
	a.pool.AddCert(a.cert)
	return a
}

// make makes a certificate, signed by the authority or, without one, by itself.
func (a *authority) make(c *x509.Certificate, by *authority) (
	*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// member is what a member with that name uses.
func (a *authority) member(cluster, id uint64) *tls.Config {
	a.t.Helper()
	c, key := a.make(&x509.Certificate{DNSNames: []string{MemberName(cluster, id)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}, a)
	return &tls.Config{RootCAs: a.pool, ClientCAs: a.pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{c.Raw}, PrivateKey: key}}}
}

// listen serves a network on a port of this machine.
func listen(t testing.TB, n *Network) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(l) }()
	t.Cleanup(func() {
		n.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// connect gives the members real connections.
func (c *cluster) connect() map[uint64]*Network {
	c.t.Helper()
	a, networks, addresses := newAuthority(c.t), map[uint64]*Network{}, map[uint64]string{}
	for _, x := range c.nodes {
		n := NewNetwork(NetworkOptions{ID: x.id, Cluster: clusterID, TLS: a.member(clusterID, x.id),
			Receive: x.member.Receive, Unreachable: x.member.Unreachable,
			Log: slog.New(slog.DiscardHandler)})
		networks[x.id], addresses[x.id] = n, listen(c.t, n)
	}
	for _, n := range networks {
		for id, address := range addresses {
			n.Route(id, address)
		}
	}
	c.mu.Lock()
	c.over = func(m *pb.Message) { networks[m.GetFrom()].Send(m) }
	c.mu.Unlock()
	return networks
}

// TestNetwork: members agree over TCP, also after every connection was cut.
func TestNetwork(t *testing.T) {
	c := newCluster(t, 1, 2, 3)
	networks := c.connect()
	_, w := c.leader(nil)
	frames := w.write(t, 30)
	for _, n := range networks {
		n.mu.Lock()
		for open := range n.open {
			open.Close()
		}
		n.mu.Unlock()
	}
	if l, over := w.Committed(); over != nil {
		t.Fatal("the leader gave up", l, over)
	}
	frames = append(frames, w.write(t, 30)...)
	for _, x := range c.nodes {
		x.holds(1, frames)
	}
}

// TestStrangers: who is not the member whom it says it is, or not of this cluster, gets no message
// in.
func TestStrangers(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	got := make(chan *pb.Message, 10)
	n := NewNetwork(NetworkOptions{ID: 1, Cluster: clusterID, TLS: a.member(clusterID, 1),
		Receive: func(m *pb.Message) { got <- m }, Log: slog.New(slog.DiscardHandler)})
	address := listen(t, n)
	message := func(from, to uint64) *pb.Message {
		return &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(from), To: new(to)}
	}
	speak := func(config *tls.Config, m *pb.Message) {
		config.InsecureSkipVerify = true
		c, err := tls.Dial("tcp", address, config)
		if err != nil {
			return
		}
		defer c.Close()
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		b = append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
		if _, err := c.Write(b); err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, _ = c.Read(make([]byte, 1)) // until it is closed
	}
	speak(a.member(clusterID, 2), message(2, 1))
	select {
	case m := <-got:
		if m.GetFrom() != 2 {
			t.Fatal(m)
		}
	case <-time.After(soon):
		t.Fatal("a member is not heard")
	}
	speak(a.member(clusterID, 2), message(3, 1))     // says that it is another one
	speak(a.member(clusterID, 2), message(2, 7))     // speaks to another one
	speak(a.member(clusterID+1, 2), message(2, 1))   // of another cluster
	speak(other.member(clusterID, 2), message(2, 1)) // of another authority
	speak(&tls.Config{}, message(2, 1))              // without a certificate
	if len(got) > 0 {
		t.Errorf("a stranger is heard: %v", <-got)
	}
	// And no member speaks to a stranger.
	lost := make(chan uint64, 100)
	x := NewNetwork(NetworkOptions{ID: 2, Cluster: clusterID, TLS: a.member(clusterID, 2),
		Receive:     func(*pb.Message) {},
		Unreachable: func(id uint64) { lost <- id }, Log: slog.New(slog.DiscardHandler)})
	defer x.Close()
	x.Route(3, address) // member 1 lives there
	x.Send(message(2, 3))
	select {
	case <-lost:
	case <-time.After(soon):
		t.Fatal("nobody is missed")
	}
	if len(got) > 0 {
		t.Errorf("member 1 heard what was for member 3: %v", <-got)
	}
}

// TestStream: a member's connection for something else than messages reaches the other one, which
// knows who it is; one that no certificate of the cluster vouches for does not.
func TestStream(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	from := make(chan uint64, 1)
	n := NewNetwork(NetworkOptions{ID: 1, Cluster: clusterID, TLS: a.member(clusterID, 1),
		Stream: func(id uint64, c net.Conn) {
			from <- id
			io.Copy(c, c)
		}, Log: slog.New(slog.DiscardHandler)})
	address := listen(t, n)
	dial := func(s *tls.Config) (net.Conn, error) {
		x := NewNetwork(NetworkOptions{ID: 2, Cluster: clusterID, TLS: s,
			Log: slog.New(slog.DiscardHandler)})
		t.Cleanup(x.Close)
		x.Route(1, address)
		return x.Dial(1)
	}
	c, err := dial(a.member(clusterID, 2))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	word := []byte("word")
	if _, err := c.Write(word); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, word); err != nil || string(word) != "word" || <-from != 2 {
		t.Errorf("%q %v", word, err)
	}
	stranger := other.member(clusterID, 2)
	stranger.RootCAs = a.pool
	for name, s := range map[string]*tls.Config{"another authority": stranger,
		"another cluster": a.member(clusterID+1, 2)} {
		c, err := dial(s)
		if err != nil {
			continue // TLS 1.3 may tell only at the first read
		}
		if _, err := c.Read(word); err == nil {
			t.Errorf("%s: taken", name)
		}
		c.Close()
	}
	if len(from) > 0 {
		t.Errorf("member %d has a stream", <-from)
	}
}

// TestGuests: who has no certificate gets a connection of its own kind, for a second, and none of
// another kind. Who is to be a guest is not taken for a member.
func TestGuests(t *testing.T) {
	a, got := newAuthority(t), make(chan string, 10)
	o := NetworkOptions{ID: 1, Cluster: clusterID, TLS: a.member(clusterID, 1),
		Receive: func(*pb.Message) { got <- "message" },
		Stream:  func(uint64, net.Conn) { got <- "stream" },
		Guest: func(c net.Conn) {
			_, err := io.Copy(c, c)
			got <- fmt.Sprint(isTimeout(err))
		}, Log: slog.New(slog.DiscardHandler)}
	address := listen(t, NewNetwork(o))
	dial := func(address string, protocols ...string) (*tls.Conn, error) {
		return tls.Dial("tcp", address, &tls.Config{NextProtos: protocols, RootCAs: a.pool,
			ServerName: MemberName(clusterID, 1)})
	}
	c, err := dial(address, Guests)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	word := []byte("word")
	if _, err := c.Write(word); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, word); err != nil || string(word) != "word" {
		t.Errorf("%q %v", word, err)
	}
	if said := <-got; said != "true" { // it says no more
		t.Error("a guest that is silent stays:", said)
	}
	other := o
	other.Guest = nil
	for what, try := range map[string]func() (*tls.Conn, error){
		"as a member":         func() (*tls.Conn, error) { return dial(address) },
		"for commands":        func() (*tls.Conn, error) { return dial(address, streams) },
		"as two things":       func() (*tls.Conn, error) { return dial(address, Guests, streams) },
		"where no guests are": func() (*tls.Conn, error) { return dial(listen(t, NewNetwork(other)), Guests) },
	} {
		c, err := try()
		if err != nil {
			continue
		}
		if err := c.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(word); err == nil || isTimeout(err) {
			t.Errorf("%s: %v", what, err)
		}
		c.Close()
	}
	if len(got) > 0 {
		t.Errorf("a stranger's %s is taken", <-got)
	}
}

// TestFarewell: a member that was removed is told so if it asks, and has no place of a member.
func TestFarewell(t *testing.T) {
	h := newHall(t)
	h.n.o.Farewell = func(from uint64, c net.Conn) {
		fmt.Fprintf(c, "%d", from)
		c.Close()
	}
	h.removed.Store(true)
	h.from.Route(1, h.address)
	c, err := h.from.Dial(1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if said, err := io.ReadAll(c); string(said) != "2" || err != nil {
		t.Errorf("%q %v", said, err)
	}
	until(t, "it stays", func() bool { return h.count() == 0 })
}

// TestGone: gone is called when a machine refuses a connection, and not when it does not answer.
func TestGone(t *testing.T) {
	a, gone := newAuthority(t), make(chan uint64, 100)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	n := NewNetwork(NetworkOptions{ID: 1, Cluster: clusterID, TLS: a.member(clusterID, 1),
		Gone: func(id uint64) {
			select {
			case gone <- id:
			default:
			}
		}, Log: slog.New(slog.DiscardHandler)})
	defer n.Close()
	n.Route(2, l.Addr().String())
	n.Route(3, closed.Addr().String())
	for range 3 {
		select {
		case id := <-gone:
			if id != 3 {
				t.Fatalf("member %d is gone", id)
			}
		case <-time.After(soon):
			t.Fatal("nobody is gone")
		}
	}
}

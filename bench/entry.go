package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/ingress/auth"
)

// The shape of the comparison "entry".
const (
	entrySockets = 8  // each of a trader of its own
	entryFlight  = 16 // requests in work on each
)

// entry prepares rounds that place the same kind of signed orders over sockets with many requests
// in flight, and over HTTP by one request a connection. All orders are those of the traders that
// have a socket.
func (k *contest) entry(ctx context.Context, clients []*trader.Client) func(int) (
	efforts, error) {
	k.out.Node.Name = fmt.Sprintf("/ws/trade, %d in flight on %d", entryFlight, entrySockets)
	k.out.Baseline.Name = fmt.Sprintf("POST /order on %d", k.Connections)
	return func(round int) (efforts, error) {
		var ops [2][]workload.Op
		var requests [2][]signed
		for i := range ops {
			n := max(int(k.Duration.Seconds()*k.perSecond), 2000)
			var err error
			if ops[i], requests[i], err = k.entryOrders(ctx, clients, 2*round+i, n); err != nil {
				return nil, err
			}
		}
		return func(s *Side) effort {
			if s == &k.out.Baseline {
				v := newVolley(s.server.addr, k.Connections)
				v.dealRound(requests[1])
				return v.effort
			}
			return k.dealSockets(ops[0], requests[0]).effort
		}, nil
	}
}

// entryOrders draws and signs n orders of the first traders.
func (k *contest) entryOrders(ctx context.Context, clients []*trader.Client, draw, n int) (
	[]workload.Op, []signed, error) {
	w, err := workload.Named("place")
	if err != nil {
		return nil, nil, err
	}
	ops, err := k.draw(ctx, w, draw, n)
	if err != nil {
		return nil, nil, err
	}
	for i := range ops {
		ops[i].Trader %= entrySockets
	}
	s := signing{clients: clients, markets: k.markets, salt: uint64(draw+4) << 40}
	requests, err := s.sign(ctx, ops)
	return ops, requests, err
}

// dealRound appends requests to the lanes one after the other, whoever's they are.
func (v *volley) dealRound(requests []signed) {
	for i := range requests {
		v.post(i, requests[i:i+1])
	}
}

// dealSockets gives each trader a socket.
func (k *contest) dealSockets(ops []workload.Op, requests []signed) *crew {
	hands := make([][]signed, entrySockets)
	for i, r := range requests {
		t := ops[i].Trader
		hands[t] = append(hands[t], r)
	}
	c := &crew{apart: true}
	for _, hand := range hands {
		c.join(func(n *counts, until func() bool) {
			if len(hand) == 0 {
				n.err = errors.New("a trader without orders")
				return
			}
			d, err := openDesk(k.out.Node.server.addr, hand[0].client)
			if err != nil {
				n.err = err
				return
			}
			defer d.nc.Close()
			n.trade(d, hand, until)
		})
	}
	return c
}

// trade keeps entryFlight requests in flight: what has been answered together is replaced together.
// A request is late by the time from the answer that made room for it to its sending.
func (n *counts) trade(d *deskSocket, requests []signed, until func() bool) {
	n.late = NewRecorder()
	sent := make([]time.Time, len(requests))
	next, inFlight := 0, 0
	var room []time.Time // when answers were read, whose places are free
	for {
		first, over := next, until()
		for inFlight < entryFlight && next < len(requests) && !over {
			d.place(next, requests[next].body)
			next, inFlight = next+1, inFlight+1
		}
		if inFlight == 0 {
			return
		}
		now := time.Now()
		for i := range sent[first:next] {
			sent[first+i] = now
			if i < len(room) { // the first ones of all wait for no answer
				n.late.Record(now.Sub(room[i]))
			}
		}
		room = room[:0]
		if n.err = d.flush(); n.err != nil {
			return
		}
		for {
			no, good, err := d.answer()
			if err != nil {
				n.err = err
				return
			}
			if inFlight--; !good {
				n.err = fmt.Errorf("order %d was refused: %.300s", no, d.text)
				return
			}
			room = append(room, time.Now())
			n.rec.Record(room[len(room)-1].Sub(sent[no]))
			n.acked++
			n.placed = append(n.placed, requests[no].id)
			if inFlight == 0 || !d.more() {
				break
			}
		}
	}
}

// deskSocket is a client's end of /ws/trade. One goroutine reads, and answers pings.
type deskSocket struct {
	nc    net.Conn
	r     *bufio.Reader
	mutex sync.Mutex // of who writes
	out   []byte
	text  []byte // of the last answer
}

// openDesk opens a socket and logs in.
func openDesk(addr string, c *trader.Client) (*deskSocket, error) {
	nc, err := net.DialTimeout("tcp", addr, answerTime)
	if err != nil {
		return nil, fmt.Errorf("open a socket for orders: %w", err)
	}
	d := &deskSocket{nc: nc, r: bufio.NewReaderSize(nc, 64<<10)}
	if err := d.enter(addr, c); err != nil {
		return nil, errors.Join(fmt.Errorf("open a socket for orders: %w", err), nc.Close())
	}
	return d, nil
}

func (d *deskSocket) enter(addr string, c *trader.Client) error {
	_, err := fmt.Fprintf(d.nc, "GET /ws/trade HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", addr)
	if err != nil {
		return err
	}
	for line := "x"; line != "\r\n"; {
		if line, err = d.r.ReadString('\n'); err != nil {
			return err
		}
	}
	q := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: "GET",
		Path: "/ws/trade"}
	if err := c.Trio.Sign(&q); err != nil {
		return err
	}
	login, err := json.Marshal(map[string]any{"id": 0, "method": "login", "params": map[string]string{
		"apiKey": q.Key, "passphrase": q.Passphrase, "timestamp": q.Timestamp,
		"signature": q.Signature}})
	if err != nil {
		return err
	}
	d.frame(login)
	if err := d.flush(); err != nil {
		return err
	}
	if _, good, err := d.answer(); err != nil || !good {
		return fmt.Errorf("log in: %.300s (%w)", d.text, err)
	}
	return nil
}

// place appends a request to what is written next.
func (d *deskSocket) place(no int, body []byte) {
	head := append(make([]byte, 0, len(body)+64), `{"id":`...)
	head = strconv.AppendInt(head, int64(no), 10)
	head = append(append(head, `,"method":"order.place","params":`...), body...)
	d.frame(append(head, '}'))
}

// frame appends a text as a frame, masked with zeros: the node unmasks it all the same.
func (d *deskSocket) frame(text []byte) {
	d.out = append(d.out, 0x81)
	if len(text) < 126 {
		d.out = append(d.out, 0x80|byte(len(text)))
	} else {
		d.out = binary.BigEndian.AppendUint16(append(d.out, 0x80|126), uint16(len(text)))
	}
	d.out = append(append(d.out, 0, 0, 0, 0), text...)
}

func (d *deskSocket) flush() error {
	_, err := d.nc.Write(d.out)
	d.out = d.out[:0]
	return err
}

// more reports whether another answer, or the beginning of one, has been read.
func (d *deskSocket) more() bool { return d.r.Buffered() > 0 }

// answer reads an answer: which request it is of, and whether that was taken.
func (d *deskSocket) answer() (no int, good bool, err error) {
	for {
		kind, err := d.next()
		if err != nil {
			return 0, false, err
		}
		switch kind {
		case 0x81:
			return answerNumber(d.text)
		case 0x89:
			if err := d.pong(); err != nil {
				return 0, false, err
			}
		default:
			return 0, false, fmt.Errorf("the node closed the socket: %q", d.text)
		}
	}
}

// pong answers a ping.
func (d *deskSocket) pong() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.out = append(append(d.out, 0x8a, 0x80|byte(len(d.text)), 0, 0, 0, 0), d.text...)
	return d.flush()
}

// next reads a frame.
func (d *deskSocket) next() (kind byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(d.r, head[:2]); err != nil {
		return 0, err
	}
	n := int(head[1])
	if n == 126 {
		if _, err := io.ReadFull(d.r, head[2:]); err != nil {
			return 0, err
		}
		n = int(binary.BigEndian.Uint16(head[2:]))
	}
	d.text = append(d.text[:0], make([]byte, n)...)
	_, err = io.ReadFull(d.r, d.text)
	return head[0], err
}

// answerNumber scans {"id":N,"status":200,"result":{"success":true,…
func answerNumber(text []byte) (no int, good bool, err error) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"id":`))
	id, rest, found := bytes.Cut(rest, []byte{','})
	if no, err = strconv.Atoi(string(id)); !ok || !found || err != nil {
		return 0, false, fmt.Errorf("an answer without a number: %.100q", text)
	}
	return no, bytes.HasPrefix(rest, []byte(`"status":200,`)), nil
}

// halfLoad measures both sides at half the rate of the slower one, in an open loop.
func (k *contest) halfLoad(ctx context.Context, clients []*trader.Client) error {
	rate := min(Median(k.out.Node.Rates), Median(k.out.Baseline.Rates)) / 2
	k.out.Paced = &EntryPaced{Rate: rate}
	n := int(rate*k.Duration.Seconds()) + 1
	for round := range k.Rounds {
		for turn := range 2 {
			socket := (round+turn)%2 == 0
			_, requests, err := k.entryOrders(ctx, clients, 1000+2*round+turn, n)
			if err != nil {
				return err
			}
			side, measure := &k.out.Paced.Sockets, k.socketsPaced
			if !socket {
				side, measure = &k.out.Paced.HTTP, k.postsPaced
			}
			if _, err := k.watch.Lap(); err != nil {
				return err
			}
			p, err := measure(ctx, requests, clients)
			h, lapErr := k.watch.Lap()
			if err := errors.Join(err, lapErr); err != nil {
				return err
			}
			k.out.Conditions.Hiccup.add(h)
			p.blame(h)
			*side = append(*side, p)
		}
	}
	return k.out.Paced.conclude()
}

// postsPaced sends the requests over HTTP at the rate of both sides.
func (k *contest) postsPaced(ctx context.Context, requests []signed, _ []*trader.Client) (
	p Paced, err error) {
	v := newVolley(k.out.Node.server.addr, k.Connections)
	v.dealRound(requests)
	v.Rate, v.Duration = k.out.Paced.Rate, k.Duration
	m, err := v.Run(ctx)
	if err != nil {
		return p, err
	}
	return paced(v.Rate, v.Duration, m), nil
}

// socketsPaced sends the requests over sockets at the rate of both sides.
func (k *contest) socketsPaced(ctx context.Context, requests []signed, clients []*trader.Client) (
	out Paced, err error) {
	send, hang, err := k.tradePaced(requests, clients)
	if err != nil {
		return out, err
	}
	defer hang()
	p := pace{rate: k.out.Paced.Rate, duration: k.Duration, lanes: entrySockets * entryFlight}
	return p.run(ctx, send)
}

// pacedDesk is a socket that several lanes share.
type pacedDesk struct {
	*deskSocket
	waiting sync.Map // of request numbers: a chan error each
}

// tradePaced opens the sockets. send places order n over the socket of its trader and waits for the
// answer.
func (k *contest) tradePaced(requests []signed, clients []*trader.Client) (
	send func(lane, n int) error, hangUp func(), err error) {
	desks := make(map[*trader.Client]*pacedDesk, entrySockets)
	hangUp = func() {
		for _, d := range desks {
			_ = d.nc.Close()
		}
	}
	for _, c := range clients[:entrySockets] {
		d, err := openDesk(k.out.Node.server.addr, c)
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		desks[c] = &pacedDesk{deskSocket: d}
		go desks[c].hear()
	}
	return func(_, n int) error {
		r := &requests[n%len(requests)]
		d, told := desks[r.client], make(chan error, 1)
		d.waiting.Store(n, told)
		d.mutex.Lock()
		d.place(n, r.body)
		err := d.flush()
		d.mutex.Unlock()
		if err != nil {
			return err
		}
		select {
		case err := <-told:
			return err
		case <-time.After(answerTime):
			return errors.New("no answer")
		}
	}, hangUp, nil
}

// hear hands answers to who waits for them, until the socket is closed.
func (d *pacedDesk) hear() {
	for {
		no, good, err := d.answer()
		if err != nil {
			return
		}
		if told, waits := d.waiting.LoadAndDelete(no); waits {
			if !good {
				err = fmt.Errorf("refused: %.300s", d.text)
			}
			told.(chan error) <- err
		}
	}
}

// EntryPaced is what both sides of "entry" took at the same rate.
type EntryPaced struct {
	Rate    float64 `json:"orders_per_second"`
	Sockets []Paced `json:"sockets"`
	HTTP    []Paced `json:"http"`
	// Ratio is the sockets' median p50 divided by that of HTTP, both corrected.
	Ratio float64 `json:"ratio_of_median_p50"`
}

// verdict is an error if the generator has made the figures of every second turn of a side or more.
func (p *EntryPaced) verdict() error {
	side := func(name string, list []Paced) error {
		var blamed []string
		for i := range list {
			if why := list[i].Invalid; why != "" {
				blamed = append(blamed, why)
			}
		}
		return mostly(fmt.Sprintf("%s at %.0f orders a second", name, p.Rate), blamed, len(list))
	}
	return errors.Join(side("sockets", p.Sockets), side("HTTP", p.HTTP))
}

// conclude computes the ratio.
func (p *EntryPaced) conclude() error {
	p50 := func(all []Paced) (list []float64) {
		for i := range all {
			list = append(list, all[i].CorrectedMicros.P50)
		}
		return list
	}
	for _, one := range append(append([]Paced(nil), p.Sockets...), p.HTTP...) {
		if one.Failed > 0 || one.Unsent > 0 {
			return fmt.Errorf("at %.0f orders a second %d failed and %d were not sent: %s", p.Rate,
				one.Failed, one.Unsent, one.FirstFailure)
		}
	}
	p.Ratio = Median(p50(p.Sockets)) / Median(p50(p.HTTP))
	return nil
}

// writeText prints the rounds.
func (p *EntryPaced) writeText(w io.Writer) {
	fmt.Fprintf(w, "  at %.0f orders a second on both sides: p50 %.2f times that of HTTP\n%s\n",
		p.Rate, p.Ratio, pacedHead)
	row := func(p *Paced, side string) {
		if p.Invalid != "" {
			side += "  INVALID"
		}
		fmt.Fprintf(w, "%s  %s\n", p, side)
	}
	for i := range p.Sockets {
		row(&p.Sockets[i], "sockets")
		row(&p.HTTP[i], "HTTP")
	}
}

package bench

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/process"
	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/auth"
)

// Posts is the input of the process that floods: signed orders, their senders, and for how long to
// send them over how many connections.
type Posts struct {
	Addr        string
	Duration    time.Duration
	Connections int
	Lists       bool // 15 orders a request
	Senders     []Sender
	Orders      []Posting
}

// Sender is the part of a trader that its requests need.
type Sender struct {
	Address string
	Trio    auth.Trio
}

// Posting is the body of one POST /order.
type Posting struct {
	Sender int
	Body   []byte
}

// Posted is the result of a flood.
type Posted struct {
	Acked   int64   `json:"acknowledged"`
	Seconds float64 `json:"seconds"`
	Dry     bool    `json:"dry"`  // the orders were over before the time was
	Nice    int     `json:"nice"` // the priority that the process had
	Failure string  `json:"failure,omitempty"`
}

// rate is how many orders a second were acknowledged; 0 without a flood.
func (p *Posted) rate() float64 { return float64(p.Acked) / max(p.Seconds, 1e-9) }

// newPosts makes the input of a flood.
func newPosts(addr string, requests []signed) *Posts {
	p := &Posts{Addr: addr, Orders: make([]Posting, len(requests))}
	numbers := map[*trader.Client]int{}
	for i := range requests {
		c := requests[i].client
		n, known := numbers[c]
		if !known {
			n = len(p.Senders)
			numbers[c] = n
			p.Senders = append(p.Senders, Sender{c.Address, c.Trio})
		}
		p.Orders[i] = Posting{n, requests[i].body}
	}
	return p
}

// run sends them in closed loops.
func (p *Posts) run(ctx context.Context) Posted {
	clients := make([]*trader.Client, len(p.Senders))
	for i, s := range p.Senders {
		clients[i] = &trader.Client{Address: s.Address, Trio: s.Trio}
	}
	ops, requests := make([]Op, len(p.Orders)), make([]signed, len(p.Orders))
	for i, o := range p.Orders {
		ops[i].Trader = uint16(o.Sender)
		requests[i] = signed{clients[o.Sender], "POST", o.Body, engine.OrderID{}}
	}
	l := lanes(p.Addr, p.Connections)
	defer hangUp(l)
	c := p.deal(ops, requests, l)
	w := c.drive(ctx, p.Duration)
	all, _ := c.sum()
	out := Posted{Acked: all.acked, Seconds: w.took.Seconds(), Dry: !w.full && ctx.Err() == nil,
		Nice: process.Niceness()}
	if all.err != nil {
		out.Failure = all.err.Error()
	}
	return out
}

// deal hands the orders out, one by one or as lists.
func (p *Posts) deal(ops []Op, requests []signed, lanes []*fasthttp.HostClient) *crew {
	if p.Lists {
		return dealLists(ops, requests, lanes)
	}
	return deal(ops, requests, lanes)
}

// RunPosts is the main function of the process that floods. It reads Posts, writes a line when it
// begins, and Posted at the end.
func RunPosts(ctx context.Context, in io.Reader, out io.Writer) error {
	var p Posts
	if err := gob.NewDecoder(bufio.NewReader(in)).Decode(&p); err != nil {
		return fmt.Errorf("read what to post: %w", err)
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode("begun"); err != nil {
		return fmt.Errorf("say that it begins: %w", err)
	}
	return answers.Encode(p.run(ctx))
}

// flooder is the flooding process, in the process that started it.
type flooder struct{ partner *process.Partner }

// flood starts a process of self that posts, at a low priority, and returns when it has begun.
func (p *Posts) flood(ctx context.Context, self string) (*flooder, error) {
	f, err := process.Start(ctx, self, "posts")
	if err != nil {
		return nil, err
	}
	if err = f.Lower(); err == nil {
		err = gob.NewEncoder(f.In).Encode(p)
	}
	err = errors.Join(err, f.In.Close())
	var begun string
	if err == nil {
		err = f.Hear(&begun)
	}
	if err != nil {
		return nil, fmt.Errorf("start the flood: %w\n%s", err, f.End())
	}
	return &flooder{f}, nil
}

// wait returns the result. A flood that ended too early is an error.
func (f *flooder) wait() (Posted, error) {
	var p Posted
	err := f.partner.Hear(&p)
	said := f.partner.End()
	switch {
	case err != nil:
		return p, fmt.Errorf("flood: %w\n%s", err, said)
	case p.Failure != "":
		return p, fmt.Errorf("flood: %s", p.Failure)
	case p.Dry:
		return p, fmt.Errorf("the flood ran dry after %.2f s", p.Seconds)
	}
	return p, nil
}

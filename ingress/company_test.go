package ingress

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"clobd/engine"
	"clobd/ingress/party"
)

// lineUp has goroutines of these kinds wait in the full pool p: s with a single order, l with a
// list, x with a single order that has waited for too long. An f first, which is an s, says that
// there is a flood.
func lineUp(t *testing.T, p *pool, kinds string) (all []*waiter) {
	t.Helper()
	for i, kind := range kinds {
		w := newWaiter()
		w.shares = kind != 'l'
		if waits, err := p.enter(w, engine.Address{byte(i)}, false); waits == nil || err != nil {
			t.Fatal("does not wait", err)
		}
		if kind == 'x' {
			w.deadline = time.Time{}
		}
		all = append(all, w)
	}
	return all
}

// TestPoolSeatsCompanies: who waits with a single order shares a seat with those who follow, if
// enough wait; nobody else does.
func TestPoolSeatsCompanies(t *testing.T) {
	for _, c := range []struct{ kinds, want string }{
		{"sss", "0 1 2"}, {"ssss", "0+1+2+3"}, {"llll", "0 1 2 3"},
		{"ssssssssssssssssssss", "0+1+2+3+4+5+6+7+8+9+10+11+12+13+14 15+16+17+18+19"},
		{"ssssls", "0+1+2+3 4 5"}, {"lsssss", "0 1+2+3+4+5"}, {"slsss", "0 1 2 3 4"},
		{"fssssssssss", "0+1+2+3+4 5+6+7+8+9 10"}, {"sxsxs", "0+2+4"}, {"xlsss", "1 2 3 4"}, {"xxxx", ""}, {"xsss", "1+2+3"},
	} {
		p := unhurry(newPool(1))
		if w, err := p.enter(newWaiter(), engine.Address{0xff}, false); w != nil || err != nil {
			t.Fatal(w, err)
		}
		all := lineUp(t, p, c.kinds)
		if c.kinds[0] == 'f' {
			p.flood.Store(2 * floodBegins)
		}
		var seats []string
		for p.leave(alone); p.running > 0; {
			var names []string
			first := -1
			for i, w := range all {
				if w != nil && len(w.turn) == 1 && <-w.turn == nil {
					if first >= 0 {
						t.Fatalf("%s: %d and %d have their turn at once", c.kinds, first, i)
					}
					first = i
				}
			}
			if first < 0 {
				t.Fatalf("%s: a seat is taken, but nobody has a turn", c.kinds)
			}
			g := all[first].party
			for i, w := range all {
				if w == nil || w.party != g || g == alone && i != first {
					continue
				}
				if names, all[i] = append(names, fmt.Sprint(i)), nil; i != first {
					if err := <-w.turn; err != nil {
						t.Fatalf("%s: %d: %v", c.kinds, i, err)
					}
				}
				if p.running != 1 || p.seats() != 1 {
					t.Fatalf("%s: %d seats are taken of %d", c.kinds, p.running, p.seats())
				}
				if g != alone {
					g.Miss(w.turn)
				}
				p.leave(g)
			}
			seats = append(seats, strings.Join(names, "+"))
		}
		if got := strings.Join(seats, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.kinds, got, c.want)
		}
		if p.waiting != 0 || len(p.wallets) != 0 {
			t.Errorf("%s: %d wait, of %d wallets", c.kinds, p.waiting, len(p.wallets))
		}
	}
}

// TestPoolSpreadsCompanies: if several seats become free at once, each gets its part of those who
// wait.
func TestPoolSpreadsCompanies(t *testing.T) {
	for _, c := range []struct {
		seats, wait int
		want        string
	}{{8, 16, "4 4 4 4"}, {2, 16, "8 8"}, {3, 20, "7 7 6"}, {2, 40, "15 15 10"}, {3, 5, "4 1"}} {
		p := unhurry(newPool(c.seats))
		for range c.seats {
			if w, err := p.enter(newWaiter(), engine.Address{0xff}, false); w != nil || err != nil {
				t.Fatal(w, err)
			}
		}
		all := lineUp(t, p, strings.Repeat("s", c.wait))
		p.mutex.Lock()
		p.running = 0
		p.fill()
		p.mutex.Unlock()
		var sizes []string
		for len(all) > 0 {
			g, n := all[0].party, 0
			for len(all) > 0 && all[0].party == g && (g != alone || n == 0) {
				all, n = all[1:], n+1
			}
			sizes = append(sizes, fmt.Sprint(n))
		}
		got := strings.Join(sizes, " ")
		if c.wait > 2*party.Most { // the last ones wait still, alone
			got = strings.Join(sizes[:2], " ") + fmt.Sprint(" ", p.waiting)
		}
		if got != c.want {
			t.Errorf("%d wait for %d seats: %s, want %s", c.wait, c.seats, got, c.want)
		}
	}
}

// logIn makes c a socket on which alice may trade.
func (h entrance) logIn(t *testing.T, c *dialed) {
	t.Helper()
	b, err := json.Marshal(h.login("alice", 0, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, c.reader = socketAt(t, c, tradePath, "\r\n")
	c.write(longMasked(`{"id":0,"method":"login","params":` + string(b) + `}`))
	if got := readText(t, c.reader); !strings.HasPrefix(got, `{"id":0,"status":200,`) {
		t.Fatal(got)
	}
}

// shared is a request that waits for a seat, and a part of its answer: "" if its client hangs up.
type shared struct{ text, want string }

// companies are requests of which, if they wait in this order, 6, 4 and 4 share a seat.
func (h entrance) companies() []shared {
	const live = `"status":"live"`
	forged, _ := h.order("alice", "buy A 10 @ 0.40", 901)
	forged = strings.Replace(forged, `"salt":901`, `"salt":902`, 1)
	good := func(salt int) shared { return shared{h.posted(salt), live} }
	return []shared{
		good(1),
		{h.rawSigned("POST", "/order", forged), `"code":"invalid_signature"`},
		good(2),
		{h.rawSigned("POST", "/order", `{"order":`), `"code":"bad_payload"`}, // brings no order
		{h.posted(3), ""},
		{h.rawOrder("alice buy A 5000 @ 0.50 salt=4"), `"code":"balance"`},
		{h.framed(5), live},
		{h.rawSigned("POST", "/orders", "["+h.body(30)+","+h.body(31)+"]"), live},
		{h.rawOrder("alice buy A 5 @ 0.10 salt=77"), live}, // was placed before
		good(6), good(7), good(8),
		{h.framed(40, 41), live},
		good(9), good(10), good(11), good(12),
		good(13), // over a new connection
	}
}

func (h entrance) body(salt int) string {
	b, _ := h.order("alice", "buy A 5 @ 0.10", salt)
	return b
}

func (h entrance) posted(salt int) string { return h.rawSigned("POST", "/order", h.body(salt)) }

// framed is orders as a socket takes them.
func (h entrance) framed(salts ...int) (texts string) {
	for _, salt := range salts {
		texts += longMasked(fmt.Sprintf(`{"id":%d,"method":"order.place","params":%s}`, salt, h.body(salt)))
	}
	return texts
}

// dialFor dials for a request, and has the connection prove itself if it is not new.
func (h entrance) dialFor(t *testing.T, r shared, isNew bool) *dialed {
	c := h.dial(t)
	switch {
	case isNew:
	case strings.HasPrefix(r.text, "POST"):
		h.trades(t, c)
	default:
		h.logIn(t, c)
		c.write(h.framed(77))
		readText(t, c.reader)
	}
	return c
}

// TestCompany: single orders of different connections that wait for a seat are checked together,
// each with the answer that it would get alone, whatever became of the others. Neither a list, nor
// the batch of a socket, nor who has proven nothing yet shares a seat.
func TestCompany(t *testing.T) {
	h := entrance{newHouse(t, nil)}
	h.run([]string{"fund alice 1000"})
	p, waits := h.server.pool, h.companies()
	var all []*dialed
	for i, w := range waits {
		all = append(all, h.dialFor(t, w, i == len(waits)-1))
	}
	awaitIdle(t, p)
	n, sum := observed(t, h.server.metrics.together)
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	for i, w := range waits {
		all[i].write(w.text)
		if awaitQueue(t, p, i+1); w.want == "" {
			_ = all[i].Close()
		}
	}
	release()
	for i, w := range waits {
		got := ""
		switch {
		case w.want == "":
			continue
		case strings.HasPrefix(w.text, "POST"):
			got = all[i].answer()
		default:
			got = readText(t, all[i].reader)
		}
		if !strings.Contains(got, w.want) {
			t.Errorf("request %d: %s", i, got)
		}
	}
	awaitIdle(t, p)
	m, total := observed(t, h.server.metrics.together) // also the list, and the batch
	if m != n+5 || total-sum != 6+2+4+2+4 {
		t.Errorf("%v signatures were checked together, in %v lists", total-sum, m-n)
	}
	// The connection of the forged order has nothing proven any more, and three are too few.
	release = sync.OnceFunc(occupy(t, p))
	defer release()
	for i, at := range []int{1, 0, 2, 5} {
		all[at].write(h.posted(50 + i))
		awaitQueue(t, p, i+1)
	}
	release()
	for _, at := range []int{1, 0, 2, 5} {
		all[at].live()
	}
	if more, _ := observed(t, h.server.metrics.together); more != m {
		t.Errorf("%v more lists were checked", more-m)
	}
}

// TestCompanyOfSlow: whoever has a turn and sends no more, or what is no order, or a second one,
// holds up nobody.
func TestCompanyOfSlow(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	p := h.server.pool
	order := func(salt int) string { return h.rawOrder(fmt.Sprint("alice buy A 5 @ 0.10 salt=", salt)) }
	half, pair := order(1), order(2)+order(3)
	texts := []string{half[:len(half)-10], "POST /order nonsense\r\n\r\n", pair, order(4),
		"POST /order HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"}
	var all []*dialed
	for range texts {
		c := h.dial(t)
		h.trades(t, c)
		all = append(all, c)
	}
	release := sync.OnceFunc(occupy(t, p))
	defer release()
	for i, text := range texts {
		all[i].write(text)
		awaitQueue(t, p, i+1)
	}
	release()
	all[2].live()
	all[2].live()
	all[3].live()
	if got := all[1].answer(); !strings.HasPrefix(got, "400\n") {
		t.Error(got)
	}
	awaitIdle(t, p)
	all[0].write(half[len(half)-10:])
	all[0].live()
	awaitIdle(t, p)
}

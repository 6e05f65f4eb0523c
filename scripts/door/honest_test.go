package door

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
)

// Honest callers stay well below the limits: so many of each kind, so often.
const (
	readers    = 3
	readPause  = 80 * time.Millisecond
	makers     = 2
	orderPause = 100 * time.Millisecond
	freshly    = 8 // each so many reads, a reader takes a new connection
)

// service is what honest callers got. Times are from the moment at which a request was due.
type service struct {
	Books   []time.Duration `json:"books"`
	Cancels []time.Duration `json:"cancels"`
	Hiccups []time.Duration `json:"hiccups"` // how much later than due a sleeper woke
	PutOff  int             `json:"put_off"` // answers 503: the request was sent again
	Failed  []string        `json:"failed"`  // what was refused, or not answered

	mutex sync.Mutex
}

// add notes the outcome of a request.
func (s *service) add(times *[]time.Duration, due time.Time, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	*times = append(*times, time.Since(due))
	if err != nil && len(s.Failed) < 20 {
		s.Failed = append(s.Failed, err.Error())
	}
}

// insist sends a request, and again after an answer 503, which says that nothing happened and that
// the same may be sent again: a machine without a free core has no other. Who is put off for as
// long as an answer may take is not served.
func (s *service) insist(send func() (status int, err error)) error {
	for end := time.Now().Add(answerTime); ; time.Sleep(orderPause) {
		status, err := send()
		if status != http.StatusServiceUnavailable || time.Now().After(end) {
			return err
		}
		s.mutex.Lock()
		s.PutOff++
		s.mutex.Unlock()
	}
}

// percentile99 returns the time that 99 of 100 do not exceed.
func percentile99(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	times = slices.Sorted(slices.Values(times))
	return times[len(times)*99/100]
}

// from makes connections of a loopback address.
func from(address string) func(string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second}
	return func(to string) (net.Conn, error) { return d.Dial("tcp4", to) }
}

// trade plays all honest callers for p.Time and tells how they were served.
func trade(p part) error {
	var s service
	var group sync.WaitGroup
	end := time.Now().Add(p.Time)
	clients := make([]*trader.Client, makers)
	for i := range clients {
		address := fmt.Sprintf("127.0.1.%d", 1+i)
		c, err := trader.NewClient("http://"+p.Address, p.Chain, [32]byte{30: 1, 31: byte(1 + i)})
		if err != nil {
			return err
		}
		c.Host.Dial = from(address)
		if err := c.Derive(); err != nil {
			return err
		}
		clients[i] = c
	}
	for i := range readers {
		group.Go(func() { s.read(p, fmt.Sprintf("127.0.2.%d", 1+i), end) })
	}
	for i, c := range clients {
		group.Go(func() { s.quote(p, c, uint64(i), end) })
	}
	group.Go(func() {
		for due := time.Now(); due.Before(end); due = time.Now() {
			time.Sleep(time.Millisecond)
			s.add(&s.Hiccups, due.Add(time.Millisecond), nil)
		}
	})
	group.Wait()
	return say(&s)
}

// pace calls f with the time at which each turn is due. Turns that are late do not move later ones.
func pace(pause time.Duration, end time.Time, f func(due time.Time)) {
	for due := time.Now(); due.Before(end); due = due.Add(pause) {
		time.Sleep(time.Until(due))
		f(due)
	}
}

// read reads a book again and again.
func (s *service) read(p part, address string, end time.Time) {
	host := &fasthttp.HostClient{Addr: p.Address, Dial: from(address), MaxConns: 4,
		ReadTimeout: answerTime}
	reads := 0
	pace(readPause, end, func(due time.Time) {
		if reads++; reads%freshly == 0 {
			host.CloseIdleConnections()
		}
		s.add(&s.Books, due, s.insist(func() (int, error) {
			status, body, err := host.GetTimeout(nil, "http://"+p.Address+"/book?token_id="+p.Token,
				answerTime)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("book: status %d: %.200s", status, body)
			}
			return status, err
		}))
	})
}

// quote places orders and cancels each at once.
func (s *service) quote(p part, c *trader.Client, maker uint64, end time.Time) {
	token, ok := engine.ParseToken(p.Token)
	if !ok {
		s.add(&s.Cancels, time.Now(), errors.New("no token: "+p.Token))
		return
	}
	var resp fasthttp.Response
	salt := uint64(time.Now().UnixNano())&(1<<48-1) + maker
	pace(orderPause, end, func(time.Time) {
		salt += makers
		body, id, err := c.Sign(trader.Limit{Token: token, Price: 100, Size: 5 * engine.Unit,
			Type: "GTC", Salt: salt})
		send := func(method string, body []byte) error {
			return s.insist(func() (int, error) {
				resp.Reset()
				err := status(c.Do(method, "/order", body, &resp), &resp)
				return resp.StatusCode(), err
			})
		}
		if err == nil {
			err = send(http.MethodPost, body)
		}
		due := time.Now()
		if err == nil {
			err = send(http.MethodDelete, trader.CancelBody(id))
		}
		s.add(&s.Cancels, due, err)
	})
}

// status returns an error unless the answer is 200.
func status(err error, resp *fasthttp.Response) error {
	if err == nil && resp.StatusCode() != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode(), resp.Body())
	}
	return err
}

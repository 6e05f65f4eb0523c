//go:build !race && !audit

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/scripts/setting"
)

// TestAllocations: a node in this process allocates at most twice for a single order, and at most
// once for each order of a list, from the socket to the answer, with the index, the follower and
// all else that follows the journal, beside what it allocates while nobody sends anything. The
// orders come over 64 connections to one market, and every second one fills an earlier one. A
// trader sends 60 requests, or a quarter of that with lists (CLOBD_SIZE), at a time. (The race
// detector makes pools forget on purpose, and audits allocate.)
func TestAllocations(t *testing.T) {
	setting.Full(t, "thousands of orders")
	for _, c := range []struct {
		name string
		list int
		most float64
	}{{"single", 1, 2}, {"list", 15, 1}} {
		t.Run(c.name, func(t *testing.T) {
			d := openDesk(t, 64)
			rounds := setting.Size(t, 60, 20)
			if c.list > 1 {
				rounds /= 4
			}
			for range 2 { // pools fill, one for each processor
				d.post(t, c.list, rounds)
			}
			d.rest()
			least := d.post(t, c.list, rounds)
			for range 12 { // a collection may have emptied pools, or other work made frames small
				if least > c.most {
					d.rest()
					least = min(least, d.post(t, c.list, rounds))
				}
			}
			t.Logf("figures: allocations_per_order=%.2f idle_per_second=%.0f", least, d.idle)
			if least > c.most {
				t.Errorf("%.2f allocations an order, want at most %v", least, c.most)
			}
		})
	}
}

// tradingDesk is a node in this process, and traders with a connection each.
type tradingDesk struct {
	traders []*trader.Client
	tokens  [2]engine.Token
	salt    uint64
	listen  string
	idle    float64    // objects that the process allocates in a second of rest
	lines   []net.Conn // that of each trader
	data    string     // the folder of the node
	stop    func()     // ends the node
}

// openDesk starts a node, which ends with the test, and lets traders connect.
func openDesk(t *testing.T, traders int) *tradingDesk {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "catalog.jsonl")
	pair := writeCatalog(t, file, 1)[0]
	c := &serveCommand{Data: filepath.Join(folder, "data"), Listen: freeAddress(t),
		Admin: freeAddress(t), Catalog: file, Faucet: "1000000", Durability: "fsync",
		CheckpointInterval: time.Hour, CheckpointCommands: 1 << 40, ChainID: auth.ChainTest,
		Limits: "off", CORSOrigin: "*", Sockets: 16, SocketsPerAddress: 16, IOUring: "off", Lanes: "on",
		LogLevel: "error"}
	s, err := c.settings()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runNode(ctx, s) }()
	d := &tradingDesk{stop: sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})}
	t.Cleanup(d.stop)
	for i, text := range []string{pair.token, pair.other} {
		d.tokens[i], _ = engine.ParseToken(text)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if answer, err := http.Get("http://" + c.Admin + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			t.Fatal("the node is not ready")
		}
	}
	for i := range traders {
		client, err := trader.NewClient("http://"+c.Listen, auth.ChainTest, [32]byte{30: 1, 31: byte(i)})
		if err == nil {
			err = client.Derive()
		}
		if err != nil {
			t.Fatal(err)
		}
		client.Host.CloseIdleConnections()
		d.traders = append(d.traders, client)
	}
	d.listen, d.data = c.Listen, c.Data
	return d
}

// connect opens a connection for each trader, the first time.
func (d *tradingDesk) connect(t *testing.T) {
	t.Helper()
	for range len(d.traders) - len(d.lines) {
		line, err := net.Dial("tcp", d.listen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { line.Close() })
		d.lines = append(d.lines, line)
	}
}

// rest finds out what the process allocates while nobody sends anything: it looks at itself a few
// times a second.
func (d *tradingDesk) rest() {
	var before, after runtime.MemStats
	time.Sleep(time.Second) // what is left of orders
	runtime.ReadMemStats(&before)
	start := time.Now()
	time.Sleep(2 * time.Second)
	runtime.ReadMemStats(&after)
	d.idle = float64(after.Mallocs-before.Mallocs) / time.Since(start).Seconds()
}

// post lets each trader send so many requests with so many orders each, one after the other, and
// returns how many objects the process allocated for each order.
func (d *tradingDesk) post(t *testing.T, list, rounds int) (each float64) {
	t.Helper()
	requests := make([][][]byte, len(d.traders))
	for i := range d.traders {
		for range rounds {
			requests[i] = append(requests[i], d.request(t, i, list))
		}
	}
	d.connect(t) // not before: whoever has sent nothing has little time
	failures := make([]error, len(d.traders))
	var before, after runtime.MemStats
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i, line := range d.lines {
		ready.Add(1)
		done.Go(func() {
			answer := make([]byte, 64<<10)
			ready.Done()
			<-begin
			for _, r := range requests[i] {
				if failures[i] = exchange(line, r, answer, list); failures[i] != nil {
					return
				}
			}
		})
	}
	ready.Wait()
	runtime.ReadMemStats(&before)
	start := time.Now()
	close(begin)
	done.Wait()
	runtime.ReadMemStats(&after)
	besides := d.idle * time.Since(start).Seconds()
	for _, err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
	all := float64(after.Mallocs - before.Mallocs)
	return (all - besides) / float64(len(d.traders)*rounds*list)
}

// request makes the bytes of one request. Traders with an even number buy one outcome, the others
// the other one, at prices that meet.
func (d *tradingDesk) request(t *testing.T, who, orders int) []byte {
	t.Helper()
	c := d.traders[who]
	price := engine.Price(4000)
	if who%2 == 1 {
		price = engine.PriceOne - price
	}
	path, body := "/order", []byte(nil)
	for i := range orders {
		d.salt++
		one, _, err := c.Sign(trader.Limit{Token: d.tokens[who%2], Price: price,
			Size: 5 * engine.Unit, Type: "GTC", Salt: d.salt})
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, one...)
	}
	if orders > 1 {
		path, body = "/orders", append(append([]byte{'['}, body...), ']')
	}
	r := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: http.MethodPost,
		Path: path, Body: body}
	if err := c.Trio.Sign(&r); err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\n"+
		"POLY_ADDRESS: %s\r\nPOLY_API_KEY: %s\r\nPOLY_PASSPHRASE: %s\r\nPOLY_TIMESTAMP: %s\r\n"+
		"POLY_SIGNATURE: %s\r\nContent-Length: %d\r\n\r\n%s", path, c.Address, r.Key, r.Passphrase,
		r.Timestamp, r.Signature, len(body), body)
}

var (
	contentLength = []byte("\r\nContent-Length: ")
	headEnd       = []byte("\r\n\r\n")
	successful    = []byte(`"success":true`)
)

// exchange sends a request and reads its answer, which must say that all orders were taken. It
// allocates nothing unless something is wrong.
func exchange(line net.Conn, request, answer []byte, orders int) error {
	if _, err := line.Write(request); err != nil {
		return err
	}
	n, want := 0, len(answer)
	for n < want {
		got, err := line.Read(answer[n:])
		if err != nil {
			return err
		}
		n += got
		if end := bytes.Index(answer[:n], headEnd); end >= 0 && want == len(answer) {
			at := bytes.Index(answer[:end], contentLength)
			if at < 0 {
				return io.ErrUnexpectedEOF
			}
			length := 0
			for _, c := range answer[at+len(contentLength) : end] {
				if c < '0' || c > '9' {
					break
				}
				length = 10*length + int(c-'0')
			}
			want = end + len(headEnd) + length
		}
	}
	if bytes.Count(answer[:n], successful) != orders {
		return fmt.Errorf("answer %s", answer[:n])
	}
	return nil
}

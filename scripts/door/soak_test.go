package door

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/scripts/setting"
)

const (
	loaders  = 16   // connections that load the node
	listed   = 15   // orders of a list
	share    = 0.6  // of what the node can do
	looks    = 60   // at what grows
	mostMore = 1.10 // times as much at the end as in the second quarter
)

// growing are the gauges that must stand still under a steady load, each with what it may wander.
func growing() map[string]float64 {
	return map[string]float64{"process_resident_memory_bytes": 32 << 20, "go_goroutines": 50,
		"process_open_fds": 20}
}

// TestSoak loads a node with orders, cancels and reads at 60 % of what it can do, for CLOBD_SIZE
// seconds. Nothing but the disk may fill. Before a long run, the test fills the two memories that
// grow to a bound and stay there: the ids of the last placements and the newest frames.
func TestSoak(t *testing.T) {
	setting.Full(t, "an attack that goes on for seconds")
	if binary == "" {
		t.Skip("SKIPPED: it needs a node without limits")
	}
	seconds, _ := strconv.Atoi(os.Getenv("CLOBD_SIZE"))
	folder := t.TempDir()
	source := folder + "/events.jsonl"
	if err := os.WriteFile(source, events(50), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := start(folder, "--limits", "off", "--faucet", "1000000", "--catalog", source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.stop)
	whole := part{Address: n.public, Chain: *chain, Token: tokenOf(0, 0)}
	if seconds >= 60 {
		fill := whole
		fill.Orders = engine.Window * 9 / 8
		n.load(t, fill, nil)
	}
	short, long := whole, whole
	short.Time = 2 * time.Second
	most := n.load(t, short, nil)
	seen := make(map[string][]float64)
	long.Time, long.Rate = time.Duration(max(seconds, 3))*time.Second, share*most
	rate := n.load(t, long, seen)
	for name, slack := range growing() {
		values := seen[name]
		if len(values) < looks/2 {
			t.Fatalf("%s was seen %d times", name, len(values))
		}
		early, late := median(values[len(values)/4:len(values)/2]), median(values[len(values)*3/4:])
		if seconds >= 60 && late > early*mostMore+slack {
			t.Errorf("%s: %.0f in the second quarter, %.0f in the last", name, early, late)
		}
		t.Logf("figures: %s_early=%.0f %s_late=%.0f", name, early, name, late)
	}
	t.Logf("figures: soak_seconds=%.0f soak_rate=%.0f most_rate=%.0f", long.Time.Seconds(), rate, most)
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// load loads the node as p says and returns how many orders and cancels it took per second. It
// looks at the node's gauges meanwhile if seen is not nil.
func (n *server) load(t *testing.T, p part, seen map[string][]float64) float64 {
	t.Helper()
	c, err := startChild("load", p)
	if err != nil {
		t.Fatal(err)
	}
	defer c.end()
	if seen != nil {
		pace(p.Time/looks, time.Now().Add(p.Time), func(time.Time) { n.look(t, seen) })
	}
	var told struct {
		Rate   float64
		Failed string
	}
	if err := c.told(&told); err != nil || told.Failed != "" {
		t.Fatal(err, told.Failed)
	}
	return told.Rate
}

// look appends the present value of each gauge.
func (n *server) look(t *testing.T, seen map[string][]float64) {
	r, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if _, wanted := growing()[name]; !wanted {
			continue
		}
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
		}
		seen[name] = append(seen[name], f)
	}
}

// load plays traders who place and cancel orders, and tells their rate: p.Orders orders in lists,
// as fast as they can, or if that is 0, single orders for p.Time at p.Rate.
func load(p part) error {
	var group sync.WaitGroup
	var taken atomic.Int64
	var failed atomic.Pointer[string]
	begun := time.Now()
	token, _ := engine.ParseToken(p.Token)
	act, size := placeAndCancel, 1
	if p.Orders > 0 {
		act, size = placeAndCancelList, listed
	}
	for i := range loaders {
		c, err := trader.NewClient("http://"+p.Address, p.Chain, [32]byte{30: 2, 31: byte(1 + i)})
		if err == nil {
			err = c.Derive()
		}
		if err != nil {
			return err
		}
		group.Go(func() {
			var resp fasthttp.Response
			salt := uint64(time.Now().UnixNano())&(1<<48-1) + uint64(i)
			turn := func(time.Time) {
				if err := act(c, token, salt, &resp); err != nil {
					text := err.Error()
					failed.Store(&text)
					return
				}
				salt += loaders * uint64(size)
				taken.Add(2 * int64(size))
			}
			for range p.Orders / loaders / size {
				turn(begun)
			}
			if p.Rate > 0 {
				pace(time.Duration(2*loaders/p.Rate*float64(time.Second)), begun.Add(p.Time), turn)
				return
			}
			for time.Since(begun) < p.Time {
				turn(begun)
			}
		})
	}
	group.Wait()
	told := map[string]any{"Rate": float64(taken.Load()) / time.Since(begun).Seconds()}
	if text := failed.Load(); text != nil {
		told["Failed"] = *text
	}
	return say(told)
}

// placeAndCancelList places a list of orders and cancels all of them. While the node is busy, it
// sends the list again: this load is as much as the node can take.
func placeAndCancelList(c *trader.Client, token engine.Token, salt uint64,
	resp *fasthttp.Response) error {
	orders, ids := []byte("["), []byte("[")
	for i := range uint64(listed) {
		body, id, err := c.Sign(trader.Limit{Token: token, Price: 100, Size: 5 * engine.Unit,
			Type: "GTC", Salt: salt + i*loaders})
		if err != nil {
			return err
		}
		orders = append(append(orders, body...), ',')
		ids = append(append(append(ids, '"'), id.Hex()...), `",`...)
	}
	orders[len(orders)-1], ids[len(ids)-1] = ']', ']'
	err := c.Do(http.MethodPost, "/orders", orders, resp)
	for err == nil && bytes.Contains(resp.Body(), []byte(`"busy"`)) {
		time.Sleep(100 * time.Millisecond)
		err = c.Do(http.MethodPost, "/orders", orders, resp)
	}
	err = status(err, resp)
	if err == nil && bytes.Contains(resp.Body(), []byte(`"success":false`)) {
		err = fmt.Errorf("an order of a list was refused: %.300s", resp.Body())
	}
	if err == nil {
		err = status(c.Do(http.MethodDelete, "/orders", ids, resp), resp)
	}
	return err
}

// placeAndCancel places an order, reads its book now and then, and cancels the order.
func placeAndCancel(c *trader.Client, token engine.Token, salt uint64,
	resp *fasthttp.Response) error {
	body, id, err := c.Sign(trader.Limit{Token: token, Price: 100, Size: 5 * engine.Unit,
		Type: "GTC", Salt: salt})
	if err == nil {
		err = status(c.Do(http.MethodPost, "/order", body, resp), resp)
	}
	if err == nil && salt/loaders%4 == 0 {
		_, err = c.Get("/book?token_id=" + token.String())
	}
	if err == nil {
		err = status(c.Do(http.MethodDelete, "/order", trader.CancelBody(id), resp), resp)
	}
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

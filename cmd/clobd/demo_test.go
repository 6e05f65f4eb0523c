package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clobd/bench"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/journal"
)

// gift is the collateral of a wallet in units, and so of everybody together bots times as much.
const (
	gift = 1000
	bots = 5
)

// fair is a node with markets for bots, and what the bots did there.
type fair struct {
	node    *process
	tokens  []outcome
	markets []bench.BotMarket
}

func newFair(t *testing.T) *fair {
	t.Helper()
	folder := t.TempDir()
	file := folder + "/catalog.jsonl"
	f := &fair{tokens: writeCatalog(t, file, 2)}
	f.node = newProcess(t, buildNode(t), folder, "--catalog", file, "--faucet", strconv.Itoa(gift),
		"--limits", "off", "--log-level", "error")
	f.node.start(t)
	for i := 0; i < len(f.tokens); i += 2 { // each market is there once for either outcome
		m := bench.BotMarket{Tick: 100, MinSize: 5 * engine.Unit}
		for k, text := range []string{f.tokens[i].token, f.tokens[i].other} {
			m.Tokens[k], _ = engine.ParseToken(text)
		}
		f.markets = append(f.markets, m)
	}
	return f
}

// run lets the bots trade at url for 4 s, far longer than their money would last if they only
// bought, stops the node, and says what was wrong with the market.
func (f *fair) run(t *testing.T, url string) error {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- bench.RunBots(ctx, bench.BotOptions{URL: url, Chain: auth.ChainTest,
			Markets: f.markets, Pause: time.Millisecond, Log: slog.New(slog.DiscardHandler),
			Key: func(i int) [32]byte { return [32]byte{7, byte(i + 1)} }})
	}()
	time.Sleep(4 * time.Second)
	var problems []error
	if n := f.sided(t); n != len(f.tokens) {
		problems = append(problems, fmt.Errorf("%d of %d books have two sides", n, len(f.tokens)))
	}
	stop()
	problems = append(problems, <-ended)
	f.node.stop(t)
	traded, late := f.traded(t)
	t.Logf("%v shares traded, %v of them in the last second", traded, late)
	// Who only buys makes a pair of tokens for each 1.00: all their money buys so many shares, once.
	if most := engine.Size(gift * bots * engine.Unit); traded <= most {
		problems = append(problems, fmt.Errorf("%v shares traded: buying alone does %v", traded, most))
	}
	if late == 0 {
		problems = append(problems, errors.New("the market stands still: no trade in the last second"))
	}
	return errors.Join(problems...)
}

// traded reads from the journal how much was traded, in all and in the last second.
func (f *fair) traded(t *testing.T) (all, late engine.Size) {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: f.node.data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[engine.Time]engine.Size{}
	head, err := j.Recover(nil, func(frame *engine.Frame) error {
		for _, e := range frame.Events {
			if e.Kind == engine.Filled {
				sizes[frame.Time] += e.Size
			}
		}
		return nil
	})
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	for at, size := range sizes {
		if all += size; at > head.Time-1000 {
			late += size
		}
	}
	return all, late
}

// sided counts the books with bids and asks. A quote may be on its way from one place to another:
// it looks for 3 s, until all have been seen whole.
func (f *fair) sided(t *testing.T) int {
	t.Helper()
	sided := map[string]bool{}
	for range 150 {
		for _, o := range f.tokens {
			answer, err := f.node.public.Get("http://" + f.node.listen + "/book?token_id=" + o.token)
			if err != nil {
				t.Fatal(err)
			}
			book, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			text := string(book)
			if !strings.Contains(text, `"bids":[]`) && !strings.Contains(text, `"asks":[]`) {
				sided[o.token] = true
			}
		}
		if len(sided) == len(f.tokens) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return len(sided)
}

// TestDemoMarketGoesOn: after all that time the books still have both sides, the bots trade, and
// they have traded more than their money alone could have bought.
func TestDemoMarketGoesOn(t *testing.T) {
	f := newFair(t)
	if err := f.run(t, "http://"+f.node.listen); err != nil {
		t.Error(err)
	}
}

// TestDemoMarketNeedsSales: the same bots behind a door that lets no sale through bring their
// market to an end, and TestDemoMarketGoesOn would say so.
func TestDemoMarketNeedsSales(t *testing.T) {
	f := newFair(t)
	var refused atomic.Uint64
	target := &url.URL{Scheme: "http", Host: f.node.listen}
	forward := httputil.NewSingleHostReverseProxy(target)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the bot hung up
		}
		if bytes.Contains(body, []byte(`"side":"SELL"`)) {
			refused.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"not enough balance","code":"balance"}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	defer door.Close()
	err := f.run(t, door.URL)
	if err == nil {
		t.Error("bots that only buy pass for a market that goes on")
	}
	t.Logf("%d sales refused: %v", refused.Load(), err)
	if refused.Load() == 0 {
		t.Error("nobody tried to sell")
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
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

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/scripts/setting"
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
	markets []engine.Listing
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
		m := engine.Listing{Tick: 100, MinSize: 5 * engine.Unit}
		for k, text := range []string{f.tokens[i].token, f.tokens[i].other} {
			m.Tokens[k], _ = engine.ParseToken(text)
		}
		f.markets = append(f.markets, m)
	}
	return f
}

// run lets the bots trade at url until they have traded far more than their money would buy if they
// only bought, and then go on, or until the market stands still. Then it stops the node, and says
// what was wrong with the market.
func (f *fair) run(t *testing.T, url string, still func(volume float64) bool) error {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- trader.RunBots(ctx, trader.BotOptions{URL: url, Chain: auth.ChainTest,
			Markets: f.markets, Pause: time.Millisecond, Log: slog.New(slog.DiscardHandler),
			Key: func(i int) [32]byte { return [32]byte{7, byte(i + 1)} }})
	}()
	until := func(enough func(volume float64) bool) bool {
		for end := time.Now().Add(patience); len(ended) == 0; time.Sleep(20 * time.Millisecond) {
			switch v := f.volume(t); {
			case enough(v):
				return true
			case still(v) || time.Now().After(end):
				return false
			}
		}
		return false
	}
	const all = gift * bots
	var problems []error
	if !until(func(v float64) bool { return v > all }) {
		problems = append(problems, errors.New("the market stands still"))
	}
	sided := map[string]bool{}
	if !until(func(float64) bool { f.look(t, sided); return len(sided) == len(f.tokens) }) {
		problems = append(problems, fmt.Errorf("%d of %d books have two sides", len(sided),
			len(f.tokens)))
	}
	if before := f.volume(t); !until(func(v float64) bool { return v > before }) {
		problems = append(problems, errors.New("the market stands still in the end"))
	}
	stop()
	problems = append(problems, <-ended)
	f.node.stop(t)
	traded := f.traded(t)
	t.Logf("%v shares traded", traded)
	// Who only buys makes a pair of tokens for each 1.00: all their money buys so many shares, once.
	if most := engine.Size(all * engine.Unit); traded <= most {
		problems = append(problems, fmt.Errorf("%v shares traded: buying alone does %v", traded, most))
	}
	return errors.Join(problems...)
}

// volume is how much was traded, in collateral: that is less than in shares.
func (f *fair) volume(t *testing.T) (sum float64) {
	t.Helper()
	for n := range f.markets {
		status, text := f.node.get(t, fmt.Sprint("/live-volume?id=", n+1))
		var events []struct{ Total float64 }
		if status == http.StatusServiceUnavailable {
			return 0 // not yet
		} else if err := json.Unmarshal([]byte(text), &events); err != nil || len(events) != 1 {
			t.Fatalf("volume: %d %s %v", status, text, err)
		}
		sum += events[0].Total
	}
	return sum
}

// traded reads from the journal how many shares were traded.
func (f *fair) traded(t *testing.T) (all engine.Size) {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: f.node.data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Recover(nil, func(frame *engine.Frame) error {
		for _, e := range frame.Events {
			if e.Kind == engine.Filled {
				all += e.Size
			}
		}
		return nil
	})
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// look notes the books that have bids and asks now. A quote may be on its way from one place to
// another: not all of them have both at once.
func (f *fair) look(t *testing.T, sided map[string]bool) {
	t.Helper()
	for _, o := range f.tokens {
		status, text := f.node.get(t, "/book?token_id="+o.token)
		if status == http.StatusOK && !strings.Contains(text, `"bids":[]`) &&
			!strings.Contains(text, `"asks":[]`) {
			sided[o.token] = true
		}
	}
}

// TestDemoMarketGoesOn: the bots trade more than their money alone could have bought, the books
// still have both sides then, and the bots go on.
func TestDemoMarketGoesOn(t *testing.T) {
	t.Parallel()
	f := newFair(t)
	never := func(float64) bool { return false }
	if err := f.run(t, "http://"+f.node.listen, never); err != nil {
		t.Error(err)
	}
}

// standstill is after how many requests without a trade a market has come to its end. In one that
// goes on there are a few between two trades.
const standstill = 1000

// TestDemoMarketNeedsSales: the same bots behind a door that lets no sale through bring their
// market to an end, and TestDemoMarketGoesOn would say so.
func TestDemoMarketNeedsSales(t *testing.T) {
	setting.Full(t, "a market trades until it stands still")
	t.Parallel()
	f := newFair(t)
	var asked, refused atomic.Uint64
	target := &url.URL{Scheme: "http", Host: f.node.listen}
	forward := httputil.NewSingleHostReverseProxy(target)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the bot hung up
		}
		asked.Add(1)
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
	last, since := 0.0, uint64(0)
	err := f.run(t, door.URL, func(volume float64) bool {
		if volume > last {
			last, since = volume, asked.Load()
		}
		return refused.Load() > 0 && asked.Load() > since+standstill
	})
	if err == nil {
		t.Error("bots that only buy pass for a market that goes on")
	}
	t.Logf("%d sales refused: %v", refused.Load(), err)
	if refused.Load() == 0 {
		t.Error("nobody tried to sell")
	}
}

package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"clobd/bench"
	"clobd/engine"
	"clobd/ingress/auth"
)

// TestDemoMarketGoesOn lets the bots trade far longer than their money would last if they only
// bought: the books must still have both sides, and every bot must still be able to act.
func TestDemoMarketGoesOn(t *testing.T) {
	folder := t.TempDir()
	file := folder + "/catalog.jsonl"
	tokens := writeCatalog(t, file, 2)
	p := newProcess(t, buildNode(t), folder, "--catalog", file, "--faucet", "1000",
		"--limits", "off", "--log-level", "error")
	p.start(t)
	var markets []bench.BotMarket
	for i := 0; i < len(tokens); i += 2 { // each market is there once for either outcome
		m := bench.BotMarket{Tick: 100, MinSize: 5 * engine.Unit}
		for k, text := range []string{tokens[i].token, tokens[i].other} {
			m.Tokens[k], _ = engine.ParseToken(text)
		}
		markets = append(markets, m)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- bench.RunBots(ctx, bench.BotOptions{URL: "http://" + p.listen, Chain: auth.ChainTest,
			Markets: markets, Pause: time.Millisecond, Log: slog.New(slog.DiscardHandler),
			Key: func(i int) [32]byte { return [32]byte{7, byte(i + 1)} }})
	}()
	time.Sleep(4 * time.Second)
	before := p.sequence(t)
	time.Sleep(time.Second)
	if after := p.sequence(t); after < before+50 {
		t.Errorf("the market stands still: Sequence %d, a second later %d", before, after)
	}
	// A quote may be on its way from one place to another: look until all have been seen whole.
	sided := map[string]bool{}
	for range 150 {
		if len(sided) == len(tokens) {
			break
		}
		for _, o := range tokens {
			answer, err := http.Get("http://" + p.listen + "/book?token_id=" + o.token)
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
		time.Sleep(20 * time.Millisecond)
	}
	if len(sided) != len(tokens) {
		t.Errorf("%d of %d books have two sides", len(sided), len(tokens))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	p.stop(t)
}

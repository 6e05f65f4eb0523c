package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"

	"clobd/bench/trader"
	"clobd/engine"
)

const demoMarkets = 8

// startDemo starts the bots. The returned function stops them and waits for their end.
func (n *node) startDemo(ctx context.Context) (stop func()) {
	if !n.Demo || n.cluster != nil {
		return func() {}
	}
	var markets []engine.Listing
	for no := engine.MarketNo(1); len(markets) < demoMarkets; no++ {
		m := n.role.Board.Directory.Market(no)
		if m == nil {
			break
		}
		if m.State == engine.Open {
			markets = append(markets, m.Listing)
		}
	}
	url := n.front.url()
	if len(markets) > 0 {
		n.welcome(url, &markets[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		err := trader.RunBots(ctx, trader.BotOptions{URL: url, Chain: n.ChainID, Markets: markets,
			Key: n.botKey, Log: n.log})
		if err != nil {
			n.log.Warn("demo bots", "error", err)
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}

// botKey derives the private key of a bot from the node's secret: the same after a restart.
func (n *node) botKey(i int) [32]byte {
	mac := hmac.New(sha256.New, n.live[0].Secret[:])
	fmt.Fprintf(mac, "demo bot %d", i)
	return [32]byte(mac.Sum(nil))
}

func (n *node) welcome(url string, m *engine.Listing) {
	token := m.Tokens[0].String()
	fmt.Printf(`the console, with books, charts and a ticket, is %s/console/
clobd is trading at %s
its operator's page is %s

  a book    curl '%s/book?token_id=%s'
  its price curl '%s/price?side=BUY&token_id=%s'
  an order  bin/clobench order --url %s --side BUY --price 0.50 --size 10 \
              --key 0x$(openssl rand -hex 32) \
              --token %s

Keys get paper collateral (--faucet) when they are first derived; nothing here is real money.
Any client of the public exchanges works: host %s, chain %d.
`, url, url, n.front.page, url, token, url, token, url, token, url, n.ChainID)
}

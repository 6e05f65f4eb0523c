package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// gift is the request of one POST /admin/fund.
type gift = map[string]string

// stakes are what traders need before they trade: each gets collateral, and both tokens of the
// markets where trades says that it does.
func stakes(clients []*trader.Client, markets [][2]engine.Token,
	trades func(wallet, book int) bool) (gifts []gift) {
	for i, c := range clients {
		wallet := c.Signer.Address.Hex()
		gifts = append(gifts, gift{"wallet": wallet, "amount": "10000000"})
		for book, pair := range markets {
			if !trades(i, book) {
				continue
			}
			for _, t := range pair {
				gifts = append(gifts, gift{"wallet": wallet, "amount": "1000000", "token": t.String()})
			}
		}
	}
	return gifts
}

// most is the largest gift of an asset.
const most = int64(engine.MaxAmount)

// giftsOf are what the wallets of a recording need: what they were given, and what every bench
// wallet gets, so that no order is refused for want of what came later in the recording.
func giftsOf(s *workload.Score, wallet func(trader int) string) (gifts []gift) {
	for i := range s.Stakes {
		st := &s.Stakes[i]
		cash := engine.Cash(min(int64(st.Cash)+int64(workload.TraderCash), most))
		gifts = append(gifts, gift{"wallet": wallet(i), "amount": cash.String()})
		for book := range st.Books {
			for o, t := range s.Listings[book].Tokens {
				shares := engine.Size(min(int64(st.Shares[book][o])+int64(workload.TraderShares), most))
				gifts = append(gifts, gift{"wallet": wallet(i), "amount": shares.String(),
					"token": t.String()})
			}
		}
	}
	return gifts
}

// tellers are how many gifts are asked for at once: each waits for its sync, and one sync serves
// them all.
const tellers = 16

// give asks the node for all gifts, in no order, and stops at the first that is refused.
func (d desk) give(ctx context.Context, gifts []gift) error {
	client := &http.Client{Timeout: answerTime,
		Transport: &http.Transport{MaxIdleConnsPerHost: tellers}}
	defer client.CloseIdleConnections()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan gift)
	var wait sync.WaitGroup
	for range min(tellers, len(gifts)) {
		wait.Go(func() {
			for g := range next {
				if err := d.postBy(ctx, client, "/admin/fund", g); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, g := range gifts {
		if ctx.Err() != nil {
			break
		}
		next <- g
	}
	close(next)
	wait.Wait()
	return context.Cause(ctx)
}

// fund gives every trader collateral and both tokens of the markets.
func (d desk) fund(ctx context.Context, clients []*trader.Client, markets [][2]engine.Token) error {
	return d.give(ctx, stakes(clients, markets, func(int, int) bool { return true }))
}

// benchCatalog writes a catalog with so many markets of the workload's tick into dir.
func benchCatalog(dir string, w workload.Workload, markets int) (
	file string, tokens [][2]engine.Token, err error) {
	listings := make([]engine.Listing, markets)
	for i := range listings {
		listings[i] = engine.Listing{Condition: workload.Hashed("condition", i), Tick: w.Tick,
			MinSize: 5 * engine.Unit, Tokens: workload.Tokens(i)}
		tokens = append(tokens, listings[i].Tokens)
	}
	file, err = writeCatalog(dir, listings)
	return file, tokens, err
}

// writeCatalog writes a catalog of these markets into dir, all of one event.
func writeCatalog(dir string, listings []engine.Listing) (file string, err error) {
	list := make([]any, len(listings))
	for i := range listings {
		l, name := &listings[i], strconv.Itoa(i+1)
		ids, _ := json.Marshal([]string{l.Tokens[0].String(), l.Tokens[1].String()})
		list[i] = map[string]any{"id": name, "question": "Is it fast?", "slug": "is-it-fast-" + name,
			"conditionId": l.Condition.Hex(), "clobTokenIds": string(ids),
			"outcomes": `["Yes", "No"]`, "active": true, "closed": false, "archived": false,
			"enableOrderBook": true, "acceptingOrders": true,
			"orderMinSize":          json.Number(l.MinSize.String()),
			"orderPriceMinTickSize": json.Number(l.Tick.String())}
	}
	event := map[string]any{"id": "1", "title": "Bench", "slug": "bench", "markets": list}
	file = filepath.Join(dir, "catalog.json")
	b, err := json.Marshal([]any{event})
	if err != nil {
		return "", fmt.Errorf("encode catalog: %w", err)
	}
	return file, os.WriteFile(file, b, 0o644)
}

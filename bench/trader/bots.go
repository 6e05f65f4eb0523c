package trader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

// BotOptions say where and what the bots trade. Key returns the private key of bot i, the same
// after a restart, so that no bot asks for its paper money twice.
type BotOptions struct {
	URL     string
	Chain   uint64
	Markets []engine.Listing
	Key     func(i int) [32]byte
	Pause   time.Duration // between two actions of one bot; default 400 ms
	Log     *slog.Logger
}

const (
	quoters = 3
	takers  = 2
	rungs   = 4 // orders a quoter keeps on each side of a market
)

// bot is one trader of the demo market. It belongs to one goroutine.
type bot struct {
	options *BotOptions
	client  *Client
	rng     *rand.Rand
	salt    uint64
	markets []botMarket
	resp    fasthttp.Response
}

// botMarket is a market as one bot sees it.
type botMarket struct {
	*engine.Listing
	fair   float64             // what the bot believes outcome 0 is worth, in 1/10,000
	quotes [2][]engine.OrderID // by outcome, oldest first
	empty  [2]bool             // by outcome: the last sale was refused for want of tokens
}

// RunBots trades until ctx is done, then cancels its resting orders. To bid for an outcome, a bot
// sells the other outcome if it holds any, and buys otherwise. Two BUYs mint a pair and two SELLs
// merge one, so collateral is enough to begin and the market never dries up.
func RunBots(ctx context.Context, o BotOptions) error {
	if o.Pause == 0 {
		o.Pause = 400 * time.Millisecond
	}
	if len(o.Markets) == 0 {
		return errors.New("no market is open: the bots have nothing to trade")
	}
	var wait sync.WaitGroup
	problems := make([]error, quoters+takers)
	for i := range problems {
		b, err := newBot(&o, i)
		if err != nil {
			return fmt.Errorf("bot %d: %w", i, err)
		}
		act := b.take
		if i < quoters {
			act = b.quote
		}
		wait.Go(func() { problems[i] = b.run(ctx, act) })
	}
	wait.Wait()
	return errors.Join(problems...)
}

func newBot(o *BotOptions, i int) (*bot, error) {
	client, err := NewClient(o.URL, o.Chain, o.Key(i))
	if err != nil {
		return nil, err
	}
	if err := client.Derive(); err != nil {
		return nil, err
	}
	now := uint64(time.Now().UnixMicro())
	b := &bot{options: o, client: client, rng: rand.New(rand.NewPCG(now, uint64(i))),
		salt: now & (1<<52 - 1)}
	shared := rand.New(rand.NewPCG(7, 7)) // all bots start from the same beliefs
	for m := range o.Markets {
		b.markets = append(b.markets,
			botMarket{Listing: &o.Markets[m], fair: 2000 + shared.Float64()*6000})
	}
	return b, nil
}

// run acts on one market after the other until ctx is done. It logs a failed action and goes on.
func (b *bot) run(ctx context.Context, act func(*botMarket) error) error {
	for i := 0; ; i = (i + 1) % len(b.markets) {
		m := &b.markets[i]
		pause := time.Duration(float64(b.options.Pause) * (0.5 + b.rng.Float64()))
		select {
		case <-ctx.Done():
			return b.withdraw()
		case <-time.After(pause):
		}
		m.fair = min(max(m.fair+b.rng.NormFloat64()*40, 500), 9500)
		if err := act(m); err != nil {
			b.options.Log.Debug("bot", "error", err)
		}
	}
}

// quote moves one rung of each side of a market to where the bot now sees the price.
func (b *bot) quote(m *botMarket) error {
	for outcome := range engine.Outcome(2) {
		own := &m.quotes[outcome]
		away := 60 + b.rng.ExpFloat64()*150
		id, rests, err := b.bid(m, outcome, m.worth(outcome)-away, 10+b.rng.IntN(90))
		if rests {
			*own = append(*own, id)
		}
		// Without money for a new quote the bot cancels the oldest anyway, to free its funds.
		if len(*own) > rungs || err != nil && len(*own) > 1 {
			err = errors.Join(err, b.cancel((*own)[0]))
			*own = (*own)[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take buys a little of one outcome if the best ask is near the fair price.
func (b *bot) take(m *botMarket) error {
	if b.rng.IntN(3) > 0 {
		return nil
	}
	outcome := engine.Outcome(b.rng.IntN(2))
	ask, err := b.ask(m, outcome)
	if err != nil || ask == 0 || ask > m.worth(outcome)+600 {
		return err
	}
	id, rests, err := b.bid(m, outcome, ask, 5+b.rng.IntN(45))
	if err != nil || !rests {
		return err
	}
	return b.cancel(id) // a taker leaves nothing behind
}

// worth returns the fair price of an outcome, in 1/10,000.
func (m *botMarket) worth(outcome engine.Outcome) float64 {
	if outcome == 1 {
		return float64(engine.PriceOne) - m.fair
	}
	return m.fair
}

// bid offers at most price for an outcome, by selling the other outcome or by buying.
func (b *bot) bid(m *botMarket, outcome engine.Outcome, price float64, shares int) (
	id engine.OrderID, rests bool, err error) {
	step := float64(m.Tick)
	n := min(max(math.Round(price/step), 1), float64(engine.PriceOne)/step-1)
	l := Limit{Token: m.Tokens[outcome], Type: "GTC", Price: engine.Price(n) * m.Tick,
		Size: max(engine.Size(shares)*engine.Unit, m.MinSize), NegRisk: m.NegRisk}
	other := outcome.Other()
	if !m.empty[other] || b.rng.IntN(8) == 0 {
		sale := l
		sale.Token, sale.Side = m.Tokens[other], engine.Sell
		sale.Price = engine.PriceOne - l.Price
		id, rests, err = b.place(sale)
		m.empty[other] = errors.Is(err, errPoor)
		if !m.empty[other] {
			return id, rests, err
		}
	}
	return b.place(l)
}

var errPoor = errors.New("not enough balance")

// place signs and posts one order and reports whether it rests.
func (b *bot) place(l Limit) (id engine.OrderID, rests bool, err error) {
	b.salt++
	l.Salt = b.salt
	body, id, err := b.client.Sign(l)
	if err != nil {
		return id, false, err
	}
	if err := b.client.Do(http.MethodPost, "/order", body, &b.resp); err != nil {
		return id, false, fmt.Errorf("place: %w", err)
	}
	var told struct{ Status, Error, Code string }
	err = json.Unmarshal(b.resp.Body(), &told)
	if told.Code == "balance" {
		return id, false, errPoor
	} else if err != nil || b.resp.StatusCode() != 200 {
		return id, false, fmt.Errorf("place: status %d: %s", b.resp.StatusCode(), b.resp.Body())
	}
	return id, told.Status == "live", nil
}

// ask returns the best price at which a token can be bought, 0 if there is none.
func (b *bot) ask(m *botMarket, outcome engine.Outcome) (float64, error) {
	body, err := b.client.Get("/price?side=BUY&token_id=" + m.Tokens[outcome].String())
	if err != nil {
		return 0, err
	}
	var told struct{ Price string }
	if err := json.Unmarshal(body, &told); err != nil {
		return 0, fmt.Errorf("read price: %w", err)
	}
	price, err := strconv.ParseFloat(told.Price, 64)
	return math.Round(price * float64(engine.PriceOne)), err
}

// cancel takes an order out of the book. An order that is gone already is no error.
func (b *bot) cancel(id engine.OrderID) error {
	if err := b.client.Do(http.MethodDelete, "/order", CancelBody(id), &b.resp); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if b.resp.StatusCode() != 200 {
		return fmt.Errorf("cancel: status %d: %s", b.resp.StatusCode(), b.resp.Body())
	}
	return nil
}

func (b *bot) withdraw() error {
	var problems []error
	for _, m := range b.markets {
		for _, id := range slices.Concat(m.quotes[:]...) {
			problems = append(problems, b.cancel(id))
		}
	}
	return errors.Join(problems...)
}

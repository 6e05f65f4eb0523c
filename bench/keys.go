package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/bench/workload"
	"clobd/engine"
)

// ReadKeys reads a file of private keys, 0x and 64 hex digits each, one a line. A line may be
// empty, and # begins a comment. The error names the lines that are wrong, not what stands in them.
func ReadKeys(file string) ([][32]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	defer f.Close()
	var keys [][32]byte
	var problems []error
	seen := map[[32]byte]int{}
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		key, err := readKey(text)
		switch {
		case err != nil || strings.HasPrefix(text, "@"):
			problems = append(problems, fmt.Errorf("keys %s, line %d: want 0x and 64 hex digits", file,
				number))
		case seen[key] > 0:
			problems = append(problems, fmt.Errorf("keys %s, line %d: the key of line %d again", file,
				number, seen[key]))
		}
		seen[key] = number
		keys = append(keys, key)
	}
	if err := errors.Join(append(problems, lines.Err())...); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("keys %s: there is none in it", file)
	}
	return keys, nil
}

// clientsOf derives an API key for each private key, which signs for a chain. A node with a faucet
// gives a wallet its paper money on that occasion.
func clientsOf(ctx context.Context, url string, chain uint64, keys [][32]byte) (
	[]*trader.Client, error) {
	out := make([]*trader.Client, len(keys))
	for i, key := range keys {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		c, err := trader.NewClient(url, chain, key)
		if err != nil {
			return nil, err
		}
		if err := c.Derive(); err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// funds are what a wallet holds, or must hold: collateral and both tokens of the market.
type funds struct {
	cash   engine.Cash
	shares [2]engine.Size
}

// needs are the funds that so many wallets need for operations of one market: what their orders
// reserve, all of them together. It is enough whatever the orders of others do: what fills bring is
// not counted, nor what cancels free, as a fill may have come before. Orders are of trader number
// Trader modulo the wallets.
func needs(ops []workload.Op, wallets int) []funds {
	all := make([]funds, wallets)
	for i := range ops {
		op := &ops[i]
		if op.Read != 0 || op.Cancel {
			continue
		}
		n := &all[int(op.Trader)%wallets]
		if op.Side == engine.Buy {
			n.cash += engine.Cost(op.Size, op.Price)
		} else {
			n.shares[op.Outcome] += op.Size
		}
	}
	return all
}

// purse is a wallet of a run at somebody's node, as its public listener shows it.
type purse struct {
	ctx    context.Context // that ends the waits of ask
	client *trader.Client
	market [2]engine.Token
}

// provide makes sure that each wallet holds what it needs: it splits collateral into shares where
// those are missing, and merges shares into collateral where that is. The error names each wallet
// that has too little.
func provide(ctx context.Context, clients []*trader.Client, market [2]engine.Token,
	need []funds) error {
	condition, err := conditionOf(clients[0], market)
	if err != nil {
		return err
	}
	var poor []error
	for i, c := range clients {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p := purse{ctx, c, market}
		if err := p.provide(condition, need[i]); err != nil {
			poor = append(poor, fmt.Errorf("wallet %s: %w", c.Address, err))
		}
	}
	return errors.Join(poor...)
}

func (p *purse) provide(condition string, need funds) error {
	if err := p.unused(); err != nil {
		return err
	}
	held, err := p.held()
	if err != nil {
		return err
	}
	short := max(need.shares[0]-held.shares[0], need.shares[1]-held.shares[1], 0)
	short += (engine.Lot - short%engine.Lot) % engine.Lot
	spare := min(held.shares[0]-need.shares[0], held.shares[1]-need.shares[1])
	if missing := engine.Size(need.cash - held.cash); short == 0 && missing > 0 && spare >= missing {
		missing += (engine.Lot - missing%engine.Lot) % engine.Lot
		return p.exchange("/merge", condition, min(missing, spare))
	}
	if held.cash < need.cash+engine.Cash(short) {
		return fmt.Errorf("it holds %s of collateral, and its orders need up to %s and %s for pairs of "+
			"shares; a lower rate and a shorter duration need less", held.cash, need.cash, engine.Cash(short))
	}
	if short == 0 {
		return nil
	}
	return p.exchange("/split", condition, short)
}

// exchange makes pairs of shares of collateral, or the other way round.
func (p *purse) exchange(path, condition string, amount engine.Size) error {
	body, err := json.Marshal(map[string]string{"conditionId": condition, "amount": amount.String()})
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	_, err = p.ask(http.MethodPost, path, body)
	return err
}

// unused makes sure that the wallet has no open orders: what those reserve is in its balance, and
// the run cancels all orders of the wallet at its end.
func (p *purse) unused() error {
	body, err := p.ask(http.MethodGet, "/data/orders", nil)
	if err != nil {
		return err
	}
	var told struct{ Data []json.RawMessage }
	if err := json.Unmarshal(body, &told); err != nil {
		return fmt.Errorf("read open orders: %w", err)
	}
	if len(told.Data) > 0 {
		return errors.New("it has open orders, which a run would cancel at its end: cancel them first " +
			"(DELETE /cancel-all)")
	}
	return nil
}

// leave cancels what a run has left of its wallets' orders, also after an interrupt.
func leave(clients []*trader.Client) error {
	var problems []error
	for _, c := range clients {
		p := purse{ctx: context.Background(), client: c}
		_, err := p.ask(http.MethodDelete, "/cancel-all", nil)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// held asks for the wallet's balances.
func (p *purse) held() (f funds, err error) {
	read := func(query string) (int64, error) {
		body, err := p.ask(http.MethodGet, "/balance-allowance?signature_type=0&"+query, nil)
		if err != nil {
			return 0, err
		}
		var told struct{ Balance string }
		if err := json.Unmarshal(body, &told); err != nil {
			return 0, fmt.Errorf("read balance: %w", err)
		}
		return strconv.ParseInt(told.Balance, 10, 64)
	}
	cash, err := read("asset_type=COLLATERAL")
	f.cash = engine.Cash(cash)
	for i, t := range p.market {
		shares, shareErr := read("asset_type=CONDITIONAL&token_id=" + t.String())
		f.shares[i], err = engine.Size(shares), errors.Join(err, shareErr)
	}
	return f, err
}

// ask sends one authenticated request, again after a pause while a limit of the node is used up; an
// answer other than 200 is an error.
func (p *purse) ask(method, path string, body []byte) ([]byte, error) {
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	for try := 0; ; try++ {
		if err := p.client.Do(method, path, body, resp); err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		status := resp.StatusCode()
		if busy := status == http.StatusTooManyRequests || status == 503; busy && try < 30 {
			select {
			case <-p.ctx.Done():
				return nil, p.ctx.Err()
			case <-time.After(time.Second):
			}
			continue
		}
		if status != http.StatusOK {
			return nil, fmt.Errorf("%s %s: status %d: %s", method, path, status, resp.Body())
		}
		return append([]byte(nil), resp.Body()...), nil
	}
}

// conditionOf asks for the condition of the market, and that both tokens are its own.
func conditionOf(c *trader.Client, market [2]engine.Token) (string, error) {
	body, err := c.Get("/markets-by-token/" + market[0].String())
	if err != nil {
		return "", fmt.Errorf("find the market: %w", err)
	}
	var told struct {
		Condition string `json:"condition_id"`
		First     string `json:"primary_token_id"`
		Second    string `json:"secondary_token_id"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return "", fmt.Errorf("find the market: %w", err)
	}
	if one := market[1].String(); one != told.First && one != told.Second || market[0] == market[1] {
		return "", fmt.Errorf("tokens %s and %s are not the two of one market", market[0], one)
	}
	return told.Condition, nil
}

// lookupsAtOnce is how many orders are asked for in one request: at most 500 may be.
const lookupsAtOnce = 100

// confirm asks the node for each order, as its owner may, and returns how many it does not know.
func confirm(ctx context.Context, c *trader.Client, ids []engine.OrderID) (unknown int, err error) {
	type entry struct {
		ID     string `json:"orderId"`
		Status int    `json:"status"`
	}
	p := purse{ctx: ctx, client: c}
	for len(ids) > 0 && ctx.Err() == nil {
		n := min(len(ids), lookupsAtOnce)
		list := make([]entry, n)
		for i, id := range ids[:n] {
			list[i].ID = id.Hex()
		}
		ids = ids[n:]
		body, err := json.Marshal(list)
		if err != nil {
			return unknown, fmt.Errorf("encode lookups: %w", err)
		}
		if body, err = p.ask(http.MethodPost, "/data/orders", body); err != nil {
			return unknown, err
		}
		list = list[:0]
		if err := json.Unmarshal(body, &list); err != nil {
			return unknown, fmt.Errorf("read lookups: %w", err)
		}
		for i := range list {
			if list[i].Status != http.StatusOK {
				unknown++
			}
		}
		unknown += n - len(list)
	}
	return unknown, ctx.Err()
}

// publicly is what a node tells of itself on its public listener: its version, and no more.
func publicly(c *trader.Client) *Node {
	n := &Node{Admin: unknown, Durability: unknown, Program: Program{Version: unknown, Go: unknown,
		Cgo: unknown, GOMAXPROCS: unknown, GOGC: unknown, GOMEMLIMIT: unknown}}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.SetRequestURI("/ok")
	req.SetHost(c.Host.Addr)
	if err := c.Host.Do(req, resp); err == nil {
		if v := resp.Header.Peek("X-Node-Version"); len(v) > 0 {
			n.Version = string(v)
		}
	}
	return n
}

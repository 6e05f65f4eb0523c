package account

import (
	"cmp"
	"encoding/json"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// lookups tells what became of each order of an array of {orderId}. Each entry has a status like
// that of a response, so an unknown order does not fail the others.
func (a *Account) lookups(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal) {
	var list []struct {
		ID    string `json:"orderId"`
		Upper string `json:"orderID"`
		Snake string `json:"order_id"`
	}
	if err := json.Unmarshal(ctx.PostBody(), &list); err != nil || len(list) == 0 {
		return nil, errLookups
	}
	if len(list) > maxOrders {
		return nil, errTooManyOrders
	}
	b := append(make([]byte, 0, 2+1024*len(list)), '[')
	for i := range list {
		id := cmp.Or(list[i].ID, list[i].Upper, list[i].Snake)
		b = wire.AppendField(append(wire.AppendComma(b), '{'), "order_id", id)
		record, refused := a.find(c, id)
		if refused == wire.ErrInternal {
			return nil, refused
		}
		if refused != nil {
			b = wire.CloseObject(refused.AppendEntry(b))
			continue
		}
		b = append(wire.AppendKey(b, "status"), "200"...)
		b = append(wire.AppendKey(b, "order"), '{')
		b = append(record.appendRecord(b, c.dialect), '}', '}')
	}
	return append(b, ']'), nil
}

const maxVolumes = 100

// volumes tells for each condition what takers paid for shares so far, in collateral.
func (a *Account) volumes(ctx *fasthttp.RequestCtx, _ *caller) ([]byte, *wire.Refusal) {
	var body struct {
		Conditions []struct {
			ID     string   `json:"conditionId"`
			Tokens []string `json:"tokenIds"`
		} `json:"conditions"`
	}
	err := json.Unmarshal(ctx.PostBody(), &body)
	if n := len(body.Conditions); err != nil || n == 0 || n > maxVolumes {
		return nil, errVolumes
	}
	b := append(make([]byte, 0, 2+160*len(body.Conditions)), '[')
	for i := range body.Conditions {
		q := &body.Conditions[i]
		b = wire.AppendField(append(wire.AppendComma(b), '{'), "condition_id", q.ID)
		volume, refused := a.volume(q.ID, q.Tokens)
		switch {
		case refused == wire.ErrInternal:
			return nil, refused
		case refused != nil:
			b = refused.AppendEntry(b)
		default:
			b = append(wire.AppendKey(b, "status"), "200"...)
			b = wire.AppendDecimalField(b, "volume", int64(volume), 6)
		}
		b = wire.CloseObject(b)
	}
	return append(b, ']'), nil
}

// volume is what was traded of a condition. It refuses tokens of other conditions.
func (a *Account) volume(id string, tokens []string) (engine.Cash, *wire.Refusal) {
	c, ok := engine.ParseCondition(id)
	if !ok {
		return 0, wire.ErrCondition
	}
	m := a.o.Board.Directory.Condition(c)
	if m == nil {
		return 0, wire.ErrNoMarket
	}
	for _, s := range tokens {
		if t, ok := engine.ParseToken(s); !ok || t != m.Tokens[0] && t != m.Tokens[1] {
			return 0, wire.ErrToken
		}
	}
	volume, _, err := a.o.History.Volume(m.No)
	if err != nil {
		return 0, wire.Internal(a.o.Log, "read volume", id, err)
	}
	return volume, nil
}

package account

import (
	"encoding/json"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// lookups answers POST /data/orders: what became of each order of an array of {orderId}. One that
// cannot be found does not fail the others: its status says so, a number like that of a response.
func (h *Account) lookups(ctx *fasthttp.RequestCtx, c *caller) {
	var list []struct {
		ID    string `json:"orderId"`
		Upper string `json:"orderID"`
		Snake string `json:"order_id"`
	}
	if err := json.Unmarshal(ctx.PostBody(), &list); err != nil || len(list) == 0 {
		errLookups.Send(ctx)
		return
	}
	if len(list) > maxOrders {
		errTooManyOrders.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+1024*len(list)), '[')
	for i := range list {
		id := list[i].ID
		for _, other := range [...]string{list[i].Upper, list[i].Snake} {
			if id == "" {
				id = other
			}
		}
		b = wire.AppendField(append(wire.AppendComma(b), '{'), "order_id", id)
		record, refused := h.find(c, id)
		if refused == wire.ErrInternal {
			refused.Send(ctx)
			return
		}
		if refused != nil {
			b = wire.CloseObject(refused.AppendEntry(b))
			continue
		}
		b = append(wire.AppendKey(b, "status"), "200"...)
		b = append(wire.AppendKey(b, "order"), '{')
		b = append(record.appendRecord(b, c.dialect), '}', '}')
	}
	wire.AnswerRaw(ctx, append(b, ']'))
}

// maxVolumes is how many conditions one request may ask about.
const maxVolumes = 100

// volumes answers POST /data/volumes: for each condition what takers paid for shares so far, in
// collateral.
func (h *Account) volumes(ctx *fasthttp.RequestCtx, _ *caller) {
	var body struct {
		Conditions []struct {
			ID     string   `json:"conditionId"`
			Tokens []string `json:"tokenIds"`
		} `json:"conditions"`
	}
	err := json.Unmarshal(ctx.PostBody(), &body)
	if n := len(body.Conditions); err != nil || n == 0 || n > maxVolumes {
		errVolumes.Send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+160*len(body.Conditions)), '[')
	for i := range body.Conditions {
		q := &body.Conditions[i]
		b = wire.AppendField(append(wire.AppendComma(b), '{'), "condition_id", q.ID)
		volume, refused := h.volume(q.ID, q.Tokens)
		switch {
		case refused == wire.ErrInternal:
			refused.Send(ctx)
			return
		case refused != nil:
			b = refused.AppendEntry(b)
		default:
			b = append(wire.AppendKey(b, "status"), "200"...)
			b = wire.AppendDecimalField(b, "volume", int64(volume), 6)
		}
		b = wire.CloseObject(b)
	}
	wire.Answer(ctx, append(b, ']'))
}

// volume is what was traded of a condition whose tokens, if any are named, are these.
func (h *Account) volume(id string, tokens []string) (engine.Cash, *wire.Refusal) {
	m, refused := h.traded(id, tokens)
	if refused != nil {
		return 0, refused
	}
	volume, _, err := h.o.History.Volume(m.No)
	if err != nil {
		return 0, wire.Internal(h.o.Log, "read volume", id, err)
	}
	return volume, nil
}

// traded finds the market of a condition, or says why it cannot be the one meant.
func (h *Account) traded(id string, tokens []string) (*view.Market, *wire.Refusal) {
	c, ok := engine.ParseCondition(id)
	if !ok {
		return nil, wire.ErrCondition
	}
	m := h.o.Board.Directory.Condition(c)
	if m == nil {
		return nil, wire.ErrNoMarket
	}
	for _, s := range tokens {
		if t, ok := engine.ParseToken(s); !ok || t != m.Tokens[0] && t != m.Tokens[1] {
			return nil, wire.ErrToken
		}
	}
	return m, nil
}

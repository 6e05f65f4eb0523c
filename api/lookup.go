package api

import (
	"encoding/json"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/view"
)

// lookups answers POST /data/orders: what became of each order of an array of {orderId}. One that
// cannot be found does not fail the others: its status says so, a number like that of a response.
func (h *Handler) lookups(ctx *fasthttp.RequestCtx, c *caller) {
	var list []struct {
		ID    string `json:"orderId"`
		Upper string `json:"orderID"`
		Snake string `json:"order_id"`
	}
	if err := json.Unmarshal(ctx.PostBody(), &list); err != nil || len(list) == 0 {
		errLookups.send(ctx)
		return
	}
	if len(list) > maxOrders {
		errTooManyOrders.send(ctx)
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
		b = appendField(append(appendComma(b), '{'), "order_id", id)
		record, f := h.find(c, id)
		if f == errInternal {
			f.send(ctx)
			return
		}
		if f != nil {
			b = closeObject(f.appendEntry(b))
			continue
		}
		b = append(appendKey(b, "status"), "200"...)
		b = append(appendKey(b, "order"), '{')
		b = append(record.appendRecord(b, c.dialect), '}', '}')
	}
	ctx.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(append(b, ']'))
}

// appendEntry appends a failure as a part of an answer that succeeded as a whole: such an answer
// never has a key that is called error.
func (f *failure) appendEntry(b []byte) []byte {
	b = strconv.AppendInt(appendKey(b, "status"), int64(f.status), 10)
	return appendField(b, "errorMsg", f.text)
}

// maxVolumes is how many conditions one request may ask about.
const maxVolumes = 100

// volumes answers POST /data/volumes: for each condition what takers paid for shares so far, in
// collateral.
func (h *Handler) volumes(ctx *fasthttp.RequestCtx, _ *caller) {
	var body struct {
		Conditions []struct {
			ID     string   `json:"conditionId"`
			Tokens []string `json:"tokenIds"`
		} `json:"conditions"`
	}
	err := json.Unmarshal(ctx.PostBody(), &body)
	if n := len(body.Conditions); err != nil || n == 0 || n > maxVolumes {
		errVolumes.send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+160*len(body.Conditions)), '[')
	for i := range body.Conditions {
		q := &body.Conditions[i]
		b = appendField(append(appendComma(b), '{'), "condition_id", q.ID)
		volume, f := h.volume(q.ID, q.Tokens)
		switch {
		case f == errInternal:
			f.send(ctx)
			return
		case f != nil:
			b = f.appendEntry(b)
		default:
			b = append(appendKey(b, "status"), "200"...)
			b = appendDecimalField(b, "volume", int64(volume), 6)
		}
		b = closeObject(b)
	}
	answer(ctx, append(b, ']'))
}

// volume is what was traded of a condition whose tokens, if any are named, are these.
func (h *Handler) volume(id string, tokens []string) (engine.Cash, *failure) {
	m, f := h.traded(id, tokens)
	if f != nil {
		return 0, f
	}
	volume, _, err := h.o.History.Volume(m.No)
	if err != nil {
		return 0, h.internal("read volume", id, err)
	}
	return volume, nil
}

// traded finds the market of a condition, or says why it cannot be the one meant.
func (h *Handler) traded(id string, tokens []string) (*view.Market, *failure) {
	c, ok := engine.ParseCondition(id)
	if !ok {
		return nil, errCondition
	}
	m := h.o.Board.Directory.Condition(c)
	if m == nil {
		return nil, errNoMarket
	}
	for _, s := range tokens {
		if t, ok := engine.ParseToken(s); !ok || t != m.Tokens[0] && t != m.Tokens[1] {
			return nil, errToken
		}
	}
	return m, nil
}

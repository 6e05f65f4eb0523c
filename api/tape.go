package api

import (
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
)

// tape answers GET /live-activity/events/{condition} and GET /markets/live-activity/{condition}:
// the newest trades of a market, newest first, as their takers made them.
func (h *Handler) tape(ctx *fasthttp.RequestCtx) {
	m, f := h.condition(ctx)
	if f != nil {
		f.send(ctx)
		return
	}
	rows, _, err := h.o.History.Tape(&journal.Filter{Market: m.No}, journal.Page{Limit: pageLimit})
	if err != nil {
		h.internal("read tape", m.Condition.Hex(), err).send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+896*len(rows)), '[')
	for i := range rows {
		if b, err = h.appendActivity(append(appendComma(b), '{'), m, &rows[i]); err != nil {
			h.internal("describe trade", m.Condition.Hex(), err).send(ctx)
			return
		}
		b = closeObject(b)
	}
	ctx.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(append(b, ']'))
}

// appendActivity appends the members of one trade as the public sees it.
func (h *Handler) appendActivity(
	b []byte, m *view.Market, r *journal.TradeRow,
) ([]byte, error) {
	maker, known := h.o.Board.Directory.Address(r.Wallet)
	if !known {
		return b, fmt.Errorf("wallet %d of the trade is not published", r.Wallet)
	}
	question, slug, icon := "", "", ""
	c := h.o.Catalog()
	if described := c.Market(m.Condition); described != nil {
		question, slug, icon = described.Question, described.Slug, described.Icon
	}
	hash := engine.TxHash(h.o.JournalID, r.Sequence, r.Index)
	b = appendField(b, "event_type", "trade")
	b = append(appendKey(b, "market"), '{')
	b = appendHexField(b, "condition_id", m.Condition[:])
	b = appendTokenField(b, "asset_id", m.Tokens[r.Outcome])
	b = appendField(b, "question", question)
	b = appendField(b, "icon", icon)
	b = closeObject(appendField(b, "slug", slug))
	b = append(appendKey(b, "user"), '{')
	b = appendField(b, "address", h.o.Checksum(maker))
	p := h.o.Profiles.of(maker)
	b = appendField(b, "username", p.Name)
	b = appendField(b, "profile_picture", p.Image)
	b = appendField(b, "optimized_profile_picture", p.Thumbnail)
	b = closeObject(appendField(b, "pseudonym", p.Pseudonym))
	b = appendField(b, "side", sideText(r.Side))
	b = appendDecimalField(b, "size", int64(r.Size), 6)
	b = appendDecimalField(b, "fee_rate_bps", int64(r.FeeRate), 0)
	b = appendDecimalField(b, "price", int64(r.Price), 4)
	b = appendField(b, "outcome", c.Label(m.Condition, r.Outcome))
	b = strconv.AppendUint(appendKey(b, "outcome_index"), uint64(r.Outcome), 10)
	b = appendHexField(b, "transaction_hash", hash[:])
	return appendDecimalField(b, "timestamp", int64(r.Time)/1000, 0), nil
}

package api

import (
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// latestTrades lists the newest trades of a market from the view of their takers.
func (h *Handler) latestTrades(ctx *fasthttp.RequestCtx, m *view.Market) {
	filter := history.Filter{Market: m.No}
	rows, _, err := h.o.History.MarketTrades(&filter, history.Page{Limit: wire.PageLimit})
	if err != nil {
		wire.Internal(h.o.Log, "read tape", m.Condition.Hex(), err).Send(ctx)
		return
	}
	b := append(make([]byte, 0, 2+896*len(rows)), '[')
	for i := range rows {
		if b, err = h.appendActivity(append(wire.AppendComma(b), '{'), m, &rows[i]); err != nil {
			wire.Internal(h.o.Log, "describe trade", m.Condition.Hex(), err).Send(ctx)
			return
		}
		b = wire.CloseObject(b)
	}
	wire.AnswerRaw(ctx, append(b, ']'))
}

func (h *Handler) appendActivity(
	b []byte, m *view.Market, r *history.TradeRow,
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
	b = wire.AppendField(b, "event_type", "trade")
	b = append(wire.AppendKey(b, "market"), '{')
	b = wire.AppendHexField(b, "condition_id", m.Condition[:])
	b = wire.AppendTokenField(b, "asset_id", m.Tokens[r.Outcome])
	b = wire.AppendField(b, "question", question)
	b = wire.AppendField(b, "icon", icon)
	b = wire.CloseObject(wire.AppendField(b, "slug", slug))
	b = append(wire.AppendKey(b, "user"), '{')
	b = wire.AppendField(b, "address", h.o.Checksum(maker))
	p := h.o.Profiles.Of(maker)
	b = wire.AppendField(b, "username", p.Name)
	b = wire.AppendField(b, "profile_picture", p.Image)
	b = wire.AppendField(b, "optimized_profile_picture", p.Thumbnail)
	b = wire.CloseObject(wire.AppendField(b, "pseudonym", p.Pseudonym))
	b = wire.AppendField(b, "side", wire.SideText(r.Side))
	b = wire.AppendDecimalField(b, "size", int64(r.Size), 6)
	b = wire.AppendDecimalField(b, "fee_rate_bps", int64(r.FeeRate), 0)
	b = wire.AppendDecimalField(b, "price", int64(r.Price), 4)
	b = wire.AppendField(b, "outcome", c.Label(m.Condition, r.Outcome))
	b = strconv.AppendUint(wire.AppendKey(b, "outcome_index"), uint64(r.Outcome), 10)
	b = wire.AppendHexField(b, "transaction_hash", hash[:])
	return wire.AppendDecimalField(b, "timestamp", int64(r.Time)/1000, 0), nil
}

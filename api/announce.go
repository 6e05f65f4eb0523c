package api

import (
	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// Announce tells of a new market as the market channel does: a JSON object without its closing
// brace, or nil if the catalog does not describe the market.
func (h *Handler) Announce(m *view.Market) []byte {
	c := h.o.Catalog()
	d := c.Market(m.Condition)
	if d == nil {
		return nil
	}
	b := append(make([]byte, 0, 1024), `{"event_type":"new_market"`...)
	b = wire.AppendField(b, "id", d.ID)
	b = wire.AppendField(b, "question", d.Question)
	b = wire.AppendHexField(b, "market", m.Condition[:])
	b = wire.AppendField(b, "slug", d.Slug)
	b = append(wire.AppendKey(b, "description"), said(c, d)...)
	b = append(wire.AppendKey(b, "assets_ids"), '[')
	for o := range m.Tokens {
		b = append(m.Tokens[o].AppendDecimal(append(wire.AppendComma(b), '"')), '"')
	}
	b = append(wire.AppendKey(append(b, ']'), "outcomes"), '[')
	for o := range m.Tokens {
		b = wire.AppendString(wire.AppendComma(b), c.Label(m.Condition, engine.Outcome(o)))
	}
	b = wire.AppendKey(append(b, ']'), "event_message")
	e := c.EventOf(d)
	if e == nil {
		return append(b, "null"...)
	}
	b = wire.AppendField(append(b, '{'), "id", e.ID)
	b = wire.AppendField(b, "ticker", e.Ticker)
	b = wire.AppendField(b, "slug", e.Slug)
	b = wire.AppendField(b, "title", e.Title)
	return append(b, '}')
}

// said is the description of a market as its record has it, a JSON text.
func said(c *catalog.Catalog, d *catalog.Market) []byte {
	if r, err := c.MarketRecord(d, nil); err == nil {
		for key, value := range catalog.Members(r.Core) {
			if string(key) == "description" && len(value) > 0 && value[0] == '"' {
				return value
			}
		}
	}
	return []byte(`""`)
}

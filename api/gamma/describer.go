package gamma

import (
	"slices"
	"strconv"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
)

// describer writes what the catalog says, with the figures of the books in place of the source's.
// It belongs to one request at a time. The first error stays; what is written then is of no use.
type describer struct {
	h   *Gamma
	c   *catalog.Catalog
	err error
	// room and spare are what records are read into: the record of a row, and that of another one
	// which is written inside it.
	room, spare []byte
	draft       []byte // a market of which not all is written
}

// shape is how much of an event is written.
type shape uint8

const (
	// inName is an event inside a market of a list.
	inName shape = iota
	// inShort is an event inside one market, and inside a series.
	inShort
	// inList is an event of a list.
	inList
	// inFull is one event: with its markets, its series and what else there is.
	inFull
)

// describer begins to write; done ends it.
func (h *Gamma) describer(c *catalog.Catalog) *describer {
	d := h.describers.Get().(*describer)
	d.h, d.c, d.err = h, c, nil
	return d
}

// maxRoom is how much room for records is kept between requests.
const maxRoom = 256 << 10

func (d *describer) done() {
	h := d.h
	if d.h, d.c = nil, nil; cap(d.room)+cap(d.spare)+cap(d.draft) <= maxRoom {
		h.describers.Put(d)
	}
}

// fail keeps an error if it is the first.
func (d *describer) fail(err error) {
	if err != nil && d.err == nil {
		d.err = err
	}
}

// marketRecord reads a record that is good until the next one of its kind is read.
func (d *describer) marketRecord(m *catalog.Market) (r catalog.Record) {
	r, err := d.c.MarketRecord(m, d.room)
	d.room = r.Buf
	d.fail(err)
	return r
}

func (d *describer) bookRecord(m *catalog.Market) (r catalog.Record) {
	r, err := d.c.BookRecord(m, d.room)
	d.room = r.Buf
	d.fail(err)
	return r
}

// eventRecord reads the record of an event; it leaves what marketRecord has read alone.
func (d *describer) eventRecord(e *catalog.Event) (r catalog.Record) {
	r, err := d.c.EventRecord(e, d.spare)
	d.spare = r.Buf
	d.fail(err)
	return r
}

// appendMembers appends members as they are written in a record.
func appendMembers(b, members []byte) []byte {
	if len(members) == 0 {
		return b
	}
	return append(wire.AppendComma(b), members...)
}

// appendMember appends one of them.
func appendMember(b, key, value []byte) []byte {
	b = append(append(wire.AppendComma(b), '"'), key...)
	return append(append(b, '"', ':'), value...)
}

// market appends a market in the catalog's shape, with its events as they are in a list (inName)
// or in an answer of its own (inShort).
func (d *describer) market(b []byte, m *catalog.Market, events shape) []byte {
	b = d.plainMarket(append(wire.AppendComma(b), '{'), m)
	return wire.CloseObject(d.marketEvents(b, m, events))
}

// plainMarket appends the members of a market but for its events.
func (d *describer) plainMarket(b []byte, m *catalog.Market) []byte {
	r := d.marketRecord(m)
	return d.liveMarket(appendMembers(b, r.Core), m, r.Live)
}

// marketEvents appends the member that says which events a market belongs to.
func (d *describer) marketEvents(b []byte, m *catalog.Market, in shape) []byte {
	b = append(wire.AppendKey(b, "events"), '[')
	if e := d.c.EventOf(m); e != nil {
		b = d.event(b, e, in)
	}
	return append(b, ']')
}

// event appends an event.
func (d *describer) event(b []byte, e *catalog.Event, in shape) []byte {
	b = append(wire.AppendComma(b), '{')
	if in == inName {
		b = wire.AppendField(b, "id", e.ID)
		b = wire.AppendField(b, "ticker", e.Ticker)
		b = wire.AppendField(b, "slug", e.Slug)
		return wire.CloseObject(wire.AppendField(b, "title", e.Title))
	}
	r := d.eventRecord(e)
	if in == inShort {
		return wire.CloseObject(d.shortEvent(b, e, &r))
	}
	b = d.liveEvent(appendMembers(b, r.Core), e, r.Live)
	if !e.Tagged {
		b = append(wire.AppendKey(b, "tags"), `[]`...)
	}
	if in == inList {
		return wire.CloseObject(b)
	}
	b = appendMembers(b, r.Rest)
	if !hasMember(r.Rest, "series") {
		b = append(wire.AppendKey(b, "series"), `[]`...)
	}
	b = append(wire.AppendKey(b, "markets"), '[')
	for _, m := range d.c.MarketsOf(e) {
		if !m.BookOnly {
			b = wire.CloseObject(d.plainMarket(append(wire.AppendComma(b), '{'), m))
		}
	}
	return wire.CloseObject(append(b, ']'))
}

// hasMember reports whether one of the members has that key.
func hasMember(members []byte, key string) bool {
	for k := range catalog.Members(members) {
		if string(k) == key {
			return true
		}
	}
	return false
}

// shortEvent appends the members that an event has inside something else.
func (d *describer) shortEvent(b []byte, e *catalog.Event, r *catalog.Record) []byte {
	for _, part := range [...][]byte{r.Core, r.Rest} {
		for key, value := range catalog.Members(part) {
			switch string(key) {
			case "id", "ticker", "slug", "title", "description", "resolutionSource", "startDate",
				"creationDate", "endDate", "image", "icon", "active", "archived", "createdAt", "updatedAt":
				b = appendMember(b, key, value)
			}
		}
	}
	return strconv.AppendBool(wire.AppendKey(b, "closed"), d.over(e))
}

// series appends a series with as many of its events as fit into most bytes, the latest first.
func (d *describer) series(b []byte, s *catalog.Series, most int) []byte {
	r, err := d.c.SeriesRecord(s, d.room)
	d.room = r.Buf
	d.fail(err)
	b = appendMembers(append(wire.AppendComma(b), '{'), r.Core)
	b = appendMembers(b, r.Live)
	if most == 0 {
		return wire.CloseObject(b)
	}
	b = append(wire.AppendKey(b, "events"), '[')
	from := len(b)
	for _, e := range slices.Backward(d.c.EventsOfSeries(s)) {
		before := len(b)
		if b = d.event(b, e, inShort); len(b)-from > most {
			b = b[:before]
			break
		}
	}
	return wire.CloseObject(append(b, ']'))
}

// tag appends a tag.
func (d *describer) tag(b []byte, t *catalog.Tag) []byte {
	r, err := d.c.TagRecord(t, d.room)
	d.room = r.Buf
	d.fail(err)
	b = appendMembers(append(wire.AppendComma(b), '{'), r.Core)
	return wire.CloseObject(appendMembers(b, r.Live))
}

// over reports whether an event has ended: its source says so, or all of its markets have.
func (d *describer) over(e *catalog.Event) bool {
	if e.Closed {
		return true
	}
	markets := d.c.MarketsOf(e)
	for _, m := range markets {
		if m.Closed {
			continue
		}
		if listed := d.h.o.Board.Directory.Condition(m.Condition); listed == nil || !ended(listed) {
			return false
		}
	}
	return len(markets) > 0
}

// values are what a market is worth now.
func (d *describer) values(m *catalog.Market) (v marketValues, trades bool) {
	listed := d.h.o.Board.Directory.Condition(m.Condition)
	if listed == nil {
		return v, false
	}
	w, err := d.h.o.Values.of(listed)
	d.fail(err)
	v.worth, v.accepts, v.closed = w, Accepts(d.h.o.Board, listed), m.Closed || ended(listed)
	v.tick, v.minimum = listed.Tick, listed.MinSize
	s := d.h.o.Board.Condition(m.Condition)
	if v.price = d.h.o.Values.Price(listed); v.price != 0 || listed.State == engine.Settled {
		v.other = 10*int64(engine.PriceOne) - v.price
	}
	v.bid, v.ask = s.Best(0)
	v.last, _, _ = s.Last(0)
	return v, true
}

package gamma

import (
	"slices"
	"strconv"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
)

// describer writes rows of the catalog, with the figures of the books in place of the source's. It
// belongs to one request at a time. After an error, of which it keeps the first, its output is
// void.
type describer struct {
	g     *Gamma
	c     *catalog.Catalog
	err   error
	room  []byte // holds the record of a row
	spare []byte // holds the record of an event, also while room is in use
	draft []byte // holds a market of which only some members are written

	// An entry of the order book's list needs its record in two places, and its neighbours have the
	// same event.
	entry     []byte // holds toldItem
	told      *catalog.Market
	toldItem  catalog.Record
	eventOf   *catalog.Event
	eventText []byte // its description, as written
}

// shape is how much of an event is written.
type shape uint8

const (
	inName  shape = iota // inside a market of a list
	inShort              // inside one market, and inside a series
	inList               // in a list of events
	inFull               // alone: with its markets, its series and what else there is
)

// describer begins to write; done ends it.
func (g *Gamma) describer(c *catalog.Catalog) *describer {
	d := g.describers.Get().(*describer)
	d.g, d.c, d.err = g, c, nil
	d.told, d.eventOf = nil, nil
	return d
}

// maxRoom is how much room for records is kept between requests.
const maxRoom = 256 << 10

func (d *describer) done() {
	g := d.g
	d.told, d.toldItem, d.eventOf = nil, catalog.Record{}, nil
	if d.g, d.c = nil, nil; cap(d.room)+cap(d.spare)+cap(d.draft)+cap(d.entry) <= maxRoom {
		g.describers.Put(d)
	}
}

func (d *describer) fail(err error) {
	if err != nil && d.err == nil {
		d.err = err
	}
}

// record reads the record of a row into room. The record is good until the next one is read there.
func record[R any](
	d *describer, room *[]byte, row *R, read func(*R, []byte) (catalog.Record, error),
) catalog.Record {
	r, err := read(row, *room)
	*room = r.Buf
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

func (d *describer) plainMarket(b []byte, m *catalog.Market) []byte {
	r := record(d, &d.room, m, d.c.MarketRecord)
	end := d.endingOf(m, d.g.o.Board.Directory.Condition(m.Condition))
	return d.liveMarket(end.append(b, r.Core, m.Updated, marketClosed), m, r.Live)
}

func (d *describer) marketEvents(b []byte, m *catalog.Market, in shape) []byte {
	b = append(wire.AppendKey(b, "events"), '[')
	if e := d.c.EventOf(m); e != nil {
		b = d.event(b, e, in)
	}
	return append(b, ']')
}

func (d *describer) listedMarket(b []byte, m *catalog.Market) []byte {
	return d.market(b, m, inName)
}

// taggedMarket is listedMarket with the market's tags, unless its record has a list of them.
func (d *describer) taggedMarket(b []byte, m *catalog.Market) []byte {
	b = d.plainMarket(append(wire.AppendComma(b), '{'), m)
	if r := record(d, &d.room, m, d.c.MarketRecord); !hasMember(r.Core, "tags") {
		b = d.tags(wire.AppendKey(b, "tags"), d.c.MarketTags(m))
	}
	return wire.CloseObject(d.marketEvents(b, m, inName))
}

func (d *describer) listedEvent(b []byte, e *catalog.Event) []byte { return d.event(b, e, inList) }

func (d *describer) wholeEvent(b []byte, e *catalog.Event) []byte { return d.event(b, e, inFull) }

func (d *describer) wholeSeries(b []byte, s *catalog.Series) []byte {
	return d.series(b, s, maxSeriesEvents)
}

func (d *describer) eventTags(b []byte, e *catalog.Event) []byte { return d.tags(b, d.c.TagsOf(e)) }

func (d *describer) tags(b []byte, tags []*catalog.Tag) []byte {
	b = append(b, '[')
	for _, t := range tags {
		b = d.tag(b, t)
	}
	return append(b, ']')
}

func (d *describer) event(b []byte, e *catalog.Event, in shape) []byte {
	if in == inName {
		return appendName(b, e)
	}
	b = append(wire.AppendComma(b), '{')
	r := record(d, &d.spare, e, d.c.EventRecord)
	end := d.endingOfEvent(e)
	if in == inShort {
		return wire.CloseObject(d.shortEvent(b, e, &r, end))
	}
	b = d.liveEvent(end.append(b, r.Core, e.Updated, eventClosed), e, r.Live)
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

// appendName appends the members that name an event, as an object.
func appendName(b []byte, e *catalog.Event) []byte {
	b = wire.AppendField(append(wire.AppendComma(b), '{'), "id", e.ID)
	b = wire.AppendField(b, "ticker", e.Ticker)
	b = wire.AppendField(b, "slug", e.Slug)
	return wire.CloseObject(wire.AppendField(b, "title", e.Title))
}

func hasMember(members []byte, key string) bool {
	for k := range catalog.Members(members) {
		if string(k) == key {
			return true
		}
	}
	return false
}

// shortEvent appends the members that an event has inside a market or a series.
func (d *describer) shortEvent(b []byte, e *catalog.Event, r *catalog.Record, end ending) []byte {
	for _, part := range [...][]byte{r.Core, r.Rest} {
		for key, value := range catalog.Members(part) {
			switch string(key) {
			case "id", "ticker", "slug", "title", "description", "resolutionSource", "startDate",
				"creationDate", "endDate", "image", "icon", "active", "archived", "createdAt":
				b = appendMember(b, key, value)
			case "updatedAt":
				if end.updated <= e.Updated {
					b = appendMember(b, key, value)
				}
			}
		}
	}
	if end.updated > e.Updated {
		b = wire.AppendField(b, "updatedAt", end.updatedAt())
	}
	return strconv.AppendBool(wire.AppendKey(b, "closed"), d.over(e))
}

// series appends a series with those of its latest events that fit into most bytes.
func (d *describer) series(b []byte, s *catalog.Series, most int) []byte {
	r := record(d, &d.room, s, d.c.SeriesRecord)
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

func (d *describer) tag(b []byte, t *catalog.Tag) []byte {
	r := record(d, &d.room, t, d.c.TagRecord)
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
		if listed := d.g.o.Board.Directory.Condition(m.Condition); listed == nil || !ended(listed) {
			return false
		}
	}
	return len(markets) > 0
}

// values are the figures of a market's book; trades is false for a market that is not listed here.
func (d *describer) values(m *catalog.Market) (v marketValues, trades bool) {
	listed := d.g.o.Board.Directory.Condition(m.Condition)
	if listed == nil {
		return v, false
	}
	w, err := d.g.o.Values.of(listed)
	d.fail(err)
	v.worth, v.accepts, v.closed = w, Accepts(d.g.o.Board, listed), m.Closed || ended(listed)
	v.tick, v.minimum = listed.Tick, listed.MinSize
	s := d.g.o.Board.Condition(m.Condition) // one for all figures, so that they agree
	if v.price = price(s, listed); v.price != 0 || listed.State == engine.Settled {
		v.other = 10*int64(engine.PriceOne) - v.price
	}
	v.bid, v.ask = s.Best(0)
	v.last, _, _ = s.Last(0)
	return v, true
}

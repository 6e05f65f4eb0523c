package catalog

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clobd/api/wire/scan"
	"clobd/engine"
)

// item is one record that was read, on its way into the rows. Exactly one of the rows is set, or
// why says what is wrong with it.
type item struct {
	kind recordKind
	line int32
	id   string // for the report
	why  string
	// broken is no record at all; what has another why is a market that cannot be taken.
	broken bool

	market *Market
	event  *Event
	series *Series
	tag    *Tag

	// head and record are set of what comes from the log; mark is what a mark says.
	head   head
	record location
	mark   []byte
	// from and to are where the frame for the log lies in the parser's room.
	from, to   int
	core, rest uint32
	partial    bool

	eventID   string // of a market
	tagIDs    []string
	seriesIDs []string
	makers    [2]string
	// of a market: why it is not tradable, or what is wrong with its rules
	skipped Reason
}

// parser makes items of records. It is used by one goroutine; the items it made are good until
// reset.
type parser struct {
	items   []item
	room    []byte // the frames
	members []scan.Member
	values  [fieldCount][]byte
	labels  map[string][]string // by their text in the record: nearly all markets say Yes and No
	icon    string              // the last one: markets of an event often share it
	line    int32
	// restoring reads frames of the log: what is nested in them has frames of its own.
	restoring bool
}

// entry is what the record says of what events, series and tags have in common; nil of a market.
func (it *item) entry() *Identity {
	switch {
	case it.event != nil:
		return &it.event.Identity
	case it.series != nil:
		return &it.series.Identity
	case it.tag != nil:
		return &it.tag.Identity
	}
	return nil
}

func newParser() *parser { return &parser{labels: map[string][]string{}} }

func (p *parser) reset() { p.items, p.room = p.items[:0], p.room[:0] }

// take reads one top-level record of any kind, and what is nested in it: what others refer to
// first.
func (p *parser) take(record []byte, line int32) {
	p.line = line
	if !p.open(record) {
		p.broken("", "broken JSON")
		return
	}
	if list := p.wrapped(); list != nil {
		scan.Skim(list, func(record []byte) { p.take(record, line) })
		return
	}
	switch p.kind() {
	case aMarket:
		p.takeMarket("")
	case aBook:
		p.takeBook()
	case anEvent:
		p.takeEvent(false)
	case aSeries:
		p.takeSeries(false)
	case aTag:
		p.takeTag(false)
	default:
		id, _ := scan.Text(p.values[fieldID])
		p.broken(id, "no event, market, series, tag or order-book market")
	}
}

// open reads the members of a record.
func (p *parser) open(record []byte) bool {
	clear(p.values[:])
	var ok bool
	p.members, ok = scan.Object(record, p.members)
	for i := range p.members {
		p.values[fieldOf(p.members[i].Key)] = p.members[i].Value
	}
	return ok
}

// wrapped is the list in a page of records, as {"data":[…],"next_cursor":…}, nil if it is none.
func (p *parser) wrapped() []byte {
	if len(p.members) > 8 || !scan.Absent(p.values[fieldID]) ||
		!scan.Absent(p.values[fieldCondition]) {
		return nil
	}
	for _, f := range []recordKey{fieldData, fieldEvents, fieldMarkets, fieldSeries, fieldTags} {
		if v := p.values[f]; !scan.Absent(v) && v[0] == '[' {
			return v
		}
	}
	return nil
}

// kind tells what a record is by its keys.
func (p *parser) kind() recordKind {
	has := func(f recordKey) bool { return p.values[f] != nil }
	switch {
	case has(fieldBookCondition):
		return aBook
	case has(fieldCondition):
		return aMarket
	case !has(fieldID):
		return noKind
	case has(fieldMarkets):
		return anEvent
	case has(fieldSeriesType) || has(fieldRecurrence):
		return aSeries
	case has(fieldLabel):
		return aTag
	case has(fieldTitle):
		return anEvent
	}
	return noKind
}

func (p *parser) broken(id, why string) {
	p.items = append(p.items, item{line: p.line, id: id, why: why, broken: true})
}

// frame copies the members of the record into the log's form.
func (p *parser) frame(it *item) {
	it.from = len(p.room)
	p.room = append(p.room, make([]byte, headSize)...)
	var sizes [4]uint32
	for _, want := range []part{core, rest, live} {
		start := len(p.room)
		for i := range p.members {
			m := &p.members[i]
			if partOf(it.kind, m.Key) != want {
				continue
			}
			if len(p.room) > start {
				p.room = append(p.room, ',')
			}
			p.room = append(append(append(p.room, '"'), m.Key...), `":`...)
			p.room = append(p.room, m.Value...)
		}
		sizes[want] = uint32(len(p.room) - start)
	}
	it.core, it.rest, it.to = sizes[core], sizes[rest], len(p.room)
}

// nested takes the elements of a list inside a record, each with take, after the record's own
// members were read. It answers their ids.
func (p *parser) nested(list []byte, take func()) (ids []string) {
	if scan.Absent(list) {
		return nil
	}
	scan.Skim(list, func(record []byte) {
		if !p.open(record) {
			return // no JSON inside a record that is some: cannot be; a word or a number can
		}
		if id, ok := scan.Text(p.values[fieldID]); ok && id != "" {
			if !p.restoring {
				take()
			}
			ids = append(ids, id)
		}
	})
	return ids
}

// entry reads what events, series and tags have in common. It is false if there is no id.
func (p *parser) entry(e *Identity, partial bool) bool {
	e.Partial, e.number = partial, numberOf(e.ID)
	e.Created, e.Updated = p.time(fieldCreated), p.time(fieldUpdated)
	return e.ID != ""
}

// textMember is a member that is a text, and where it goes.
type textMember struct {
	field recordKey
	to    *string
}

// texts reads members. It is false if one of them is no text; an absent one is empty.
func (p *parser) texts(list ...textMember) bool {
	all := true
	for _, t := range list {
		var ok bool
		*t.to, ok = scan.Text(p.values[t.field])
		all = all && ok
	}
	return all
}

func (p *parser) takeTag(partial bool) {
	t := &Tag{}
	ok := p.texts(textMember{fieldID, &t.ID}, textMember{fieldLabel, &t.Label},
		textMember{fieldSlug, &t.Slug})
	if !p.entry(&t.Identity, partial) || !ok {
		p.broken(t.ID, "id, label or slug of a tag is not text")
		return
	}
	it := item{kind: aTag, line: p.line, id: t.ID, tag: t, partial: partial}
	p.frame(&it)
	p.items = append(p.items, it)
}

func (p *parser) takeSeries(partial bool) {
	s := &Series{}
	ok := p.texts(textMember{fieldID, &s.ID}, textMember{fieldSlug, &s.Slug},
		textMember{fieldTitle, &s.Title}, textMember{fieldTicker, &s.Ticker},
		textMember{fieldSeriesType, &s.Type}, textMember{fieldRecurrence, &s.Recurrence})
	if !p.entry(&s.Identity, partial) || !ok {
		p.broken(s.ID, "a name of a series is not text")
		return
	}
	s.Start = p.time(fieldStart)
	s.Volume, s.Liquidity = p.money(fieldVolume), p.money(fieldLiquidity)
	s.Windows = p.windows()
	s.Active, s.Closed = p.flag(fieldActive), p.flag(fieldClosed)
	s.Archived = p.flag(fieldArchived)
	it := item{kind: aSeries, line: p.line, id: s.ID, series: s, partial: partial}
	p.frame(&it)
	p.items = append(p.items, it)
}

// takeEvent takes an event with its tags and series before it and its markets behind it. A partial
// one is a market's summary of its event.
func (p *parser) takeEvent(partial bool) {
	e := &Event{}
	ok := p.texts(textMember{fieldID, &e.ID}, textMember{fieldSlug, &e.Slug},
		textMember{fieldTitle, &e.Title}, textMember{fieldTicker, &e.Ticker})
	markets, tags, series := p.values[fieldMarkets], p.values[fieldTags], p.values[fieldSeries]
	switch {
	case !p.entry(&e.Identity, partial):
		p.broken("", "no event: it has no id")
		return
	case !ok:
		p.broken(e.ID, "slug or title is not text")
		return
	case !isList(markets) || !isList(tags) || !isList(series):
		p.broken(e.ID, "markets is not an array, or tags or series")
		return
	}
	e.Group = group(e.ID)
	e.Start, e.End = p.time(fieldStart), p.time(fieldEnd)
	e.Volume, e.Liquidity = p.money(fieldVolume), p.money(fieldLiquidity)
	e.Windows = p.windows()
	e.Active, e.Closed, e.Archived = p.flag(fieldActive), p.flag(fieldClosed), p.flag(fieldArchived)
	e.Featured, e.NegRisk = p.flag(fieldFeatured), p.flag(fieldNegRisk)
	e.Tagged = !scan.Absent(tags)
	it := item{kind: anEvent, line: p.line, id: e.ID, event: e, partial: partial}
	p.frame(&it)
	it.tagIDs = p.nested(tags, func() { p.takeTag(true) })
	it.seriesIDs = p.nested(series, func() { p.takeSeries(true) })
	p.items = append(p.items, it)
	if scan.Absent(markets) || partial {
		return
	}
	scan.Skim(markets, func(record []byte) {
		if !p.open(record) {
			p.items = append(p.items, item{kind: aMarket, line: p.line, why: "broken JSON"})
			return
		}
		p.takeMarket(e.ID)
	})
}

func isList(raw []byte) bool { return scan.Absent(raw) || raw[0] == '[' }

// numberOf is an id as a number; ids that are none come last.
func numberOf(id string) uint64 {
	if n, err := strconv.ParseUint(id, 10, 63); err == nil {
		return n
	}
	return math.MaxUint64
}

// flag reads true or false; anything else is false.
func (p *parser) flag(f recordKey) bool { return string(p.values[f]) == "true" }

// time reads a moment in unix milliseconds; 0 if there is none.
func (p *parser) time(f recordKey) int64 {
	text, ok := scan.Text(p.values[f])
	if !ok || len(text) < len(time.DateOnly) {
		return 0
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07", time.DateOnly,
		"2006-01-02 15:04:05Z07:00", time.DateTime} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixMilli()
		}
	}
	return 0
}

// money reads an amount, a number or a text, in units of 10^-6; 0 if there is none.
func (p *parser) money(fields ...recordKey) int64 {
	for _, f := range fields {
		if text, ok := scan.Text(p.values[f]); ok && text != "" {
			v, err := strconv.ParseFloat(text, 64)
			if err == nil && math.Abs(v) < 1e12 {
				return int64(math.Round(v * 1e6))
			}
		}
	}
	return 0
}

// windows are the volumes of the last day, week, month and year.
func (p *parser) windows() Windows {
	return Windows{p.money(fieldVolumeDay), p.money(fieldVolumeWeek), p.money(fieldVolumeMonth),
		p.money(fieldVolumeYear)}
}

// list reads a list of texts, most of which are the same few.
func (p *parser) list(raw []byte) (list []string, ok bool) {
	if list, ok = p.labels[string(raw)]; ok {
		return list, true
	}
	if list, ok = scan.List(raw); ok && len(p.labels) < 1<<10 {
		p.labels[string(raw)] = list
	}
	return list, ok
}

// bookLists reads the tokens of an order-book record: their ids and what they are called.
func (p *parser) bookLists(raw []byte) (ids, labels []string, ok bool) {
	if scan.Absent(raw) {
		return nil, nil, true
	}
	ok = true
	array := scan.Elements(raw, func(element []byte) {
		var id, label string
		var good [2]bool
		members, isObject := scan.Object(element, nil)
		for i := range members {
			switch string(members[i].Key) {
			case "token_id":
				id, good[0] = scan.Text(members[i].Value)
			case "outcome":
				label, good[1] = scan.Text(members[i].Value)
			}
		}
		ok = ok && isObject && good[0] && good[1]
		ids, labels = append(ids, id), append(labels, label)
	})
	return ids, labels, ok && array
}

// takeMarket takes a market of the catalog. Its events come before it, as summaries.
func (p *parser) takeMarket(eventID string) {
	it := item{kind: aMarket, line: p.line, eventID: eventID}
	m := &Market{EventNo: None, line: p.line}
	events, tags := p.values[fieldEvents], p.values[fieldTags]
	if it.why = p.describe(m, fieldCondition); it.why == "" {
		it.skipped, it.why = p.judge(m)
	}
	it.id = nameOf(m)
	if it.why == "" {
		it.market = m
		it.makers[0], _ = scan.Text(p.values[fieldCreator])
		it.makers[1], _ = scan.Text(p.values[fieldSubmitter])
		p.frame(&it)
		if ids := p.nested(events, func() { p.takeEvent(true) }); eventID == "" && len(ids) > 0 {
			it.eventID = ids[0]
		}
		it.tagIDs = p.nested(tags, func() { p.takeTag(true) })
	}
	p.items = append(p.items, it)
}

// takeBook takes the order book's record of a market.
func (p *parser) takeBook() {
	it := item{kind: aBook, line: p.line}
	m := &Market{EventNo: None, line: p.line, BookOnly: true, HasBook: true}
	if it.why = p.describe(m, fieldBookCondition); it.why == "" {
		it.skipped, it.why = p.judge(m)
	}
	if it.id = nameOf(m); it.why == "" {
		if id, _ := scan.Text(p.values[fieldNegRiskMarket]); id != "" {
			m.Group = group(id)
		}
		it.market = m
		p.frame(&it)
	}
	p.items = append(p.items, it)
}

// nameOf is what a report calls a market.
func nameOf(m *Market) string {
	if m.Condition != (engine.Condition{}) {
		return m.Condition.Hex()
	}
	return m.ID
}

// describe reads what a market is called. It says what is wrong, or nothing.
func (p *parser) describe(m *Market, condition recordKey) string {
	names := [...]struct {
		f    recordKey
		key  string
		text string
	}{{fieldID, "id", ""}, {condition, "conditionId", ""}, {fieldQuestion, "question", ""},
		{fieldSlug, "slug", ""}, {fieldBookSlug, "market_slug", ""}}
	size := 0
	for i := range names {
		var ok bool
		if names[i].text, ok = scan.Text(p.values[names[i].f]); !ok {
			return names[i].key + " is not text"
		}
		size += len(names[i].text)
	}
	m.ID, m.Question, m.Slug = names[0].text, names[2].text, names[3].text
	if m.BookOnly {
		m.ID, m.Slug = "", names[4].text
	}
	m.number = numberOf(m.ID)
	var ok bool
	if names[1].text == "" {
		return "no conditionId"
	}
	if m.Condition, ok = parseCondition(names[1].text); !ok {
		return "conditionId is not 0x and 64 hex digits"
	}
	m.Start, m.End = p.time(fieldStart), p.time(fieldEnd)
	m.Created, m.Updated = p.time(fieldCreated), p.time(fieldUpdated)
	if icon, ok := scan.Text(p.values[fieldIcon]); ok {
		if icon != p.icon {
			p.icon = icon
		}
		m.Icon = p.icon
	}
	// The text is the finer one: sources round the number.
	m.Volume = p.money(fieldVolume, fieldVolumeNumber)
	m.Liquidity = p.money(fieldLiquidity, fieldLiquidityNumber)
	m.Windows = p.windows()
	return p.describeOutcomes(m)
}

// describeOutcomes reads the labels and the tokens of a market.
func (p *parser) describeOutcomes(m *Market) string {
	var ids []string
	var ok bool
	if m.BookOnly {
		if ids, m.Outcomes, ok = p.bookLists(p.values[fieldBookTokens]); !ok {
			return "tokens is not a list of tokens"
		}
	} else {
		if m.Outcomes, ok = p.list(p.values[fieldOutcomes]); !ok {
			return "outcomes is not a list of texts"
		}
		if ids, ok = scan.List(p.values[fieldTokens]); !ok {
			return "clobTokenIds is not a list of token ids"
		}
	}
	if len(ids) != len(m.Outcomes) {
		return fmt.Sprintf("%d outcomes but %d token ids", len(m.Outcomes), len(ids))
	}
	if len(ids) != 2 {
		return ""
	}
	for i, id := range ids {
		if m.Tokens[i], ok = engine.ParseToken(id); !ok {
			return fmt.Sprintf("token id %q is not a decimal number of 256 bits", clip(id))
		}
	}
	return ""
}

// judge decides whether the market is tradable and reads its rules. It is skipped for a reason,
// refused for what is wrong with it, or neither.
func (p *parser) judge(m *Market) (skipped Reason, wrong string) {
	var ok [6]bool
	var book bool
	m.Closed, ok[0] = scan.Bool(p.values[fieldClosed], false)
	m.Archived, ok[1] = scan.Bool(p.values[fieldArchived], false)
	book, ok[2] = scan.Bool(p.values[fieldOrderBook], true)
	m.Accepting, ok[3] = scan.Bool(p.values[fieldAccepting], true)
	m.NegRisk, ok[4] = scan.Bool(p.values[fieldNegRisk], false)
	m.Active, ok[5] = scan.Bool(p.values[fieldActive], true)
	tick, goodTick := scan.Decimal(p.values[fieldTick], 4, defaultTick)
	goodTick = goodTick && slices.Contains([]int64{1000, 100, 50, 25, 10, 1}, tick)
	if goodTick {
		m.Tick = engine.Price(tick)
	}
	minimum, goodMin := scan.Decimal(p.values[fieldMinimum], 6, defaultMin)
	if goodMin = goodMin && minimum <= int64(engine.MaxOrder); goodMin {
		m.MinSize = engine.Size(minimum)
	}
	switch {
	case slices.Contains(ok[:], false):
		return "", "a flag is neither true nor false"
	case m.Closed:
		return Closed, ""
	case m.Archived:
		return Archived, ""
	case !book:
		return NoOrderBook, ""
	case len(m.Outcomes) == 0:
		return "", "no outcomes"
	case len(m.Outcomes) != 2:
		return NotBinary, ""
	case m.Tokens[0] == m.Tokens[1]:
		return "", "both outcomes have the same token id"
	case !goodTick:
		return "", fmt.Sprintf("tick %s is not offered", clip(string(p.values[fieldTick])))
	case !goodMin:
		return "", fmt.Sprintf("minimum size %s is no size", clip(string(p.values[fieldMinimum])))
	}
	return "", ""
}

// seal fills in the head of an item's frame.
func (p *parser) seal(it *item, no, link int32, group uint64) []byte {
	frame := p.room[it.from:it.to]
	putHead(frame, &head{kind: it.kind, partial: it.partial, no: no, link: link, group: group,
		core: it.core, rest: it.rest})
	return frame
}

// linkFrame says that a market belongs to an event.
func linkFrame(no, event int32, group uint64) []byte {
	frame := make([]byte, headSize)
	putHead(frame, &head{kind: aLink, no: no, link: event, group: group})
	return frame
}

// markFrame says how far the source was read.
func markFrame(mark []byte) []byte {
	frame := append(make([]byte, headSize), mark...)
	putHead(frame, &head{kind: aMark, no: None, link: None, core: uint32(len(mark))})
	return frame
}

// lower is what names are compared by.
func lower(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

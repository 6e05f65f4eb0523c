package catalog

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clobd/api/wire/scan"
	"clobd/engine"
)

// The rules of a market whose record has none: a cent, five shares.
const (
	defaultTick = 100
	defaultMin  = 5 * engine.Unit
)

// item is one record on its way into the rows. Either one of the rows is set, or why says what is
// wrong with the record.
type item struct {
	kind recordKind
	line int32
	id   string // for the report
	why  string
	// broken is no record at all; any other item with a why is a market that cannot be taken.
	broken bool

	market *Market
	event  *Event
	series *Series
	tag    *Tag
	entry  *Identity // of the event, the series or the tag

	// head and record are set for a frame of the log, mark for the frame of a mark.
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
	skipped   Reason // why a market is not tradable
}

// parser makes items of records. It belongs to one goroutine; its items are good until reset.
type parser struct {
	items   []item
	room    []byte // the frames
	members []scan.Member
	uses    []keyUse // of the members
	values  [fieldCount][]byte
	labels  map[string][]string // by their text: nearly all markets say Yes and No
	known   map[traits]*traits
	icon    string // the last one: markets of an event often share it
	notText bool   // a member that text has read is no text
	line    int32
	// restoring reads frames of the log: records nested in them have frames of their own.
	restoring bool
}

func newParser() *parser {
	return &parser{labels: map[string][]string{}, known: map[traits]*traits{}}
}

func (p *parser) reset() { p.items, p.room = p.items[:0], p.room[:0] }

// take reads one top-level record of any kind. Nested records that others refer to come first.
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
	kind := p.kind()
	if kind == noKind {
		id, _ := scan.Text(p.values[fieldID])
		p.broken(id, "no event, market, series, tag or order-book market")
		return
	}
	p.takeKind(kind, false)
}

func (p *parser) takeKind(k recordKind, partial bool) {
	switch k {
	case aMarket, aBook:
		p.takeMarket(k, "")
	case anEvent:
		p.takeEvent(partial)
	case aSeries:
		p.takeSeries(partial)
	case aTag:
		p.takeTag(partial)
	}
}

// open reads the members of a record.
func (p *parser) open(record []byte) bool {
	clear(p.values[:])
	var ok bool
	p.members, ok = scan.Object(record, p.members)
	p.uses = p.uses[:0]
	for i := range p.members {
		use := memberUses[string(p.members[i].Key)]
		p.uses = append(p.uses, use)
		p.values[use.field] = p.members[i].Value
	}
	return ok
}

// wrapped returns the list in a page of records, {"data":[…],"next_cursor":…}; nil for a record.
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

// kind tells the kind of a record by its keys.
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
			if p.uses[i].partOf(it.kind) != want {
				continue
			}
			m := &p.members[i]
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

// nested takes the elements of a list inside a record as partial records of a kind, and returns
// their ids. It overwrites the members of the record.
func (p *parser) nested(list []byte, k recordKind) (ids []string) {
	if scan.Absent(list) {
		return nil
	}
	scan.Skim(list, func(record []byte) {
		if !p.open(record) {
			return // a word or a number
		}
		if id, ok := scan.Text(p.values[fieldID]); ok && id != "" {
			if !p.restoring {
				p.takeKind(k, true)
			}
			ids = append(ids, id)
		}
	})
	return ids
}

// identity reads the members that events, series and tags have in common.
func (p *parser) identity(partial bool) Identity {
	p.notText = false
	id := p.text(fieldID)
	return Identity{ID: id, number: numberOf(id), Created: p.time(fieldCreated),
		Updated: p.time(fieldUpdated), Partial: partial}
}

// text reads a member, and notes one that is no text. An absent member is empty.
func (p *parser) text(f recordKey) string {
	text, ok := scan.Text(p.values[f])
	p.notText = p.notText || !ok
	return text
}

func (p *parser) takeTag(partial bool) {
	t := &Tag{Identity: p.identity(partial), Label: p.text(fieldLabel), Slug: p.text(fieldSlug)}
	if t.ID == "" || p.notText {
		p.broken(t.ID, "id, label or slug of a tag is not text")
		return
	}
	it := item{kind: aTag, line: p.line, id: t.ID, tag: t, entry: &t.Identity, partial: partial}
	p.frame(&it)
	p.items = append(p.items, it)
}

func (p *parser) takeSeries(partial bool) {
	s := &Series{Identity: p.identity(partial), Slug: p.text(fieldSlug), Title: p.text(fieldTitle),
		Ticker: p.text(fieldTicker), Type: p.text(fieldSeriesType),
		Recurrence: p.text(fieldRecurrence), Start: p.time(fieldStart),
		Volume: p.money(fieldVolume), Liquidity: p.money(fieldLiquidity), Windows: p.windows(),
		Active: p.flag(fieldActive), Closed: p.flag(fieldClosed), Archived: p.flag(fieldArchived)}
	if s.ID == "" || p.notText {
		p.broken(s.ID, "a name of a series is not text")
		return
	}
	it := item{kind: aSeries, line: p.line, id: s.ID, series: s, entry: &s.Identity, partial: partial}
	p.frame(&it)
	p.items = append(p.items, it)
}

// takeEvent takes an event, its tags and series before it and its markets behind it. A partial
// event is a market's summary of its event.
func (p *parser) takeEvent(partial bool) {
	e := &Event{Identity: p.identity(partial), Slug: p.text(fieldSlug), Title: p.text(fieldTitle),
		Ticker: p.text(fieldTicker), Start: p.time(fieldStart), End: p.time(fieldEnd),
		Volume: p.money(fieldVolume), Liquidity: p.money(fieldLiquidity), Windows: p.windows(),
		Active: p.flag(fieldActive), Closed: p.flag(fieldClosed), Archived: p.flag(fieldArchived),
		Featured: p.flag(fieldFeatured), NegRisk: p.flag(fieldNegRisk),
		live: p.flag(fieldLive), cyom: p.flag(fieldCYOM), date: p.word(fieldEventDate),
		closedAt: p.time(fieldClosedTime), competitive: p.money(fieldCompetitive),
		featuredOrder: p.place(fieldFeaturedOrder)}
	markets, tags, series := p.values[fieldMarkets], p.values[fieldTags], p.values[fieldSeries]
	switch {
	case e.ID == "":
		p.broken("", "no event: it has no id")
		return
	case p.notText:
		p.broken(e.ID, "slug or title is not text")
		return
	case !isList(markets) || !isList(tags) || !isList(series):
		p.broken(e.ID, "markets is not an array, or tags or series")
		return
	}
	e.Group, e.Tagged = group(e.ID), !scan.Absent(tags)
	it := item{kind: anEvent, line: p.line, id: e.ID, event: e, entry: &e.Identity, partial: partial}
	p.frame(&it)
	it.tagIDs, it.seriesIDs = p.nested(tags, aTag), p.nested(series, aSeries)
	p.items = append(p.items, it)
	if scan.Absent(markets) || partial {
		return
	}
	scan.Skim(markets, func(record []byte) {
		if !p.open(record) {
			p.items = append(p.items, item{kind: aMarket, line: p.line, why: "broken JSON"})
			return
		}
		p.takeMarket(aMarket, e.ID)
	})
}

func isList(raw []byte) bool { return scan.Absent(raw) || raw[0] == '[' }

// numberOf returns an id as a number; an id that is none comes last.
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

func (p *parser) windows() Windows {
	return Windows{p.money(fieldVolumeDay), p.money(fieldVolumeWeek), p.money(fieldVolumeMonth),
		p.money(fieldVolumeYear)}
}

// list reads a list of texts. Most lists are the same few.
func (p *parser) list(raw []byte) (list []string, ok bool) {
	if list, ok = p.labels[string(raw)]; ok {
		return list, true
	}
	if list, ok = scan.List(raw); ok && len(p.labels) < 1<<10 {
		p.labels[string(raw)] = list
	}
	return list, ok
}

// bookLists reads the ids and the labels of the tokens of an order-book record.
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

// takeMarket takes a market, or the order book's record of one. Its events come before it, as
// summaries.
func (p *parser) takeMarket(k recordKind, eventID string) {
	it := item{kind: k, line: p.line, eventID: eventID}
	m := &Market{EventNo: None, line: p.line, BookOnly: k == aBook, HasBook: k == aBook}
	events, tags := p.values[fieldEvents], p.values[fieldTags]
	if it.why = p.describe(m); it.why == "" {
		it.skipped, it.why = p.judge(m)
	}
	if it.id = m.ID; m.Condition != (engine.Condition{}) {
		it.id = m.Condition.Hex()
	}
	if it.why != "" {
		p.items = append(p.items, it)
		return
	}
	it.market = m
	if k == aBook {
		if id, _ := scan.Text(p.values[fieldNegRiskMarket]); id != "" {
			m.Group = group(id)
		}
		p.frame(&it)
	} else {
		it.makers[0], _ = scan.Text(p.values[fieldCreator])
		it.makers[1], _ = scan.Text(p.values[fieldSubmitter])
		p.frame(&it)
		if ids := p.nested(events, anEvent); eventID == "" && len(ids) > 0 {
			it.eventID = ids[0]
		}
		it.tagIDs = p.nested(tags, aTag)
	}
	p.items = append(p.items, it)
}

// describe reads the names, times and figures of a market. It returns what is wrong, or "".
func (p *parser) describe(m *Market) string {
	names := [...]struct {
		f    recordKey
		key  string
		text string
	}{{fieldID, "id", ""}, {fieldCondition, "conditionId", ""}, {fieldQuestion, "question", ""},
		{fieldSlug, "slug", ""}, {fieldBookSlug, "market_slug", ""}}
	if m.BookOnly {
		names[1].f = fieldBookCondition
	}
	for i := range names {
		var ok bool
		if names[i].text, ok = scan.Text(p.values[names[i].f]); !ok {
			return names[i].key + " is not text"
		}
	}
	m.ID, m.Question, m.Slug = names[0].text, names[2].text, names[3].text
	if m.BookOnly {
		m.ID, m.Slug = "", names[4].text
	}
	m.number = numberOf(m.ID)
	text := names[1].text
	if text == "" {
		return "no conditionId"
	}
	condition, ok := engine.ParseCondition(text)
	if !ok || text[1] != 'x' {
		return "conditionId is not 0x and 64 hex digits"
	}
	m.Condition = condition
	m.Start, m.End = p.time(fieldStart), p.time(fieldEnd)
	m.Created, m.Updated = p.time(fieldCreated), p.time(fieldUpdated)
	if icon, ok := scan.Text(p.values[fieldIcon]); ok {
		if icon != p.icon {
			p.icon = icon
		}
		m.Icon = p.icon
	}
	// The text is the more precise: sources round the number.
	m.Volume = p.money(fieldVolume, fieldVolumeNumber)
	m.Liquidity = p.money(fieldLiquidity, fieldLiquidityNumber)
	m.Windows = p.windows()
	m.question, m.traits = p.word(fieldQuestionID), p.traits()
	m.closedAt, m.rewards = p.time(fieldClosedTime), p.money(fieldRewards)
	m.competitive = p.money(fieldCompetitive)
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

// judge reads the rules of a market. It returns why the market is not tradable, or what is wrong.
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

func (p *parser) seal(it *item, no, link int32, group uint64) []byte {
	frame := p.room[it.from:it.to]
	putHead(frame, &head{kind: it.kind, partial: it.partial, no: no, link: link, group: group,
		core: it.core, rest: it.rest})
	return frame
}

// linkFrame returns the frame that assigns a market to an event.
func linkFrame(no, event int32, group uint64) []byte {
	frame := make([]byte, headSize)
	putHead(frame, &head{kind: aLink, no: no, link: event, group: group})
	return frame
}

// markFrame returns the log entry that says how far a source was read.
func markFrame(mark []byte) []byte {
	frame := append(make([]byte, headSize), mark...)
	putHead(frame, &head{kind: aMark, no: None, link: None, core: uint32(len(mark))})
	return frame
}

// lower returns the form in which names are compared.
func lower(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// group numbers an event for the engine.
func group(id string) uint64 {
	const high = 1 << 63
	if n, err := strconv.ParseUint(id, 10, 63); err == nil {
		return n
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64() | high
}

func clip(s string) string {
	if len(s) > 90 {
		return s[:90] + "…"
	}
	return s
}

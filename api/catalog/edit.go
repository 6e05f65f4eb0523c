package catalog

import (
	"fmt"
	"hash/maphash"
	"slices"

	"clobd/engine"
)

// editor makes the next Catalog of an older one, record by record. It belongs to one goroutine.
type editor struct {
	from *Catalog
	next *Catalog // nobody else sees it before finish
	log  *recordLog
	load uint32 // numbers the load, from 1

	markets rowEditor[Market]
	events  rowEditor[Event]
	series  rowEditor[Series]
	tags    rowEditor[Tag]
	names   rowEditor[string]

	grown  map[backlink]bool // lists of numbers that are already copies
	report *Report
	bad    badRecords // not yet written to the node's log
	file   string     // the file being read, if there are several
	// pending are the markets to list, each with the kind of the record that says so.
	pending map[int32]recordKind
	queue   []int32 // the pending ones in their order
	closing []int32 // markets that the source has closed or archived
	err     error   // the first failure of the record log
}

// backlink names a list of numbers in a row.
type backlink struct {
	kind recordKind
	no   int32
}

func edit(c *Catalog, log *recordLog, load uint32) *editor {
	next := *c
	next.log = log
	return &editor{
		from: c, next: &next, log: log, load: load,
		markets: editRows(&next.Markets), events: editRows(&next.Events),
		series: editRows(&next.Series), tags: editRows(&next.Tags), names: editRows(&next.names),
		grown: map[backlink]bool{}, pending: map[int32]recordKind{},
		report: &Report{Skipped: map[Reason]int{}},
	}
}

// enter adds a row to the table of one of its texts. An empty text names nothing.
func (e *editor) enter(table int, text string, no int32) {
	if text != "" {
		e.next.tables[table].enter(hashText(text), no)
	}
}

// take enters one item.
func (e *editor) take(p *parser, it *item) {
	switch {
	case it.broken:
		e.report.Broken++
		e.name(it.line, it.id, it.why)
	case it.entry != nil:
		e.takeEntry(p, it)
	case it.why != "":
		e.count(it.kind)
		e.refuse(it.line, it.id, it.why)
	default:
		e.count(it.kind)
		e.takeMarket(p, it)
	}
}

func (e *editor) count(k recordKind) {
	switch k {
	case aTag:
		e.report.Tags++
	case aSeries:
		e.report.Series++
	case anEvent:
		e.report.Events++
	case aBook:
		e.report.Books++
	default:
		e.report.Markets++
	}
}

// write appends a frame to the log.
func (e *editor) write(frame []byte) location {
	at, err := e.log.append(frame)
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("write catalog log: %w", err)
	}
	return at
}

// version tells which of two records of one row counts.
type version struct {
	hash    uint64
	updated int64
	load    uint32
	partial bool
}

// replaces reports whether a new record counts instead of the old one. A whole record beats a
// summary, then the later update wins. Of two records of the same moment the first of one load
// counts, else the newer load's.
func (v version) replaces(old version) bool {
	switch {
	case v.hash == old.hash && v.partial == old.partial:
		return false
	case v.partial != old.partial:
		return old.partial
	case v.updated != old.updated:
		return v.updated > old.updated
	}
	return v.load != old.load
}

func (e *editor) version(p *parser, it *item, updated int64) version {
	return version{hash: maphash.Bytes(seed, p.room[it.from+headSize:it.to]), updated: updated,
		load: e.load, partial: it.partial}
}

// takeEntry enters a record of an event, a series or a tag.
func (e *editor) takeEntry(p *parser, it *item) {
	if !it.partial {
		e.count(it.kind)
	}
	v := e.version(p, it, it.entry.Updated)
	old, no := e.known(it.kind, it.id)
	if old != nil {
		if !v.replaces(version{old.record.hash, old.Updated, old.load, old.Partial}) {
			return
		}
		no = old.No
	}
	group := uint64(0)
	if it.event != nil {
		group = it.event.Group
	}
	it.entry.record = e.write(p.seal(it, no, None, group))
	e.put(no, it)
}

// known returns the event, series or tag of an id, nil if there is none yet, and the number of the
// kind's next row.
func (e *editor) known(kind recordKind, id string) (row *Identity, next int32) {
	switch kind {
	case aTag:
		next = int32(e.tags.Len())
		if t := e.next.TagByID(id); t != nil {
			row = &t.Identity
		}
	case aSeries:
		next = int32(e.series.Len())
		if s := e.next.SeriesByID(id); s != nil {
			row = &s.Identity
		}
	default:
		next = int32(e.events.Len())
		if event := e.next.EventByID(id); event != nil {
			row = &event.Identity
		}
	}
	return row, next
}

// put makes a row of a record of an event, a series or a tag.
func (e *editor) put(no int32, it *item) {
	it.entry.No, it.entry.load = no, e.load
	switch it.kind {
	case aTag:
		e.putTag(it.tag)
	case aSeries:
		e.putSeries(it.series)
	default:
		e.putEvent(it)
	}
}

// putTag makes a row of a tag, with the old row's lists. A new label changes how its events are
// found.
func (e *editor) putTag(t *Tag) {
	if old := e.tags.At(t.No); old != nil {
		e.log.replaced(old.record)
		t.events, t.markets = old.events, old.markets
		if old.Label != t.Label {
			for _, event := range t.events {
				e.events.own(event)
			}
		}
	}
	e.tags.set(t.No, t)
	e.enter(byTagID, t.ID, t.No)
	e.enter(byTagSlug, t.Slug, t.No)
}

// putSeries makes a row of a series, with the old row's events.
func (e *editor) putSeries(s *Series) {
	if old := e.series.At(s.No); old != nil {
		e.log.replaced(old.record)
		s.events = old.events
	}
	e.series.set(s.No, s)
	e.enter(bySeriesID, s.ID, s.No)
	e.enter(bySeriesSlug, s.Slug, s.No)
}

// putEvent makes a row of an event, with the old row's markets, and enters it in its tags and
// series.
func (e *editor) putEvent(it *item) {
	row, no := it.event, it.event.No
	row.tags, row.series = e.numbersOf(aTag, it.tagIDs), e.numbersOf(aSeries, it.seriesIDs)
	var before Event
	if old := e.events.At(no); old != nil {
		before = *old
		e.log.replaced(old.record)
		row.markets = old.markets
	}
	e.events.set(no, row)
	for _, tag := range missing(before.tags, row.tags) {
		t := e.tags.own(tag)
		t.events = remove(t.events, no)
	}
	for _, tag := range missing(row.tags, before.tags) {
		t := e.tags.own(tag)
		t.events = append(e.grow(backlink{aTag, tag}, t.events), no)
	}
	for _, series := range missing(before.series, row.series) {
		s := e.series.own(series)
		s.events = remove(s.events, no)
	}
	for _, series := range missing(row.series, before.series) {
		e.join(e.series.own(series), no)
	}
	e.enter(byEventID, row.ID, no)
	e.enter(byEventSlug, row.Slug, no)
}

// join adds an event to a series in the order of their ids. Most sources come in this order, and
// every copy of a catalog has the same one.
func (e *editor) join(s *Series, no int32) {
	at, _ := slices.BinarySearchFunc(s.events, no, func(a, b int32) int {
		x, y := e.events.At(a), e.events.At(b)
		return compareIDs(x.number, y.number, x.ID, y.ID)
	})
	s.events = slices.Insert(e.grow(backlink{aSeries, s.No}, s.events), at, no)
}

// numbersOf lists the rows of a kind that some ids name, each once.
func (e *editor) numbersOf(kind recordKind, ids []string) (list []int32) {
	for _, id := range ids {
		if row, _ := e.known(kind, id); row != nil && !slices.Contains(list, row.No) {
			list = append(list, row.No)
		}
	}
	return list
}

// missing lists the numbers of a that are not in b.
func missing(a, b []int32) (list []int32) {
	for _, no := range a {
		if !slices.Contains(b, no) {
			list = append(list, no)
		}
	}
	return list
}

// remove copies a list without a number.
func remove(list []int32, no int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(n int32) bool { return n == no })
}

// grow returns a row's list, to be added to. The first time it is a copy: older catalogs may share
// the list.
func (e *editor) grow(of backlink, list []int32) []int32 {
	if e.grown[of] {
		return list
	}
	e.grown[of] = true
	return slices.Clone(list)
}

// takeMarket takes a market's record, the catalog's or the order book's.
func (e *editor) takeMarket(p *parser, it *item) {
	m := it.market
	old := e.next.Market(m.Condition)
	if why := e.contradicts(old, it); why != "" {
		e.refuse(it.line, it.id, why)
		return
	}
	event := None
	if row := e.next.EventByID(it.eventID); row != nil {
		event = row.No
	}
	if old != nil && !e.newer(p, old, it) {
		e.adopt(old, event)
		e.skip(old, it.kind)
		return
	}
	no := int32(e.markets.Len())
	if old != nil {
		no = old.No
	}
	m.EventNo, m.Skipped = event, it.skipped
	if it.kind == aBook && old != nil && !old.BookOnly {
		e.putBook(p, it, old)
		return
	}
	if old != nil && event == None {
		m.EventNo = old.EventNo
	}
	e.regroup(m, old)
	at := e.write(p.seal(it, no, m.EventNo, m.Group))
	e.putMarket(no, it, at)
	e.decide(old, m, it.kind)
}

// skip counts a record that changes nothing.
func (e *editor) skip(old *Market, k recordKind) {
	first, why := old.load, Known
	if k == aBook {
		first = old.bookLoad
	}
	if first == e.load {
		why = Duplicate
	}
	e.report.Skipped[why]++
}

// newer reports whether a record of a known market replaces the kept one.
func (e *editor) newer(p *parser, old *Market, it *item) bool {
	if it.kind == aBook {
		return e.version(p, it, 0).replaces(version{old.book.hash, 0, old.bookLoad, old.book.size == 0})
	}
	return e.version(p, it, it.market.Updated).replaces(
		version{old.record.hash, old.Updated, old.load, old.BookOnly})
}

// putBook adds the order book's record to a market that the catalog has a record of.
func (e *editor) putBook(p *parser, it *item, old *Market) {
	row := e.markets.own(old.No)
	e.log.replaced(row.book)
	row.book = e.write(p.seal(it, row.No, None, row.Group))
	row.HasBook, row.bookLoad = true, e.load
	e.report.Skipped[Described]++
}

// regroup sets the engine's group of a market. A listed market keeps its group.
func (e *editor) regroup(m *Market, old *Market) {
	event := e.events.At(m.EventNo)
	switch {
	case old != nil && old.Skipped == "" && old.load != e.load:
		m.Group = old.Group
	case event != nil:
		m.Group = event.Group
	case m.Group == 0:
		m.Group = group(m.Condition.Hex())
	}
}

// adopt gives a market without an event one.
func (e *editor) adopt(old *Market, event int32) {
	if old.EventNo != None || event == None {
		return
	}
	row := e.markets.own(old.No)
	row.EventNo = event
	if row.Skipped != "" || old.load == e.load {
		row.Group = e.events.At(event).Group
	}
	e.write(linkFrame(row.No, event, row.Group))
	e.linkMarket(row.No, None, event)
}

// contradicts returns how a record contradicts known ones, or "".
func (e *editor) contradicts(old *Market, it *item) string {
	m := it.market
	if other := e.next.MarketByID(m.ID); other != nil && other.Condition != m.Condition {
		return "has the id of " + other.Condition.Hex()
	}
	for _, token := range m.Tokens {
		other, _ := e.next.MarketByToken(token)
		if other != nil && other.Condition != m.Condition {
			return "shares a token id with " + other.Condition.Hex()
		}
	}
	switch {
	case old == nil || old.Tokens == [2]engine.Token{}:
		return ""
	case old.Tokens != m.Tokens,
		old.BookOnly == m.BookOnly && !slices.Equal(old.Outcomes, m.Outcomes):
		if old.load == e.load || old.bookLoad == e.load {
			return fmt.Sprintf("contradicts the same condition on line %d", old.line)
		}
		return "contradicts what is known of the condition"
	case it.kind == aBook && !old.BookOnly || old.Skipped != "" || it.skipped != "" ||
		old.load == e.load:
		return ""
	case old.Tick != m.Tick || old.MinSize != m.MinSize || old.NegRisk != m.NegRisk:
		return "contradicts the tick, the minimum or the neg-risk flag that the market trades by"
	}
	return ""
}

// putMarket makes a row of a market.
func (e *editor) putMarket(no int32, it *item, at location) {
	m := it.market
	m.No, m.tags = no, e.numbersOf(aTag, it.tagIDs)
	m.makers = [2]int32{e.maker(it.makers[0]), e.maker(it.makers[1])}
	before := None
	var tags []int32
	if old := e.markets.At(no); old != nil {
		before, tags = old.EventNo, old.tags
		if it.kind == aMarket {
			e.log.replaced(old.record)
			m.book, m.bookLoad, m.HasBook = old.book, old.bookLoad, old.HasBook
		} else {
			e.log.replaced(old.book)
		}
	}
	if it.kind == aMarket {
		m.record, m.load = at, e.load
	} else {
		m.book, m.bookLoad, m.load = at, e.load, e.load
	}
	e.markets.set(no, m)
	e.next.tables[byCondition].enter(hashBytes(m.Condition[:]), no)
	e.enter(byMarketID, m.ID, no)
	e.enter(byMarketSlug, m.Slug, no)
	for _, token := range m.Tokens {
		if token != (engine.Token{}) {
			e.next.tables[byToken].enter(hashBytes(token[:]), no)
		}
	}
	e.linkMarket(no, before, m.EventNo)
	for _, tag := range missing(tags, m.tags) {
		t := e.tags.own(tag)
		t.markets = remove(t.markets, no)
	}
	for _, tag := range missing(m.tags, tags) {
		t := e.tags.own(tag)
		t.markets = append(e.grow(backlink{aMarket, tag}, t.markets), no)
	}
}

// linkMarket moves a market from one event to another.
func (e *editor) linkMarket(no, before, after int32) {
	if before == after {
		if after != None { // the words of its event have changed
			e.events.own(after)
		}
		return
	}
	if before != None {
		row := e.events.own(before)
		row.markets = remove(row.markets, no)
	}
	if after != None {
		row := e.events.own(after)
		row.markets = append(e.grow(backlink{anEvent, after}, row.markets), no)
	}
}

// maker returns the number of a name among those who made markets.
func (e *editor) maker(name string) int32 {
	if name = lower(name); name == "" {
		return None
	}
	no := e.next.makerNo(name)
	if no == None {
		no = int32(e.names.Len())
		e.names.set(no, &name)
		e.enter(byName, name, no)
	}
	return no
}

// decide queues a market to be listed or closed.
func (e *editor) decide(old, m *Market, k recordKind) {
	_, waits := e.pending[m.No] // by an order book's record, which no longer counts
	if waits {
		delete(e.pending, m.No)
		e.report.Skipped[Described]++
	}
	switch {
	case m.Skipped == "":
		if !waits {
			e.queue = append(e.queue, m.No)
		}
		e.pending[m.No] = k
		return
	case (m.Skipped == Closed || m.Skipped == Archived) && old != nil && old.Skipped == "":
		e.closing = append(e.closing, m.No)
	}
	e.report.Skipped[m.Skipped]++
}

// restore enters an item of the log. The error is errFrame if the item makes no sense.
func (e *editor) restore(it *item) error {
	h := &it.head
	switch h.kind {
	case aTag, aSeries, anEvent:
		if _, next := e.known(it.kind, it.id); h.no < 0 || h.no > next {
			return errFrame
		}
		it.entry.record = it.record
		e.put(h.no, it)
	case aLink:
		m := e.markets.At(h.no)
		if m == nil || e.events.At(h.link) == nil {
			return errFrame
		}
		before := m.EventNo
		row := e.markets.own(h.no)
		row.EventNo, row.Group = h.link, h.group
		e.linkMarket(h.no, before, h.link)
	case aMarket, aBook:
		return e.restoreMarket(it)
	}
	return nil
}

func (e *editor) restoreMarket(it *item) error {
	h, m := &it.head, it.market
	if h.no < 0 || int(h.no) > e.markets.Len() || h.link != None && e.events.At(h.link) == nil {
		return errFrame
	}
	old := e.markets.At(h.no)
	if old != nil && old.Condition != m.Condition {
		return errFrame
	}
	if h.kind == aBook && old != nil && !old.BookOnly {
		e.log.replaced(old.book)
		row := e.markets.own(h.no)
		row.book, row.HasBook = it.record, true
		return nil
	}
	m.EventNo, m.Group, m.Skipped = h.link, h.group, it.skipped
	e.putMarket(h.no, it, it.record)
	return nil
}

package catalog

import (
	"slices"
	"strconv"
	"sync"

	"clobd/engine"
)

// The kinds of rows that have pages.
const (
	ofMarkets = iota
	ofEvents
	ofSeries
	ofTags
	kinds
)

// marketColumns are the sets of rows that nearly all pages use.
type marketColumns struct {
	active, archived, bookOnly                   bitset
	eventsActive, eventsArchived, eventsFeatured bitset
	books                                        int // how many are bookOnly
}

func (s *marketColumns) follow(c *Catalog, markets, events []int32) {
	for _, set := range []*bitset{&s.active, &s.archived, &s.bookOnly, &s.eventsActive,
		&s.eventsArchived, &s.eventsFeatured} {
		*set = slices.Clone(*set)
	}
	for _, no := range markets {
		m := c.Markets.At(no)
		if s.bookOnly.has(no) {
			s.books--
		}
		if m.BookOnly {
			s.books++
		}
		s.active.put(no, m.Active)
		s.archived.put(no, m.Archived)
		s.bookOnly.put(no, m.BookOnly)
	}
	for _, no := range events {
		e := c.Events.At(no)
		s.eventsActive.put(no, e.Active)
		s.eventsArchived.put(no, e.Archived)
		s.eventsFeatured.put(no, e.Featured)
	}
}

func (b *bitset) put(no int32, in bool) {
	if in {
		b.set(no)
	} else {
		b.unset(no)
	}
}

// foundCache keeps lists and sets that pages have used. A catalog and a liveView have one each.
type foundCache struct {
	mu    sync.Mutex
	lists map[string][]int32
	sets  map[string]bitset
	words int // kept, of four bytes
}

// maxFound bounds what a cache keeps, in words of four bytes.
const maxFound = 4 << 20

func (f *foundCache) get(key []byte) ([]int32, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, ok := f.lists[string(key)]
	return list, ok
}

func (f *foundCache) put(key []byte, list []int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room(len(list) + len(key))
	f.lists[string(key)] = list
}

// room makes room for an entry; it empties a full cache.
func (f *foundCache) room(words int) {
	const entry = 32
	if f.words += words + entry; f.words > maxFound || f.lists == nil {
		f.lists, f.sets, f.words = map[string][]int32{}, map[string]bitset{}, words+entry
	}
}

// set returns the set of a key, which the first call makes.
func (f *foundCache) set(key string, make func() bitset) bitset {
	f.mu.Lock()
	set, ok := f.sets[key]
	f.mu.Unlock()
	if ok {
		return set
	}
	set = make()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room(2*len(set) + len(key))
	f.sets[key] = set
	return set
}

// QueryMarkets returns a page of markets that have a record of the catalog. The error is
// ErrCursor.
func (c *Catalog) QueryMarkets(q *PageQuery) (Page[Market], error) {
	if c == nil {
		return Page[Market]{}, nil
	}
	f, view := &filter{kind: ofMarkets, found: c.found}, c.now()
	if c.markets.books > 0 {
		f.need(No, c.markets.bookOnly, "b")
	}
	f.need(q.Active, c.markets.active, "a")
	f.need(q.Archived, c.markets.archived, "z")
	f.live(q.Closed, view.markets.closed)
	fewMarkets(c, f, q)
	tagged(c, f, q, marketsTagged)
	if name := lower(q.Creator); name != "" {
		f.need(Yes, madeBy(c, name), "c")
		f.note("", name)
	}
	order := c.orders[ofMarkets]
	f.bounds(c, "s", &q.Start, order[ByStart])
	f.bounds(c, "e", &q.End, order[ByEnd])
	f.liveBounds(view, "v", &q.Volume, view.byMarket[0])
	f.liveBounds(view, "l", &q.Liquidity, view.byMarket[1])
	return pageOf(&c.Markets, f.listed(q, order, view, &view.byMarket), q, f)
}

// listed returns the list that a page is cut from; from ByVolume on, the view's.
func (f *filter) listed(q *PageQuery, order *orders, view *liveView,
	live *[liveOrders]*sorted) *sorted {
	list := order[q.Order]
	if q.Order >= ByVolume {
		list, f.timely = live[q.Order-ByVolume], true
	}
	if f.timely {
		f.found = view.found
	}
	return list
}

func pageOf[T any](rows *Rows[T], list *sorted, q *PageQuery, f *filter) (Page[T], error) {
	f.key = append(f.key, '|')
	numbers, next, err := list.page(q, f)
	if err != nil {
		return Page[T]{}, err
	}
	return Page[T]{Rows: rowsOf(rows, numbers), Next: next}, nil
}

// live is need for a set of live values.
func (f *filter) live(want Flag, set bitset) {
	f.need(want, set, "o")
	f.timely = f.timely || want != Any
}

// bounds keeps the rows whose time lies within bounds. A missing time lies within none.
func (f *filter) bounds(c *Catalog, name string, b *Bounds, by *sorted) {
	if !b.set() {
		return
	}
	within := *b
	if !within.HasMin {
		within.Min, within.HasMin = 1, true // 0 is no moment
	}
	f.within(c.found, name, &within, by)
}

func (f *filter) liveBounds(view *liveView, name string, b *Bounds, by *sorted) {
	if b.set() {
		f.timely = true
		f.within(view.found, name, b, by)
	}
}

// within keeps the rows whose column lies within bounds. The list is sorted by that column.
func (f *filter) within(found *foundCache, name string, b *Bounds, by *sorted) {
	low, high := b.limits()
	key := strconv.AppendInt(append([]byte(name), '['), low, 10)
	key = strconv.AppendInt(append(key, ','), high, 10)
	set := found.set(string(key), func() bitset {
		var set bitset
		list := by.list()
		from, _ := slices.BinarySearchFunc(list, low, func(no int32, low int64) int {
			if by.number(no) < low {
				return -1
			}
			return 1
		})
		for _, no := range list[from:] {
			if by.number(no) > high {
				break
			}
			set.set(no)
		}
		return set
	})
	f.parts = append(f.parts, filterPart{set: set})
	f.key = append(append(f.key, key...), ']')
}

// fewMarkets narrows a filter to the markets that a query names.
func fewMarkets(c *Catalog, f *filter, q *PageQuery) {
	itself := func(m *Market) []int32 { return []int32{m.No} }
	fewRows(f, q.IDs, c.MarketByID, itself)
	fewRows(f, q.Slugs, c.MarketBySlug, itself)
	fewRows(f, q.Conditions, c.Market, itself)
	fewRows(f, q.Tokens, func(t engine.Token) *Market {
		m, _ := c.MarketByToken(t)
		return m
	}, itself)
	within := func(e *Event) []int32 { return e.markets }
	fewRows(f, q.EventIDs, c.EventByID, within)
	fewRows(f, q.EventSlugs, c.EventBySlug, within)
}

// tagged keeps the rows with the tags that a query wants and drops those with excluded tags.
func tagged(c *Catalog, f *filter, q *PageQuery, rows func(*Catalog, *Tag) bitset) {
	either := func(tags []*Tag) bitset {
		if len(tags) == 1 {
			return rows(c, tags[0])
		}
		var all bitset
		for _, t := range tags {
			for i, word := range rows(c, t) {
				for i >= len(all) {
					all = append(all, 0)
				}
				all[i] |= word
			}
		}
		return all
	}
	var wanted []*Tag
	for _, ids := range []struct {
		names []string
		find  func(string) *Tag
	}{{q.TagIDs, c.TagByID}, {q.TagSlugs, c.TagBySlug}} {
		for _, name := range ids.names {
			t := ids.find(name)
			switch {
			case t != nil:
				wanted = append(wanted, t)
			case q.AllTags:
				f.narrow(nil)
			}
		}
	}
	switch {
	case len(q.TagIDs)+len(q.TagSlugs) == 0:
	case q.AllTags:
		for _, t := range wanted {
			f.need(Yes, rows(c, t), "t"+strconv.Quote(t.ID))
		}
	default:
		f.parts = append(f.parts, filterPart{set: either(wanted)})
		f.note("T", idsOf(wanted)...)
	}
	var unwanted []*Tag
	for _, id := range q.ExcludeTagIDs {
		if t := c.TagByID(id); t != nil {
			unwanted = append(unwanted, t)
		}
	}
	if len(unwanted) > 0 {
		f.parts = append(f.parts, filterPart{set: either(unwanted), absent: true})
		f.note("X", idsOf(unwanted)...)
	}
}

func idsOf(tags []*Tag) (ids []string) {
	for _, t := range tags {
		ids = append(ids, t.ID)
	}
	return ids
}

// marketsTagged are the markets that have a tag, themselves or from their event.
func marketsTagged(c *Catalog, t *Tag) bitset {
	return c.found.set("m tag "+t.ID, func() bitset {
		var set bitset
		for _, no := range t.markets {
			set.set(no)
		}
		for _, e := range t.events {
			for _, no := range c.Events.At(e).markets {
				if c.Markets.At(no).tags == nil {
					set.set(no)
				}
			}
		}
		return set
	})
}

// eventsTagged are the events that have a tag.
func eventsTagged(c *Catalog, t *Tag) bitset {
	return c.found.set("e tag "+t.ID, func() bitset { return setOf(t.events) })
}

func setOf(list []int32) (set bitset) {
	for _, no := range list {
		set.set(no)
	}
	return set
}

// madeBy returns the markets of a creator.
func madeBy(c *Catalog, name string) bitset {
	return c.found.set("m creator "+name, func() (set bitset) {
		maker := nameNo(&c.byName, &c.names, name)
		if maker == None {
			return nil
		}
		for m := range c.Markets.All() {
			if m.makers[0] == maker || m.makers[1] == maker {
				set.set(m.No)
			}
		}
		return set
	})
}

// Creators are who made a market, in lower case: what PageQuery.Creator compares with.
func (c *Catalog) Creators(m *Market) (names []string) {
	for _, no := range m.makers {
		if name := c.names.At(no); name != nil {
			names = append(names, *name)
		}
	}
	return names
}

// QueryEvents returns a page of events. The error is ErrCursor.
func (c *Catalog) QueryEvents(q *PageQuery) (Page[Event], error) {
	if c == nil {
		return Page[Event]{}, nil
	}
	f, view := &filter{kind: ofEvents, found: c.found}, c.now()
	f.need(q.Active, c.markets.eventsActive, "a")
	f.need(q.Archived, c.markets.eventsArchived, "z")
	f.need(q.Featured, c.markets.eventsFeatured, "f")
	f.live(q.Closed, view.events.closed)
	fewRows(f, q.IDs, c.EventByID, func(e *Event) []int32 { return []int32{e.No} })
	fewRows(f, q.Slugs, c.EventBySlug, func(e *Event) []int32 { return []int32{e.No} })
	fewRows(f, q.SeriesIDs, c.SeriesByID, func(s *Series) []int32 { return s.events })
	fewRows(f, q.SeriesSlugs, c.SeriesBySlug, func(s *Series) []int32 { return s.events })
	tagged(c, f, q, eventsTagged)
	if name := lower(q.Creator); name != "" {
		f.need(Yes, eventsMadeBy(c, name), "c")
		f.note("", name)
	}
	if word := q.Recurrence; word != "" {
		f.need(Yes, c.found.set("e every "+word, func() bitset { return recurring(c, word) }), "r")
		f.note("", word)
	}
	order := c.orders[ofEvents]
	f.bounds(c, "S", &q.Start, order[ByStart])
	f.bounds(c, "E", &q.End, order[ByEnd])
	f.liveBounds(view, "V", &q.Volume, view.byEvent[0])
	f.liveBounds(view, "L", &q.Liquidity, view.byEvent[1])
	f.key = append(f.key, 'E')
	return pageOf(&c.Events, f.listed(q, order, view, &view.byEvent), q, f)
}

// fewRows narrows a filter to the rows that the named ones stand for. No names: no narrowing.
func fewRows[K, T any](f *filter, names []K, find func(K) *T, stand func(*T) []int32) {
	if len(names) == 0 {
		return
	}
	var list []int32
	seen := map[*T]bool{nil: true}
	for _, name := range names {
		if row := find(name); !seen[row] {
			seen[row] = true
			list = append(list, stand(row)...)
		}
	}
	f.narrow(list)
}

// eventsMadeBy returns the events with a market of a creator.
func eventsMadeBy(c *Catalog, name string) bitset {
	return c.found.set("e creator "+name, func() (set bitset) {
		made := madeBy(c, name)
		for no := range int32(len(made) * 64) {
			if made.has(no) {
				if event := c.Markets.At(no).EventNo; event != None {
					set.set(event)
				}
			}
		}
		return set
	})
}

func recurring(c *Catalog, word string) (set bitset) {
	for s := range c.Series.All() {
		if s.Recurrence == word {
			for _, no := range s.events {
				set.set(no)
			}
		}
	}
	return set
}

// QuerySeries returns a page of series. The error is ErrCursor.
func (c *Catalog) QuerySeries(q *PageQuery) (Page[Series], error) {
	if c == nil {
		return Page[Series]{}, nil
	}
	f := &filter{kind: ofSeries, found: c.found}
	fewRows(f, q.IDs, c.SeriesByID, func(s *Series) []int32 { return []int32{s.No} })
	fewRows(f, q.Slugs, c.SeriesBySlug, func(s *Series) []int32 { return []int32{s.No} })
	var made bitset
	name := lower(q.Creator)
	if name != "" {
		made = eventsMadeBy(c, name)
	}
	var list []int32
	for s := range c.Series.All() {
		if is(q.Active, s.Active) && is(q.Closed, s.Closed) && is(q.Archived, s.Archived) &&
			(q.Recurrence == "" || q.Recurrence == s.Recurrence) &&
			(name == "" || slices.ContainsFunc(s.events, made.has)) {
			list = append(list, s.No)
		}
	}
	f.narrow(list)
	return pageOf(&c.Series, c.orders[ofSeries][q.Order], q, f)
}

func is(want Flag, value bool) bool { return want == Any || value == (want == Yes) }

// QueryTags returns a page of tags. The error is ErrCursor.
func (c *Catalog) QueryTags(q *PageQuery) (Page[Tag], error) {
	if c == nil {
		return Page[Tag]{}, nil
	}
	f := &filter{kind: ofTags, found: c.found}
	fewRows(f, q.IDs, c.TagByID, func(t *Tag) []int32 { return []int32{t.No} })
	fewRows(f, q.Slugs, c.TagBySlug, func(t *Tag) []int32 { return []int32{t.No} })
	if name := lower(q.Creator); name != "" {
		made := eventsMadeBy(c, name)
		var list []int32
		for t := range c.Tags.All() {
			if slices.ContainsFunc(t.events, made.has) {
				list = append(list, t.No)
			}
		}
		f.narrow(list)
	}
	return pageOf(&c.Tags, c.orders[ofTags][q.Order], q, f)
}

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

// marketColumns are sets of rows that nearly all pages ask for.
type marketColumns struct {
	active, archived, bookOnly                   bitset
	eventsActive, eventsArchived, eventsFeatured bitset
	books                                        int // how many are bookOnly
}

// follow enters the rows that have changed.
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

// foundCache keeps the lists and sets of pages, as long as their catalog or live values last.
type foundCache struct {
	mu    sync.Mutex
	lists map[string][]int32
	sets  map[string]bitset
	words int // of four bytes, that are kept
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

// room makes room. A full cache begins anew.
func (f *foundCache) room(words int) {
	const entry = 32
	if f.words += words + entry; f.words > maxFound || f.lists == nil {
		f.lists, f.sets, f.words = map[string][]int32{}, map[string]bitset{}, words+entry
	}
}

// set returns the set of a name, which the first call makes.
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

// QueryMarkets returns a page of the markets that have a record of the catalog. The error is
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
	filterTraits(c, f, q)
	f.only("c", lower(q.Creator), c.madeBy)
	order := c.orders[ofMarkets]
	f.bounds(c, "s", &q.Start, order[ByStart])
	f.bounds(c, "e", &q.End, order[ByEnd])
	f.liveBounds(view, "v", &q.Volume, view.byMarket[0])
	f.liveBounds(view, "l", &q.Liquidity, view.byMarket[1])
	return pageOf(&c.Markets, f.listed(q, order, view, &view.byMarket), q, f)
}

// listed returns the list that a page is cut from. The lists from ByVolume on are live.
func (f *filter) listed(q *PageQuery, order *orders, view *liveView,
	live *[liveOrders]*sorted) *sorted {
	list := order[q.Order]
	if q.Order.live() {
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
	return Page[T]{Rows: rowsOf(rows, numbers), Next: next, Total: f.total}, nil
}

// live is need for a set that changes with the books.
func (f *filter) live(want Flag, set bitset) {
	f.need(want, set, "o")
	f.timely = f.timely || want != Any
}

// bounds keeps the rows whose moment lies within bounds. A missing moment lies within none.
func (f *filter) bounds(c *Catalog, name string, b *Bounds, by *sorted) {
	if !b.HasMin && !b.HasMax {
		return
	}
	within := *b
	if !within.HasMin {
		within.Min, within.HasMin = 1, true // 0 is no moment
	}
	f.within(c.found, name, &within, by)
}

func (f *filter) liveBounds(view *liveView, name string, b *Bounds, by *sorted) {
	if b.HasMin || b.HasMax {
		f.timely = true
		f.within(view.found, name, b, by)
	}
}

// within keeps the rows whose column lies within bounds; the list is sorted by that column.
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

// fewMarkets narrows a filter to the markets that a query names, themselves or by their events.
func fewMarkets(c *Catalog, f *filter, q *PageQuery) {
	itself := func(list []int32, m *Market) []int32 { return append(list, m.No) }
	ofEvent := func(list []int32, e *Event) []int32 { return append(list, e.markets...) }
	fewRows(f, q.IDs, c.MarketByID, itself)
	fewRows(f, q.Slugs, c.MarketBySlug, itself)
	fewRows(f, q.Conditions, c.Market, itself)
	fewRows(f, q.Tokens, func(t engine.Token) *Market {
		m, _ := c.MarketByToken(t)
		return m
	}, itself)
	fewRows(f, q.EventIDs, c.EventByID, ofEvent)
	fewRows(f, q.EventSlugs, c.EventBySlug, ofEvent)
}

// fewRows narrows a filter to the rows that add appends for each row that has one of the names.
func fewRows[K comparable, T any](f *filter, names []K, find func(K) *T,
	add func(list []int32, row *T) []int32) {
	if len(names) == 0 {
		return
	}
	var list []int32
	added := map[K]bool{}
	for _, name := range names {
		if row := find(name); row != nil && !added[name] {
			list, added[name] = add(list, row), true
		}
	}
	f.narrow(list)
}

// tagged keeps the rows that have the tags a query names, and drops those with excluded tags.
func tagged(c *Catalog, f *filter, q *PageQuery, rows func(*Catalog, *Tag) bitset) {
	find := func(names []string, by func(string) *Tag) (tags []*Tag) {
		for _, name := range names {
			if t := by(name); t != nil {
				tags = append(tags, t)
			}
		}
		return tags
	}
	either := func(name string, tags []*Tag, absent bool) {
		var all bitset
		if len(tags) == 1 {
			all = rows(c, tags[0])
		} else {
			for _, t := range tags {
				all.join(rows(c, t))
			}
		}
		f.parts = append(f.parts, filterPart{set: all, absent: absent})
		f.key = append(f.key, name...)
		for _, t := range tags {
			f.note(t.ID)
		}
	}
	wanted := append(find(q.TagIDs, c.TagByID), find(q.TagSlugs, c.TagBySlug)...)
	switch asked := len(q.TagIDs) + len(q.TagSlugs); {
	case asked == 0:
	case q.AllTags:
		if len(wanted) < asked {
			f.narrow(nil)
		}
		for _, t := range wanted {
			f.need(Yes, rows(c, t), "t"+strconv.Quote(t.ID))
		}
	default:
		either("T", wanted, false)
	}
	if unwanted := find(q.ExcludeTagIDs, c.TagByID); len(unwanted) > 0 {
		either("X", unwanted, true)
	}
}

// marketsTagged returns the markets that have a tag, their own or their event's.
func marketsTagged(c *Catalog, t *Tag) bitset {
	return c.found.set("m tag "+t.ID, func() bitset {
		set := setOf(t.markets)
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

func eventsTagged(c *Catalog, t *Tag) bitset {
	return c.found.set("e tag "+t.ID, func() bitset { return setOf(t.events) })
}

func setOf(list []int32) (set bitset) {
	for _, no := range list {
		set.set(no)
	}
	return set
}

// makerNo returns the number of a name in lower case among those who made markets, or None.
func (c *Catalog) makerNo(name string) int32 {
	maker := None
	c.tables[byName].find(hashText(name), func(no int32) bool {
		if *c.names.At(no) == name {
			maker = no
		}
		return true
	})
	return maker
}

// madeBy returns the markets that somebody made.
func (c *Catalog) madeBy(name string) bitset {
	return c.found.set("m creator "+name, func() (set bitset) {
		maker := c.makerNo(name)
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

// MadeBy returns a test for the markets that somebody made, whose name may be in any letter case.
func (c *Catalog) MadeBy(name string) func(*Market) bool {
	if name = lower(name); name == "" || c == nil {
		return func(*Market) bool { return false }
	}
	made := c.madeBy(name)
	return func(m *Market) bool { return made.has(m.No) }
}

// Creators returns who made a market, in lower case, as PageQuery.Creator compares them.
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
	itself := func(list []int32, e *Event) []int32 { return append(list, e.No) }
	ofSeries := func(list []int32, s *Series) []int32 { return append(list, s.events...) }
	fewRows(f, q.IDs, c.EventByID, itself)
	fewRows(f, q.Slugs, c.EventBySlug, itself)
	fewRows(f, q.SeriesIDs, c.SeriesByID, ofSeries)
	fewRows(f, q.SeriesSlugs, c.SeriesBySlug, ofSeries)
	tagged(c, f, q, eventsTagged)
	filterEventTraits(c, f, q)
	f.only("c", lower(q.Creator), c.eventsMadeBy)
	f.only("r", q.Recurrence, c.recurring)
	order := c.orders[ofEvents]
	f.bounds(c, "S", &q.Start, order[ByStart])
	f.bounds(c, "E", &q.End, order[ByEnd])
	f.liveBounds(view, "V", &q.Volume, view.byEvent[0])
	f.liveBounds(view, "L", &q.Liquidity, view.byEvent[1])
	f.key = append(f.key, 'E')
	return pageOf(&c.Events, f.listed(q, order, view, &view.byEvent), q, f)
}

// eventsMadeBy returns the events of which somebody made a market.
func (c *Catalog) eventsMadeBy(name string) bitset {
	return c.found.set("e creator "+name, func() (set bitset) {
		made := c.madeBy(name)
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

// recurring returns the events of the series that recur as a word says.
func (c *Catalog) recurring(word string) bitset {
	return c.found.set("e every "+word, func() (set bitset) {
		for s := range c.Series.All() {
			if s.Recurrence == word {
				set.join(setOf(s.events))
			}
		}
		return set
	})
}

// QuerySeries returns a page of series. The error is ErrCursor.
func (c *Catalog) QuerySeries(q *PageQuery) (Page[Series], error) {
	if c == nil {
		return Page[Series]{}, nil
	}
	f := &filter{kind: ofSeries, found: c.found}
	itself := func(list []int32, s *Series) []int32 { return append(list, s.No) }
	fewRows(f, q.IDs, c.SeriesByID, itself)
	fewRows(f, q.Slugs, c.SeriesBySlug, itself)
	var made bitset
	name := lower(q.Creator)
	if name != "" {
		made = c.eventsMadeBy(name)
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
	itself := func(list []int32, t *Tag) []int32 { return append(list, t.No) }
	fewRows(f, q.IDs, c.TagByID, itself)
	fewRows(f, q.Slugs, c.TagBySlug, itself)
	if name := lower(q.Creator); name != "" {
		made := c.eventsMadeBy(name)
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

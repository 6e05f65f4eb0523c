package catalog

import (
	"math"
	"slices"

	"clobd/api/catalog/search"
)

// WordQuery asks for rows by their words.
type WordQuery struct {
	// Text holds the words to search for.
	Text string
	// Creator, if set, is who made a market of what is wanted, in any letter case.
	Creator string
	// Offset and Limit say which part of what is found is wanted. Negative ones are zero.
	Offset, Limit int
}

// Found is a part of the rows that were found, the best first.
type Found[T any] struct {
	Rows []*T
	// Total is how many there are in all.
	Total int
}

// creatorMark is what an event of a creator's market is marked with.
func creatorMark(name string) string { return "creator:" + name }

// FindEvents finds events by their titles, slugs and tags, and by the questions and slugs of their
// markets.
func (c *Catalog) FindEvents(q *WordQuery) Found[Event] {
	if c == nil {
		return Found[Event]{}
	}
	ask := search.Query{Text: q.Text, Offset: q.Offset, Limit: q.Limit}
	if name := lower(q.Creator); name != "" {
		ask.Marks = []string{creatorMark(name)}
	}
	found := c.searchEvents.Find(ask)
	return Found[Event]{rowsOf(&c.Events, found.IDs), found.Total}
}

// FindTags finds tags by their labels and slugs. A creator's are those that his events have.
func (c *Catalog) FindTags(q *WordQuery) Found[Tag] {
	if c == nil {
		return Found[Tag]{}
	}
	name := lower(q.Creator)
	if name == "" {
		found := c.searchTags.Find(search.Query{Text: q.Text, Offset: q.Offset, Limit: q.Limit})
		return Found[Tag]{rowsOf(&c.Tags, found.IDs), found.Total}
	}
	all := rowsOf(&c.Tags, c.searchTags.Find(search.Query{Text: q.Text, Limit: math.MaxInt}).IDs)
	made := eventsMadeBy(c, name)
	all = slices.DeleteFunc(all, func(t *Tag) bool { return !slices.ContainsFunc(t.events, made.has) })
	from := min(max(q.Offset, 0), len(all))
	return Found[Tag]{all[from : from+min(max(q.Limit, 0), len(all)-from)], len(all)}
}

// gathered is the same catalog with a search in one piece.
func gathered(c *Catalog) *Catalog {
	next := clone(c)
	next.ranks = make([]searchRank, c.Events.Len())
	events := make([]search.Document, 0, c.Events.Len())
	for e := range c.Events.All() {
		next.ranks[e.No] = rankOf(next, e)
		events = append(events, eventDocument(next, e, next.ranks[e.No]))
	}
	next.searchEvents = search.New(events)
	return next
}

// searchRank is what the search orders an event by among those that match equally well.
type searchRank struct {
	volume float64
	active bool
}

// rankOf is the rank that an event has now. Its volume is what is traded here or what the source
// says, whichever is more: at first hardly anything is traded here, and what the source says is
// what people look for.
func rankOf(c *Catalog, e *Event) searchRank {
	v, said := c.seen.Load().events.at(e.No), e.Volume
	if said == 0 {
		for _, no := range e.markets {
			said += c.Markets.At(no).Volume
		}
	}
	return searchRank{float64(max(v.Volume, said)) / 1e6, e.Active && !v.Closed && !e.Archived}
}

// alike says whether an event may stay where it is. Volumes change all the time, and few of them by
// so much that it matters.
func (r searchRank) alike(old searchRank) bool {
	const much = 0.1
	return r.active == old.active && math.Abs(r.volume-old.volume) <= much*math.Abs(old.volume)
}

// ranked is the catalog with a search that goes by what events are worth now; itself if it does.
func ranked(c *Catalog) *Catalog {
	c.now()
	var events []search.Document
	ranks := slices.Clone(c.ranks)
	for e := range c.Events.All() {
		if r := rankOf(c, e); !r.alike(ranks[e.No]) {
			ranks[e.No] = r
			events = append(events, eventDocument(c, e, r))
		}
	}
	if len(events) == 0 {
		return c
	}
	next := clone(c)
	next.ranks, next.searchEvents = ranks, c.searchEvents.With(events, nil)
	return next
}

// findable makes the searches.
func findable(c *Catalog, from *Catalog, d *changes) {
	var events, tags []search.Document
	c.ranks = make([]searchRank, c.Events.Len())
	if from != nil {
		copy(c.ranks, from.ranks)
	}
	for _, no := range d.events {
		e := c.Events.At(no)
		now := rankOf(c, e)
		document := eventDocument(c, e, now)
		if from != nil && int(no) < from.Events.Len() && now.alike(c.ranks[no]) {
			before := eventDocument(from, from.Events.At(no), c.ranks[no])
			if foundAlike(&document, &before) {
				continue
			}
		}
		c.ranks[no] = now
		events = append(events, document)
	}
	switch {
	case from == nil || from.searchEvents == nil || from.searchEvents.Len() == 0:
		c.searchEvents = search.New(events)
	case len(events) == 0:
		c.searchEvents = from.searchEvents
	default:
		c.searchEvents = from.searchEvents.With(events, nil)
	}
	if from != nil && len(d.tags) == 0 {
		c.searchTags = from.searchTags
		return
	}
	for t := range c.Tags.All() {
		tags = append(tags, search.Document{ID: t.No, Title: t.Label,
			Texts: []string{t.Slug}, Active: true, Volume: float64(len(t.events))})
	}
	c.searchTags = search.New(tags)
}

// foundAlike says whether a document is found by the same words as another one.
func foundAlike(d, other *search.Document) bool {
	return d.Title == other.Title && slices.Equal(d.Texts, other.Texts) &&
		slices.Equal(d.Marks, other.Marks)
}

// eventDocument is what an event of a rank is found by.
func eventDocument(c *Catalog, e *Event, r searchRank) search.Document {
	d := search.Document{ID: e.No, Title: e.Title, Texts: []string{e.Slug}, Active: r.active,
		Volume: r.volume}
	for _, no := range e.markets {
		m := c.Markets.At(no)
		d.Texts = append(d.Texts, m.Question, m.Slug)
		for _, name := range c.Creators(m) {
			if mark := creatorMark(name); !slices.Contains(d.Marks, mark) {
				d.Marks = append(d.Marks, mark)
			}
		}
	}
	for _, no := range e.tags {
		d.Texts = append(d.Texts, c.Tags.At(no).Label)
	}
	return d
}

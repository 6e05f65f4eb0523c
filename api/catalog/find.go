package catalog

import (
	"math"
	"slices"

	"clobd/api/catalog/search"
)

// WordQuery asks for rows by their words.
type WordQuery struct {
	Text string // the words
	// Creator, if set, is who made a market of the row, in any letter case.
	Creator string
	// Offset and Limit cut the part that is wanted. Negative ones are zero.
	Offset, Limit int
}

// Found is a part of the rows that were found, the best first.
type Found[T any] struct {
	Rows  []*T
	Total int // with those outside the part
}

// creatorMark and a name mark the events that have a market of a creator.
const creatorMark = "creator:"

// FindEvents finds events by their titles, slugs and tags, and by the questions and slugs of their
// markets.
func (c *Catalog) FindEvents(q *WordQuery) Found[Event] {
	if c == nil {
		return Found[Event]{}
	}
	ask := search.Query{Text: q.Text, Offset: q.Offset, Limit: q.Limit}
	if name := lower(q.Creator); name != "" {
		ask.Marks = []string{creatorMark + name}
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
	made := c.eventsMadeBy(name)
	all = slices.DeleteFunc(all, func(t *Tag) bool { return !slices.ContainsFunc(t.events, made.has) })
	from := min(max(q.Offset, 0), len(all))
	return Found[Tag]{all[from : from+min(max(q.Limit, 0), len(all)-from)], len(all)}
}

// gathered returns the same catalog with a search in one piece.
func gathered(c *Catalog) *Catalog {
	next := *c
	next.ranks = make([]searchRank, c.Events.Len())
	events := make([]search.Document, 0, c.Events.Len())
	for e := range c.Events.All() {
		next.ranks[e.No] = rankOf(&next, e)
		events = append(events, eventDocument(&next, e, next.ranks[e.No]))
	}
	next.searchEvents = search.New(events)
	return &next
}

// searchRank orders events that match equally well.
type searchRank struct {
	volume float64
	active bool
}

// rankOf returns the present rank of an event. Its volume is the volume here or the source's,
// whichever is more: at first hardly anything is traded here, and people look for the source's.
func rankOf(c *Catalog, e *Event) searchRank {
	v, said := c.seen.Load().events.at(e.No), e.Volume
	if said == 0 {
		for _, no := range e.markets {
			said += c.Markets.At(no).Volume
		}
	}
	return searchRank{float64(max(v.Volume, said)) / 1e6, e.Active && !v.Closed && !e.Archived}
}

// alike reports whether an event may keep its rank. Volumes change all the time, few by much.
func (r searchRank) alike(old searchRank) bool {
	const much = 0.1
	return r.active == old.active && math.Abs(r.volume-old.volume) <= much*math.Abs(old.volume)
}

// ranked returns the catalog with a search by the present ranks; the same one if none has changed.
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
	next := *c
	next.ranks, next.searchEvents = ranks, c.searchEvents.With(events, nil)
	return &next
}

// index makes the searches of the next catalog.
func (e *editor) index() {
	c, from := e.next, e.from
	var events, tags []search.Document
	c.ranks = make([]searchRank, c.Events.Len())
	copy(c.ranks, from.ranks)
	for _, no := range e.events.changed {
		event := c.Events.At(no)
		now := rankOf(c, event)
		document := eventDocument(c, event, now)
		if int(no) < from.Events.Len() && now.alike(c.ranks[no]) {
			before := eventDocument(from, from.Events.At(no), c.ranks[no])
			if foundAlike(&document, &before) {
				continue
			}
		}
		c.ranks[no] = now
		events = append(events, document)
	}
	switch {
	case from.searchEvents == nil || from.searchEvents.Len() == 0:
		c.searchEvents = search.New(events)
	case len(events) > 0:
		c.searchEvents = from.searchEvents.With(events, nil)
	}
	if from.searchTags != nil && len(e.tags.changed) == 0 {
		return
	}
	for t := range c.Tags.All() {
		tags = append(tags, search.Document{ID: t.No, Title: t.Label,
			Texts: []string{t.Slug}, Active: true, Volume: float64(len(t.events))})
	}
	c.searchTags = search.New(tags)
}

// foundAlike reports whether two documents are found by the same words.
func foundAlike(d, other *search.Document) bool {
	return d.Title == other.Title && slices.Equal(d.Texts, other.Texts) &&
		slices.Equal(d.Marks, other.Marks)
}

// eventDocument returns the words and marks that an event is found by, with its rank.
func eventDocument(c *Catalog, e *Event, r searchRank) search.Document {
	d := search.Document{ID: e.No, Title: e.Title, Texts: []string{e.Slug}, Active: r.active,
		Volume: r.volume}
	for _, no := range e.markets {
		m := c.Markets.At(no)
		d.Texts = append(d.Texts, m.Question, m.Slug)
		for _, name := range c.Creators(m) {
			if mark := creatorMark + name; !slices.Contains(d.Marks, mark) {
				d.Marks = append(d.Marks, mark)
			}
		}
	}
	for _, no := range e.tags {
		d.Texts = append(d.Texts, c.Tags.At(no).Label)
	}
	return d
}

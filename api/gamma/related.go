package gamma

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/wire"
)

var noMarketTypes = []byte(`{"marketTypes":[]}`)

const (
	maxRelated       = 100    // tags beside one tag
	maxRelatedEvents = 10_000 // the latest events of a tag, whose tags are counted
)

// relatedTags finds the tags that events have beside the tag in the path. write answers with them.
func (g *Gamma) relatedTags(
	byID bool, write func(*fasthttp.RequestCtx, *related),
) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		r := related{catalog: g.o.Catalog()}
		none := errNoSlug
		if byID {
			id := wire.InPath(ctx, "id")
			r.of, none = r.catalog.TagByID(id), absent(id)
		} else {
			r.of = r.catalog.TagBySlug(wire.InPath(ctx, "slug"))
		}
		w := ask(ctx)
		w.flag("omit_empty") // a related tag is never empty
		r.status = w.Text("status")
		if !slices.Contains([]string{"", "all", "active", "closed"}, r.status) {
			w.Invalid("status", "active, closed or all")
		}
		switch {
		case r.of == nil:
			none.Send(ctx)
		case w.Refused != nil:
			w.Refused.Send(ctx)
		default:
			r.find()
			write(ctx, &r)
		}
	}
}

type related struct {
	catalog *catalog.Catalog
	of      *catalog.Tag
	status  string // of the events that count: active, closed, else all
	tags    []*catalog.Tag
}

// find sorts the tags by the number of events that they share with r.of, the largest first.
func (r *related) find() {
	events := r.catalog.EventsOfTag(r.of)
	beside := map[*catalog.Tag]int{}
	for _, e := range events[max(len(events)-maxRelatedEvents, 0):] {
		if r.status == "active" && (e.Closed || !e.Active) || r.status == "closed" && !e.Closed {
			continue
		}
		for _, t := range r.catalog.TagsOf(e) {
			if t.No == r.of.No {
				continue
			}
			if beside[t]++; beside[t] == 1 {
				r.tags = append(r.tags, t)
			}
		}
	}
	slices.SortFunc(r.tags, func(x, y *catalog.Tag) int {
		return cmp.Or(cmp.Compare(beside[y], beside[x]), cmp.Compare(x.No, y.No))
	})
	r.tags = r.tags[:min(len(r.tags), maxRelated)]
}

func (g *Gamma) tagsOf(ctx *fasthttp.RequestCtx, r *related) {
	key := keyOf("related tags")
	for _, t := range r.tags {
		key = key.of(t.No)
	}
	g.write(ctx, r.catalog, key, func(d *describer, b []byte) []byte { return d.tags(b, r.tags) })
}

// appendRelations answers with the ids of both tags of each relation and a rank that counts from 1.
// An id that is not a whole number is left out: clients read numbers there.
func (g *Gamma) appendRelations(ctx *fasthttp.RequestCtx, r *related) {
	b := append(make([]byte, 0, 2+96*len(r.tags)), '[')
	for i, t := range r.tags {
		b = wire.AppendField(append(wire.AppendComma(b), '{'), "id", r.of.ID+"-"+t.ID)
		b = appendTagNumber(b, "tagID", r.of.ID)
		b = appendTagNumber(b, "relatedTagID", t.ID)
		b = wire.CloseObject(strconv.AppendInt(wire.AppendKey(b, "rank"), int64(i)+1, 10))
	}
	wire.Answer(ctx, append(b, ']'))
}

// appendTagNumber appends a tag's id if it is a number that JSON readers hold exactly.
func appendTagNumber(b []byte, key, id string) []byte {
	n, err := strconv.ParseUint(id, 10, 53)
	if err != nil {
		return b
	}
	return strconv.AppendUint(wire.AppendKey(b, key), n, 10)
}

// maxRelatedTo bounds the tags of a query whose related tags count as well.
const maxRelatedTo = 4

// relate adds the related tags of those that a query names, if it asks for them.
func (w *query) relate(c *catalog.Catalog, q *catalog.PageQuery) {
	if !w.related || q.AllTags {
		return
	}
	named := slices.Clone(q.TagIDs)
	for _, slug := range q.TagSlugs {
		if t := c.TagBySlug(slug); t != nil {
			named = append(named, t.ID)
		}
	}
	for _, id := range named[:min(len(named), maxRelatedTo)] {
		if t := c.TagByID(id); t != nil {
			r := related{catalog: c, of: t}
			r.find()
			for _, beside := range r.tags {
				q.TagIDs = append(q.TagIDs, beside.ID)
			}
		}
	}
}

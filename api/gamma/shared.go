package gamma

import (
	"encoding/binary"
	"weak"

	"github.com/valyala/fasthttp"

	"clobd/api/catalog"
	"clobd/api/pages"
)

// pageKey names what an answer shows: its form and its rows. Two queries that find the same rows
// have one page, so parameters that select nothing make no pages of their own.
type pageKey []byte

// keyOf begins a key with the name of a form.
func keyOf(form string) pageKey {
	return append(append(make(pageKey, 0, 64), form...), 0)
}

// of adds a row.
func (k pageKey) of(no int32) pageKey { return binary.LittleEndian.AppendUint32(k, uint32(no)) }

// from adds an ordinal.
func (k pageKey) from(n uint64) pageKey { return binary.LittleEndian.AppendUint64(k, n) }

func (k pageKey) with(yes bool) pageKey {
	if yes {
		return append(k, 1)
	}
	return append(k, 0)
}

// write answers with what a describer appends. key names that.
func (g *Gamma) write(
	ctx *fasthttp.RequestCtx, c *catalog.Catalog, key pageKey,
	what func(*describer, []byte) []byte,
) {
	if !g.page(ctx, c, key, what) {
		errCatalog.Send(ctx)
	}
}

// page is write, but leaves the refusal to the caller if a record cannot be read.
func (g *Gamma) page(
	ctx *fasthttp.RequestCtx, c *catalog.Catalog, key pageKey,
	what func(*describer, []byte) []byte,
) bool {
	return g.o.Pages.Answer(ctx, &pages.Source{
		Key:     key,
		Version: func() pages.Version { return g.version(c) },
		Append: func(b []byte) ([]byte, bool) {
			d := g.describer(c)
			defer d.done()
			b = what(d, b)
			if d.err != nil {
				g.o.Log.Error("read the catalog", "path", string(ctx.Path()), "err", d.err)
			}
			return b, d.err == nil
		},
	})
}

// version is how new the facts behind all answers are. A weak pointer names the catalog, so that
// pages keep no catalog in memory.
func (g *Gamma) version(c *catalog.Catalog) pages.Version {
	count := g.o.Board.Counters()
	return pages.Version{Source: weak.Make(c), Hour: g.o.Values.hour(), States: count.Changes,
		Books: count.Snapshots, Index: uint64(g.o.Values.history.Sequence())}
}

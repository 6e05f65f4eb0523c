package console

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/valyala/fasthttp"

	"clobd/api/pages"
	"clobd/api/wire"
)

// Facts is what the pages must know of the node before they speak with it.
type Facts struct {
	Version string
	Demo    bool // whoever derives a key gets paper money
	Chain   uint64
	// Exchanges are the contracts that orders may be signed for, the most used first.
	Exchanges []Domain
}

// Domain is a domain of signatures.
type Domain struct {
	Name, Version, Contract string
	Markets                 string // normal, neg-risk or all
}

//go:embed static
var static embed.FS

// policy lets the pages load and ask this listener, and nothing else. Markup can only be made
// element by element: a script that sets it as text fails.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are the media types of the files, by the ends of their names.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// Console answers what the pages are made of.
type Console struct {
	node *pages.Source
	kept *pages.Cache
	list []asset
}

// asset is one file of the pages.
type asset struct {
	name, kind string
	source     *pages.Source
}

// New makes the Console of a node. Its answers are kept in a Cache.
func New(node *Facts, kept *pages.Cache) *Console {
	c := &Console{kept: kept, node: source("node.json", node.append(nil))}
	files, err := fs.ReadDir(static, "static")
	for _, f := range files {
		body, unread := static.ReadFile("static/" + f.Name())
		kind, known := types[path.Ext(f.Name())]
		if !known {
			unread = fmt.Errorf("%s has no media type", f.Name())
		}
		err = errors.Join(err, unread)
		c.list = append(c.list, asset{f.Name(), kind, source(f.Name(), body)})
	}
	if err != nil {
		panic("BUG: the console's files: " + err.Error())
	}
	return c
}

func source(name string, body []byte) *pages.Source {
	return &pages.Source{Key: []byte("/console/" + name),
		Version: func() pages.Version { return pages.Version{} },
		Append:  func(b []byte) ([]byte, bool) { return append(b, body...), true }}
}

// Routes are those that all clients may use.
func (c *Console) Routes() []wire.Route {
	return []wire.Route{{Path: "/console/node.json", Handler: func(ctx *fasthttp.RequestCtx) {
		c.kept.Answer(ctx, c.node)
	}}}
}

// Pages are the paths of what browsers load, each file by its name and the first page by the
// folder's. They are no part of the interface, and change from version to version.
func (c *Console) Pages() (list []wire.Route) {
	for _, f := range c.list {
		handler := func(ctx *fasthttp.RequestCtx) {
			c.kept.Answer(ctx, f.source)
			if ctx.Response.StatusCode() == fasthttp.StatusOK {
				ctx.SetContentType(f.kind)
			}
			guard(&ctx.Response.Header)
		}
		list = append(list, wire.Route{Path: "/console/" + f.name, Handler: handler})
		if f.name == "index.html" {
			// The door has taken off the slash at the end.
			list = append(list, wire.Route{Path: "/console", Handler: handler})
		}
	}
	return list
}

// guard says what a browser may do with an answer. It asks for it each time, with the tag of what
// it has, so that no page runs with modules of another version.
func guard(h *fasthttp.ResponseHeader) {
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// append appends GET /console/node.json.
func (n *Facts) append(b []byte) []byte {
	b = wire.AppendField(append(b, '{'), "version", n.Version)
	b = fmt.Appendf(b, `,"demo":%t,"chain":%d,"exchanges":[`, n.Demo, n.Chain)
	for _, e := range n.Exchanges {
		b = wire.AppendField(append(wire.AppendComma(b), '{'), "name", e.Name)
		b = wire.AppendField(b, "version", e.Version)
		b = wire.AppendField(b, "contract", e.Contract)
		b = wire.CloseObject(wire.AppendField(b, "markets", e.Markets))
	}
	return append(b, "]}"...)
}

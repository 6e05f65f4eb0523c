package wire

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// UnknownQuery is the header that names the parameters of a query which mean nothing here. They do
// no harm, but whoever misspelt one would not notice.
const UnknownQuery = "X-Unknown-Query"

const (
	maxUnknown     = 8  // parameters that the header names
	maxUnknownName = 64 // bytes of each
)

// Parameters are the names that some routes know.
type Parameters map[string]struct{}

// Known are the names in some texts, with spaces between them, and those that every request may
// have.
func Known(texts ...string) Parameters {
	p := Parameters{MinSequence: {}, Consistency: {}}
	for _, text := range texts {
		for name := range strings.FieldsSeq(text) {
			p[name] = struct{}{}
		}
	}
	return p
}

// Tell names the parameters of a request that are not known in the header of its answer. A request
// whose parameters are all known, as nearly all are, costs no allocation.
func (p Parameters) Tell(ctx *fasthttp.RequestCtx) {
	var unknown []string
	query := ctx.URI().QueryString()
	for len(query) > 0 && len(unknown) < maxUnknown {
		var parameter []byte
		parameter, query, _ = bytes.Cut(query, ampersand)
		key, _, _ := bytes.Cut(parameter, equals)
		if _, known := p[string(key)]; known || len(parameter) == 0 {
			continue
		}
		name := string(key)
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if _, known := p[name]; known {
			continue
		}
		if name = harmless(name); !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		ctx.Response.Header.Set(UnknownQuery, strings.Join(unknown, ", "))
	}
}

// Telling makes the answers of a handler name the parameters that are not known.
func (p Parameters) Telling(h fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		p.Tell(ctx)
		h(ctx)
	}
}

// harmless is a name without anything that means something in a header or on a terminal.
func harmless(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-',
			r == '.', r == '[', r == ']':
			return r
		}
		return '?'
	}, name[:min(len(name), maxUnknownName)])
	if name == "" {
		return "?"
	}
	return name
}

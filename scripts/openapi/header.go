package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// common are the headers that any answer may have: those of HTTP itself, what browsers want before
// they hand an answer to a page, what is left of the caller's limits, and the node's version.
var common = []string{
	"Access-Control-Max-Age", "Cache-Control", "Content-Encoding", "Strict-Transport-Security",
	"Vary", "X-Content-Type-Options",
	"Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin",
	"Access-Control-Expose-Headers", "Allow", "Connection", "Content-Length", "Content-Type", "Date",
	"Poly-Ratelimit-Remaining", "Poly-Ratelimit-Reset", "Poly-Ratelimit-Tier", "Ratelimit",
	"Ratelimit-Policy", "Transfer-Encoding", "X-Node-Version", "X-Unknown-Query",
}

// checkHeader holds the headers of an answer against those that are documented for its status.
func checkHeader(header http.Header, documented openapi3.Headers) error {
	if header == nil {
		return nil
	}
	var all []error
	known := slices.Clone(common)
	for name, h := range documented {
		name = http.CanonicalHeaderKey(name)
		known = append(known, name)
		values := header.Values(name)
		if len(values) == 0 && h.Value.Required {
			all = append(all, fmt.Errorf("header %s is missing", name))
		}
		for _, v := range values {
			if err := brief(h.Value.Schema.Value.VisitJSON(scalar(v, h.Value.Schema.Value))); err != nil {
				all = append(all, fmt.Errorf("header %s %q: %w", name, v, err))
			}
		}
	}
	for name := range header {
		if !slices.Contains(known, http.CanonicalHeaderKey(name)) {
			all = append(all, fmt.Errorf("header %s is not documented", name))
		}
	}
	return errors.Join(all...)
}

// scalar is the value of a header as JSON has it: a number if the schema wants one.
func scalar(text string, schema *openapi3.Schema) any {
	if schema.Type.Is("integer") || schema.Type.Is("number") {
		if _, err := json.Number(text).Float64(); err == nil {
			return json.Number(text)
		}
	}
	return text
}

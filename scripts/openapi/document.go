package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Document is the parsed and validated document. It may be used by any number of goroutines.
type Document struct {
	doc    *openapi3.T
	routes []route
}

// route is one documented method of one path.
type route struct {
	method    string
	segments  []string
	operation *openapi3.Operation
}

// Answer is what the node said to one request.
type Answer struct {
	Method, Target string // Target: path with or without a query
	Dialect        string // prefix of the caller's headers, "" if there were none
	Status         int
	ContentType    string
	Body           []byte
	// Header are the names of the headers and their values, as net/http spells them; nil if nobody
	// wants them looked at.
	Header http.Header
}

// Load reads the document of the module that the working folder is in. The error names what is
// wrong with it.
func Load() (*Document, error) {
	root, err := Module()
	if err != nil {
		return nil, err
	}
	return Read(filepath.Join(root, "api", "openapi.json"))
}

// Module returns the folder of the module that the working folder is in.
func Module() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("no go.mod above the working folder")
		}
		folder = filepath.Dir(folder)
	}
}

// Read reads and validates one document.
func Read(path string) (*Document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	d, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Parse validates one document.
func Parse(text []byte) (*Document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("parse the document: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validate the document: %w", err)
	}
	d := &Document{doc: doc}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			d.routes = append(d.routes, route{method, split(path), operation})
		}
	}
	slices.SortFunc(d.routes, func(a, b route) int { return a.variables() - b.variables() })
	return d, nil
}

// split is a path in its segments.
func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// variables is how many segments of a route stand for any text: a route with fewer goes first.
func (r *route) variables() (n int) {
	for _, s := range r.segments {
		if strings.HasPrefix(s, "{") {
			n++
		}
	}
	return n
}

// matches says whether a path is one of the route's.
func (r *route) matches(path []string) bool {
	if len(path) != len(r.segments) {
		return false
	}
	for i, s := range r.segments {
		if s != path[i] && !(strings.HasPrefix(s, "{") && path[i] != "") {
			return false
		}
	}
	return true
}

// Routes are the documented routes with one of the tags, as "GET /tick-size/{}", sorted. What the
// variables of a path are called is nobody's business.
func (d *Document) Routes(tags ...string) []string {
	var names []string
	tagged := func(tag string) bool { return slices.Contains(tags, tag) }
	for i := range d.routes {
		if r := &d.routes[i]; slices.ContainsFunc(r.operation.Tags, tagged) {
			names = append(names, r.name())
		}
	}
	slices.Sort(names)
	return names
}

// Route is a method and a path in the form of Routes.
func Route(method, path string) string {
	segments := split(path)
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "{}"
		}
	}
	return method + " /" + strings.Join(segments, "/")
}

// find is the route that a request is for, nil if none is documented.
func (d *Document) find(method, target string) *route {
	if method == "HEAD" {
		method = "GET"
	}
	path, _, _ := strings.Cut(target, "?")
	segments := split(path)
	if slices.Contains([]string{"clob", "gamma", "data-api"}, segments[0]) {
		if segments = segments[1:]; len(segments) == 0 {
			segments = []string{""}
		}
	}
	for i := range d.routes {
		if r := &d.routes[i]; r.method == method && r.matches(segments) {
			return r
		}
	}
	return nil
}

// name is a route in the form of Routes.
func (r *route) name() string { return Route(r.method, "/"+strings.Join(r.segments, "/")) }

// Name is the documented route that a request is for, in the form of Routes, and otherwise the
// method alone.
func (d *Document) Name(method, target string) string {
	if r := d.find(method, target); r != nil {
		return r.name()
	}
	return method
}

// Codes are the documented words for machines in refusals.
func (d *Document) Codes() []string {
	var codes []string
	for _, v := range d.doc.Components.Schemas["Error"].Value.Properties["code"].Value.Enum {
		if word, is := v.(string); is {
			codes = append(codes, word)
		}
	}
	return codes
}

// Tag is the tag of the documented route that a request is for, "" if none is.
func (d *Document) Tag(method, target string) string {
	r := d.find(method, target)
	if r == nil || len(r.operation.Tags) == 0 {
		return ""
	}
	return r.operation.Tags[0]
}

// Check says how an answer differs from what the document promises.
func (d *Document) Check(a *Answer) error {
	if a.Method == "OPTIONS" && a.Status == 204 && len(a.Body) == 0 {
		return nil
	}
	if err := d.check(a, d.find(a.Method, a.Target)); err != nil {
		return fmt.Errorf("%s %.200s answers %d %.300s: %w", a.Method, a.Target, a.Status, a.Body, err)
	}
	return nil
}

func (d *Document) check(a *Answer, r *route) error {
	if r == nil {
		return d.checkRefusal(a)
	}
	response := r.operation.Responses.Value(strconv.Itoa(a.Status))
	if response == nil {
		return errors.New("the status is not documented")
	}
	if err := checkHeader(a.Header, response.Value.Headers); err != nil {
		return err
	}
	if len(a.Body) == 0 && (a.Method == "HEAD" || len(response.Value.Content) == 0) {
		return nil
	}
	kind, _, err := mime.ParseMediaType(a.ContentType)
	if err != nil {
		return fmt.Errorf("content type %q: %w", a.ContentType, err)
	}
	media := response.Value.Content[kind]
	if media == nil {
		return fmt.Errorf("content type %s is not documented", kind)
	}
	if kind == "text/plain" {
		return brief(media.Schema.Value.VisitJSON(string(a.Body)))
	}
	return visit(a, media.Schema.Value)
}

// checkRefusal judges the answer to a request that is not documented.
func (d *Document) checkRefusal(a *Answer) error {
	if a.Status < 400 {
		return errors.New("it succeeds, but is not documented")
	}
	if a.Method == "HEAD" && len(a.Body) == 0 {
		return nil
	}
	var all error
	for _, name := range []string{"Error", "CatalogError", "WalletError"} {
		err := visit(a, d.doc.Components.Schemas[name].Value)
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// visit holds the body against a schema, or against the member of it that is for the dialect.
func visit(a *Answer, schema *openapi3.Schema) error {
	value, err := decode(a.Body)
	if err != nil {
		return err
	}
	if object, is := value.(map[string]any); is && a.Status < 300 {
		if _, has := object["error"]; has {
			return errors.New("it succeeds with a key error")
		}
	}
	// What knows nothing of dialects must take it, too.
	if err := schema.VisitJSON(value, openapi3.VisitAsResponse()); err != nil {
		return fmt.Errorf("for a reader without dialects: %w", brief(err))
	}
	if a.Dialect != "" {
		if schema, err = member(schema, a.Dialect); err != nil {
			return err
		}
	}
	return brief(schema.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.MultiErrors()))
}

// brief says where and why a value does not fit, without the whole schema and the whole value.
func brief(err error) error {
	var many openapi3.MultiError
	if errors.As(err, &many) {
		all := make([]error, len(many))
		for i, e := range many {
			all[i] = brief(e)
		}
		return errors.Join(all...)
	}
	var one *openapi3.SchemaError
	if !errors.As(err, &one) {
		return err
	}
	at := "/" + strings.Join(one.JSONPointer(), "/")
	if one.Origin != nil {
		return fmt.Errorf("at %s: %s: %w", at, one.Reason, brief(one.Origin))
	}
	return fmt.Errorf("at %s: %s", at, one.Reason)
}

// decode reads one JSON value and keeps its numbers as they are.
func decode(body []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}

// member returns the only member of an anyOf that belongs to a dialect. A schema without such
// members holds for all dialects, and is returned itself.
func member(schema *openapi3.Schema, dialect string) (*openapi3.Schema, error) {
	var found *openapi3.Schema
	named := false
	for _, m := range schema.AnyOf {
		list, has := m.Value.Extensions["x-dialects"].([]any)
		named = named || has
		switch {
		case !slices.Contains(list, any(dialect)):
		case found != nil:
			return nil, fmt.Errorf("two members are for %s", dialect)
		default:
			found = m.Value
		}
	}
	switch {
	case !named:
		return schema, nil
	case found == nil:
		return nil, fmt.Errorf("no member is for %s", dialect)
	}
	return found, nil
}

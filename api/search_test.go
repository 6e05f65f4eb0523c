package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/api/catalog"
)

// manyStones is a catalog of 60 events about stones; each second one is of site.example and has a
// tag of its own.
func manyStones(t testing.TB) *catalog.Catalog {
	t.Helper()
	var text strings.Builder
	for i := range 60 {
		id := fmt.Sprint(i + 1)
		more := ""
		if i%2 == 0 {
			more = `,"creator":"site.example"`
		}
		fmt.Fprintf(&text, `{"id":"%s","slug":"s%s","title":"Stone %d","active":true,"volume":%d,`+
			`"tags":[{"id":"%s","label":"Stone tag %d","slug":"t%s"}],"markets":[{"id":"%s",`+
			`"conditionId":"0x%064x","question":"How old?","slug":"m%s","outcomes":"[\"Y\",\"N\"]",`+
			`"clobTokenIds":"[\"%d\",\"%d\"]"%s}]}`+"\n",
			id, id, i, 1000-i, id, i, id, id, i+1, id, 2*i+1, 2*i+2, more)
	}
	c, r, err := readCatalog(strings.NewReader(text.String()), catalog.Options{})
	if err != nil || r.Refused != 0 || c.Events.Len() != 60 {
		t.Fatal(r, err)
	}
	return c
}

// TestPublicSearchPages: all pages together are all events, and all tags, each once; hasMore says
// when to stop. A site's pages are cut from what is its own.
func TestPublicSearchPages(t *testing.T) {
	n := newNode(t)
	n.catalog = manyStones(t)
	for _, c := range []struct {
		query         string
		limit, events int
		first         string
	}{
		{"q=stone", 25, 60, "Stone 0"},
		{"q=stone&limit_per_type=7", 7, 60, "Stone 0"},
		{"q=stone&limit_per_type=60", 60, 60, "Stone 0"},
		{"q=stnoe&limit_per_type=9&creator=Site.Example", 9, 30, "Stone 0"},
		{"q=stone&creator=other.example", 25, 0, ""},
	} {
		events, tags := map[string]bool{}, map[string]bool{}
		more := true
		for page := 1; more; page++ {
			ctx := ask("GET", fmt.Sprint("/public-search?", c.query, "&page=", page))
			n.handler.Public(ctx)
			var got struct {
				Events []struct{ ID, Title string }
				Tags   []struct {
					ID    string
					Count int `json:"event_count"`
				}
				Pagination struct {
					HasMore      bool
					TotalResults int
				}
			}
			n.must(json.Unmarshal(ctx.Response.Body(), &got))
			if page == 1 && c.first != "" && got.Events[0].Title != c.first {
				t.Errorf("%s: first %s", c.query, got.Events[0].Title)
			}
			for _, e := range got.Events {
				events[e.ID] = true
			}
			for _, tag := range got.Tags {
				tags[tag.ID] = tag.Count == 1
			}
			if len(events) != min(c.events, page*c.limit) || len(tags) != len(events) ||
				got.Pagination.TotalResults != c.events {
				t.Fatalf("%s: page %d: %d events, %d tags: %+v",
					c.query, page, len(events), len(tags), got.Pagination)
			}
			more = got.Pagination.HasMore
		}
		if len(events) != c.events {
			t.Errorf("%s: %d events", c.query, len(events))
		}
	}
}

// TestPublicSearchWithout: a node without a catalog finds nothing, in the same shape.
func TestPublicSearchWithout(t *testing.T) {
	n := newNode(t)
	want := `{"events":[],"tags":[],"pagination":{"hasMore":false,"totalResults":0}}`
	for _, n.catalog = range []*catalog.Catalog{nil, catalog.Empty()} {
		ctx := ask("GET", "/public-search?q=x&creator=y")
		n.handler.Public(ctx)
		if got := string(ctx.Response.Body()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// BenchmarkPublicSearch is the whole answer, of a small catalog.
func BenchmarkPublicSearch(b *testing.B) {
	n := newNode(b)
	n.catalog = manyStones(b)
	ctx := ask("GET", "/public-search?q=stone")
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		n.handler.Public(ctx)
	}
}

// realTitles is a catalog of 165 thousand real titles, each an event with one market.
func realTitles(b *testing.B) (c *catalog.Catalog, titles []string) {
	b.Helper()
	packed := shared(b, "catalog/polymarket_165k_market_titles.jsonl.gz")
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	lines := bufio.NewScanner(z)
	for i := 1; lines.Scan(); i++ {
		var r struct{ Slug, Question string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			b.Fatal(err)
		}
		titles = append(titles, r.Question)
		title, _ := json.Marshal(r.Question)
		fmt.Fprintf(&text, `{"id":"%d","slug":"%s","title":%s,"active":true,"volume":%d,"markets":[{`+
			`"id":"%d","conditionId":"0x%064x","question":%s,"slug":"%s","outcomes":"[\"Y\",\"N\"]",`+
			`"clobTokenIds":"[\"%d\",\"%d\"]"}]}`+"\n",
			i, r.Slug, title, i%9999, i, i, title, r.Slug, 2*i, 2*i+1)
	}
	c, report, err := readCatalog(strings.NewReader(text.String()), catalog.Options{})
	if err != nil {
		b.Fatal(report, err)
	}
	return c, titles
}

// BenchmarkPublicSearchReal is the median and the ninth decile of whole answers of 25 events each:
// words of titles, their beginnings, parts, typos of them, and two words.
func BenchmarkPublicSearchReal(b *testing.B) {
	n := newNode(b)
	var titles []string
	n.catalog, titles = realTitles(b)
	var targets []string
	for i := 0; i < len(titles); i += len(titles) / 300 {
		words := strings.Fields(titles[i])
		word := words[i%len(words)]
		half := (len(word) + 1) / 2
		for _, q := range []string{
			word, word[:half], word[half/2:], word[:half-1] + word[half:], words[0] + " " + word,
		} {
			if strings.TrimSpace(q) != "" {
				targets = append(targets, "/public-search?q="+url.QueryEscape(q))
			}
		}
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		ctx := ask("GET", targets[i%len(targets)])
		start := time.Now()
		n.handler.Public(ctx)
		took = append(took, time.Since(start))
		if ctx.Response.StatusCode() != 200 {
			b.Fatalf("%s: %s", targets[i%len(targets)], ctx.Response.Body())
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*9/10].Nanoseconds())/1e3, "p90-us")
}

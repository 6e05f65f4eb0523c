package catalog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/engine"
)

// shared finds a file of ../shared/data beside the repository, or skips.
func shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: skipped", path)
	}
	return path
}

func TestRealCatalog(t *testing.T) {
	path := shared(t, "catalog/gamma_events_full.jsonl.gz")
	listed := map[engine.Condition]bool{}
	c, r, err := ReadFile(path, Options{List: func(l []engine.Listing) error {
		for i := range l {
			listed[l[i].Condition] = true
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	for _, p := range r.Bad {
		t.Log(p)
	}
	adds(t, r)
	if r.Events != 657 || r.Markets != 1102 || r.Broken != 0 || r.Refused != 0 {
		t.Errorf("%s", r)
	}
	if r.Skipped[Closed] != 451 || len(listed) != r.Listed || c.Markets.Len() != 1102 {
		t.Errorf("%s; %d listed, %d described", r, len(listed), c.Markets.Len())
	}
	for m := range c.Markets.All() {
		if listed[m.Condition] != (m.Skipped == "") || m.Question == "" || c.EventOf(m).Title == "" {
			t.Fatalf("%+v", m)
		}
	}
}

// manyMarkets is a catalog of n markets in events of ten, with descriptions of some length.
func manyMarkets(n int) []byte {
	var b bytes.Buffer
	for i := 0; i < n; i += 10 {
		var markets []string
		for j := i; j < min(i+10, n); j++ {
			markets = append(markets, market(j+1, `"description":"`+strings.Repeat("word ", 60)+
				`","volume":"721341.319904","active":true,"orderPriceMinTickSize":0.001`))
		}
		fmt.Fprintln(&b, event(fmt.Sprint(i+1), markets...))
	}
	return b.Bytes()
}

// BenchmarkRead reads catalogs of 165 thousand markets, the size of the largest real one.
func BenchmarkRead(b *testing.B) {
	text := manyMarkets(165_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, r, err := Read(bytes.NewReader(text), Options{})
		if err != nil || r.Listed != 165_000 {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkReadReal(b *testing.B) {
	text, err := os.ReadFile(shared(b, "catalog/gamma_events_full.jsonl.gz"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, r, err := Read(bytes.NewReader(text), Options{}); err != nil || r.Events != 657 {
			b.Fatal(r, err)
		}
	}
}

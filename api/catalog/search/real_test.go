package search

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// realTitles finds the file of real titles in ../shared/data beside the repository, or skips.
func realTitles(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			dir = at
			break
		}
	}
	path := filepath.Join(dir, "../shared/data/catalog/polymarket_165k_market_titles.jsonl.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: skipped", path)
	}
	return path
}

// titles are real markets as documents, numbered from 0, or skips, as a test does of a short run.
func titles(t testing.TB) []Document {
	t.Helper()
	if _, test := t.(*testing.T); test && testing.Short() {
		t.Skip("-short: no real titles")
	}
	f, err := os.Open(realTitles(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var docs []Document
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		var r struct {
			Slug, Question, Category string
			Snaps                    float64 `json:"n_snaps"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, Document{ID: int32(len(docs)), Title: r.Question, Volume: r.Snaps,
			Texts: []string{r.Slug, r.Category}, Marks: []string{"category:" + r.Category}})
	}
	return docs
}

// TestRealQueries: what a person would expect among real titles. Each row was checked by
// hand: the words typed, what the titles of the first results have to say (their number in front),
// and how many are found at least and at most.
func TestRealQueries(t *testing.T) {
	docs := titles(t)
	s := New(docs)
	for _, row := range append(realQueries(), realMishaps()...) {
		f := s.Find(Query{Text: row.typed, Limit: 10})
		if f.Total < row.least || f.Total > row.most || len(f.IDs) < row.first {
			t.Errorf("%q: %d found, want %d to %d", row.typed, f.Total, row.least, row.most)
			continue
		}
		for _, id := range f.IDs[:row.first] {
			title := strings.Join(wordsOf(docs[id].Title), " ")
			for _, words := range strings.Split(row.says, "+") {
				if !strings.Contains(title, words) {
					t.Errorf("%q: first results say %q, want %q", row.typed, title, row.says)
				}
			}
		}
	}
}

// realQuery is a row of the test above. The words of says are as wordSplitter makes them.
type realQuery struct {
	typed       string
	first       int
	says        string
	least, most int
}

const many = 200_000

// realQueries are typed as they are meant.
func realQueries() []realQuery {
	return []realQuery{
		// plain words, in any case and order
		{"bitcoin", 10, "bitcoin", 40, 60},
		{"MEASLES", 6, "measles cases", 6, 6},
		{"unemployment", 10, "unemployment rate", 18, 18},
		{"hormuz", 3, "strait of hormuz", 3, 3},
		{"nobel", 10, "nobel+prize", 20, 60},
		{"rate cut fed", 1, "fed rate cut", 1, 1},
		{"fed september", 5, "fed decision in september", 5, 5},
		{"bank of england july", 5, "bank of england decision in july", 5, 5},
		{"elon net worth", 10, "elon+net worth", 20, 40},
		{"musk tesla ceo", 1, "as tesla ceo", 1, 1},
		{"iran deal", 6, "us iran deal", 6, 30},
		{"powell out", 3, "jerome powell", 3, 3},
		{"gta vi", 2, "gta vi", 2, 2},
		{"big brother winner", 10, "big brother+winner", 17, 20},
		{"world cup corner kicks", 6, "corner kicks", 6, 6},
		{"tsitsipas fonseca", 1, "stefanos tsitsipas vs joao fonseca", 15, 60},
		{"dallas cowboys", 10, "dallas cowboys", 100, 400},
		{"table tennis", 10, "table tennis", 9000, many},
		{"houston texans", 10, "houston texans", 100, 400},
		{"bundesliga relegation", 10, "bundesliga relegation", 18, 18},
		{"heavyweight champion", 10, "heavyweight champion", 30, 60},
		{"english premier league champion", 10, "english premier league champion", 20, 20},
		{"love island", 10, "love island", 60, 70},
		{"california billionaire tax", 1, "billionaire wealth tax", 1, 1},
		{"los angeles temperature", 10, "temperature in los angeles", 150, 200},
		{"chicago july 15 temperature", 6, "chicago on july 15", 6, 6},
		// numbers and signs
		{"bitcoin 150k", 6, "bitcoin hit 150000", 6, 10},
		{"BITCOIN $100,000", 4, "bitcoin cross 100000", 4, 8},
		{"gdp q3", 6, "gdp growth in q3", 6, 6},
		{"gpt-6", 5, "gpt 6", 5, 10},
		{"#1 album", 10, "1 album", 40, 60},
		{"cowboys -13.5", 1, "dallas cowboys cover 13.5", 1, 20},
		// marks that people leave out, or put in
		{"oconnell", 10, "oconnell", 50, 200},
		{"O’Connell", 10, "oconnell", 50, 200},
		{"jp crawford", 10, "jp crawford", 50, 120},
		{"J.P. Crawford", 10, "jp crawford", 50, 120},
		{"São Paulo", 5, "sao paulo", 5, 400},
		// singular for plural, beginnings, parts
		{"mlb home run leader", 10, "mlb home runs leader", 30, 60},
		{"emmy drama", 10, "emmys+drama series", 30, 60},
		{"french president", 10, "french presidential election", 11, 11},
		{"anthr ipo", 7, "anthropic ipo", 7, 10},
		{"uardian", 10, "guardians", 600, 800},
	}
}

// realMishaps are typed as they are not, or ask for too much.
func realMishaps() []realQuery {
	return []realQuery{
		// mistyped by one letter; two words in one
		{"bitcion", 10, "bitcoin", 40, 60},
		{"meazles", 6, "measles", 6, 6},
		{"guardains tampa", 10, "guardians+tampa bay", 20, 60},
		{"unemploymnt rate", 10, "unemployment rate", 18, 18},
		{"fonsca", 9, "fonseca", 50, 120},
		{"worldcup", 10, "world cup", 300, 500},
		{"natusvincere", 10, "natus vincere", 100, 300},
		{"gpt6", 5, "gpt 6", 5, 5},
		// questions in plain words, of which no title has all
		{"who wins the bundesliga relegation battle", 10, "bundesliga relegation", 18, 18},
		{"what is the next fed decision", 10, "fed decision", 10, 20},
		{"when will gta 6 be released", 2, "gta vi released", 2, 2},
		// the address of a market
		{"atc-mlb-tex-hou-2026-07-31-i5-draw", 1, "5th inning of houston astros", 1, 1},
		// nothing
		{"zzzzqqq", 0, "", 0, 0},
		{"asdf zxcv qwer", 0, "", 0, 0},
		// so much that only the number is of interest
		{"will", 10, "will", 100_000, many},
		{"a", 10, "", 100_000, many},
	}
}

// TestRealTypos: real titles with one letter wrong in one of their words find the title.
func TestRealTypos(t *testing.T) {
	docs := titles(t)
	s := New(docs)
	const asked, want = 1000, 950
	rng := rand.New(rand.NewPCG(20, 26))
	found := 0
	for n := 0; n < asked; {
		title := docs[rng.IntN(len(docs))].Title
		text, ok := mistype(rng, title)
		if !ok {
			continue
		}
		n++
		f := s.Find(Query{Text: text, Limit: 10})
		if slices.ContainsFunc(f.IDs, func(id int32) bool { return docs[id].Title == title }) {
			found++
		} else {
			t.Logf("not found: %q in %q", text, title)
		}
	}
	t.Logf("%d of %d found", found, asked)
	if found < want {
		t.Errorf("%d of %d found, want %d", found, asked, want)
	}
}

// TestRealChange: a thousand of all real titles change with little work, and in little room: no
// more is indexed anew than what has changed since the bulk of them was.
func TestRealChange(t *testing.T) {
	docs := titles(t)
	before := heapBytes()
	began := allocated()
	s := New(docs)
	all := allocated() - began
	size := heapBytes() - before
	t.Logf("%d documents in %.1f MB", s.Len(), float64(size)/1e6)
	if size > 60e6 {
		t.Errorf("%d bytes", size)
	}
	bulk, most := s.parts[0].segment, uint64(0)
	for round := range 6 {
		changed := slices.Clone(docs[round*1000 : round*1000+1000])
		for i := range changed {
			changed[i].Title += " unheardof"
		}
		began = allocated()
		s = s.With(changed, nil)
		most = max(most, allocated()-began)
		anew := s.parts[len(s.parts)-1].segment
		if s.parts[0].segment != bulk || anew == bulk || len(anew.ids) > 1000*round+1000 {
			t.Fatalf("change %d has indexed %d documents", round, len(anew.ids))
		}
		f := s.Find(Query{Text: "unheardof", Limit: 1})
		if f.Total != 1000*round+1000 || s.Len() != len(docs) || s.Scattered() {
			t.Fatalf("%d found, %d documents", f.Total, s.Len())
		}
	}
	t.Logf("the largest change of 1,000 allocated %.1f MB, all titles %.1f MB; %d parts",
		float64(most)/1e6, float64(all)/1e6, len(s.parts))
	if most > all/8 {
		t.Errorf("a change allocated %d bytes", most)
	}
}

// allocated is how many bytes have been allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// mistype makes a typo of one letter in a word of a text.
func mistype(rng *rand.Rand, text string) (string, bool) {
	words := strings.Fields(text)
	for range 20 {
		i := rng.IntN(len(words))
		w := []byte(words[i])
		other := func(c byte) bool { return c|0x20 < 'a' || c|0x20 > 'z' }
		if len(w) < 4 || slices.ContainsFunc(w, other) {
			continue
		}
		at := rng.IntN(len(w))
		letter := byte('a' + rng.IntN(26))
		switch rng.IntN(4) {
		case 0:
			w = slices.Insert(w, at, letter)
		case 1:
			w = slices.Delete(w, at, at+1)
		case 2:
			w[at] = letter
		default:
			at = min(at, len(w)-2)
			w[at], w[at+1] = w[at+1], w[at]
		}
		words[i] = string(w)
		return strings.Join(words, " "), true
	}
	return "", false
}

// queryMix is what people type, and what they type until they have typed it.
func queryMix(docs []Document) (texts []string) {
	for _, row := range append(realQueries(), realMishaps()...) {
		texts = append(texts, row.typed)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		words := strings.Fields(docs[rng.IntN(len(docs))].Title)
		word := words[rng.IntN(len(words))]
		texts = append(texts, word, word[:1+rng.IntN(len(word))], word[rng.IntN(len(word)):],
			words[rng.IntN(len(words))]+" "+word)
		if typo, ok := mistype(rng, word); ok {
			texts = append(texts, typo)
		}
	}
	for range 40 {
		if typo, ok := mistype(rng, docs[rng.IntN(len(docs))].Title); ok {
			texts = append(texts, typo)
		}
	}
	rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	return texts
}

// BenchmarkFind reports the median and the ninth decile of a mix of queries, each for its
// first ten results.
func BenchmarkFind(b *testing.B) {
	docs := titles(b)
	s := New(docs)
	texts := queryMix(docs)
	var took []time.Duration
	i := 0
	for b.Loop() {
		start := time.Now()
		s.Find(Query{Text: texts[i%len(texts)], Limit: 10})
		took = append(took, time.Since(start))
		i++
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*9/10].Nanoseconds())/1e3, "p90-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}

// BenchmarkBuild indexes all real titles.
func BenchmarkBuild(b *testing.B) {
	docs := titles(b)
	for b.Loop() {
		New(docs)
	}
}

// BenchmarkChange changes a thousand documents of all.
func BenchmarkChange(b *testing.B) {
	docs := titles(b)
	s := New(docs)
	for b.Loop() {
		s.With(docs[:1000], nil)
	}
}

// BenchmarkChanges makes six changes of a thousand documents one after the other, of which some
// unite what the ones before have left, and reports the slowest of them.
func BenchmarkChanges(b *testing.B) {
	docs := titles(b)
	s := New(docs)
	var slowest time.Duration
	for b.Loop() {
		next := s
		for round := range 6 {
			start := time.Now()
			next = next.With(docs[round*1000:round*1000+1000], nil)
			slowest = max(slowest, time.Since(start))
		}
	}
	b.ReportMetric(float64(slowest.Nanoseconds())/1e6, "slowest-ms")
}

package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// wordsOf are the words of a text.
func wordsOf(text string) []string {
	var s wordSplitter
	all := []string{}
	s.words(text, func(word []byte) bool {
		all = append(all, string(word))
		return true
	})
	return all
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \t\n?!… ", ""},
		{"Will Viktor Orbán's party win?", "will viktor orbans party win"},
		{"Jokić’s triple-double", "jokics triple double"},
		{"São Paulo, Ødegård & Müller, Łódź", "sao paulo odegard muller lodz"},
		{"STRASSE Straße œuvre İstanbul ılık", "strasse strasse oeuvre istanbul ilik"},
		{"ﬁnal ① ＡＢＣ ½", "final 1 abc 1 2"},
		{"U.S. and J.D. Vance at 5 p.m.", "us and jd vance at 5 pm"},
		{"St. Louis vs.Acosta e.g this", "st louis vs acosta eg this"},
		{"$1,234,567.50 or 1,2 or 12,3456", "1234567.50 or 1 2 or 12 3456"},
		{"5.5% -1.5 +2 3.", "5.5 1.5 2 3"},
		{"$100k $2.5M 1b 1.5k", "100000 2500000 1000000000 1500"},
		{"10km 1.2345k k 5kk 1234567890k 2.k", "10km 1.2345k k 5kk 1234567890k 2 k"},
		{"1.2.3m", "1.2.3m"},
		{"a_b-c/d", "a b c d"},
		{"Ελλάς ΕΛΛΆΣ", "ελλασ ελλασ"},
		{"Київ 東京", "киів 東京"},
		{"<script>alert('x')</script>", "script alert x script"},
		{"bad\xff\xfebytes\x00zero", "bad bytes zero"},
		{"rock 'n' roll don't '90s", "rock n roll dont 90s"},
		{strings.Repeat("x", 100), strings.Repeat("x", maxWord)},
		{strings.Repeat("ж", 100), strings.Repeat("ж", maxWord/2)},
	} {
		if got := strings.Join(wordsOf(c.text), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestWordsOnce: a word that was found is found again by itself.
func TestWordsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, word := range wordsOf(rapid.String().Draw(t, "text")) {
			again := wordsOf(word)
			if len(again) != 1 || again[0] != word && len(word) < maxWord {
				t.Fatalf("%q becomes %q", word, again)
			}
			if !utf8.ValidString(word) || len(word) > maxWord+9 {
				t.Fatalf("%q", word)
			}
		}
	})
}

// naiveEdit is the distance of two words where swapping two neighbours is one edit, by the book.
func naiveEdit(a, b []rune) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j], d[i][j-1], d[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func TestOneEdit(t *testing.T) {
	letters := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := letters.Draw(t, "a"), letters.Draw(t, "b")
		near := naiveEdit([]rune(a), []rune(b)) <= 1
		if oneEdit([]rune(a), []rune(b)) != near {
			t.Fatalf("%q %q: want %v", a, b, near)
		}
		of := map[uint32]bool{}
		shorter(a, func(h uint32) { of[h] = true })
		common := false
		shorter(b, func(h uint32) { common = common || of[h] })
		if near && !common {
			t.Fatalf("%q and %q are near, but have nothing in common", a, b)
		}
	})
}

// naive searches by looking at every document.
type naive []Document

// naiveHit is a document with what orders it.
type naiveHit struct {
	level grade
	class uint64
	rank  rank
}

// naivePlural says whether two words are one, but for an s at the end.
func naivePlural(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return b == a+"s" && len(a) >= 3 && !strings.HasSuffix(a, "s") &&
		!strings.ContainsFunc(a, func(c rune) bool { return c < 'a' || c > 'z' })
}

// naiveMatch says whether a word of a document matches a word of a query, and how well.
func naiveMatch(word, asked string) grade {
	switch {
	case word == asked || naivePlural(word, asked):
		return anywhere
	case strings.HasPrefix(word, asked):
		return begins
	case len(asked) >= 3 && strings.Contains(word, asked):
		return within
	case len([]rune(asked)) >= minTypo && edited(asked) && edited(word) &&
		naiveEdit([]rune(word), []rune(asked)) <= 1:
		return mistyped
	}
	return levels
}

// naiveLevel is how well a document matches a word.
func naiveLevel(title, all []string, asked string) grade {
	best := levels
	for _, word := range title {
		if naiveMatch(word, asked) == anywhere {
			return inTitle
		}
	}
	for _, word := range all {
		best = min(best, naiveMatch(word, asked))
	}
	if len([]rune(asked)) < minTypo || !edited(asked) {
		return best
	}
	for i := 1; i < len(asked); i++ {
		first, second := asked[:i], asked[i:]
		if (i == 1 && !strings.Contains("0123456789", first)) ||
			(len(second) == 1 && !strings.Contains("0123456789", second)) {
			continue
		}
		if slices.Contains(all, first) && slices.Contains(all, second) {
			best = min(best, mistyped)
		}
	}
	return best
}

// naiveQuery is a query, and how well each document matches each of its words.
type naiveQuery struct {
	asked, kinds []string
	tops         []grade // by kind: what counts as a match
	found        [][]grade
}

// matching is how many documents match all words.
func (q *naiveQuery) matching() (n int) {
	for _, found := range q.found {
		if q.weight(found, nil) == len(q.kinds) {
			n++
		}
	}
	return n
}

// weight sums the weights of the words that match; nil weights are all 1.
func (q *naiveQuery) weight(found []grade, weights []int) (sum int) {
	for i, at := range found {
		switch {
		case at > q.tops[i]:
		case weights == nil:
			sum++
		default:
			sum += weights[i]
		}
	}
	return sum
}

// find is Index.Find for all of what is found among the allowed documents.
func (n naive) find(text string, allowed func(Document) bool) []int32 {
	q := naiveQuery{asked: wordsOf(text)}
	if len(q.asked) == 0 {
		return nil
	}
	q.kinds = slices.Compact(slices.Sorted(slices.Values(q.asked)))
	known := make([]bool, len(q.kinds))
	var docs naive
	var everywhere [][]grade
	for i := range n {
		title := wordsOf(n[i].Title)
		all := append(slices.Clone(title), wordsOf(strings.Join(n[i].Texts, " "))...)
		var found []grade
		for j, kind := range q.kinds {
			found = append(found, naiveLevel(title, all, kind))
			known[j] = known[j] || found[j] <= anywhere
		}
		everywhere = append(everywhere, found)
		if allowed(n[i]) {
			docs, q.found = append(docs, n[i]), append(q.found, found)
		}
	}
	for range q.kinds {
		q.tops = append(q.tops, within)
	}
	if q.matching() < few {
		for i := range q.tops {
			if !known[i] {
				q.tops[i] = mistyped
			}
		}
	}
	if q.matching() == 0 {
		for i := range q.tops {
			q.tops[i] = mistyped
		}
	}
	if q.matching() == 0 {
		for i := range q.tops {
			if known[i] {
				q.tops[i] = within
			}
		}
		return docs.most(&q, everywhere)
	}
	var hits []naiveHit
	for i := range docs {
		if q.weight(q.found[i], nil) == len(q.kinds) {
			hits = append(hits, naiveHit{slices.Max(q.found[i]), q.class(docs[i].Title), docs[i].rank()})
		}
	}
	return inOrder(hits)
}

// most finds the documents that match the most weight of words.
func (n naive) most(q *naiveQuery, everywhere [][]grade) []int32 {
	if len(q.kinds) < 3 {
		return nil
	}
	weights := make([]int, len(q.kinds))
	sum, best := 0, 1
	for i := range q.kinds {
		with := 0
		for _, found := range everywhere {
			with += int(b2u(found[i] <= q.tops[i]))
		}
		for rarer := len(everywhere) / max(with, 1); rarer > 0; rarer /= 2 {
			weights[i]++
		}
		weights[i]++
		if with == 0 {
			weights[i] = (weights[i] + 1) / 2
		}
		if asks(q.kinds[i]) {
			weights[i] = 0
		}
		sum += weights[i]
	}
	for _, found := range q.found {
		best = max(best, q.weight(found, weights))
	}
	if 2*best < sum {
		return nil
	}
	var hits []naiveHit
	for i := range n {
		if q.weight(q.found[i], weights) == best {
			hits = append(hits, naiveHit{mistyped, q.rest(n[i].Title), n[i].rank()})
		}
	}
	return inOrder(hits)
}

func inOrder(hits []naiveHit) (ids []int32) {
	slices.SortFunc(hits, func(a, b naiveHit) int {
		switch {
		case a.level != b.level:
			return int(a.level) - int(b.level)
		case a.class != b.class:
			return int(a.class) - int(b.class)
		}
		return a.rank.compare(b.rank)
	})
	for i := range hits {
		ids = append(ids, hits[i].rank.id)
	}
	return ids
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// matches says whether the word of a title matches word i of the query.
func (q *naiveQuery) matches(word string, i int) bool {
	return naiveMatch(word, q.asked[i]) <= q.tops[slices.Index(q.kinds, q.asked[i])]
}

// class looks for the words of the query in a row in a title.
func (q *naiveQuery) class(title string) uint64 {
	words := wordsOf(title)
	for from := 0; from+len(q.asked) <= len(words); from++ {
		row := true
		for i := range q.asked {
			row = row && q.matches(words[from+i], i)
		}
		if row && len(words) == len(q.asked) {
			return sameTitle
		}
		if row {
			return phraseInTitle
		}
	}
	return otherTitle
}

// rest counts what a title lacks of the query, and how much longer or shorter it is.
func (q *naiveQuery) rest(title string) uint64 {
	words := wordsOf(title)
	lacks := 0
	for i := range q.asked {
		lacks += int(b2u(!slices.ContainsFunc(words, func(w string) bool { return q.matches(w, i) })))
	}
	longer := max(len(words)-len(q.asked), len(q.asked)-len(words))
	return otherTitle + uint64(64*lacks+longer)
}

// drawText is a text of few letters, so that words are alike.
func drawText(t *rapid.T, most int) string {
	word := rapid.OneOf(
		rapid.StringMatching(`[ab]{1,4}`), rapid.StringMatching(`[abc]{3,7}`),
		rapid.StringMatching(`[ab]{2,4}s`),
		rapid.SampledFrom([]string{
			"aba", "abba", "éa", "Bab", "will", "a", "12", "12.5", "$1k", "b'a", "ж", "abab",
		}),
	)
	return strings.Join(rapid.SliceOfN(word, most/2, most).Draw(t, "words"), " ")
}

// drawDocuments are documents with ids below 60.
func drawDocuments(t *rapid.T) []Document {
	n := rapid.SampledFrom([]int{60, 20, 1, 0}).Draw(t, "n")
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Document {
		return Document{
			ID:    rapid.Int32Range(0, 59).Draw(t, "id"),
			Title: drawText(t, 5), Texts: []string{drawText(t, 2), drawText(t, 1)},
			Active: rapid.Bool().Draw(t, "active"),
			Volume: float64(rapid.IntRange(0, 3).Draw(t, "volume")),
			Marks:  rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y"}), 0, 2).Draw(t, "marks"),
		}
	}), n, n).Draw(t, "documents")
}

// TestLikeNaive: what is found, in which order, and how much, is what looking at every
// document finds; also after changes, which are as good as indexing all anew.
func TestLikeNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := drawDocuments(t)
		s := New(docs)
		all := lastOfEach(docs)
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			changed := drawDocuments(t)
			changed = changed[:min(len(changed), rapid.IntRange(0, 20).Draw(t, "changed"))]
			gone := rapid.SliceOfN(rapid.Int32Range(0, 59), 0, 5).Draw(t, "gone")
			s = s.With(changed, gone)
			all = slices.DeleteFunc(lastOfEach(append(slices.Clone(all), changed...)),
				func(d Document) bool { return slices.Contains(gone, d.ID) })
		}
		if s.Len() != len(all) {
			t.Fatalf("%d documents, want %d", s.Len(), len(all))
		}
		for range 8 {
			text := drawText(t, rapid.SampledFrom([]int{1, 1, 2, 4, 9}).Draw(t, "most"))
			offset := rapid.IntRange(0, 12).Draw(t, "offset")
			limit := rapid.IntRange(0, 70).Draw(t, "limit")
			var marks []string
			if rapid.Bool().Draw(t, "marked") {
				marks = []string{"x", "y"}[:rapid.IntRange(1, 2).Draw(t, "marks")]
			}
			want := naive(all).find(text, func(d Document) bool {
				return !slices.ContainsFunc(marks, func(m string) bool {
					return !slices.Contains(d.Marks, m)
				})
			})
			got := s.Find(Query{Text: text, Marks: marks, Offset: offset, Limit: limit})
			page := want[min(offset, len(want)):min(offset+limit, len(want))]
			if got.Total != len(want) || !slices.Equal(got.IDs, page) {
				t.Fatalf("%q %v: found %d %v, want %d %v", text, marks, got.Total, got.IDs, len(want), page)
			}
		}
	})
}

// TestPages: pages of something very common are disjoint and complete, and only what was
// weighed is out of the order of activity and volume.
func TestPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	docs := make([]Document, 5000)
	for i := range docs {
		docs[i] = Document{ID: int32(i), Title: fmt.Sprintf("common word %d", i),
			Volume: float64(rng.IntN(1000)), Active: rng.IntN(2) == 0}
	}
	docs[4999].Title = "common word"
	docs[4999].Volume, docs[4999].Active = 999, true
	s := New(docs)
	var all []int32
	for offset := 0; ; offset += 333 {
		f := s.Find(Query{Text: "common word", Offset: offset, Limit: 333})
		if f.Total != len(docs) {
			t.Fatalf("%d in total", f.Total)
		}
		if all = append(all, f.IDs...); len(f.IDs) < 333 {
			break
		}
	}
	if all[0] != 4999 {
		t.Errorf("%d comes before the same title", all[0])
	}
	ordered := slices.IsSortedFunc(all[1:], func(a, b int32) int {
		return docs[a].rank().compare(docs[b].rank())
	})
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != len(docs) || !ordered {
		t.Errorf("%d of %d documents on all pages, ordered %v", len(all), len(docs), ordered)
	}
	for _, q := range []Query{{Text: "common", Offset: 5000, Limit: 1}, {Text: "common"},
		{Text: "common", Offset: math.MaxInt, Limit: math.MaxInt}, {Text: "common", Limit: -1}} {
		if f := s.Find(q); f.Total != 5000 || len(f.IDs) != 0 {
			t.Errorf("%+v: %+v", q, f)
		}
	}
	if f := s.Find(Query{Text: "common", Offset: -1, Limit: math.MaxInt}); len(f.IDs) != 5000 {
		t.Errorf("%d", len(f.IDs))
	}
}

// TestMost: if nothing matches all words, those documents that match the most are found, in
// whichever part they are, if that is half of the query; rare words count more.
func TestMost(t *testing.T) {
	s := New([]Document{
		{ID: 46, Title: "one two three four", Volume: 9},
		{ID: 56, Title: "one two three four five"},
		{ID: 16, Title: "one"},
	})
	for _, c := range []struct {
		change Document
		want   string
	}{
		{Document{ID: 0}, "[56]"},
		{Document{ID: 47, Title: "one two three four"}, "[56]"},
		{Document{ID: 57, Title: "one two three four six", Active: true}, "[57 56]"},
		{Document{ID: 56}, "[57]"},
		{Document{ID: 57}, "[46 47]"},
		{Document{ID: 47}, "[46]"},
		{Document{ID: 46}, "[]"},
		{Document{ID: 60, Title: "six five four three two one"}, "[60]"},
	} {
		s = s.With([]Document{c.change}, nil)
		f := s.Find(Query{Text: "one two three four five six", Limit: 9})
		if got := fmt.Sprint(f.IDs); got != c.want || f.Total != len(f.IDs) {
			t.Errorf("with %d: %v of %d, want %s", c.change.ID, got, f.Total, c.want)
		}
	}
	if f := s.Find(Query{Text: "one seven", Limit: 9}); f.Total != 0 {
		t.Errorf("one of two words is not enough: %v", f.IDs)
	}
	var docs []Document
	for i := range 100 {
		docs = append(docs, Document{ID: int32(i), Title: "who of the two will be last"})
	}
	s = New(append(docs, Document{ID: 100, Title: "Relegation from the league"}))
	f := s.Find(Query{Text: "who will be the relegation victims of the league", Limit: 9})
	if fmt.Sprint(f) != "{[100] 1}" {
		t.Errorf("rare words: %v", f)
	}
}

func TestNothing(t *testing.T) {
	var none *Index
	if f := none.Find(Query{Text: "x", Limit: 1}); f.Total != 0 || none.Len() != 0 || none.Scattered() {
		t.Errorf("%+v", f)
	}
	for _, s := range []*Index{New(nil), New([]Document{{ID: 1}}), none.With(nil, nil)} {
		for _, text := range []string{"", " ", "?", "abc", "a b c d"} {
			if f := s.Find(Query{Text: text, Limit: 10}); f.Total != 0 || len(f.IDs) != 0 {
				t.Errorf("%q: %+v", text, f)
			}
		}
	}
	s := New(nil).With([]Document{{ID: 1, Title: "Late comer", Volume: math.NaN()}}, nil)
	if f := s.Find(Query{Text: "late", Limit: 10}); f.Total != 1 || f.IDs[0] != 1 {
		t.Errorf("%+v", f)
	}
	if f := s.With(nil, []int32{1}).Find(Query{Text: "late", Limit: 10}); f.Total != 0 {
		t.Errorf("%+v", f)
	}
}

// TestHostile: whatever is typed, or stands in a title, is text, and is bounded.
func TestHostile(t *testing.T) {
	hostile := []string{
		`<script>alert(1)</script>`, `"}],"x":[{"`, "'; DROP TABLE events; --", "\x00\x01\xff\xfe",
		strings.Repeat("a", 1<<20), strings.Repeat("a ", 1<<19), strings.Repeat("b\u0301", 1<<18),
		strings.Repeat("ﷺ", 1<<10), "(((((((", `\`, "%00%ff", "*", ".*", "a.b.c.d.e", "🏆🏆",
		"1" + strings.Repeat("0", 400) + "k", strings.Repeat("ab", 19) + " " + strings.Repeat("ba", 19),
	}
	var docs []Document
	for i, text := range hostile {
		docs = append(docs, Document{ID: int32(i), Title: text, Texts: hostile})
	}
	s := New(docs)
	for i, text := range hostile {
		f := s.Find(Query{Text: text, Limit: 100})
		found := slices.Contains(f.IDs, int32(i))
		if found != (len(wordsOf(text[:min(len(text), maxQuery)])) > 0) {
			t.Errorf("%.40q: found %d: %v", text, f.Total, found)
		}
	}
	long := strings.Repeat("zz ", 1000) // all but the first words do not count
	if f := s.Find(Query{Text: strings.Repeat("script alert ", 16) + long, Limit: 1}); f.Total == 0 {
		t.Error("words beyond the bound count")
	}
}

// TestTogether: many ask while somebody changes, and each sees one state or another.
func TestTogether(t *testing.T) {
	docs := make([]Document, 300)
	for i := range docs {
		docs[i] = Document{ID: int32(i), Title: fmt.Sprint("stone number ", i), Volume: 1}
	}
	s := New(docs)
	var current sync.Map
	current.Store("s", s)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 200 {
				v, _ := current.Load("s")
				text := [...]string{"stone", "stnoe", "numb", "tone 12", "nothing"}[(g+i)%5]
				want := [...]int{300, 300, 300, -1, 0}[(g+i)%5]
				f := v.(*Index).Find(Query{Text: text, Limit: 500})
				if want >= 0 && f.Total != want || len(f.IDs) != f.Total {
					t.Errorf("%s: %d found, %d ids", text, f.Total, len(f.IDs))
				}
			}
		})
	}
	for i := range 50 {
		changed := slices.Clone(docs[i*5 : i*5+5])
		for j := range changed {
			changed[j].Title += " again"
		}
		s = s.With(changed, nil)
		current.Store("s", s)
	}
	all.Wait()
	if f := s.Find(Query{Text: "again", Limit: 1}); f.Total != 250 {
		t.Errorf("%d changed", f.Total)
	}
	if len(s.parts) > 8 {
		t.Errorf("%d parts", len(s.parts))
	}
}

// TestScattered: much that changed asks for one search anew; a little does not.
func TestScattered(t *testing.T) {
	docs := make([]Document, 20_000)
	for i := range docs {
		docs[i] = Document{ID: int32(i), Title: fmt.Sprint("x ", i)}
	}
	s := New(docs)
	if s = s.With(docs[:2000], nil); s.Scattered() {
		t.Error("a tenth is much")
	}
	if s = s.With(docs[5000:12000], nil); !s.Scattered() {
		t.Error("nine thousand are few")
	}
	if s = New(docs); s.Scattered() || s.Len() != 20_000 {
		t.Error("a new search is scattered")
	}
}

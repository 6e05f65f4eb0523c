package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clobd/engine"
)

// whole is a record as a JSON object again.
func whole(t testing.TB, r Record, err error) map[string]any {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, part := range [][]byte{r.Core, r.Rest, r.Live} {
		if len(part) > 0 {
			parts = append(parts, string(part))
		}
	}
	var m map[string]any
	if err := json.Unmarshal([]byte("{"+strings.Join(parts, ",")+"}"), &m); err != nil {
		t.Fatalf("a record is no JSON: %v", err)
	}
	return m
}

// sameFields compares every field that the source has, but for those that are written from other
// rows.
func sameFields(t testing.TB, what string, got, want map[string]any) {
	t.Helper()
	kind, _, _ := strings.Cut(what, " ")
	other := map[string]string{"event": "markets", "market": "events", "series": "events"}[kind]
	for key, value := range want {
		if key != other && !reflect.DeepEqual(got[key], value) {
			t.Errorf("%s: %s is %v, want %v", what, key, got[key], value)
		}
	}
	for key := range got {
		if _, is := want[key]; !is {
			t.Errorf("%s: has %s, which the source has not", what, key)
		}
	}
}

// realFolder is a folder with the real catalog, every file of it.
func realFolder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"gamma_events_full", "gamma_markets", "series", "tags",
		"clob_markets"} {
		name += ".jsonl.gz"
		if err := os.Symlink(shared(t, "catalog/"+name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func objects(t testing.TB, name string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(string(unzip(t, shared(t, "catalog/"+name+".jsonl.gz")))) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// filesOf are the files of a folder by name.
func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readFiles reads files as one load.
func readFiles(s *Store, files ...string) (Report, error) {
	return s.Load(nil, func(l *Load) error {
		for _, name := range files {
			file, err := os.Open(name)
			if err != nil {
				return err
			}
			l.File = filepath.Base(name)
			if err := errors.Join(l.Read(file), file.Close()); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestRealRecords: every record of the real catalog comes back by its id, its slug and its
// condition, with every field that the source has, from a fresh load and from the log of one.
func TestRealRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and TestReadsGoOn has all that is concurrent in it")
	}
	files, o := filesOf(t, realFolder(t)), Options{Dir: t.TempDir()}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	report, err := readFiles(s, files...)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	adds(t, report)
	if report.Broken+report.Refused > 0 || report.Events != 657 || report.Markets != 1102+1404 ||
		report.Books != 1188 || report.Series != 153 || report.Tags != 291 {
		t.Errorf("%s %v", report, report.Bad)
	}
	compareReal(t, s.Current())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	compareReal(t, s.Current())
}

func compareReal(t *testing.T, c *Catalog) {
	if c.Events.Len() != 657 || c.Series.Len() != 153 || c.Tags.Len() != 291 ||
		c.Markets.Len() != 1404+1188-21 {
		t.Errorf("%d events, %d series, %d tags, %d markets", c.Events.Len(), c.Series.Len(),
			c.Tags.Len(), c.Markets.Len())
	}
	for _, want := range objects(t, "gamma_events_full") {
		id := want["id"].(string)
		e := c.EventByID(id)
		if e == nil || c.EventBySlug(want["slug"].(string)) != e {
			t.Fatalf("event %s is lost", id)
		}
		r, err := c.EventRecord(e, nil)
		sameFields(t, "event "+id, whole(t, r, err), want)
		var markets []string
		for _, m := range c.MarketsOf(e) {
			markets = append(markets, m.ID)
		}
		for _, m := range want["markets"].([]any) {
			if !slices.Contains(markets, m.(map[string]any)["id"].(string)) {
				t.Errorf("event %s has lost a market", id)
			}
		}
	}
	for _, want := range objects(t, "gamma_markets") {
		id := want["id"].(string)
		m := c.MarketByID(id)
		condition, _ := engine.ParseCondition(want["conditionId"].(string))
		if m == nil || c.Market(condition) != m || c.MarketBySlug(want["slug"].(string)) != m {
			t.Fatalf("market %s is lost", id)
		}
		r, err := c.MarketRecord(m, nil)
		sameFields(t, "market "+id, whole(t, r, err), want)
		if list, _ := want["events"].([]any); len(list) > 0 {
			if e := c.EventOf(m); e == nil || e.ID != list[0].(map[string]any)["id"] {
				t.Errorf("market %s has lost its event", id)
			}
		}
		for o, token := range m.Tokens {
			found, at := c.MarketByToken(token)
			if token != (engine.Token{}) && (found != m || int(at) != o) {
				t.Errorf("market %s is not found by its token", id)
			}
		}
	}
	compareOthers(t, c)
}

// compareOthers is compareReal for all but events and markets.
func compareOthers(t *testing.T, c *Catalog) {
	for _, want := range objects(t, "clob_markets") {
		condition, _ := engine.ParseCondition(want["condition_id"].(string))
		m := c.Market(condition)
		if m == nil || !m.HasBook || m.BookOnly && c.MarketBySlug(want["market_slug"].(string)) != m {
			t.Fatalf("order-book market %s is lost", condition.Hex())
		}
		r, err := c.BookRecord(m, nil)
		sameFields(t, "order-book market", whole(t, r, err), want)
	}
	for _, want := range objects(t, "series") {
		s := c.SeriesByID(want["id"].(string))
		if s == nil || c.SeriesBySlug(want["slug"].(string)) != s {
			t.Fatalf("series %v is lost", want["id"])
		}
		r, err := c.SeriesRecord(s, nil)
		sameFields(t, "series "+s.ID, whole(t, r, err), want)
	}
	for _, want := range objects(t, "tags") {
		tag := c.TagByID(want["id"].(string))
		if tag == nil || c.TagBySlug(want["slug"].(string)) != tag {
			t.Fatalf("tag %v is lost", want["id"])
		}
		r, err := c.TagRecord(tag, nil)
		sameFields(t, "tag "+tag.ID, whole(t, r, err), want)
	}
}

// madeUp is a made-up source: what its records say now.
type madeUp struct {
	rand  *rand.Rand
	clock int64
	order []string // keys of records in the order in which they came
	at    map[string]string
}

func newWorld(seed uint64) *madeUp {
	return &madeUp{rand: rand.New(rand.NewPCG(seed, 0)), at: map[string]string{}}
}

func (w *madeUp) put(key, record string) {
	if _, is := w.at[key]; !is {
		w.order = append(w.order, key)
	}
	w.at[key] = record
}

// begin makes all tags, series and events.
func (w *madeUp) begin() string {
	for i := range 10 {
		w.put(fmt.Sprintf("event %d", i), fmt.Sprintf(`{"id":"%d","title":"E","slug":"event-%d","markets":[]}`, i, i))
		if i < 6 {
			w.put(fmt.Sprintf("tag %d", i), fmt.Sprintf(`{"id":"%d","label":"L","slug":"tag-%d"}`, i, i))
		}
		if i < 4 {
			w.put(fmt.Sprintf("series %d", i),
				fmt.Sprintf(`{"id":"%d","seriesType":"single","title":"S","slug":"series-%d"}`, i, i))
		}
	}
	return w.text()
}

// text is all records as they are now.
func (w *madeUp) text() string {
	var text strings.Builder
	for _, key := range w.order {
		text.WriteString(w.at[key] + "\n")
	}
	return text.String()
}

// change makes or changes a record and is its text.
func (w *madeUp) change() string {
	w.clock++
	updated := fmt.Sprintf(`"updatedAt":"2026-01-01T%02d:%02d:%02dZ"`, w.clock/3600, w.clock/60%60, w.clock%60)
	n := 1 + w.rand.IntN(40)
	var key, record string
	switch w.rand.IntN(8) {
	case 0:
		key = fmt.Sprintf("tag %d", n%6)
		record = fmt.Sprintf(`{"id":"%d","label":"L%d","slug":"tag-%d",%s}`, n%6, w.rand.IntN(100), n%6, updated)
	case 1:
		key = fmt.Sprintf("series %d", n%4)
		record = fmt.Sprintf(`{"id":"%d","seriesType":"single","recurrence":"daily","title":"S%d","slug":"series-%d",%s}`,
			n%4, w.rand.IntN(100), n%4, updated)
	case 2, 3:
		key = fmt.Sprintf("event %d", n%10)
		var tags, series []string
		for range w.rand.IntN(3) {
			tag := w.rand.IntN(6)
			tags = append(tags, fmt.Sprintf(`{"id":"%d","label":"L","slug":"tag-%d"}`, tag, tag))
			one := w.rand.IntN(4)
			series = append(series, fmt.Sprintf(`{"id":"%d","title":"S","slug":"series-%d"}`, one, one))
		}
		record = fmt.Sprintf(`{"id":"%d","title":"E%d","slug":"event-%d","active":%v,"volume":%d,"tags":[%s],"series":[%s],"markets":[],%s}`,
			n%10, w.rand.IntN(100), n%10, w.rand.IntN(2) == 0, w.rand.IntN(1000), strings.Join(tags, ","),
			strings.Join(series, ","), updated)
	default:
		key = fmt.Sprintf("market %d", n)
		record = market(n, fmt.Sprintf(`"slug":"q%d-%d","question":"Q%d?","closed":%v,"volume":"%d.5","active":%v,`+
			`"endDate":"2026-02-%02dT00:00:00Z","creator":"%s","events":[{"id":"%d","slug":"event-%d","title":"E"}],%s`,
			n, w.rand.IntN(3), w.rand.IntN(100), w.rand.IntN(3) == 0, w.rand.IntN(1000), w.rand.IntN(2) == 0,
			1+w.rand.IntN(28), []string{"", "Ann", "bob.example"}[w.rand.IntN(3)], n%10, n%10, updated))
	}
	w.put(key, record)
	return record
}

// describe is all that can be asked of a catalog, in words that do not depend on the order in which
// its records came.
func describe(t testing.TB, c *Catalog) map[string]any {
	t.Helper()
	told := map[string]any{}
	names := func(list []*Event) (ids []string) {
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		sort.Strings(ids)
		return ids
	}
	for m := range c.Markets.All() {
		r, err := c.MarketRecord(m, nil)
		told["market "+m.ID] = []any{whole(t, r, err), c.EventOf(m).ID, m.Skipped, m.Group,
			c.MarketByID(m.ID) == m, c.MarketBySlug(m.Slug) == m, c.LiveOf(m)}
	}
	for e := range c.Events.All() {
		r, err := c.EventRecord(e, nil)
		var markets []string
		for _, m := range c.MarketsOf(e) {
			markets = append(markets, m.ID)
		}
		sort.Strings(markets)
		var tags, series []string
		for _, tag := range c.TagsOf(e) {
			tags = append(tags, tag.ID)
		}
		for _, s := range c.SeriesOf(e) {
			series = append(series, s.ID)
		}
		told["event "+e.ID] = []any{whole(t, r, err), markets, tags, series, e.Partial, c.LiveOfEvent(e)}
	}
	for tag := range c.Tags.All() {
		r, err := c.TagRecord(tag, nil)
		told["tag "+tag.ID] = []any{whole(t, r, err), names(c.EventsOfTag(tag)), tag.Partial}
	}
	for s := range c.Series.All() {
		r, err := c.SeriesRecord(s, nil)
		told["series "+s.ID] = []any{whole(t, r, err), names(c.EventsOfSeries(s)), s.Partial}
	}
	for i, q := range someQueries() {
		q.Limit = 1000
		var ids [2][]string
		markets, err := c.QueryMarkets(&q)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range markets.Rows {
			ids[0] = append(ids[0], m.ID)
		}
		events, err := c.QueryEvents(&q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Rows {
			ids[1] = append(ids[1], e.ID)
		}
		told[fmt.Sprint("query ", i)] = ids
	}
	found := c.FindEvents(&WordQuery{Text: "E", Limit: 100})
	told["found"] = found.Total
	return told
}

func someQueries() (list []PageQuery) {
	for o := range orderCount {
		list = append(list, PageQuery{Order: o}, PageQuery{Order: o, Descending: true, Closed: No})
	}
	return append(list, []PageQuery{
		{Active: Yes, Closed: Yes}, {TagIDs: []string{"1", "2"}}, {TagIDs: []string{"77"}},
		{TagSlugs: []string{"tag-1", "tag-2"}, AllTags: true}, {ExcludeTagIDs: []string{"3"}},
		{Creator: "ANN"}, {Creator: "nobody"}, {Volume: Bounds{Min: 300e6, HasMin: true}},
		{SeriesSlugs: []string{"series-1"}}, {Recurrence: "daily"},
		{End: Bounds{Max: 1771000000000, HasMax: true}, Order: ByEnd},
		{EventIDs: []string{"1", "2"}, Active: Yes}, {IDs: []string{"5", "3", "5", "x"}},
	}...)
}

// TestIncrements: a catalog that followed its source step by step is the one that the source's last
// state makes by itself, also after a restart in between. What old catalogs said they go on saying.
func TestIncrements(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(rt, "seed"))
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		type kept struct {
			c    *Catalog
			told map[string]any
		}
		var old []kept
		// All tags, series and events are there from the start: rows never go away, also if what named
		// them does.
		if _, err := s.Read(strings.NewReader(w.begin())); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			var text strings.Builder
			for range 1 + w.rand.IntN(40) {
				text.WriteString(w.change() + "\n")
			}
			if _, err := s.Read(strings.NewReader(text.String())); err != nil {
				t.Fatal(err)
			}
			if w.rand.IntN(3) == 0 {
				warm(s.Current())
			}
			if w.rand.IntN(3) == 0 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = Open(Options{Dir: dir}); err != nil {
					t.Fatal(err)
				}
			}
			old = append(old, kept{s.Current(), describe(t, s.Current())})
		}
		want, _, err := Read(strings.NewReader(w.text()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		compareTold(t, describe(t, s.Current()), describe(t, want))
		for _, k := range old {
			compareTold(t, describe(t, k.c), k.told)
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}

func compareTold(t *testing.T, got, want map[string]any) {
	t.Helper()
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s is\n%v, want\n%v", key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d things told, want %d", len(got), len(want))
	}
}

// SeriesOf returns the series of an event in the order of its record.
func (c *Catalog) SeriesOf(e *Event) []*Series { return rowsOf(&c.Series, e.series) }

// LiveOf returns the live values of a market, at most a few seconds old while lists are asked for.
func (c *Catalog) LiveOf(m *Market) Live { return c.now().markets.at(m.No) }

// LiveOfEvent returns the live values of an event: sums over its markets once one of them trades
// here, else the source's.
func (c *Catalog) LiveOfEvent(e *Event) Live { return c.now().events.at(e.No) }

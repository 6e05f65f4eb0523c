package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
	"clobd/scripts/setting"
)

// onlyLog is the one file of a catalog's folder.
func onlyLog(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	return files[0]
}

// TestDamagedLog: a log that is cut or damaged anywhere opens as what was in front of that, says so
// and keeps the rest, goes on from there, and forgets how far the source was read.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for i := range 5 {
		text.WriteString(event(fmt.Sprint(i), market(2*i+1, ""), market(2*i+2, "")) + "\n")
	}
	// look reads the text unless the mark says that it was read, as a source does.
	look := func(s *Store) (Report, error) {
		if string(s.Mark()) == "read" {
			return Report{}, nil
		}
		return s.Load(func() ([]byte, error) { return []byte("read"), nil },
			func(l *Load) error { return l.Read(strings.NewReader(text.String())) })
	}
	o := Options{Dir: dir}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := look(s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(onlyLog(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	r, times := rand.New(rand.NewPCG(7, 1)), 300
	if testing.Short() {
		times = 100
	}
	for i := range times {
		damaged := slices.Clone(whole)
		at := r.IntN(len(whole))
		if i%2 == 0 {
			damaged = damaged[:at]
		} else {
			damaged[at] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(onlyLog(t, dir), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(o)
		if err != nil {
			t.Fatalf("damaged at %d: %v", at, err)
		}
		keepsCut(t, s, damaged, i%2 == 1)
		for m := range s.Current().Markets.All() {
			if _, err := s.Current().MarketRecord(m, nil); err != nil || s.Current().EventOf(m) == nil {
				t.Fatalf("damaged at %d: %v, event %v", at, err, s.Current().EventOf(m))
			}
		}
		if _, err := look(s); err != nil || s.Current().Markets.Len() != 10 {
			t.Fatalf("damaged at %d: %d markets, %v", at, s.Current().Markets.Len(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(o); err != nil || s.Current().Markets.Len() != 10 {
			t.Fatalf("damaged at %d, opened again: %d markets, %v", at, s.Current().Markets.Len(), err)
		}
	}
}

// keepsCut: what a store has cut off of a log is kept, and Verify says so, and so does a copy that
// is made of the log as it was.
func keepsCut(t *testing.T, s *Store, damaged []byte, flipped bool) {
	t.Helper()
	c := s.Status().Cut
	if c.Bytes == 0 {
		if flipped {
			t.Fatal("a flipped bit is no secret")
		}
		return
	}
	kept, err := os.ReadFile(c.File)
	if err != nil || string(kept) != string(damaged[len(damaged)-len(kept):]) ||
		int64(len(kept)) != c.Bytes {
		t.Fatalf("%+v: %d of %d bytes are kept, %v", c, len(kept), len(damaged), err)
	}
	if v, err := Verify(s.o.Dir); err != nil || len(v.Cuts) != 1 || v.Cuts[0] != c {
		t.Fatalf("cut %+v, told %+v, %v", c, v.Cuts, err)
	}
	from := t.TempDir()
	if err := os.WriteFile(logName(from, 0), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	copied, err := CopyFolder(from, filepath.Join(from, "to"))
	is := copied.Missing
	if is.File = c.File; err != nil || !c.Torn && is != c || c.Torn && is.Bytes > 0 {
		t.Fatalf("cut %+v, left out of a copy %+v, %v", c, is, err)
	}
	if err := os.Remove(c.File); err != nil {
		t.Fatal(err)
	}
}

// book is an order book's record.
func book(n, a, b int) string {
	return fmt.Sprintf(`{"condition_id":"%s","market_slug":"book-%d","tokens":[{"token_id":"%d",`+
		`"outcome":"Yes"},{"token_id":"%d","outcome":"No"}]}`, cond(n), n, a, b)
}

// TestRotInRecord: a record that is not what was written is an error, not an answer.
func TestRotInRecord(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(strings.NewReader(event("1", market(1, "")))); err != nil {
		t.Fatal(err)
	}
	m := s.Current().Markets.At(0)
	file, err := os.OpenFile(onlyLog(t, dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("x"), m.record.at+headSize+20); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Current().MarketRecord(m, nil); !errors.Is(err, errFrame) || len(r.Core) != 0 {
		t.Errorf("a rotten record: %q, %v", r.Core, err)
	}
	if _, err := s.Current().BookRecord(m, nil); err == nil {
		t.Error("a record that is not there has been read")
	}
}

// TestCompact: a log that is mostly garbage is written anew; catalogs from before go on working.
func TestCompact(t *testing.T) {
	const versions = 150
	for _, dir := range []string{"", t.TempDir()} {
		if testing.Short() && dir == "" {
			continue
		}
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", 1<<20)
		var first *Catalog
		for i := range versions {
			text := event("1", market(1, fmt.Sprintf(`"description":"%d %s",%s`, i, long, updated(i))))
			if i == 0 {
				text = `{"id":"7","label":"L","slug":"l"}` + "\n" + text + "\n" +
					book(5, 52, 53) + "\n" + book(1, 2, 3)
			}
			if _, err := s.Read(strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = s.Current()
			}
		}
		if size := s.log.size; size > 110<<20 {
			t.Errorf("the log has %d bytes", size)
		}
		check := func(c *Catalog, i int) {
			t.Helper()
			r, err := c.MarketRecord(c.MarketByID("1"), nil)
			if m := whole(t, r, err); !strings.HasPrefix(m["description"].(string), fmt.Sprint(i, " ")) {
				t.Errorf("says %.10s, not %d", m["description"], i)
			}
			b, err := c.BookRecord(c.MarketByID("1"), nil)
			whole(t, b, err)
			tag, err := c.TagRecord(c.TagBySlug("l"), nil)
			whole(t, tag, err)
			if m := c.MarketBySlug("book-5"); m == nil || !m.BookOnly {
				t.Errorf("the order book's market is %+v", m)
			}
			if e := c.EventOf(c.MarketByID("1")); e == nil || e.ID != "1" {
				t.Errorf("the market's event is %+v", e)
			}
		}
		check(first, 0)
		check(s.Current(), versions-1)
		if dir == "" {
			continue
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(onlyLog(t, dir), "records-000000.log") {
			t.Errorf("the log is %s", onlyLog(t, dir))
		}
		if s, err = Open(Options{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		check(s.Current(), versions-1)
	}
}

// TestReadsGoOn: while catalogs are made, readers see whole ones, and never wait.
func TestReadsGoOn(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	version := func(i int) string {
		var text strings.Builder
		for n := 1; n <= 300; n++ {
			more := fmt.Sprintf(`"question":"%d","volume":"%d",%s`, i, i, updated(i))
			text.WriteString(market(n, more) + "\n")
		}
		return text.String()
	}
	if _, err := s.Read(strings.NewReader(version(0))); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for !done.Load() {
				c := s.Current()
				page, err := c.QueryMarkets(&PageQuery{Limit: 300, Order: ByVolume})
				if err != nil || len(page.Rows) != 300 {
					t.Errorf("%d rows, %v", len(page.Rows), err)
					return
				}
				for _, m := range page.Rows {
					r, err := c.MarketRecord(m, nil)
					if err != nil || m.Question != page.Rows[0].Question ||
						!strings.Contains(string(r.Core), `"question":"`+m.Question+`"`) {
						t.Errorf("%s beside %s: %s, %v", m.Question, page.Rows[0].Question, r.Core, err)
						return
					}
				}
			}
		})
	}
	versions := 60
	if testing.Short() {
		versions = 20
	}
	for i := 1; i < versions; i++ {
		if _, err := s.Read(strings.NewReader(version(i))); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	readers.Wait()
}

// ages makes the live values of a catalog a minute old, as if nobody had asked for so long. If a
// page has sent for later ones, these come first: they may be from before what a test has changed.
func ages(t *testing.T, c *Catalog) {
	t.Helper()
	await(t, func() bool { return !c.live.busy.Load() })
	aged := *c.seen.Load()
	aged.at = aged.at.Add(-time.Minute)
	c.seen.Store(&aged)
}

// allocated is how many bytes a run allocates: what it does, however long that takes.
func allocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLive: lists go by what markets are worth now; the source counts where they do not trade.
func TestLive(t *testing.T) {
	var mu sync.Mutex
	values := map[engine.Condition]Live{}
	text := event("1", market(1, `"volume":"10","volume24hr":4,"volume1yr":1`),
		market(2, `"volume":"20","volume24hr":1,"volume1yr":3`)) + "\n" +
		event("2", market(3, `"volume":"30","volume24hr":2.5,"volume1yr":2`),
			market(4, `"volume":"40","closed":true,"volume24hr":"3","volume1yr":9`))
	c, _, err := Read(strings.NewReader(text),
		Options{Live: func(c engine.Condition) (Live, bool) {
			mu.Lock()
			defer mu.Unlock()
			v, ok := values[c]
			return v, ok
		}})
	if err != nil {
		t.Fatal(err)
	}
	order := func(q PageQuery) (ids string) {
		q.Limit = 10
		page, err := c.QueryMarkets(&q)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Rows {
			ids += m.ID
		}
		return ids
	}
	got := order(PageQuery{Order: ByVolume}) + " " + order(PageQuery{Closed: No})
	if got != "1234 123" {
		t.Errorf("by the source: %s", got)
	}
	if got := order(PageQuery{Order: ByVolumeDay}) + " " +
		order(PageQuery{Order: ByVolumeYear, Descending: true}); got != "2341 4231" {
		t.Errorf("by the source's windows: %s", got)
	}
	mu.Lock()
	values[engine.Condition{31: 1}] = Live{Volume: 35e6, Liquidity: 5,
		Windows: Windows{3e6, 1, 2, 4e6}}
	values[engine.Condition{31: 3}] = Live{Closed: true}
	mu.Unlock()
	ages(t, c)
	// Nobody has asked for a minute: the first one who does waits for what is true now.
	if got := order(PageQuery{Order: ByVolume}); got != "3214" {
		t.Errorf("the first page after a quiet time: %s", got)
	}
	if got := order(PageQuery{Closed: No}) + " " + order(PageQuery{Closed: Yes}) + " " +
		order(PageQuery{Order: ByLiquidity, Descending: true}) + " " +
		order(PageQuery{Volume: Bounds{Min: 20e6, HasMin: true}}) + " " +
		order(PageQuery{Order: ByVolumeDay}) + " " + order(PageQuery{Order: ByVolumeWeek}) + " " +
		order(PageQuery{Order: ByVolumeYear}); got != "12 34 1432 124 3214 2341 3214" {
		t.Errorf("live: %s", got)
	}
	if l := c.LiveOfEvent(c.EventByID("2")); !l.Closed || l.Volume != 40e6 || !l.Trades {
		t.Errorf("an event of closed markets: %+v", l)
	}
	events, err := c.QueryEvents(&PageQuery{Limit: 10, Closed: No})
	if err != nil || len(events.Rows) != 1 || events.Rows[0].ID != "1" {
		t.Errorf("open events %v, %v", events.Rows, err)
	}
}

// TestFiguresOfEvents: lists of events go by what their records say, and by the sums over their
// markets where these say nothing or one of the markets trades here.
func TestFiguresOfEvents(t *testing.T) {
	trades := map[engine.Condition]Live{}
	figures := func(id int, more string, markets ...string) string {
		return fmt.Sprintf(`{"id":"%d","slug":"e%d","title":"E"%s,"markets":[%s]}`, id, id, more,
			strings.Join(markets, ","))
	}
	text := figures(1, `,"volume":5,"volume24hr":1,"liquidity":0`,
		market(1, `"volume":"90","volume24hr":9,"liquidity":"9"`)) + "\n" +
		figures(2, "", market(2, `"volume":"20","volume24hr":2,"liquidity":"2"`)) + "\n" +
		figures(3, `,"volume":900,"volume24hr":800,"liquidity":700`, market(3, `"volume":"80"`),
			market(4, `"volume":"7","volume24hr":7,"liquidity":"7"`))
	trades[engine.Condition{31: 3}] = Live{Volume: 3e6, Liquidity: 4e6, Windows: Windows{1e6}}
	c, _, err := Read(strings.NewReader(text), Options{
		Live: func(c engine.Condition) (Live, bool) {
			v, ok := trades[c]
			return v, ok
		}})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]Live{
		"1": {Volume: 5e6, Windows: Windows{1e6}},
		"2": {Volume: 20e6, Liquidity: 2e6, Windows: Windows{2e6}},
		"3": {Volume: 10e6, Liquidity: 11e6, Windows: Windows{8e6}, Trades: true},
	} {
		if got := c.LiveOfEvent(c.EventByID(id)); got != want {
			t.Errorf("event %s: %+v, want %+v", id, got, want)
		}
	}
	page, err := c.QueryEvents(&PageQuery{Limit: 9, Order: ByVolume})
	if err != nil || len(page.Rows) != 3 || page.Rows[0].ID != "1" || page.Rows[1].ID != "3" {
		t.Errorf("by volume: %v %v", page.Rows, err)
	}
}

// TestLongSeries: a series with more events than a page steps over is paged like any list, and who
// names it hundreds of times costs nobody anything.
func TestLongSeries(t *testing.T) {
	const events = maxWalk + 904
	var text strings.Builder
	for i := range events {
		fmt.Fprintf(&text, `{"id":"%d","slug":"e%d","title":"E","volume":%d,"active":%v,`+
			`"series":[{"id":"1","slug":"s","title":"S"}],"markets":[]}`+"\n",
			i+1, i+1, events-i, i%2 == 0)
	}
	c, _, err := Read(strings.NewReader(text.String()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	many := func(name string) (list []string) {
		for range 500 {
			list = append(list, name)
		}
		return list
	}
	q := PageQuery{SeriesIDs: many("1"), SeriesSlugs: many("s"), Active: Yes, Limit: 100,
		Order: ByVolume}
	id, rows := events-1, 0
	for more := true; more; more = q.After != "" {
		page, err := c.QueryEvents(&q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Rows {
			if e.ID != strconv.Itoa(id) {
				t.Fatalf("row %d is %s, want %d", rows, e.ID, id)
			}
			id, rows = id-2, rows+1
		}
		q.After = page.Next
	}
	if rows != events/2 {
		t.Errorf("%d rows, want %d", rows, events/2)
	}
	cost := func(q PageQuery) uint64 {
		return allocated(func() {
			if _, err := c.QueryEvents(&q); err != nil {
				t.Fatal(err)
			}
		})
	}
	q.After = ""
	often := cost(q)
	q.SeriesIDs, q.SeriesSlugs = []string{"1"}, []string{"s"}
	once := cost(q)
	if often > 4*once { // it is a thousand times as much where each name is looked through
		t.Errorf("a page costs %d bytes, with the series named once %d", often, once)
	}
}

// TestLiveRanks: what is found equally well goes by what is traded here, and what has ended comes
// last; also after a refresh, when the search is put in one piece, and when it is opened again.
func TestLiveRanks(t *testing.T) {
	var mu sync.Mutex
	values := map[engine.Condition]Live{}
	o := Options{Dir: t.TempDir(), Live: func(c engine.Condition) (Live, bool) {
		mu.Lock()
		defer mu.Unlock()
		v, ok := values[c]
		return v, ok
	}}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	text := func(id, volume int) string {
		return fmt.Sprintf(`{"id":"%d","slug":"e%d","title":"Rain","active":true,"volume":%d,`+
			`"markets":[%s]}`, id, id, volume, market(id, ""))
	}
	read := func(texts ...string) {
		t.Helper()
		if _, err := s.Read(strings.NewReader(strings.Join(texts, "\n"))); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when, ids string) {
		t.Helper()
		got := ""
		for _, e := range s.Current().FindEvents(&WordQuery{Text: "rain", Limit: 9}).Rows {
			got += e.ID
		}
		if got != ids {
			t.Errorf("%s: %s, want %s", when, got, ids)
		}
	}
	live := func(id int, v Live) {
		mu.Lock()
		values[engine.Condition{31: byte(id)}] = v
		mu.Unlock()
		ages(t, s.Current())
		s.rank()
	}
	read(text(1, 10), text(2, 20), text(3, 30))
	want("by the source", "321")
	live(1, Live{Volume: 40e6})
	want("more is traded here", "132")
	live(2, Live{Volume: 1e6})
	want("less is traded here than the source says", "132")
	live(3, Live{Volume: 50e6, Closed: true})
	want("closed here", "123")
	read(text(2, 21))
	want("after a refresh of another one", "123")
	s.publish(gathered(s.Current()))
	want("gathered", "123")
	before := s.Current()
	if s.rank(); s.Current() != before {
		t.Error("nothing has changed, the catalog has")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	want("opened again", "123")
}

// TestGather: after many changes the search is put in one piece, and finds the same.
func TestGather(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	version := func(i int) string {
		var text strings.Builder
		for n := 1; n <= 9000; n++ {
			text.WriteString(fmt.Sprintf(`{"id":"%d","slug":"s","title":"word%d v%d","markets":[],%s}`+"\n",
				n, n, i, updated(i)))
		}
		return text.String()
	}
	for i := range 2 {
		if _, err := s.Read(strings.NewReader(version(i))); err != nil {
			t.Fatal(err)
		}
	}
	c := s.Current()
	if !c.searchEvents.Scattered() {
		t.Fatal("nothing to gather")
	}
	s.Gather()
	if s.Current() == c || s.Current().searchEvents.Scattered() {
		t.Error("not gathered")
	}
	for text, want := range map[string]int{"word8999 v1": 1, "v0": 0, "v1": 9000} {
		for _, c := range []*Catalog{c, s.Current()} {
			if found := c.FindEvents(&WordQuery{Text: text, Limit: 5}); found.Total != want {
				t.Errorf("%q is found %d times, want %d", text, found.Total, want)
			}
		}
	}
}

// TestRanks: the search follows volumes by tenths, also when each step is less than one.
func TestRanks(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	order := func(volume int) string {
		t.Helper()
		text := fmt.Sprintf(`{"id":"1","slug":"a","title":"moon","active":true,"volume":100,"markets":[]}
{"id":"2","slug":"b","title":"moon","active":true,"volume":%d,"markets":[],%s}`, volume, updated(volume))
		if _, err := s.Read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		order := ""
		for _, e := range s.Current().FindEvents(&WordQuery{Text: "moon", Limit: 5}).Rows {
			order += e.ID
		}
		return order
	}
	for _, step := range []struct {
		volume int
		want   string
	}{{94, "12"}, {101, "12"}, {106, "21"}, {105, "21"}} {
		if got := order(step.volume); got != step.want {
			t.Errorf("at a volume of %d found in the order %s, want %s", step.volume, got, step.want)
		}
	}
}

// TestPages holds pages against the plain way: look at all rows, sort them, cut.
func TestPages(t *testing.T) {
	setting.Full(t, "thousands of pages")
	w := newWorld(1)
	text := w.begin()
	for range 300 {
		w.change()
	}
	text += w.text()
	for i := 100; i < 6000; i++ { // more than a page may walk over
		more := fmt.Sprintf(`"active":%v,"volume":%d,%s`, i%7 == 0, i*37%1000, updated(i*31%1000))
		text += market(i, more) + "\n"
	}
	c, _, err := Read(strings.NewReader(text+book(9999, 98, 99)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	pick, queries := rand.New(rand.NewPCG(3, 4)), 400
	if testing.Short() {
		queries = 40
	}
	for range queries {
		q := PageQuery{Order: Order(pick.IntN(int(orderCount))), Descending: pick.IntN(2) == 0,
			Offset: pick.IntN(50) * pick.IntN(100), Limit: pick.IntN(150),
			Active: Flag(pick.IntN(3)), Closed: Flag(pick.IntN(3))}
		if pick.IntN(3) == 0 {
			q.Volume = Bounds{Min: 100e6, Max: 700e6, HasMin: true, HasMax: pick.IntN(2) == 0}
		}
		if pick.IntN(4) == 0 {
			q.TagIDs = []string{fmt.Sprint(pick.IntN(8))}
		}
		want := naivePage(c, &q)
		page, err := c.QueryMarkets(&q)
		if err != nil {
			t.Fatal(err)
		}
		if got := idsOfMarkets(page.Rows); !slices.Equal(got, cut(want, q.Offset, q.Limit)) {
			t.Fatalf("%+v: got %v\nwant %v", q, got, cut(want, q.Offset, q.Limit))
		}
		if (page.Next != "") != (q.Limit > 0 && q.Offset+q.Limit < len(want)) {
			t.Fatalf("%+v: next %q of %d", q, page.Next, len(want))
		}
		q.Offset = 0
		if q.Limit = 1 + pick.IntN(900); pick.IntN(4) == 0 {
			walkAll(t, c, q, want)
		}
	}
}

// walkAll goes from page to page by cursors.
func walkAll(t *testing.T, c *Catalog, q PageQuery, want []string) {
	t.Helper()
	var got []string
	for {
		page, err := c.QueryMarkets(&q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, idsOfMarkets(page.Rows)...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%+v by cursors: %d rows, want %d", q, len(got), len(want))
	}
}

func cut(list []string, offset, limit int) []string {
	list = list[min(offset, len(list)):]
	return list[:min(limit, len(list))]
}

func idsOfMarkets(rows []*Market) (ids []string) {
	for _, m := range rows {
		ids = append(ids, m.ID)
	}
	return ids
}

func naivePage(c *Catalog, q *PageQuery) []string {
	var rows []*Market
	for m := range c.Markets.All() {
		tagged := len(q.TagIDs) == 0
		for _, tag := range c.MarketTags(m) {
			tagged = tagged || tag.ID == q.TagIDs[0]
		}
		low, high := q.Volume.limits()
		if !m.BookOnly && tagged && is(q.Active, m.Active) && is(q.Closed, m.Closed) &&
			m.Volume >= low && m.Volume <= high {
			rows = append(rows, m)
		}
	}
	slices.SortFunc(rows, func(a, b *Market) int {
		by := 0
		switch q.Order {
		case BySlug:
			by = strings.Compare(a.Slug, b.Slug)
		case ByName:
			by = strings.Compare(a.Question, b.Question)
		case ByStart:
			by = cmp.Compare(a.Start, b.Start)
		case ByEnd:
			by = cmp.Compare(a.End, b.End)
		case ByCreated:
			by = cmp.Compare(a.Created, b.Created)
		case ByUpdated:
			by = cmp.Compare(a.Updated, b.Updated)
		case ByVolume:
			by = cmp.Compare(a.Volume, b.Volume)
		case ByLiquidity:
			by = cmp.Compare(a.Liquidity, b.Liquidity)
		case ByVolumeDay, ByVolumeWeek, ByVolumeMonth, ByVolumeYear:
			i := q.Order - ByVolumeDay
			by = cmp.Compare(a.Windows[i], b.Windows[i])
		}
		return cmp.Or(by, number(a.ID)-number(b.ID))
	})
	ids := idsOfMarkets(rows)
	if q.Descending {
		slices.Reverse(ids)
	}
	return ids
}

func TestCursors(t *testing.T) {
	c, _, err := Read(strings.NewReader(event("1", market(1, ""), market(2, ""))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.QueryMarkets(&PageQuery{Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatal(page, err)
	}
	for _, q := range []PageQuery{{After: "x"}, {After: "????"}, {After: page.Next, Order: BySlug},
		{After: page.Next + "AA"}, {After: rowCursor{no: 7}.String()}, {After: "MTA="}} {
		q.Limit = 1
		if _, err := c.QueryMarkets(&q); !errors.Is(err, ErrCursor) {
			t.Errorf("%q: %v", q.After, err)
		}
	}
	if _, err := c.QueryMarkets(&PageQuery{Limit: 1, After: page.Next}); err != nil {
		t.Errorf("its own list: %v", err)
	}
	if _, err := c.QueryEvents(&PageQuery{Limit: 1, After: page.Next}); !errors.Is(err, ErrCursor) {
		t.Errorf("a list of other rows: %v", err)
	}
	var none *Catalog
	if page, err := none.QueryMarkets(&PageQuery{Limit: 1}); err != nil || len(page.Rows) != 0 {
		t.Errorf("no catalog: %v %v", page, err)
	}
	if page, err := Empty().QueryEvents(&PageQuery{Limit: 1}); err != nil || len(page.Rows) != 0 {
		t.Errorf("an empty catalog: %v %v", page, err)
	}
}

func TestOrders(t *testing.T) {
	for name, want := range map[string]Order{
		"": ByID, "id": ByID, "volumeNum": ByVolume, "volumeClob": ByVolume, "volume_24hr": ByVolumeDay,
		"volume24hrClob": ByVolumeDay, "volume1wk": ByVolumeWeek, "volume_1mo": ByVolumeMonth,
		"volume1yrClob": ByVolumeYear, "closedTime": ByClosed, "competitive": ByCompetitive,
		"featuredOrder": ByFeatured,
		"end_date":      ByEnd, "startDate": ByStart, "created_at": ByCreated, "updatedAt": ByUpdated,
		"liquidity_num": ByLiquidity, "question": ByName, "title": ByName, "slug": BySlug} {
		if o, ok := ParseOrder(name); !ok || o != want {
			t.Errorf("%q is %v %v", name, o, ok)
		}
	}
	for _, name := range []string{"competition", "volumes", "volume1h", "closedAt", "startTime",
		"liquidity1", "id desc", "volume24hrclobclob"} {
		if _, ok := ParseOrder(name); ok {
			t.Errorf("%q is an order", name)
		}
	}
}

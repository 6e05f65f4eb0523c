package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"clobd/api/catalog"
)

// service is another node as far as a catalog's source goes: four lists.
type service struct {
	mu      sync.Mutex
	lists   map[string][]map[string]any
	asked   []string
	same    int
	keyless bool                                                     // without keyset lists
	before  func(w http.ResponseWriter, r *http.Request) (done bool) // what goes wrong, if anything
}

func newService(t *testing.T) (*service, string) {
	s := &service{lists: map[string][]map[string]any{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// openRemote opens a store whose source is a service of this process, which has minutes for each
// answer: it may be as slow as the machine.
func openRemote(t *testing.T, o Options) *both {
	t.Helper()
	s := open(t, o)
	s.client.Timeout = 3 * time.Minute
	return s
}

// both are a source and the store that it loads into.
type both struct {
	*Source
	*catalog.Store
}

func open(t *testing.T, o Options) *both {
	t.Helper()
	store, err := catalog.Open(catalog.Options{Dir: o.Dir, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	return &both{New(store, o), store}
}

// TestAnswerTime: a source has ten seconds for each answer, where no test gives it longer.
func TestAnswerTime(t *testing.T) {
	s := open(t, Options{Address: "http://127.0.0.1:1"})
	if s.client.Timeout != 10*time.Second {
		t.Errorf("%v for one answer", s.client.Timeout)
	}
}

// put replaces or adds a record.
func (s *service) put(list, record string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m map[string]any
	if err := json.Unmarshal([]byte(record), &m); err != nil {
		panic("BUG: " + record)
	}
	for i, old := range s.lists[list] {
		if old["id"] == m["id"] {
			s.lists[list][i] = m
			return
		}
	}
	s.lists[list] = append(s.lists[list], m)
}

func (s *service) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.String())
	if s.before != nil && s.before(w, r) {
		return
	}
	name, keyed := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/keyset")
	list := slices.Clone(s.lists[name])
	if one, is := strings.CutPrefix(name, "clob/markets/"); is {
		for _, b := range s.lists["books"] {
			if b["condition_id"] == one {
				json.NewEncoder(w).Encode(b)
				return
			}
		}
	}
	if name == "clob/markets" && len(s.lists["books"]) > 0 {
		from := number(q0(r, "next_cursor"))
		books := s.lists["books"]
		page := map[string]any{"data": books[from : from+1], "next_cursor": "LTE="}
		if from+1 < len(books) {
			page["next_cursor"] = strconv.Itoa(from + 1)
		}
		json.NewEncoder(w).Encode(page)
		return
	}
	if keyed && s.keyless || !slices.Contains([]string{"tags", "series", "events", "markets"}, name) {
		http.NotFound(w, r)
		return
	}
	q := r.URL.Query()
	by := q.Get("order")
	slices.SortStableFunc(list, func(a, b map[string]any) int {
		if by == "updatedAt" {
			return strings.Compare(fmt.Sprint(a[by]), fmt.Sprint(b[by]))
		}
		return number(a["id"]) - number(b["id"])
	})
	if q.Get("ascending") == "false" {
		slices.Reverse(list)
	}
	limit, from := number(q.Get("limit")), number(q.Get("offset"))+number(q.Get("after_cursor"))
	page := list[min(from, len(list)):min(from+limit, len(list))]
	var answer any = page
	if len(page) == 0 {
		answer = []int{}
	}
	if keyed {
		object := map[string]any{name: answer}
		if from+limit < len(list) {
			object["next_cursor"] = strconv.Itoa(from + limit)
		}
		answer = object
	}
	body, _ := json.Marshal(answer)
	hash := fnv.New64a()
	hash.Write(body)
	tag := fmt.Sprintf(`"%x"`, hash.Sum64())
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		s.same++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Write(body)
}

// q0 is a parameter of a request, without the beginning of a list.
func q0(r *http.Request, name string) string {
	return strings.TrimPrefix(r.URL.Query().Get(name), "MA==")
}

func number(v any) int {
	n, _ := strconv.Atoi(fmt.Sprint(v))
	return n
}

func updated(minute int) string {
	return fmt.Sprintf(`"updatedAt":"2026-05-01T%02d:%02d:00Z"`, minute/60, minute%60)
}

// fill makes a service with n markets in events of ten.
func (s *service) fill(n int) {
	s.put("tags", `{"id":"1","label":"News","slug":"news"}`)
	s.put("series", `{"id":"1","title":"Days","slug":"days","seriesType":"single"}`)
	for i := 1; i <= n; i++ {
		e := (i-1)/10 + 1
		if (i-1)%10 == 0 {
			s.put("events", fmt.Sprintf(`{"id":"%d","slug":"e%d","title":"T%d","tags":[{"id":"1","label":"News",`+
				`"slug":"news"}],"series":[{"id":"1","title":"Days","slug":"days"}],%s}`, e, e, e, updated(i%600)))
		}
		s.put("markets", market(i, fmt.Sprintf(`"events":[{"id":"%d","slug":"e%d","title":"T%d","ticker":"x"}],%s`,
			e, e, e, updated(i%600))))
	}
}

func TestRemote(t *testing.T) {
	for _, keyless := range []bool{false, true} {
		source, base := newService(t)
		source.keyless = keyless
		source.fill(450)
		o := Options{Dir: t.TempDir(), Address: base + "/"}
		s := openRemote(t, o)
		report, err := s.Look(t.Context())
		if err != nil || s.Current().Markets.Len() != 450 || s.Current().Events.Len() != 45 {
			t.Fatalf("%s: %v", report, err)
		}
		e := s.Current().EventByID("45")
		if e == nil || e.Partial || len(s.Current().MarketsOf(e)) != 10 ||
			len(s.Current().TagsOf(e)) != 1 {
			t.Errorf("an event came as %+v", e)
		}
		source.requests()
		// What was not updated is not sent again.
		before := source.same
		if report, err = s.Look(t.Context()); err != nil || report.Usable() > 220 {
			t.Errorf("looked again: %s, %v", report, err)
		}
		report, err = s.Look(t.Context())
		if err != nil || report.Usable() != 0 || source.same < before+4 {
			t.Errorf("looked at what is the same: %s, %v, %d answered with nothing", report, err,
				source.same-before)
		}
		if n := len(source.requests()); n > 30 {
			t.Errorf("%d requests for nothing new", n)
		}
		source.put("markets", market(7, `"question":"Changed?","closed":true,`+updated(700)))
		source.put("markets", market(451, `"events":[{"id":"46"}],`+updated(701)))
		if report, err = s.Look(t.Context()); err != nil || s.Current().Markets.Len() != 451 {
			t.Errorf("%s, %v", report, err)
		}
		m := s.Current().MarketByID("7")
		if m.Question != "Changed?" || m.Skipped != catalog.Closed || m.EventNo == catalog.None {
			t.Errorf("a changed market is %+v", m)
		}
		// After a restart without the source, what was known is known, and how far it was read.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s = openRemote(t, o); s.Current().Markets.Len() != 451 {
			t.Fatalf("%d markets", s.Current().Markets.Len())
		}
		source.requests()
		if report, err = s.Look(t.Context()); err != nil || report.Markets > 250 {
			t.Errorf("after a restart: %s, %v", report, err)
		}
	}
}

// TestFutureUpdate: a record that says it was updated long after now hides no other one, however
// many are new.
func TestFutureUpdate(t *testing.T) {
	source, base := newService(t)
	source.fill(300)
	source.put("markets", market(301, `"updatedAt":"2999-01-01T00:00:00Z"`))
	s := openRemote(t, Options{Address: base})
	for round, question := range []string{"New?", "Newer?"} {
		if _, err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(round) * time.Second).UTC().Format(time.RFC3339)
		for i := 1; i <= 250; i++ {
			source.put("markets", market(i, fmt.Sprintf(`"question":%q,"updatedAt":%q`, question, at)))
		}
		if _, err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := 1; i <= 250; i++ {
			if m := s.Current().MarketByID(strconv.Itoa(i)); m.Question != question {
				t.Fatalf("market %d still asks %q, not %q", i, m.Question, question)
			}
		}
	}
}

// TestRemoteBooks: the order book's list is read once, with the records of markets that other lists
// have too; after that the record of a market is read again when the market has changed.
func TestRemoteBooks(t *testing.T) {
	source, base := newService(t)
	source.fill(20)
	asBook := func(n int, more string) {
		source.put("books", strings.Replace(book(n, 2*n, 2*n+1), "{",
			fmt.Sprintf(`{"id":"%d","fpmm":%q,`, n, more), 1))
	}
	asBook(7, "old")
	asBook(8, "old")
	asBook(700, "old")
	s := openRemote(t, Options{Address: base})
	report, err := s.Look(t.Context())
	if err != nil || s.Current().Markets.Len() != 21 || report.Books != 3 || report.Listed != 21 {
		t.Fatalf("%d markets; %s, %v", s.Current().Markets.Len(), report, err)
	}
	if m := s.Current().MarketBySlug("book-700"); m == nil || !m.BookOnly {
		t.Errorf("the order book's market is %+v", m)
	}
	says := func(n int, want string) {
		t.Helper()
		r, err := s.Current().BookRecord(s.Current().MarketByID(strconv.Itoa(n)), nil)
		if err != nil || !strings.Contains(string(r.Core), `"fpmm":"`+want+`"`) {
			t.Errorf("the record of market %d is %s, %v; want %s", n, r.Core, err, want)
		}
	}
	says(7, "old")
	asBook(7, "new")
	asBook(8, "new")
	source.put("markets", market(7, `"question":"Anew?",`+updated(700)))
	source.put("markets", market(9, `"question":"Anew?",`+updated(700)))
	source.requests()
	for range 2 { // what has failed is asked for again
		source.mu.Lock()
		source.before = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/clob/") {
				w.WriteHeader(http.StatusBadGateway)
			}
			return strings.HasPrefix(r.URL.Path, "/clob/")
		}
		source.mu.Unlock()
		if _, err := s.Look(t.Context()); err == nil {
			t.Error("no error")
		}
		says(7, "old")
	}
	source.mu.Lock()
	source.before, source.asked = nil, nil
	source.mu.Unlock()
	if _, err := s.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	says(7, "new")
	says(8, "old") // nothing says that it has changed
	if m := s.Current().MarketByID("9"); m.HasBook || m.Question != "Anew?" {
		t.Errorf("a market without an order book's record is %+v", m)
	}
	asked := source.requests()
	asked = slices.DeleteFunc(asked, func(path string) bool { return !strings.HasPrefix(path, "/clob") })
	slices.Sort(asked)
	if fmt.Sprint(asked) != fmt.Sprint([]string{"/clob/markets/" + cond(7), "/clob/markets/" + cond(9)}) {
		t.Errorf("asked for %v", asked)
	}
}

// TestRequestsCounted: each request is counted once, by what came of it, and when the source was
// last read is known after a restart without it, unless the source is another one.
func TestRequestsCounted(t *testing.T) {
	source, base := newService(t)
	source.fill(20)
	source.put("books", book(7, 14, 15))
	o := Options{Dir: t.TempDir(), Address: base}
	s := openRemote(t, o)
	if st := s.Health(); !st.LastSuccess.IsZero() {
		t.Errorf("%+v", st)
	}
	began := time.Now()
	for range 3 {
		if _, err := s.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ended := time.Now()
	asked := len(source.requests())
	st := s.Health()
	if st.Asked.New+st.Asked.Unchanged != uint64(asked) || st.Asked.Unchanged != uint64(source.same) ||
		st.Asked.Unchanged == 0 || st.Asked.Failed != 0 {
		t.Errorf("%d requests, %d of them answered with nothing: %+v", asked, source.same, st)
	}
	source.before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	for failed := range uint64(3) {
		if got := s.Health().Asked.Failed; got != failed {
			t.Errorf("%d failed requests, want %d", got, failed)
		}
		if _, err := s.Look(t.Context()); err == nil {
			t.Error("no error")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	// One of the three looks is kept, as they may be too close to keep each. A coarse clock may round
	// the time of a file down.
	if last := s.Health().LastSuccess; last.Before(began.Add(-time.Second)) || last.After(ended) {
		t.Errorf("last success %v, want one from %v to %v", last, began, ended)
	}
	o.Address = "http://127.0.0.1:1"
	if s = open(t, o); !s.Health().LastSuccess.IsZero() {
		t.Errorf("%v", s.Health().LastSuccess)
	}
}

// TestForeignFiles: a file of a folder without a record of a catalog is told of in one line; of one
// with many bad records the first ones are named.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jsonl": market(1, "") + "\n" + strings.Repeat(`{"id":5}`+"\n", 25) + market(2, ""),
		"b.jsonl": strings.Repeat(`{"price":1}`+"\n", 3000), "c.json": `[{"x":1},{"y":2}]`,
		"d.json": "[" + market(3, "") + "]",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	s := open(t, Options{Address: dir, Log: slog.New(slog.NewTextHandler(&out, nil))})
	report, err := s.Look(t.Context())
	if err != nil || report.Listed != 3 || report.Broken != 25 || report.Passed != 2 ||
		len(report.Bad) != 27 {
		t.Errorf("%s, %d named, %v", report, len(report.Bad), err)
	}
	log := out.String()
	for text, want := range map[string]int{"\n": 13, `msg="catalog record" file=a.jsonl`: 10,
		`msg="catalog records" file=a.jsonl "more bad ones"=15`: 1,
		"records=3000 first=\"b.jsonl line 1: no event":         1, "records=2 first=\"c.json line 1: ": 1} {
		if got := strings.Count(log, text); got != want {
			t.Errorf("%s %d times, want %d, in\n%s", text, got, want, log)
		}
	}
}

// fault is what a service answers wrongly.
type fault struct {
	path   string // of the answers that are wrong
	answer func(w http.ResponseWriter, r *http.Request)
	want   string
}

// faults are those of all kinds, by name; other is another host.
func faults(other string) map[string]fault {
	return map[string]fault{
		"status": {"/markets/keyset", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
		}, "GET /markets/keyset: status 502"},
		"long": {"/events/keyset", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"events":[],"x":"%s"}`, strings.Repeat("x", maxAnswer))
		}, "is longer than 10485760 bytes"},
		"long unpacked": {"/events/keyset", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, `{"events":[],"x":"%s"}`, strings.Repeat("x", maxAnswer))
			z.Close()
		}, "is longer than 10485760 bytes"},
		"page of words": {"/tags", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html>hello</html>")
		}, "broken JSON"},
		"half a page": {"/markets/keyset", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"markets":[{"id":"1","question":"Half`)
		}, "broken JSON"},
		"half a list": {"/tags", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `[{"id":"1","label":"News","slug":"news"},`)
		}, "broken JSON"},
		"cut": {"/events/keyset", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			fmt.Fprint(w, `{"events":[]}`)
		}, "unexpected EOF"},
		"no list": {"/series", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"error":"x"}`)
		}, "no list of series"},
		"no end": {"/markets/keyset", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"markets":[{"id":"1"}],"next_cursor":"same"}`)
		}, "the next cursor is the same again"},
		"another host": {"/tags", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other+"/tags", http.StatusFound)
		}, "redirected to another host"},
		"a circle": {"/tags", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "redirected five times"},
	}
}

// TestRemoteFailures: what a service answers wrongly changes nothing that makes no sense, and is an
// error that says what it was.
func TestRemoteFailures(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for name, c := range faults(other.URL) {
		source, base := newService(t)
		source.fill(20)
		source.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != c.path {
				return false
			}
			c.answer(w, r)
			return true
		}
		s := openRemote(t, Options{Address: base})
		report, err := s.Look(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, error %v, want %q", name, report, err, c.want)
		}
		if st := s.Health(); st.Failures != 1 || st.LastError == "" || !st.LastSuccess.IsZero() {
			t.Errorf("%s: status %+v", name, st)
		}
		source.mu.Lock()
		source.before = nil
		source.mu.Unlock()
		if _, err := s.Look(t.Context()); err != nil || s.Current().Markets.Len() != 20 {
			t.Errorf("%s: %d markets later, %v", name, s.Current().Markets.Len(), err)
		}
	}
}

// TestVanished: what a service has no longer stays described as it was, and what is left goes on
// changing.
func TestVanished(t *testing.T) {
	source, base := newService(t)
	source.fill(30)
	s := openRemote(t, Options{Address: base})
	if _, err := s.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.mu.Lock()
	source.lists["markets"], source.lists["events"] = source.lists["markets"][:5], nil
	source.lists["tags"] = nil
	source.mu.Unlock()
	source.put("markets", market(3, `"question":"Changed?",`+updated(700)))
	if report, err := s.look(t.Context(), false, true); err != nil || report.Markets != 5 {
		t.Fatalf("%s, %v", report, err)
	}
	c := s.Current()
	m := c.MarketByID("30")
	if m == nil || c.EventOf(m) == nil || len(c.MarketTags(m)) != 1 ||
		c.MarketByID("3").Question != "Changed?" || c.Markets.Len() != 30 {
		t.Errorf("market 30 is %+v of %d", m, c.Markets.Len())
	}
}

// TestSync: a running node hears of what is new, after failures too, and stops when it is told to.
func TestSync(t *testing.T) {
	source, base := newService(t)
	defer ends(t, goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
	source.fill(20)
	var wrong atomic.Bool
	source.before = func(w http.ResponseWriter, _ *http.Request) bool {
		if wrong.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return wrong.Load()
	}
	s := openRemote(t, Options{Address: base, Every: 5 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Sync(ctx); close(done) }()
	await(t, func() bool { return s.Current().Markets.Len() == 20 })
	wrong.Store(true)
	await(t, func() bool { return s.Health().Failures > 0 })
	source.put("markets", market(21, updated(900)))
	wrong.Store(false)
	await(t, func() bool { return s.Current().MarketByID("21") != nil })
	cancel()
	<-done
}

// await waits until something is true, which takes as long as the machine needs.
func await(t *testing.T, true func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !true(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
	}
}

// ends waits until no goroutine is left but those that the options let be.
func ends(t *testing.T, options ...goleak.Option) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		err := goleak.Find(options...) // looks for about a second
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Error(err)
			return
		}
	}
}

func TestBackoff(t *testing.T) {
	s := &Source{}
	var waits []time.Duration
	wait := time.Minute
	for range 12 {
		wait = s.after(fmt.Errorf("x"), wait, time.Minute)
		waits = append(waits, wait)
	}
	if waits[0] != time.Second || waits[3] != 8*time.Second || waits[11] != mostWait {
		t.Errorf("waits %v", waits)
	}
	limited := &statusError{code: 429, after: 90 * time.Second}
	if wait = s.after(limited, time.Second, 0); wait != 90*time.Second {
		t.Errorf("asked to wait 90 s, waits %v", wait)
	}
	if wait = s.after(nil, wait, time.Minute); wait != time.Minute || s.failures != 0 {
		t.Errorf("after a success: %v", wait)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, market(3, `"slug":"three"`))
	z.Close()
	write("a.jsonl", event("1", market(1, ""))+"\n")
	write("b.json", "[\n"+market(2, "")+"\n]")
	write("c.gz", packed.String())
	write("d.txt", "not looked at")
	o := Options{Address: dir, Dir: t.TempDir()}
	s := open(t, o)
	if report, err := s.Look(t.Context()); err != nil || report.Markets != 3 || report.Listed != 3 {
		t.Fatalf("%s, %v", report, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = open(t, o); s.Current().Markets.Len() != 3 {
		t.Fatalf("%d markets after a restart", s.Current().Markets.Len())
	}
	if report, err := s.Look(t.Context()); err != nil || report.Usable() != 0 {
		t.Errorf("files that have not changed are read again: %s %v", report, err)
	}
	// Only what has changed is read; a file that is still being written is left for the next look.
	write("e.jsonl", market(4, "")+"\n")
	if report, err := s.look(t.Context(), true, false); err != nil || report.Markets != 0 {
		t.Errorf("a file that has just come: %s, %v", report, err)
	}
	if report, err := s.look(t.Context(), true, false); err != nil || report.Markets != 1 {
		t.Errorf("a file that has stayed: %s, %v", report, err)
	}
	if report, err := s.look(t.Context(), false, true); err != nil || report.Markets != 4 ||
		report.Skipped[catalog.Known] != 4 {
		t.Errorf("everything again: %s, %v", report, err)
	}
	// A file that is broken leaves the catalog as it was, and says where.
	write("f.jsonl", market(5, "")+"\n"+packed.String()[:20])
	write("g.json", "hello")
	if _, err := s.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "g.json") ||
		s.Current().Markets.Len() != 4 {
		t.Errorf("%d markets, %v", s.Current().Markets.Len(), err)
	}
	write("g.json", "["+market(6, "")+"]")
	report, err := s.Look(t.Context())
	if err != nil || s.Current().Markets.Len() != 6 || report.Broken != 1 ||
		report.Bad[0].File != "f.jsonl" {
		t.Errorf("%s %v, %v", report, report.Bad, err)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good.jsonl": event("1", market(1, "")), "list.json": "[]",
		"words.json": "hello", "numbers.json": "[1,2]", "others.jsonl": `{"a":1}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for source, want := range map[string]string{
		"good.jsonl": "", "list.json": "", "words.json": "not a catalog", "numbers.json": "not a catalog",
		"others.jsonl": "no event, market", "none": "open catalog", ".": "",
		"http://127.0.0.1:1/x": "", "https://": "not the base address", "http://a/?b=c": "not the base address",
	} {
		if !isAddress(source) {
			source = filepath.Join(dir, source)
		}
		err := Check(source)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
	// A folder may have files of other things beside; one without any catalog is none.
	for _, name := range []string{"good.jsonl", "list.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(dir); err == nil || !strings.Contains(err.Error(), "not a catalog") {
		t.Errorf("a folder of other things: %v", err)
	}
	if err := Check(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no .json") {
		t.Errorf("an empty folder: %v", err)
	}
}

// cond and tokens make a valid condition id and token list of small numbers.
func cond(n int) string { return fmt.Sprintf("0x%064x", n) }

func pair(a, b int) string { return fmt.Sprintf(`"[\"%d\", \"%d\"]"`, a, b) }

// market is one market record; more replaces or adds fields, as the last key of a name counts.
func market(n int, more string) string {
	s := fmt.Sprintf(`{"id":"%d","conditionId":"%s","question":"Q%d?","slug":"q%d",`+
		`"outcomes":"[\"Yes\", \"No\"]","clobTokenIds":%s`, n, cond(n), n, n, pair(2*n, 2*n+1))
	if more != "" {
		s += "," + more
	}
	return s + "}"
}

func event(id string, markets ...string) string {
	return fmt.Sprintf(`{"id":%q,"slug":"s-%s","title":"T %s","markets":[%s]}`,
		id, id, id, strings.Join(markets, ","))
}

// book is an order book's record.
func book(n, a, b int) string {
	return fmt.Sprintf(`{"condition_id":"%s","market_slug":"book-%d","tokens":[{"token_id":"%d",`+
		`"outcome":"Yes"},{"token_id":"%d","outcome":"No"}]}`, cond(n), n, a, b)
}

package catalog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
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

	"clobd/engine"
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
		o := Options{Dir: t.TempDir(), Source: base + "/"}
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
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
		if report, err = s.Look(t.Context()); err != nil || report.usable() > 220 {
			t.Errorf("looked again: %s, %v", report, err)
		}
		report, err = s.Look(t.Context())
		if err != nil || report.usable() != 0 || source.same < before+4 {
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
		if m.Question != "Changed?" || m.Skipped != Closed || m.EventNo == None {
			t.Errorf("a changed market is %+v", m)
		}
		// After a restart without the source, what was known is known, and how far it was read.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(o); err != nil || s.Current().Markets.Len() != 451 {
			t.Fatalf("%d markets, %v", s.Current().Markets.Len(), err)
		}
		source.requests()
		if report, err = s.Look(t.Context()); err != nil || report.Markets > 250 {
			t.Errorf("after a restart: %s, %v", report, err)
		}
	}
}

// TestRemoteBooks: of the order book's list those markets count that no other list has.
func TestRemoteBooks(t *testing.T) {
	source, base := newService(t)
	source.fill(20)
	source.put("books", strings.Replace(book(7, 14, 15), "{", `{"id":"a",`, 1))
	source.put("books", strings.Replace(book(700, 98, 99), "{", `{"id":"b",`, 1))
	s, err := Open(Options{Source: base})
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.Look(t.Context())
	if err != nil || s.Current().Markets.Len() != 21 || report.Books != 1 {
		t.Fatalf("%d markets; %s, %v", s.Current().Markets.Len(), report, err)
	}
	if m := s.Current().MarketBySlug("book-700"); m == nil || !m.BookOnly {
		t.Errorf("the order book's market is %+v", m)
	}
	source.requests()
	if _, err := s.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range source.requests() {
		if strings.HasPrefix(path, "/clob") {
			t.Error("the order book's list is read again")
		}
	}
}

// TestRemoteFailures: what a service answers wrongly changes nothing that makes no sense, and is an
// error that says what it was.
func TestRemoteFailures(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for name, c := range map[string]struct {
		path   string // of the answers that are wrong
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
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
		"no list": {"/series", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"error":"x"}`)
		}, "no list of series"},
		"no end": {"/markets/keyset", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"markets":[{"id":"1"}],"next_cursor":"same"}`)
		}, "the next cursor is the same again"},
		"another host": {"/tags", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/tags", http.StatusFound)
		}, "redirected to another host"},
		"a circle": {"/tags", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "redirected five times"},
	} {
		source, base := newService(t)
		source.fill(20)
		source.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != c.path {
				return false
			}
			c.answer(w, r)
			return true
		}
		s, err := Open(Options{Source: base})
		if err != nil {
			t.Fatal(err)
		}
		report, err := s.Look(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, error %v, want %q", name, report, err, c.want)
		}
		if st := s.Status(); st.Failures != 1 || st.LastError == "" || !st.LastSuccess.IsZero() {
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

// TestSync: a running node hears of what is new, after failures too, and stops when it is told to.
func TestSync(t *testing.T) {
	source, base := newService(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(),
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
	s, err := Open(Options{Source: base, Every: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Sync(ctx); close(done) }()
	await(t, func() bool { return s.Current().Markets.Len() == 20 })
	wrong.Store(true)
	await(t, func() bool { return s.Status().Failures > 0 })
	source.put("markets", market(21, updated(900)))
	wrong.Store(false)
	await(t, func() bool { return s.Current().MarketByID("21") != nil })
	cancel()
	<-done
}

func await(t *testing.T, true func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !true(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
	}
}

func TestBackoff(t *testing.T) {
	s := &Store{}
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
	s, err := Open(Options{Source: dir})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := s.Look(t.Context()); err != nil || report.Markets != 3 || report.Listed != 3 {
		t.Fatalf("%s, %v", report, err)
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
		report.Skipped[Known] != 4 {
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

// TestPolicy: what the source may do to a market that trades is to close it. A record that
// contradicts what it trades by is refused and named.
func TestPolicy(t *testing.T) {
	var listed []engine.Listing
	var closed []engine.Condition
	s, err := Open(Options{
		List:  func(l []engine.Listing) error { listed = append(listed, l...); return nil },
		Close: func(c []engine.Condition) error { closed = append(closed, c...); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) Report {
		t.Helper()
		report, err := s.Read(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	read(event("1", market(1, updated(1)), market(2, `"acceptingOrders":false,`+updated(1)),
		market(3, `"closed":true,`+updated(1))))
	if len(listed)+len(closed) > 0 {
		t.Fatal("listed before it began")
	}
	if report, err := s.Begin(); err != nil || report.Listed != 2 || len(listed) != 2 ||
		listed[1].Open || len(closed) != 1 {
		t.Fatalf("%+v %d listed, %d closed, %v", report, len(listed), len(closed), err)
	}
	listed, closed = nil, nil
	report := read(event("1",
		market(1, `"orderPriceMinTickSize":0.001,`+updated(2)),      // another tick
		market(2, `"acceptingOrders":true,`+updated(2)),             // opens
		market(3, `"closed":true,"question":"Said?",`+updated(2))) + // is told otherwise
		"\n" + market(4, `"clobTokenIds":`+pair(2, 99)+","+updated(2)) + // another's token
		"\n" + market(5, `"id":"1",`+updated(2)) + // another's id
		"\n" + market(1, `"clobTokenIds":`+pair(88, 89)+","+updated(2))) // other tokens
	if report.Refused != 4 || len(listed) != 1 || !listed[0].Open ||
		listed[0].Condition != (engine.Condition{31: 2}) {
		t.Errorf("%s %v; listed %+v", report, report.Bad, listed)
	}
	c := s.Current()
	if c.MarketByID("3").Question != "Said?" || c.MarketByID("1").Updated != 1777593660000 {
		t.Errorf("told %+v", c.MarketByID("1"))
	}
	report = read(event("1", market(1, `"closed":true,`+updated(3)),
		market(2, `"archived":true,`+updated(3))))
	if len(closed) != 2 || report.Closed != 2 {
		t.Errorf("%s, closed %v", report, closed)
	}
	closed = nil
	report = read(event("1", market(1, `"closed":true,`+updated(3))))
	if len(closed) != 0 || report.Skipped[Known] != 1 {
		t.Errorf("closed again: %s", report)
	}
}

// TestListFails: what could not be listed is not described either, also not after a restart.
func TestListFails(t *testing.T) {
	fails := false
	o := Options{Dir: t.TempDir(), List: func([]engine.Listing) error {
		if fails {
			return os.ErrClosed
		}
		return nil
	}}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 1, 2} {
		fails = i == 1
		_, err := s.Read(strings.NewReader(event(strconv.Itoa(i+1), market(i+1, ""))))
		if fails != (err != nil) || s.Current().Markets.Len() != want {
			t.Errorf("%d markets, %v", s.Current().Markets.Len(), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	c := s.Current()
	if c.Markets.Len() != 2 || c.EventByID("2") != nil || c.MarketByID("3") == nil {
		t.Errorf("after a restart %d markets", c.Markets.Len())
	}
}

package catalog

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"clobd/engine"
)

func updated(minute int) string {
	return fmt.Sprintf(`"updatedAt":"2026-05-01T%02d:%02d:00Z"`, minute/60, minute%60)
}

func number(v any) int {
	n, _ := strconv.Atoi(fmt.Sprint(v))
	return n
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

// TestRenamed: events are found by the new label of a tag as soon as the tag is known by it.
func TestRenamed(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	const tagged = `{"id":"1","slug":"a","title":"moon","tags":[{"id":"5","label":"Craters","slug":"x"}],` +
		`"markets":[]}`
	for _, step := range []struct {
		text         string
		craters, sea int
	}{
		{tagged, 1, 0},
		{`{"id":"5","label":"Seas","slug":"x"}`, 0, 1},
		{tagged, 0, 1}, // the event's copy of the tag counts less
	} {
		old := s.Current()
		before := old.FindEvents(&WordQuery{Text: "craters", Limit: 1}).Total
		if _, err := s.Read(strings.NewReader(step.text)); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]int{"craters": step.craters, "seas": step.sea} {
			events := s.Current().FindEvents(&WordQuery{Text: text, Limit: 1}).Total
			tags := s.Current().FindTags(&WordQuery{Text: text, Limit: 1}).Total
			if events != want || tags != want {
				t.Errorf("after %s: %s finds %d events and %d tags, want %d", step.text, text, events, tags, want)
			}
		}
		if got := old.FindEvents(&WordQuery{Text: "craters", Limit: 1}).Total; got != before {
			t.Error("an older catalog has changed")
		}
	}
}

// TestSeriesOrder: the events of a series are in the order of their ids, however they came.
func TestSeriesOrder(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	order := func(c *Catalog) (ids string) {
		for _, e := range c.EventsOfSeries(c.SeriesByID("6")) {
			ids += e.ID + " "
		}
		return ids
	}
	in := func(id, series string) string {
		return fmt.Sprintf(`{"id":%q,"slug":"s%s","title":"T","markets":[],"series":[%s]}`+"\n", id, id, series)
	}
	const six = `{"id":"6","slug":"six","title":"Six","seriesType":"single"}`
	for _, step := range []struct{ text, want string }{
		{in("10", six) + in("x", six) + in("9", six), "9 10 x "},
		{in("100", six) + in("2", six), "2 9 10 100 x "},
		{strings.Replace(in("9", ""), "{", `{"updatedAt":"2026-05-01T00:00:00Z",`, 1), "2 10 100 x "},
		{strings.Replace(in("9", six), "{", `{"updatedAt":"2026-05-02T00:00:00Z",`, 1), "2 9 10 100 x "},
	} {
		old := s.Current()
		before := ""
		if old.SeriesByID("6") != nil {
			before = order(old)
		}
		if _, err := s.Read(strings.NewReader(step.text)); err != nil {
			t.Fatal(err)
		}
		if got := order(s.Current()); got != step.want {
			t.Errorf("%s, want %s", got, step.want)
		}
		if before != "" && order(old) != before {
			t.Error("an older catalog has changed")
		}
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

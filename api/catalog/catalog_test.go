package catalog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clobd/engine"
)

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

// read loads text and keeps what was listed.
func read(t *testing.T, text string) (*Catalog, Report, []engine.Listing) {
	t.Helper()
	var listed []engine.Listing
	c, r, err := Read(strings.NewReader(text), Options{List: func(l []engine.Listing) error {
		listed = append(listed, l...)
		return nil
	}})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	adds(t, r)
	return c, r, listed
}

// adds checks that every market record is counted once.
func adds(t *testing.T, r Report) {
	t.Helper()
	sum := r.Listed + r.Refused
	for _, n := range r.Skipped {
		sum += n
	}
	if sum != r.Markets+r.Books {
		t.Errorf("%d markets, but %d accounted for: %s", r.Markets+r.Books, sum, r)
	}
	if named := len(r.Bad); named != min(r.Broken+r.Refused, maxProblems) {
		t.Errorf("%d bad records, %d named", r.Broken+r.Refused, named)
	}
}

func TestForms(t *testing.T) {
	one, two := event("7", market(1, "")), event("8", market(2, ""), market(3, ""))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprintf(z, "%s\n%s\n", one, two)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"lines":           one + "\n" + two + "\n",
		"no last newline": one + "\n\n  " + two,
		"crlf":            one + "\r\n" + two + "\r\n",
		"byte order mark": "\xef\xbb\xbf" + one + "\n" + two,
		"array":           "[" + one + "," + two + "]",
		"spaced array":    "\n [\n " + one + " ,\n" + two + "\n]\n",
		"gzip":            packed.String(),
	} {
		c, r, listed := read(t, text)
		if r.Events != 2 || r.Markets != 3 || r.Listed != 3 || len(r.Bad) != 0 {
			t.Errorf("%s: %s", name, r)
		}
		if len(listed) != 3 || listed[0].Group != 7 || listed[2].Group != 8 {
			t.Errorf("%s: listed %+v", name, listed)
		}
		m := c.Market(listed[1].Condition)
		if m == nil || m.Question != "Q2?" || m.Slug != "q2" || c.EventOf(m).Title != "T 8" {
			t.Errorf("%s: described as %+v", name, m)
		}
	}
}

func TestDecisions(t *testing.T) {
	for _, c := range []struct {
		name, more string
		skipped    Reason
		refused    string
	}{
		{"plain", ``, "", ""},
		{"closed", `"closed":true`, Closed, ""},
		{"archived", `"archived":true`, Archived, ""},
		{"closed with a bad tick", `"closed":true,"orderPriceMinTickSize":7`, Closed, ""},
		{"no book", `"enableOrderBook":false`, NoOrderBook, ""},
		{"book unknown", `"enableOrderBook":null`, "", ""},
		{"arrays", `"outcomes":["A","B"],"clobTokenIds":["1","2"]`, "", ""},
		{"numbers", `"clobTokenIds":[1,2]`, "", ""},
		{"three", `"outcomes":["A","B","C"],"clobTokenIds":["1","2","3"]`, NotBinary, ""},
		{"none", `"outcomes":[],"clobTokenIds":[]`, "", "no outcomes"},
		{"absent", `"outcomes":null,"clobTokenIds":null`, "", "no outcomes"},
		{"one token", `"clobTokenIds":["1"]`, "", "2 outcomes but 1 token ids"},
		{"same tokens", `"clobTokenIds":["01","1"]`, "", "both outcomes have the same"},
		{"hex token", `"clobTokenIds":["0x1","2"]`, "", "token id \"0x1\""},
		{"long token", `"clobTokenIds":["` + strings.Repeat("9", 78) + `","2"]`, "", "256 bits"},
		{"no condition", `"conditionId":""`, "", "no conditionId"},
		{"null condition", `"conditionId":null`, "", "no conditionId"},
		{"short condition", `"conditionId":"0x12"`, "", "64 hex digits"},
		{"bad condition", `"conditionId":"0x` + strings.Repeat("g", 64) + `"`, "", "64 hex digits"},
		{"list condition", `"conditionId":[]`, "", "conditionId is not text"},
		{"tick", `"orderPriceMinTickSize":"0.0025"`, "", ""},
		{"odd tick", `"orderPriceMinTickSize":0.02`, "", "tick 0.02"},
		{"fine tick", `"orderPriceMinTickSize":0.00001`, "", "tick 0.00001"},
		{"list tick", `"orderPriceMinTickSize":[]`, "", "tick []"},
		{"minimum", `"orderMinSize":1e1`, "", ""},
		{"negative minimum", `"orderMinSize":-5`, "", "minimum size -5"},
		{"huge minimum", `"orderMinSize":1e14`, "", "minimum size 1e14"},
		{"flag", `"closed":"no"`, "", "a flag"},
		{"outcomes", `"outcomes":"Yes, No"`, "", "outcomes is not a list"},
		{"tokens", `"clobTokenIds":{"a":1}`, "", "clobTokenIds is not a list"},
	} {
		_, r, listed := read(t, event("1", market(1, c.more)))
		if got := r.Skipped[c.skipped]; c.skipped != "" && got != 1 {
			t.Errorf("%s: want skipped as %s: %s", c.name, c.skipped, r)
		}
		if c.refused != "" && (len(r.Bad) != 1 || !strings.Contains(r.Bad[0].Why, c.refused)) {
			t.Errorf("%s: want refused %q: %v", c.name, c.refused, r.Bad)
		}
		if want := c.skipped == "" && c.refused == ""; want != (len(listed) == 1) {
			t.Errorf("%s: listed %d: %s %v", c.name, len(listed), r, r.Bad)
		}
	}
}

func TestListing(t *testing.T) {
	c, r, listed := read(t, event("abc", market(9, `"orderPriceMinTickSize":0.001,`+
		`"orderMinSize":15,"negRisk":true,"acceptingOrders":false,`+
		`"outcomes":["Caf\u00e9","Tie \"5\""],"question":"What\u2019s up?"`), market(10, "")))
	want := engine.Listing{
		Tokens: [2]engine.Token{{31: 18}, {31: 19}}, Group: group("abc"), Tick: 10,
		MinSize: 15 * engine.Unit, NegRisk: true, Condition: engine.Condition{31: 9},
	}
	if listed[0] != want {
		t.Errorf("listed %+v\nwant   %+v", listed[0], want)
	}
	want = engine.Listing{
		Tokens: [2]engine.Token{{31: 20}, {31: 21}}, Group: group("abc"), Tick: 100,
		MinSize: 5 * engine.Unit, Open: true, Condition: engine.Condition{31: 10},
	}
	if listed[1] != want {
		t.Errorf("listed %+v\nwant   %+v", listed[1], want)
	}
	if r.Unopened != 1 {
		t.Errorf("%d unopened", r.Unopened)
	}
	m := c.Market(engine.Condition{31: 9})
	if m.Question != "What’s up?" || m.Outcomes[0] != "Café" || m.Outcomes[1] != `Tie "5"` {
		t.Errorf("described as %+v", m)
	}
	for o, label := range []string{"Yes", "No"} {
		for _, c := range []*Catalog{c, Empty(), nil} {
			if got := c.Label(engine.Condition{1}, engine.Outcome(o)); got != label {
				t.Errorf("unknown condition, outcome %d: label %q", o, got)
			}
		}
	}
	if got := c.Label(m.Condition, 1); got != `Tie "5"` {
		t.Errorf("label %q", got)
	}
}

func TestGroups(t *testing.T) {
	if got := group("17823"); got != 17823 {
		t.Errorf("group of a number: %d", got)
	}
	for _, id := range []string{"x", "-1", "9223372036854775808", "1e3"} {
		if got := group(id); got>>63 != 1 || got != group(id) {
			t.Errorf("group of %q: %x", id, got)
		}
	}
}

func TestDuplicates(t *testing.T) {
	other := `"clobTokenIds":` + pair(100, 101)
	c, r, listed := read(t, strings.Join([]string{
		event("1", market(1, ""), market(2, `"closed":true`)),
		event("2", market(1, ""), market(2, "")),                        // both repeated
		event("3", market(1, other)),                                    // other tokens
		event("4", market(3, `"clobTokenIds":`+pair(3, 200))),           // one token taken
		event("5", market(4, `"orderMinSize":[]`), market(4, `"id":7`)), // the bad one does not count
	}, "\n"))
	if len(listed) != 2 || r.Skipped[Duplicate] != 2 || r.Skipped[Closed] != 1 || r.Refused != 3 {
		t.Errorf("%s", r)
	}
	var lines []int
	for _, p := range r.Bad {
		lines = append(lines, p.Line)
	}
	if !slices.Equal(lines, []int{3, 4, 5}) {
		t.Errorf("bad records on lines %v", lines)
	}
	if m := c.Market(engine.Condition{31: 1}); c.EventOf(m).ID != "1" {
		t.Errorf("the later record won: event %s", c.EventOf(m).ID)
	}
}

func TestBrokenRecords(t *testing.T) {
	good := event("1", market(1, ""))
	for _, c := range []struct {
		name, text string
		broken     int
		why        string
	}{
		{"cut line", good + "\n" + good[:40] + "\n", 1, "line 2: broken JSON"},
		{"not JSON", good + "\nhello\n", 1, "line 2: broken JSON"},
		{"a number", good + "\n17\n", 1, "line 2: broken JSON"},
		{"no id", good + "\n{}\n", 1, "line 2: no event"},
		{"markets no array", good + "\n" + `{"id":"2","markets":{}}`, 1, "markets is not an array"},
		{"markets cut", good + "\n" + `{"id":"2","markets":[1,}`, 1, "broken JSON"},
		{"markets of numbers", good + "\n" + `{"id":"2","markets":[1]}`, 0, "line 2: broken JSON"},
		{"title", good + "\n" + `{"id":"2","title":[]}`, 1, "slug or title"},
		{"array cut", "[" + good + ",\n" + good[:50], 1, "line 2: the file ends"},
		{"array not closed", "[" + good + "\n", 1, "line 2: the file ends"},
		{"array of more", "[1, \"x\",\n" + good + "]", 2, "line 1: not a JSON object"},
		{"text behind", "[" + good + "]\n]]", 1, "line 2: text after"},
		{"deep", good + "\n" + `{"id":"2","x":` + strings.Repeat("[", 100) +
			strings.Repeat("]", 100) + "}", 1, "broken JSON"},
		{"long", good + "\n" + `{"id":"2","x":"` + strings.Repeat("x", maxRecord) + "\"}\n" +
			event("3", market(3, "")), 1, "longer than"},
		{"long element", "[" + good + ",\n" + `{"id":"2","x":"` + strings.Repeat("x", maxRecord) +
			"\"}," + event("3", market(3, "")) + "]", 1, "longer than"},
	} {
		_, r, listed := read(t, c.text)
		if r.Broken != c.broken {
			t.Errorf("%s: %d broken: %v", c.name, r.Broken, r.Bad)
		}
		if len(r.Bad) == 0 || !strings.Contains(r.Bad[0].String(), c.why) {
			t.Errorf("%s: want %q, got %v", c.name, c.why, r.Bad)
		}
		if strings.HasPrefix(c.name, "long") && len(listed) != 2 {
			t.Errorf("%s: the records around it count: %s", c.name, r)
		}
	}
}

func TestNoCatalog(t *testing.T) {
	half := func() string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		fmt.Fprintln(z, event("1", market(1, "")))
		_ = z.Close()
		return b.String()[:b.Len()-9]
	}()
	for name, text := range map[string]string{
		"empty": "", "blank": " \n\n", "text": "hello", "binary": "\x1f\x8bxx",
		"objects": `{"a":1}` + "\n" + `{"b":2}`, "numbers": "[1,2]",
		"cut gzip": half, "pretty": "{\n \"id\": \"1\"\n}\n",
	} {
		called := false
		list := func([]engine.Listing) error { called = true; return nil }
		_, r, err := Read(strings.NewReader(text), Options{List: list})
		if err == nil || called {
			t.Errorf("%s: err %v, listed %v, %s", name, err, called, r)
		}
	}
	if _, _, err := ReadFile(filepath.Join(t.TempDir(), "none"), Options{}); !os.IsNotExist(
		errors.Unwrap(err)) {
		t.Errorf("missing file: %v", err)
	}
	if _, r, err := Read(strings.NewReader(" [ ] "), Options{}); err != nil || r.Events != 0 {
		t.Errorf("an empty array is an empty catalog: %v", err)
	}
}

func TestList(t *testing.T) {
	var text strings.Builder
	const n = 2*listChunk + 5
	for i := 1; i <= n; i++ {
		text.WriteString(event(fmt.Sprint(i), market(i, "")) + "\n")
	}
	var chunks []int
	c, r, err := Read(strings.NewReader(text.String()), Options{
		List: func(l []engine.Listing) error {
			chunks = append(chunks, len(l))
			if len(chunks) == 1 {
				why := map[engine.Condition]string{l[3].Condition: "listed with other tokens"}
				return fmt.Errorf("submit: %w", &RefusedError{Why: why})
			}
			return nil
		},
	})
	if err != nil || !slices.Equal(chunks, []int{listChunk, listChunk, 5}) {
		t.Fatalf("chunks %v, err %v", chunks, err)
	}
	adds(t, r)
	if r.Listed != n-1 || r.Refused != 1 || r.Bad[0].Line != 4 || r.Bad[0].ID != cond(4) {
		t.Errorf("%s %v", r, r.Bad)
	}
	if c.Market(engine.Condition{31: 4}).Skipped != Refused {
		t.Error("the refused market counts as listed")
	}
	broken := errors.New("closed")
	_, _, err = Read(strings.NewReader(text.String()), Options{
		List: func([]engine.Listing) error { return broken },
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "list markets 1 to 1024") {
		t.Errorf("err %v", err)
	}
}

func TestReportLine(t *testing.T) {
	r := Report{
		Events: 657, Markets: 1102, Listed: 612, Unopened: 21, Refused: 1, Broken: 2,
		Skipped: map[Reason]int{Closed: 451, Archived: 1, NotBinary: 14, NoOrderBook: 23},
	}
	want := "657 events, 1102 markets: 612 listed (21 unopened), 1 archived, 451 closed, " +
		"14 not binary, 23 without order book, 1 refused; 2 broken records"
	if got := r.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestDemo(t *testing.T) {
	c, r, listed := read(t, string(Demo()))
	if r.Events != 5 || r.Markets != 8 || r.Listed != 8 || r.Unopened != 1 || len(r.Bad) != 0 {
		t.Errorf("%s %v", r, r.Bad)
	}
	groups, ticks := map[uint64]int{}, map[engine.Price]int{}
	for _, l := range listed {
		if m := c.Market(l.Condition); l.Open == strings.Contains(m.Slug, "summer") {
			t.Errorf("%s open: %v", m.Slug, l.Open)
		}
		if l.NegRisk {
			groups[l.Group]++
		}
		ticks[l.Tick]++
		for _, token := range l.Tokens {
			if n := len(token.AppendDecimal(nil)); n < 77 || n > 78 {
				t.Errorf("token of %d digits", n)
			}
		}
	}
	if len(groups) != 1 || groups[103] != 3 || ticks[100] != 4 || ticks[10] != 4 {
		t.Errorf("neg-risk groups %v, ticks %v", groups, ticks)
	}
}

// FuzzRead feeds any bytes as a catalog: it never panics and every record is accounted for.
func FuzzRead(f *testing.F) {
	f.Add(string(Demo()))
	f.Add("[" + event("1", market(1, ""), market(1, "")) + ",{}]")
	f.Add(event("1", market(1, `"closed":true`)) + "\n{\"id\":\"1\n" + event("2", "1", "{}"))
	f.Add("\x1f\x8b")
	f.Fuzz(func(t *testing.T, text string) {
		text = text[:min(len(text), 1<<16)] // what is cut off is one more broken record
		_, r, err := Read(strings.NewReader(text), Options{})
		if err == nil {
			adds(t, r)
		}
	})
}

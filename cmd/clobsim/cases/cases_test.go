package cases

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clobd/engine"
)

// root is the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// shared opens a file of data that others wrote, or skips.
func shared(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(root(t), "..", "shared", "data", name))
	if err != nil {
		t.Skipf("no shared data here: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// lines collects a report.
type lines []string

func (l *lines) add(line string) { *l = append(*l, line) }

func TestSharedScenarios(t *testing.T) {
	for name, want := range map[string]Tally{
		"book":         {50, 0, 2},
		"book_balance": {2, 0, 1},
		"settlement":   {16, 0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			var l lines
			got, err := Scenarios(name, shared(t, "scenarios/"+name+".json"), l.add)
			if err != nil || got != want || len(l) != want.Disagree+want.Skipped {
				t.Errorf("%v, %v, want %v", got.String(), err, want.String())
			}
			for _, line := range l {
				if !strings.Contains(line, ": skipped: ") {
					t.Error(line)
				}
			}
		})
	}
}

func TestSharedFlow(t *testing.T) {
	if auditing {
		t.Skip("adding up the whole state after each of 157,549 Commands takes too long")
	}
	var l lines
	got, err := Flow("goog", shared(t, "streams/lobster_goog10_flow.jsonl.gz"), l.add)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range l[:min(len(l), 10)] {
		t.Error(line)
	}
	if got.Tally != (Tally{Agree: 190_592}) || got.Fills != 7747 || got.Checks != 33_304 ||
		got.Placed != 78_652 || got.Cancelled != 72_566 || got.Taken != 6070 {
		t.Errorf("%s; %s", got.String(), got.Text())
	}
}

// own replays a file of testdata.
func own(t *testing.T, name string) (Tally, lines) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var l lines
	got, err := Scenarios(name, f, l.add)
	if err != nil {
		t.Fatal(err)
	}
	return got, l
}

func TestOwnScenarios(t *testing.T) {
	for name, n := range map[string]int{"book.json": 6, "settlement.json": 6} {
		if got, l := own(t, name); got != (Tally{Agree: n}) {
			t.Errorf("%s: %s\n%s", name, got.String(), strings.Join(l, "\n"))
		}
	}
}

// TestSkipped names each reason for which a scenario is not replayed to its end.
func TestSkipped(t *testing.T) {
	want := []string{
		"amend: skipped: operation 3 (replace 1): an amend in place",
		"resting market order: skipped: operation 2 (place 2): a market order that would rest",
		"average price, BUY: skipped: operation 2 (place 2): a budget at an average price",
		"average price, SELL: skipped: operation 2 (place 2): a least total at an average price",
		"too much to spend: skipped: operation 2 (place 2): a budget that buys more",
		"price off the grid: skipped: operation 1 (place 1): price 100 is not on the grid",
		"two books: skipped: operation 2: a second book",
		"reserve above the limit: skipped: operation 2 (place ann 1): an amend within a reserve",
		"unknown symbol: skipped: operation 2 (balance ann): balances of a symbol",
		"maker fee: skipped: fees supplied by the operator",
		"fee off any schedule: skipped: a fee supplied by the operator that no schedule gives",
		"part of an order: skipped: a fill smaller than the order",
		"fills of the operator: skipped: revert MakingGtRemaining has no wire form",
		"makers that meet: skipped: maker 1 meets one before it",
		"price above 1: skipped: maker 0: a price outside (0, 1)",
	}
	got, l := own(t, "skipped.json")
	if got != (Tally{Skipped: len(want)}) {
		t.Errorf("%s, want %d skipped", got.String(), len(want))
	}
	for i := range min(len(l), len(want)) {
		if !strings.HasPrefix(l[i], "skipped.json: "+want[i]) {
			t.Errorf("%s\nwant %s", l[i], want[i])
		}
	}
}

// spoil calls try once for each stated fact, with the file changed in that fact alone: a number
// larger by one, a flag inverted, an unknown word, a list without its first element.
func spoil(at *any, name string, stated bool, try func(path string)) {
	put := func(v any) {
		was := *at
		*at = v
		try(name)
		*at = was
	}
	switch v := (*at).(type) {
	case []any:
		if stated && len(v) > 0 && strings.HasSuffix(name, " trades") {
			put(v[1:])
		}
		for i := range v {
			spoil(&v[i], name, stated, try)
		}
	case map[string]any:
		op, _ := v["op"].(string)
		for key := range v {
			fact := stated || key == "expect" ||
				slices.Contains([]string{"book", "counts", "queue", "order", "orders", "balance"}, op)
			_, either := v["or"]
			if slices.Contains([]string{"op", "id", "account", "side", "or", "reservePrice", "asset",
				"complete", "bids_end", "reverts"}, key) || either && key == "state" {
				continue
			}
			value := v[key]
			spoil(&value, name+" "+key, fact, func(path string) {
				was := v[key]
				v[key] = value
				try(path)
				v[key] = was
			})
		}
	case float64:
		if stated {
			put(v + 1)
		}
	case bool:
		if stated {
			put(!v)
		}
	case string:
		if stated && !strings.Contains(name, "args") {
			put(v + "0")
		}
	}
}

// TestEachFactIsChecked spoils every fact in our own scenarios, one at a time: the replay must
// notice each.
func TestEachFactIsChecked(t *testing.T) {
	for _, file := range []string{"book.json", "settlement.json"} {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var list []any
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range list {
			id := list[i].(map[string]any)["id"].(string)
			spoil(&list[i], id, false, func(path string) {
				n++
				text, err := json.Marshal(list[i : i+1])
				if err != nil {
					t.Fatal(err)
				}
				got, err := Scenarios(file, bytes.NewReader(text), func(string) {})
				if err == nil && got.Disagree != 1 {
					t.Errorf("%s: %s\n%s", path, got.String(), text)
				}
			})
		}
		t.Logf("%s: %d facts", file, n)
		if n < 25 {
			t.Errorf("only %d facts spoiled", n)
		}
	}
}

func TestOwnFlow(t *testing.T) {
	b, err := os.ReadFile("testdata/flow.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(b)
	z.Close()
	for _, text := range [][]byte{b, packed.Bytes()} {
		var l lines
		got, err := Flow("flow", bytes.NewReader(text), l.add)
		if err != nil || got.Tally != (Tally{Agree: 12}) || got.Fills != 3 || got.Checks != 3 {
			t.Errorf("%s; %s; %v\n%s", got.String(), got.Text(), err, strings.Join(l, "\n"))
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{`[45,8]`, `[45,9]`, "operation 5 (book at row 1): asks: " +
			"expected [[44 2] [45 9]], got [[44 2] [45 8]]"},
		{`["c",2,44],`, `["c",1,44],`, "operation 6 (take B 6@45): makers: " +
			"expected [c 1@44 b 4@45], got [c 2@44 b 4@45]"},
		{`["a",5,40]`, `["b",5,40]`, "operation 10 (take S 9@40): makers: " +
			"expected [b 5@40], got [a 5@40]"},
		{`"c","s":"S","p":44`, `"c","s":"S","p":40`, "operation 3 (place c S 2@40): order: " +
			"expected placed whole, got completed with 0 left"},
		{`{"op":"C","id":"b"}`, `{"op":"C","id":"c"}`, "operation 8 (cancel c): order: " +
			"expected cancelled, got rejected (not_found)"},
	} {
		text := bytes.Replace(b, []byte(c.from), []byte(c.to), 1)
		var l lines
		got, err := Flow("flow", bytes.NewReader(text), l.add)
		if err != nil || got.Disagree == 0 || l[0] != "flow: "+c.want {
			t.Errorf("%s: %s, %v\n%s\nwant %s",
				c.to, got.String(), err, strings.Join(l, "\n"), c.want)
		}
	}
}

// TestMalformed: a file that cannot be replayed in full is an error.
func TestMalformed(t *testing.T) {
	book := func(steps string) string {
		return `[{"id":"x","kind":"book","size_mul":1,` +
			`"price_map":{"kind":"linear","decimal":"price/100"},"steps":[` + steps + `]}]`
	}
	place := func(rest string) string { return book(`{"op":"place","id":"1",` + rest + `}`) }
	limit := func(rest string) string {
		return place(`"side":"BUY","price":5,"tif":"GTC","type":"LIMIT",` + rest)
	}
	change := func(from, to string) string {
		return strings.Replace(book(`{"op":"counts"}`), from, to, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"", "not an array"},
		{"[]", "no scenario"},
		{"{}", "not an array"},
		{`[{"id":"x","kind":"book"`, "not an array"},
		{`[{"kind":"book"}]`, "scenario 1 has no id"},
		{`[{"id":"x","kind":"boo"}]`, `unknown kind "boo"`},
		{`[{"id":"x","kind":"settlement"}]`, "expect: "},
		{"\x1f\x8b", "EOF"},
		{book(``), "no steps"},
		{book(`{"op":"dance"}`), `unknown op "dance"`},
		{book(`{"op":"counts","bidz":1}`), `unknown field "bidz"`},
		{book(`{"op":"counts","bids":"1"}`), "bids: "},
		{book(`{"op":"book","bids":[[1]]}`), "not [price, size, orders]"},
		{book(`{"op":"queue","side":"top"}`), `unknown side "top"`},
		{book(`{"op":"orders"}`), "without a list"},
		{book(`{"op":"balance"}`), "without balances"},
		{book(`{"op":"counts","bids":0,"expect":{"state":"LIVE"}}`), "counts with an expect"},
		{place(`"side":"BUY"`), "needs id and size"},
		{place(`"side":"UP","size":1`), `unknown side "UP"`},
		{place(`"side":"BUY","size":1,"tif":"GTD"`), `unknown tif "GTD"`},
		{place(`"side":"BUY","size":1,"tif":"GTC","type":"STOP"`), `unknown type "STOP"`},
		{limit(`"size":-1`), "size -1 lies outside"},
		{limit(`"size":1,"expect":{"stat":""}`), "unknown field"},
		{limit(`"size":0,"expect":{"reason":"tired"}`), "unknown reason"},
		{change("price/100", "price/3"), "power of ten"},
		{change("linear", "cubic"), "unknown kind"},
		{change(`"size_mul":1`, `"size_mul":0`), "size_mul 0"},
		{change(`"linear"`, `"rank","map":{"1":"0.2","2":"0.1"}`), "not in order"},
		{change(`"linear"`, `"rank","map":{"1":"1.2"}`), "not on the grid"},
	} {
		got, err := Scenarios("file", strings.NewReader(c.text), func(l string) { t.Error(l) })
		if err == nil || !strings.HasPrefix(err.Error(), "file: ") ||
			!strings.Contains(err.Error(), c.want) || got != (Tally{}) {
			t.Errorf("%s: %s, %v\nwant %s", c.text, got.String(), err, c.want)
		}
	}
	head := `{"op":"H","decimal_price":"p/100","size_mul_hint":1,"ops":1}`
	for _, c := range []struct{ text, want string }{
		{"", "header: EOF"},
		{"\x1f\x8bx", "EOF"},
		{`{"op":"P"}`, "a flow begins with op H"},
		{head, "ends after 0 operations, its header says 1"},
		{head + `{"op":"P","id":"1"`, "operation 1: unexpected EOF"},
		{head + `{"op":"Z"}`, `unknown op "Z"`},
		{head + `{"op":"C","id":"1"}`, "was never placed"},
		{head + `{"op":"P","id":"1","s":"B","p":40,"q":0}`, "size 0 lies below 1"},
		{head + `{"op":"P","id":"1","s":"B","p":100,"q":1}`, "price 100 is not on the grid"},
		{head + `{"op":"P","id":"1","s":"X","p":40,"q":1}`, `unknown side "X"`},
		{head + `{"op":"P","id":"1","z":"X"}`, "unknown field"},
		{head + `{"op":"T","x":[["1",2]]}`, "a fill of 2 values"},
	} {
		got, err := Flow("file", strings.NewReader(c.text), func(l string) { t.Error(l) })
		if err == nil || !strings.Contains(err.Error(), c.want) || got.Cases() != 0 {
			t.Errorf("%s: %s, %v\nwant %s", c.text, got.String(), err, c.want)
		}
	}
}

// TestLadderRefuses holds that Events which break priority, or do not add up, are noticed: the
// Exchange itself is not trusted.
func TestLadderRefuses(t *testing.T) {
	event := func(kind engine.EventKind, id byte, price engine.Price, left engine.Size) engine.Event {
		return engine.Event{Kind: kind, Order: engine.OrderID{id}, Price: price,
			Size: 10, Remaining: left}
	}
	for _, c := range []struct {
		name string
		last engine.Event
		want string
	}{
		{"first in line", event(engine.Filled, 2, 500, 0), ""},
		{"second in line", event(engine.Filled, 3, 500, 0), "maker: "},
		{"worse price", event(engine.Filled, 1, 400, 0), "maker: "},
		{"nobody", event(engine.Filled, 9, 500, 0), "event: "},
		{"too much left", event(engine.Filled, 2, 500, 1), "what a fill leaves: "},
		{"cancel of less", event(engine.Cancelled, 3, 500, 9), "size of a cancelled order: "},
		{"cancel of nobody", event(engine.Cancelled, 9, 500, 9), "event: "},
	} {
		l := ladder{live: map[engine.OrderID]*order{}}
		err := l.fold([]engine.Event{
			event(engine.Placed, 1, 400, 10),
			event(engine.Placed, 2, 500, 10),
			event(engine.Placed, 3, 500, 10),
			c.last,
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPanicEndsOneCase: a bug of the engine is reported with its case.
func TestPanicEndsOneCase(t *testing.T) {
	v, err := newVenue(engine.Fee{})
	if err != nil {
		t.Fatal(err)
	}
	v.x = nil
	for range 2 {
		_, err = v.apply(engine.Command{Kind: engine.Cancel})
		var tally Tally
		var l lines
		if err := tally.count("case", err, l.add); err != nil || tally != (Tally{Disagree: 1}) ||
			!strings.HasPrefix(l[0], "case: engine: expected an answer, got runtime error: ") {
			t.Errorf("%v, %s, %q", err, tally.String(), l)
		}
	}
}

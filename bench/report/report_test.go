package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"clobd/bench"
)

// evil is a name that must be shown as text.
const evil = `<script>alert("x")</script><img src=http://evil.example/>`

// histogram has n values of a long tail, from 80 µs times scale.
func histogram(t *testing.T, n int, scale float64) string {
	t.Helper()
	h := hdrhistogram.New(1, 60_000_000_000, 3)
	for i := range n {
		v := scale * 80_000 * math.Pow(float64(n)/float64(n-i), 0.7)
		if err := h.RecordValue(int64(v)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// full is a report that has everything, with hostile texts wherever texts come from elsewhere.
func full(t *testing.T) *bench.Report {
	t.Helper()
	r := &bench.Report{Workload: "mix " + evil, Level: "L3", Loop: "open", Seed: 42, Connections: 64,
		Durability: "fsync", Seconds: 20, AskedSeconds: 20, EndedBy: "time", Operations: 160_000,
		Acknowledged: 160_000, Rate: 8000, AskedRate: 8000, Arrivals: "poisson",
		CPUMicros:     new(61.5),
		ServiceMicros: bench.Latency{P50: 130, P90: 400, P99: 1900, P999: new(9000.0), Max: 92_000},
		CorrectedMicros: &bench.Latency{P50: 160, P90: 480, P99: 4100, P999: new(12_000.0),
			Max: 140_000},
		Histograms: map[string]string{"service": histogram(t, 160_000, 1),
			"corrected": histogram(t, 160_000, 1.5)},
		Generator: &bench.Generator{Processes: 1, CPUMicros: 11.2, Share: 0.18},
		Thresholds: []bench.Judged{{Rule: "p99 < 20ms " + evil, Had: 4.1, Held: true},
			{Rule: "errors = 0", Had: 3}},
		Checked: "all is well " + evil, Digest: "0123"}
	for i := range 20 {
		r.Timeline = append(r.Timeline, bench.Moment{Seconds: float64(i + 1),
			Done: 8000 - int64(i%4)*300, P50: 150 + float64(i%3)*10, P99: 1000 + float64(i%7)*500})
	}
	r.Marks = []bench.Mark{{Seconds: 4.2, What: "checkpoint", Lasted: 0.8},
		{Seconds: 11, What: "stall of the disk", Lasted: 0.31}}
	for i, name := range []string{"parse", "authenticate", "verify", "wait", "match", "sync", evil} {
		r.Stages = append(r.Stages, bench.Stage{Name: name, Count: 160_000, Mean: 3 + float64(i*i),
			P50: 3, P99: 90})
	}
	for i := range 4 {
		r.Turns = append(r.Turns, bench.Part{Seconds: 5, Operations: 40_000, Rate: 8000,
			CPUMicros: new(60 + float64(i)), P50: 130, P99: 1900})
	}
	r.Conditions = bench.Conditions{Kernel: "6.1", CPU: "A CPU " + evil, Cores: 2,
		Program: bench.Program{Version: "abc1234", Go: "go1.26.8", Cgo: "on", GOMAXPROCS: "2",
			GOGC: "100", GOMEMLIMIT: "off"},
		Data: &bench.Disk{Dir: "/tmp/x", Filesystem: "ext4", Device: "/dev/vda", FsyncMicros: 136},
		Node: &bench.Node{Program: bench.Program{Version: evil, Go: "go1.26.8", GOGC: "100"},
			Durability: "fsync", Started: true},
		Hiccup: bench.Hiccup{P99Millis: 1.2, MaxMillis: 8, Measures: "lateness"},
		Start:  time.Unix(1_790_000_000, 0).UTC(), Command: "clobench run --level L3 '" + evil + "'"}
	return r
}

// pageOf is the page of results.
func pageOf(t *testing.T, results ...any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := WritePage(file, "Title "+evil, results...); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var svgs = regexp.MustCompile(`(?s)<svg .*?</svg>`)

// elements are all that a page may have. None of them runs or loads anything.
var elements = strings.Fields("html head meta title style body main nav ul li a span strong h1 h2 h3 " +
	"article section p dl div dt dd figure figcaption i svg g path text table thead tbody tr th td pre")

// checkParts walks through a page: known elements only, references to its own parts only, each id
// once.
func checkParts(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	seen, parts := map[string]bool{}, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page cannot be parsed: %v", err)
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		parts++
		if !slices.Contains(elements, e.Name.Local) {
			t.Errorf("the page has an element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			switch name := a.Name.Local; {
			case name == "href" && !strings.HasPrefix(a.Value, "#"),
				slices.Contains([]string{"src", "action", "data", "poster", "srcset"}, name),
				strings.HasPrefix(name, "on"), name == "style" && strings.Contains(a.Value, "url("):
				t.Errorf("the page has %s=%q", name, a.Value)
			case name == "id" && seen[a.Value]:
				t.Errorf("id %q occurs twice", a.Value)
			case name == "id":
				seen[a.Value] = true
			}
		}
	}
	if parts < 50 {
		t.Errorf("the page has %d elements", parts)
	}
	if strings.Contains(styleText, "url(") || strings.Contains(styleText, "@import") {
		t.Error("the style sheet refers to something")
	}
}

// TestPage: the page has all sections, each picture is well-formed, hostile texts are texts, and
// nothing refers to anywhere else.
func TestPage(t *testing.T) {
	page := pageOf(t, full(t), full(t))
	checkParts(t, page)
	words := html.UnescapeString(page)
	for _, want := range []string{"THRESHOLDS BROKEN", "Latency by percentile", "<h3>Latency</h3>",
		"<h3>Thresholds</h3>", "<h3>Over time</h3>", "<h3>Stages of an order</h3>", "<h3>Turns</h3>",
		"<h3>Counts</h3>", "<h3>Conditions</h3>", "99.99 %", "p99.99", "checkpoint", "abc1234",
		"6.1", "A CPU", "write+fdatasync p50 136", "p99 1.20 ms", "GOGC 100", "clobench run --level L3",
		evil, "default-src 'none'"} {
		if !strings.Contains(words, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	pictures := svgs.FindAllString(page, -1)
	if len(pictures) != 8 {
		t.Errorf("%d pictures, want 4 of each run", len(pictures))
	}
	for _, p := range pictures {
		decoder := xml.NewDecoder(strings.NewReader(p))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("a picture is not well-formed: %v\n%.300s", err, p)
			}
		}
		if strings.Contains(p, "NaN") || strings.Contains(p, "#-") || !strings.Contains(p, ",sans-serif") ||
			!strings.Contains(p, "var(--first)") {
			t.Errorf("a picture: %.300s", p)
		}
	}
}

// TestVerdicts: the verdict is the first thing that a chapter says.
func TestVerdicts(t *testing.T) {
	valid := full(t)
	valid.Thresholds = nil
	invalid := full(t)
	invalid.Invalid = "the load was late " + evil
	behind := full(t)
	behind.Thresholds, behind.Unsent = nil, 3
	failed := full(t)
	failed.Failure = "replay: digests differ"
	for word, r := range map[string]*bench.Report{"VALID": valid, "INVALID": invalid,
		"THRESHOLDS BROKEN": full(t), "FELL BEHIND": behind, "NO FIGURE": failed} {
		c, err := ChapterOf(r)
		if err != nil {
			t.Fatal(err)
		}
		if c.Word != word || (word == "VALID") != (c.Grade == good) {
			t.Errorf("%s: the verdict is %s, %s", word, c.Grade, c.Word)
		}
		if page := pageOf(t, r); strings.Index(page, word) > strings.Index(page, "<h3>") {
			t.Errorf("%s stands behind something else", word)
		}
	}
	page := pageOf(t, failed)
	if strings.Contains(page, "<svg") || strings.Contains(page, "class=\"keys\"") {
		t.Error("a run whose check failed has figures")
	}
}

// doubtful is a result that prints itself and has failed.
type doubtful struct{}

func (doubtful) WriteText(w io.Writer) { fmt.Fprintln(w, "1, 2") }
func (doubtful) Verdict() error        { return errors.New("it differs") }

// TestOthers: the other results have a verdict, a table and conditions; JSON finds its way back.
func TestOthers(t *testing.T) {
	paced := bench.Paced{Asked: 1000, Achieved: 990, Sent: 1000,
		CorrectedMicros: bench.Latency{P50: 100, P90: 200, P99: 900, Max: 2000},
		ServiceMicros:   bench.Latency{P50: 90, P90: 150, P99: 700, Max: 1500},
		Histograms: map[string]string{"service": histogram(t, 20_000, 1),
			"corrected": histogram(t, 20_000, 2)}}
	broken := paced
	broken.Asked, broken.CorrectedMicros.P99 = 1500, 300_000
	side := bench.Side{Name: "s", Rates: []float64{1, 2}, CPUMicros: []float64{1, 2},
		P50Micros: []float64{1, 2}, P90Micros: []float64{1, 2}, P99Micros: []float64{1, 2}}
	l := []bench.Latency{paced.ServiceMicros}
	for _, c := range []struct {
		result any
		says   string
	}{
		{&bench.Ramped{What: "orders", LimitMillis: 100, Kept: 1000, Steps: []bench.Step{{Paced: paced},
			{Paced: broken, Broke: "p99 " + evil}}}, "asked, requests/s"},
		{&bench.Ramped{What: "lists", LimitMillis: 100, Kept: 1000, Steps: []bench.Step{{Paced: paced},
			{Paced: broken, Broke: "p99"}}}, "asked, orders/s"},
		{&bench.Compared{What: "orders", First: []string{"node", "baseline"}, Node: side,
			Baseline: side}, "CPU per operation by round"},
		{&bench.Flooded{Idle: []bench.Paced{paced}, Busy: []bench.Paced{paced}, Orders: []float64{7},
			CPUMicros: []float64{1}}, "flooded"},
		{&bench.Streamed{Alone: []bench.Paced{paced}, Beside: []bench.Paced{paced}, Delivered: l,
			Last: l, Answered: l, Messages: []float64{1}, Bytes: []float64{1}, CPUMicros: []float64{1}},
			"Delivered"},
		{&bench.Soaked{Workload: "canonical", Drifts: []bench.Drift{{Figure: "memory, bytes", First: 1,
			Last: 9, Bound: 2, Rule: evil}, {Figure: "open files", Unknown: true}}, Laps: []bench.Lap{
			{Seconds: 1, Done: 7, Corrected: l[0], Memory: 1e6}, {Seconds: 2, Corrected: l[0]}}}, "DRIFTED"},
	} {
		b, err := json.Marshal(c.result)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Read(b)
		if err != nil || fmt.Sprintf("%T", back) != fmt.Sprintf("%T", c.result) {
			t.Fatalf("%T read back as %T: %v", c.result, back, err)
		}
		page := pageOf(t, back)
		if !strings.Contains(page, c.says) || !strings.Contains(page, "<h3>Conditions</h3>") ||
			!strings.Contains(page, "VALID") && c.says != "DRIFTED" {
			t.Errorf("%T: the page lacks a part", c.result)
		}
		checkParts(t, page)
	}
	if c, err := ChapterOf(doubtful{}); err != nil || c.Word != "FAILED" || c.Reason != "it differs" {
		t.Errorf("a result that has failed: %+v, %v", c, err)
	}
	if _, err := Read([]byte(`{"x":1}`)); err == nil {
		t.Error("anything is a report")
	}
}

// TestPercentiles: no percentile from too few samples, in the table, the picture and the log.
func TestPercentiles(t *testing.T) {
	for _, c := range []struct {
		n           int
		three, four bool
	}{{9_999, false, false}, {10_000, true, false}, {99_999, true, false}, {100_000, true, true}} {
		text := histogram(t, c.n, 1)
		all, err := latenciesOf(map[string]string{"service": text}, nil, bench.Latency{P999: new(1.0)})
		if err != nil {
			t.Fatal(err)
		}
		row := percentileGrid(all).Rows[0]
		if (row[4] != few) != c.three || (row[5] != few) != c.four || row[7] != number(float64(c.n)) {
			t.Errorf("%d samples: %q", c.n, row)
		}
		line := percentileLines(all)[0].at
		if most := line[len(line)-1].x; most > float64(c.n)/10 || most < float64(c.n)/11 {
			t.Errorf("%d samples: the picture ends at %v", c.n, most)
		}
		log, err := all[0].log()
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(string(log), "\n")
		for i, row := range rows[2:] {
			var v, q, inverted float64
			var count int
			if n, _ := fmt.Sscan(row, &v, &q, &count, &inverted); n != 4 || math.IsInf(inverted, 1) {
				if !strings.HasSuffix(row, " inf") || i < 30 {
					t.Errorf("%d samples: row %q", c.n, row)
				}
				break
			}
			if inverted > float64(c.n)/10+0.01 {
				t.Errorf("%d samples: the log tells 1/(1-p) = %v", c.n, inverted)
			}
		}
	}
}

// TestWithheld: the tail that a run does not tell stands in no table, picture or log.
func TestWithheld(t *testing.T) {
	text := histogram(t, 50_000, 1)
	all, err := latenciesOf(map[string]string{"service": text}, nil, bench.Latency{})
	if err != nil {
		t.Fatal(err)
	}
	line := percentileLines(all)[0].at
	row := percentileGrid(all).Rows[0]
	if row[3] == few || row[4] != few || line[len(line)-1].x > 100 {
		t.Errorf("%q, and the picture ends at %v", row, line[len(line)-1].x)
	}
	log, err := all[0].log()
	if err != nil || strings.Contains(string(log), " 0.999") || !strings.Contains(string(log), " inf") {
		t.Errorf("%v\n%s", err, log)
	}
}

// TestLog: the log has the lines of HdrHistogram for values that are known, in µs.
func TestLog(t *testing.T) {
	h := hdrhistogram.New(1, 60_000_000_000, 3)
	for i := range int64(1000) {
		if err := h.RecordValue((i + 1) * 1000); err != nil {
			t.Fatal(err)
		}
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := base64.StdEncoding.DecodeString(string(b)); err != nil {
		t.Fatal("the histogram is not base64")
	}
	path := filepath.Join(t.TempDir(), "run.hgrm")
	r := &bench.Report{Workload: "../w", Level: "L3", CorrectedMicros: &bench.Latency{},
		Histograms: map[string]string{"service": string(b), "corrected": string(b)}}
	if err := Percentiles(path, r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run-corrected.hgrm", "run-uncorrected.hgrm"} {
		log, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(log, []byte("\n"))
		if string(lines[0]) != " Value\tPercentile\tTotalCount\t1/(1-Percentile)" {
			t.Errorf("head %q", lines[0])
		}
		for _, want := range []string{"       1.000     0.000000            1         1.00",
			"     500.223     0.500000          500         2.00",
			"     900.095     0.900000          900        10.00",
			"    1000.447     1.000000         1000          inf",
			"#[Max     =     1000.447, Total count    =         1000]"} {
			if !strings.Contains(string(log), want+"\n") {
				t.Errorf("%s lacks %q:\n%s", name, want, log)
			}
		}
	}
	folder := t.TempDir()
	if err := Percentiles(folder, r); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "_w-L3-corrected.hgrm")); err != nil {
		t.Errorf("a workload's name leaves the folder: %v", err)
	}
	files, err := PercentileFiles(path, &bench.Report{CorrectedMicros: &bench.Latency{}})
	written, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if slices.Sort(files); err != nil || !slices.Equal(files, written) {
		t.Errorf("told %v, written %v: %v", files, written, err)
	}
	ramp := &bench.Ramped{Steps: []bench.Step{{Paced: bench.Paced{Histograms: r.Histograms}}}}
	path = filepath.Join(t.TempDir(), "ramp.hgrm")
	if err := Percentiles(path, ramp); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.Replace(path, "ramp.", "ramp-1-corrected.", 1)); err != nil {
		t.Errorf("a ramp of one step: %v", err)
	}
}

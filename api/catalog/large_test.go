package catalog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clobd/api/wire/scan"
)

// large writes a catalog of the size of the largest real one: a real record's fields and length
// with the question and the slug of each of 165 thousand real markets, in events of five. Without
// the real records beside the repository it is skipped.
func large(t testing.TB, path string, markets int) {
	t.Helper()
	patterns := realPatterns(t)
	titles := unzip(t, shared(t, "catalog/polymarket_165k_market_titles.jsonl.gz"))
	in := bufio.NewScanner(bytes.NewReader(titles))
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriterSize(file, 1<<20)
	var packed *gzip.Writer
	var to io.Writer = out
	if strings.HasSuffix(path, ".gz") {
		packed = gzip.NewWriter(out)
		to = packed
	}
	for n := 0; n < markets && in.Scan(); n++ {
		var title struct{ Slug, Question string }
		if err := json.Unmarshal(in.Bytes(), &title); err != nil {
			t.Fatal(err)
		}
		p := &patterns[n/5%len(patterns)]
		switch {
		case n > 0 && n%5 == 0:
			fmt.Fprint(to, "]}\n")
			fallthrough
		case n == 0:
			fmt.Fprintf(to, `{"id":"%d","slug":"e-%s","title":%s,%s,"markets":[`, n/5+1, title.Slug,
				quote(title.Question), p.event)
		default:
			fmt.Fprint(to, ",")
		}
		fmt.Fprint(to, largeMarket(n+1, title.Slug, title.Question, p.market))
	}
	fmt.Fprint(to, "]}\n")
	if packed != nil {
		err = packed.Close()
	}
	if err := firstOf(err, out.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// largeMarket is a market record: what tells it from others, and a real one's other fields.
func largeMarket(n int, slug, question, rest string) string {
	return fmt.Sprintf(`{"id":"%d","conditionId":"%s","slug":"%s","question":%s,`+
		`"outcomes":"[\"Yes\", \"No\"]","clobTokenIds":"[\"%077d\", \"%077d\"]","updatedAt":"%s",%s}`,
		n, cond(n), slug, quote(question), 2*n, 2*n+1,
		time.Unix(1_700_000_000+int64(n), 0).UTC().Format(time.RFC3339), rest)
}

// pattern is what a made-up event and its markets take from a real one.
type pattern struct{ event, market string }

func realPatterns(t testing.TB) (list []pattern) {
	own := []string{"id", "conditionId", "slug", "question", "outcomes", "clobTokenIds", "updatedAt",
		"title", "markets", "events", "orderPriceMinTickSize"}
	members := func(record []byte) string {
		list, ok := scan.Object(record, nil)
		if !ok {
			t.Fatalf("not a record: %s", record)
		}
		var parts []string
		for _, m := range list {
			if !slices.Contains(own, string(m.Key)) {
				parts = append(parts, `"`+string(m.Key)+`":`+string(m.Value))
			}
		}
		return strings.Join(parts, ",")
	}
	text := unzip(t, shared(t, "catalog/gamma_events_full.jsonl.gz"))
	for line := range bytes.Lines(text) {
		var e struct{ Markets []json.RawMessage }
		if err := json.Unmarshal(line, &e); err != nil || len(e.Markets) == 0 {
			continue
		}
		list = append(list, pattern{members(bytes.TrimSpace(line)), members(e.Markets[0])})
	}
	return list
}

func unzip(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestLarge measures what 165 thousand markets cost. It is asked for by name:
//
//	CLOBD_LARGE=/tmp/large.jsonl go test -run TestLarge -v ./api/catalog
//
// where the file is made if it is not there.
func TestLarge(t *testing.T) {
	path := os.Getenv("CLOBD_LARGE")
	if path == "" {
		t.Skip("CLOBD_LARGE names no file: skipped")
	}
	if _, err := os.Stat(path); err != nil {
		large(t, path, 165_000)
	}
	about, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := Options{Dir: dir}
	start, began := time.Now(), worked(t)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	report, err := readFiles(s, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cold load of %d MB: %v (%v of processors), resident %d MB; %s", about.Size()>>20,
		time.Since(start).Round(time.Millisecond), (worked(t) - began).Round(time.Millisecond),
		resident(t), report)
	start = time.Now()
	warm(s.Current())
	t.Logf("all orders: %v", time.Since(start).Round(time.Millisecond))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("heap in use after a collection: %d MB", m.HeapInuse>>20)
	measureRefresh(t, s)
	measurePages(t, s.Current())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Logf("opened again: %v, %d markets", time.Since(start).Round(time.Millisecond),
		s.Current().Markets.Len())
}

// measureRefresh changes a thousand records at a time.
func measureRefresh(t *testing.T, s *Store) {
	var took, work []time.Duration
	for round := range 9 {
		var text bytes.Buffer
		for range 1000 {
			m := s.Current().Markets.At(rand.Int32N(int32(s.Current().Markets.Len())))
			r, err := s.Current().MarketRecord(m, nil)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteByte('{')
			for key, value := range Members(slices.Concat(r.Core, []byte(","), r.Live)) {
				if string(key) == "updatedAt" {
					value = []byte(quote(time.Unix(1_800_000_000+int64(round), 0).UTC().Format(time.RFC3339)))
				}
				fmt.Fprintf(&text, `"%s":%s,`, key, value)
			}
			text.WriteString("\"changed\":true}\n")
		}
		start, began := time.Now(), worked(t)
		report, err := s.Read(&text)
		if err != nil || report.Markets != 1000 {
			t.Fatal(report, err)
		}
		took, work = append(took, time.Since(start)), append(work, worked(t)-began)
	}
	slices.Sort(took)
	slices.Sort(work)
	t.Logf("refresh of 1,000 changed: %v to %v, median %v (%v of processors)", took[0], took[8],
		took[4], work[4])
}

// measurePages asks for pages of all kinds, anywhere.
func measurePages(t *testing.T, c *Catalog) {
	var took []time.Duration
	var buf []byte
	for i := range 5000 {
		q := PageQuery{Limit: 20, Offset: rand.IntN(150_000), Order: Order(rand.IntN(int(orderCount))),
			Descending: i%2 == 0}
		if i%3 == 0 {
			q.Closed = No
		}
		if i%5 == 0 {
			q.Active = Yes
		}
		start := time.Now()
		page, err := c.QueryMarkets(&q)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Rows {
			r, err := c.MarketRecord(m, buf)
			if err != nil {
				t.Fatal(err)
			}
			buf = r.Buf
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("pages of 20 with their records: p50 %v, p90 %v, p99 %v", took[2500], took[4500],
		took[4950])
}

// worked is how long processors have worked for this process.
func worked(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident is what the process has in memory, in MB.
func resident(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, text, _ = bytes.Cut(text, []byte("VmRSS:"))
	kb, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// BenchmarkPages is a page of twenty without its records, somewhere in a catalog of 20,000.
func BenchmarkPages(b *testing.B) {
	path := filepath.Join(b.TempDir(), "large.jsonl")
	large(b, path, 20_000)
	c, _, err := ReadFile(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, q := range map[string]PageQuery{
		"plain": {Limit: 20, Offset: 10_000},
		"filtered": {Limit: 20, Offset: 5_000, Closed: No, Active: Yes, Order: ByVolume,
			Descending: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.QueryMarkets(&q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

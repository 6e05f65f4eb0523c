package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/ingress/limits"
	"clobd/scripts/setting"
)

// label is what the values of a label may be.
type label struct {
	form string // of each value
	most int    // different ones
}

// labels are all that metrics of the node may have. No value is one that a client or the catalog
// chooses.
func labels() map[string]label {
	of := func(words ...string) label { return label{strings.Join(words, "|"), len(words)} }
	var codes []string
	for _, r := range engine.Rejects {
		if r.Code != "" && !slices.Contains(codes, r.Code) {
			codes = append(codes, r.Code)
		}
	}
	return map[string]label{
		"le":       {`\+Inf|[0-9.e+-]+`, 150},
		"quantile": of("0", `0\.25`, `0\.5`, `0\.75`, "1"),
		"route":    {"[a-z_]{1,20}", 60},
		"status":   {"[1-5][0-9][0-9]|handshakes", 40},
		"window":   of(limits.Names()...),
		"code":     of(codes...),
		"stage": of("parse", "authenticate", "verify", "wait", "match", "append", "sync", "publish",
			"answer"),
		"reason":  {"[a-z ]{1,40}", 20},
		"source":  of("memory", "journal", "resync"),
		"outcome": of("new", "unchanged", "failed"),
		"version": {".{1,40}", 2}, // of the node, and of Go
		"go":      of(regexp.QuoteMeta(runtime.Version())),
	}
}

var aLabel = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// labelsAmong are those of a member of a cluster: the names of the others come from the operator.
func labelsAmong(others []string) map[string]label {
	all := labels()
	if len(others) > 0 {
		all["node"] = label{strings.Join(others, "|"), len(others)}
	}
	return all
}

// scrape reads the metrics, and holds their labels against the list, which is that of a member if
// there are others. It returns the series.
func (p *process) scrape(t *testing.T, others ...string) (all map[string]bool, size int) {
	t.Helper()
	_, text := get(t, p.admin, "/metrics")
	all = map[string]bool{}
	allowed, values := labelsAmong(others), map[string]map[string]bool{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		all[line[:at]] = true
		for _, found := range aLabel.FindAllStringSubmatch(line[:at], -1) {
			name, value := found[1], found[2]
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value] = true
		}
	}
	for name, seen := range values {
		l, known := allowed[name]
		if !known {
			t.Errorf("a metric has the label %s, which is not in the list: %v", name, seen)
			continue
		}
		form := regexp.MustCompile("^(?:" + l.form + ")$")
		for value := range seen {
			if !form.MatchString(value) {
				t.Errorf("label %s has the value %q", name, value)
			}
		}
		if len(seen) > l.most {
			t.Errorf("label %s has %d values, limit %d", name, len(seen), l.most)
		}
	}
	return all, len(text)
}

// strange sends what nobody should: what it says is never the same twice.
func (p *process) strange(t *testing.T) {
	t.Helper()
	word := func() string { return fmt.Sprintf("x%x", rand.Uint64()) }
	for _, method := range []string{"GET", "POST", "DELETE", "PUT", "OPTIONS", strings.ToUpper(word())} {
		for _, path := range []string{"/" + word(), "/book?token_id=" + word(), "/markets/" + word(),
			"/data/order/0x" + word(), "/order", "/orders", "/ws/" + word(), "/ws/trade", "/positions?user=" +
				word(), "/auth/" + word(), "/%00" + word(), "/" + strings.Repeat(word(), 300)} {
			r, err := http.NewRequest(method, "http://"+p.listen+path, strings.NewReader(word()))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = word()
			for _, name := range []string{"POLY_API_KEY", "POLY_ADDRESS", "User-Agent", "Origin", "Accept"} {
				r.Header.Set(name, word())
			}
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		}
	}
	babble(t, p.listen, word())
}

// babble sends an address what no protocol has.
func babble(t *testing.T, address, word string) {
	t.Helper()
	for _, bytes := range []string{word + "\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01" + word} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, bytes)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
}

// trades places orders of one trader who has paper money.
func (p *process) trades(t *testing.T, token string, orders int) {
	t.Helper()
	c, err := trader.NewClient("http://"+p.listen, 80002, [32]byte{31: 9})
	if err == nil {
		err = c.Derive()
	}
	if err != nil {
		t.Fatal(err)
	}
	to, ok := engine.ParseToken(token)
	if !ok {
		t.Fatalf("token %s", token)
	}
	for salt := range orders {
		body, _, err := c.Sign(trader.Limit{Token: to, Price: 1000, Size: 5 * engine.Unit, Type: "GTC",
			Salt: uint64(salt + 1)})
		if err != nil {
			t.Fatal(err)
		}
		var answer fasthttp.Response
		if err := c.Do(http.MethodPost, "/order", body, &answer); err != nil ||
			answer.StatusCode() != http.StatusOK {
			t.Fatalf("%d %s %v", answer.StatusCode(), answer.Body(), err)
		}
	}
}

// The bounds of a scrape: what Prometheus keeps of it every few seconds, and how long the node
// works for it. Of the time the fastest of many scrapes is judged: the others met other work of the
// machine, too.
const (
	scrapeBytes = 1_000_000
	scrapeTime  = 50 * time.Millisecond
	scrapes     = 20
)

// TestMetricsAreBounded: with 100,000 tokens (twice CLOBD_SIZE, 2,000 in a short run) all metrics
// are less than 1 MB and come within 50 ms, and each label is on a list with what it may be.
// Whatever strangers send makes no new series.
func TestMetricsAreBounded(t *testing.T) {
	setting.Full(t, "a thousand markets")
	t.Parallel()
	folder, markets := t.TempDir(), setting.Size(t, 50_000, 1000)
	file := filepath.Join(folder, "catalog.jsonl")
	tokens := writeCatalog(t, file, markets)
	p := newProcess(t, buildNode(t), folder, "--catalog", file, "--faucet", "1000", "--disk-reserve", "0")
	p.start(t)
	p.trades(t, tokens[len(tokens)-1].token, 20)
	for range 3 { // the first rounds meet the limits, too
		p.strange(t)
	}
	before, _ := p.scrape(t)
	p.strange(t)
	p.trades(t, tokens[0].token, 20)
	after, size := p.scrape(t)
	noneNew(t, before, after)
	if size >= scrapeBytes {
		t.Errorf("the metrics of %d tokens have %d bytes", 2*markets, size)
	}
	var took []time.Duration
	for end := time.Now().Add(patience); len(took) < scrapes || took[0] > scrapeTime &&
		time.Now().Before(end); slices.Sort(took) {
		begun := time.Now()
		get(t, p.admin, "/metrics")
		took = append(took, time.Since(begun))
	}
	if took[0] > scrapeTime {
		t.Errorf("the fastest of %d scrapes took %v, the bound is %v", len(took), took[0], scrapeTime)
	}
	t.Logf("figures: tokens=%d metrics_bytes=%d series=%d scrape_p50_us=%d scrape_max_us=%d",
		2*markets, size, len(after), took[len(took)/2].Microseconds(), took[len(took)-1].Microseconds())
	p.stop(t)
}

// noneNew wants no series after strangers were there that was not there before.
func noneNew(t *testing.T, before, after map[string]bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !before[name] {
			t.Errorf("a stranger has made the series %s", name)
		}
	}
}

// TestMetricsOfMembers: the labels of a member's metrics are on the list, too. It has one more: the
// names of the other members. Neither strangers at its door nor at the listener for members make
// new series.
func TestMetricsOfMembers(t *testing.T) {
	setting.Full(t, "four nodes, and strangers at each")
	t.Parallel()
	f := newFleet(t, 0)
	for _, name := range []string{"a", "g"} { // a voter and a gateway
		p := f.nodes[name]
		others := slices.DeleteFunc(slices.Clone(f.names), func(n string) bool { return n == name })
		_, place, _ := strings.Cut(p.flags[slices.Index(p.flags, "--cluster")+1], "@")
		p.strange(t)
		before, size := p.scrape(t, others...)
		p.strange(t)
		babble(t, place, name)
		after, _ := p.scrape(t, others...)
		if noneNew(t, before, after); size >= scrapeBytes {
			t.Errorf("the metrics of %s have %d bytes", name, size)
		}
		for _, other := range others {
			if !after[`clobd_cluster_lag_entries{node="`+other+`"}`] {
				t.Errorf("%s tells nothing of %s", name, other)
			}
		}
	}
}

package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"clobd/ingress/answer"
	"clobd/ingress/conn"
)

// stand is a page of a node that does not exist.
type stand struct {
	*Panel
	metrics *prometheus.Registry
	recent  *Recent
	mux     *http.ServeMux
	refused int // requests that needed the token
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{metrics: prometheus.NewRegistry(), recent: new(Recent), mux: http.NewServeMux()}
	s.Panel = New(Options{Metrics: s.metrics, Recent: s.recent, Bearer: []byte("Bearer secret"),
		About: func() About { return About{Version: "v1", Listen: []string{"http://127.0.0.1:1"}} },
		Ready: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte(`{"ready":false,"why":"disk stalled"}`))
		},
		Refuse: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			s.refused++
			w.WriteHeader(http.StatusUnauthorized)
		})})
	s.Route(s.mux)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	t.Cleanup(func() { s.Close(); cancel(); <-ended })
	return s
}

// get asks from loopback, unless the headers say otherwise.
func (s *stand) get(path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1:8081", "127.0.0.1:5000"
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; name {
		case "Host":
			r.Host = value
		case "From":
			r.RemoteAddr = value
		case "Method":
			r.Method = value
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w
}

// TestGate: who may ask, by address, host, page and token.
func TestGate(t *testing.T) {
	s := newStand(t)
	const far = "203.0.113.7:5000"
	for _, c := range []struct {
		want    int
		path    string
		headers []string
	}{
		{200, "/", nil},
		{200, "/page.json", nil},
		{200, "/page.json", []string{"Host", "localhost:8081"}},
		{200, "/page.json", []string{"Host", "[::1]:8081", "From", "[::1]:5000"}},
		{200, "/page.json", []string{"Sec-Fetch-Site", "same-origin"}},
		{200, "/page.json", []string{"Sec-Fetch-Site", "none"}},
		{200, "/page.json", []string{"Origin", "http://127.0.0.1:8081"}},
		{200, "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document"}},
		{200, "/curves/", nil},
		{403, "/page.json", []string{"Sec-Fetch-Site", "cross-site"}},
		{403, "/page.json", []string{"Sec-Fetch-Site", "same-site"}},
		{403, "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe"}},
		{403, "/page.json", []string{"Origin", "http://evil.example"}},
		{403, "/page.json", []string{"Origin", "http://127.0.0.1:9999"}},
		{403, "/page.json", []string{"Origin", "null"}},
		{403, "/page.json", []string{"Origin", "https://127.0.0.1:8081"}},
		{403, "/curves/ws", []string{"Origin", "http://evil.example"}},
		{405, "/page.json", []string{"Method", "POST"}},
		{405, "/", []string{"Method", "POST"}},
		{200, "/", []string{"From", far, "Host", "desk.example"}},
		{200, "/page.js", []string{"From", far, "Host", "desk.example"}},
		{401, "/page.json", []string{"From", far, "Host", "desk.example"}},
		{401, "/page.json", []string{"From", far}}, // whatever it calls the node
		{401, "/page.json", []string{"Host", "desk.example"}},
		{401, "/page.json", []string{"X-Forwarded-For", "203.0.113.7"}},
		{401, "/page.json", []string{"Forwarded", "for=203.0.113.7"}},
		{401, "/page.json", []string{"X-Real-IP", "203.0.113.7"}},
		{401, "/page.json", []string{"Via", ""}},
		{401, "/curves/", []string{"X-Forwarded-Proto", "https"}},
		{401, "/page.json", []string{"From", far, "Authorization", "Bearer guess"}},
		{401, "/curves/", []string{"From", far}},
		{401, "/curves/", []string{"From", far, "Cookie", passName + "=guess"}},
		{401, "/curves/ws", []string{"From", far}},
		{200, "/page.json", []string{"From", far, "Authorization", "Bearer secret"}},
		{200, "/page.json", []string{"From", far, "Host", "desk.example", "X-Forwarded-Proto", "https",
			"Origin", "https://desk.example", "Authorization", "Bearer secret"}}, // a proxy speaks TLS
		{403, "/page.json", []string{"From", far, "Host", "desk.example", "X-Forwarded-Proto", "https",
			"Origin", "http://desk.example", "Authorization", "Bearer secret"}},
		{404, "/page.html", nil},
	} {
		before := s.refused
		a := s.get(c.path, c.headers...)
		if a.Code != c.want || (s.refused > before) != (c.want == 401) {
			t.Errorf("%s %q: %d, want %d", c.path, c.headers, a.Code, c.want)
		}
		if h := a.Header(); c.want != 404 && (h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';")) {
			t.Errorf("%s %q: headers %v", c.path, c.headers, h)
		}
	}
}

// TestPass: who has shown the token may see the curves, and nothing else, with the cookie.
func TestPass(t *testing.T) {
	s := newStand(t)
	const far = "203.0.113.7:5000"
	a := s.get("/page.json", "From", far, "Authorization", "Bearer secret")
	cookies := a.Result().Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].Path != "/curves/" ||
		cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(cookies[0].Value, "secret") {
		t.Fatalf("cookies %v", cookies)
	}
	pass := passName + "=" + cookies[0].Value
	if got := s.get("/curves/", "From", far, "Cookie", pass).Code; got != 200 {
		t.Errorf("curves with the cookie: %d", got)
	}
	if got := s.get("/page.json", "From", far, "Cookie", pass).Code; got != 401 {
		t.Errorf("JSON with the cookie: %d", got)
	}
	if a := s.get("/page.json"); len(a.Result().Cookies()) > 0 {
		t.Error("loopback gets a cookie")
	}
}

// TestShell: the page needs nothing from elsewhere and no script within it.
func TestShell(t *testing.T) {
	s := newStand(t)
	for _, path := range []string{"/", "/page.css", "/page.js", "/units.js", "/alerts.js"} {
		text := s.get(path).Body.String()
		for _, not := range []string{"https://", "//cdn", "innerHTML", "style=", "onclick", "eval("} {
			if strings.Contains(text, not) {
				t.Errorf("%s has %q", path, not)
			}
		}
		if strings.Count(text, "<script") != strings.Count(text, "<script type=\"module\" src=\"page.js\">") {
			t.Errorf("%s has a script within it", path)
		}
	}
}

// TestSheet: the JSON has readiness, figures by name with their growth, percentiles, the slowest
// orders and the log; what strangers write stays data.
func TestSheet(t *testing.T) {
	s := newStand(t)
	hits := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clobd_limits_hit_total"},
		[]string{"window"})
	depth := prometheus.NewGauge(prometheus.GaugeOpts{Name: "clobd_sequencer_ring_depth"})
	stage := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "clobd_stage_seconds",
		Buckets: []float64{1, 2}, NativeHistogramBucketFactor: 1.1}, []string{"stage"})
	s.metrics.MustRegister(hits, depth, stage)
	s.sampler.take(time.Now().Add(-10 * time.Second))
	hits.WithLabelValues("book").Add(50)
	hits.WithLabelValues("idle")
	depth.Set(7)
	for range 100 {
		stage.WithLabelValues("sync").Observe(0.002)
	}
	log := slog.New(s.recent.Handler())
	log.Info("not told")
	log.Warn("hostile", "name", "<img src=x onerror=alert(1)>\n\x00")
	log.With("part", "a").WithGroup("g").Error(strings.Repeat("x", 5000))
	s.recent.Slowest.Note(&answer.Late{At: time.Now(), Total: time.Millisecond, Status: 200,
		Sequence: 9})
	s.sampler.take(time.Now())
	a := s.get("/page.json")
	var told sheet
	err := json.Unmarshal(a.Body.Bytes(), &told)
	if err != nil || strings.Contains(a.Body.String(), "<img") {
		t.Fatalf("%v: %s", err, a.Body)
	}
	if string(told.Ready) != `{"ready":false,"why":"disk stalled"}` || told.About.Version != "v1" {
		t.Errorf("%s %+v", told.Ready, told.About)
	}
	grown := told.Figures[`clobd_limits_hit_total{window="book"}`]
	if len(grown) != 3 || grown[0] != 50 || grown[1] < 4 || grown[1] > 6 {
		t.Errorf("growth %v", grown)
	}
	if _, is := told.Figures[`clobd_limits_hit_total{window="idle"}`]; is {
		t.Error("a window that was never full is told")
	}
	if v := told.Figures["clobd_sequencer_ring_depth"]; len(v) != 1 || v[0] != 7 {
		t.Errorf("depth %v", v)
	}
	pace := told.Paces[`clobd_stage_seconds{stage="sync"}`][0]
	if pace == nil || pace[0] < 0.0018 || pace[1] > 0.0022 || pace[2] < 8 || pace[2] > 12 {
		t.Errorf("pace %v", pace)
	}
	if len(told.Slowest) != 1 || told.Slowest[0].Total != 1000 || len(told.Slowest[0].Stages) != 9 {
		t.Errorf("slowest %+v", told.Slowest)
	}
	if len(told.Warnings) != 2 || told.Warned != 2 || told.Warnings[1].Level != "WARN" ||
		!strings.Contains(told.Warnings[1].Text, "hostile name=\"<img src=x") ||
		told.Warnings[0].Level != "ERROR" || len(told.Warnings[0].Text) > warningBytes+8 {
		t.Errorf("warnings %+v", told.Warnings)
	}
}

// TestBounds: the log's ring and the samples stay as small as they are said to be.
func TestBounds(t *testing.T) {
	s := newStand(t)
	log := slog.New(s.recent.Handler())
	for i := range 3 * warningsKept {
		log.Warn(fmt.Sprint("no ", i))
	}
	if all, total := s.recent.last(); len(all) != warningsKept || total != 3*warningsKept ||
		all[0].Text != "no 149" || all[warningsKept-1].Text != "no 100" {
		t.Errorf("%d of %d warnings, the first %+v", len(all), total, all[0])
	}
	many := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clobd_many"}, []string{"i"})
	s.metrics.MustRegister(many)
	for i := range 3 * seriesKept {
		many.WithLabelValues(fmt.Sprint(i)).Set(1)
	}
	begin := time.Now()
	for i := range 200 {
		s.sampler.take(begin.Add(time.Duration(i) * time.Second))
	}
	if n := len(s.sampler.latest().now.figures); n != seriesKept {
		t.Errorf("%d series", n)
	}
	if n := len(s.sampler.samples); n > int(kept/time.Second)+1 {
		t.Errorf("%d samples", n)
	}
	if a := s.get("/page.json"); a.Body.Len() > 60<<10 {
		t.Errorf("%d bytes", a.Body.Len())
	}
}

// TestStalled: metrics that wait for a disk do not keep the page from being answered.
func TestStalled(t *testing.T) {
	s := newStand(t)
	s.sampler.look()
	wait := make(chan struct{})
	s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "clobd_stuck"},
		func() float64 { <-wait; return 0 }))
	defer close(wait)
	begin := time.Now()
	var told sheet
	for range 5 { // what was gathered before the disk stalled may still come
		s.sampler.mutex.Lock()
		for _, taken := range s.sampler.samples {
			taken.at = begin.Add(-time.Minute)
		}
		s.sampler.mutex.Unlock()
		if err := json.Unmarshal(s.get("/page.json").Body.Bytes(), &told); err != nil {
			t.Fatal(err)
		}
	}
	if told.Now-told.Took < 50_000 || time.Since(begin) > 30*time.Second {
		t.Errorf("of %d, now %d, after %v", told.Took, told.Now, time.Since(begin))
	}
}

// openCurves asks for a socket of the curves, as a page of an origin, and returns the status.
func openCurves(t *testing.T, host, origin string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /curves/ws HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nConnection: Upgrade\r\n"+
		"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+
		"dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", host, origin)
	in := bufio.NewReader(c)
	a, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, in, a.StatusCode
}

// TestPlaces: whoever only asks for the path of the curves' socket keeps no place of the listener,
// so strangers cannot lock the operator out.
func TestPlaces(t *testing.T) {
	s := newStand(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const most = 4
	server := &http.Server{Handler: s.mux, ConnContext: conn.WithPlace, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(conn.Cap(ln, most)) }()
	defer server.Close()
	ask := func(path string) (net.Conn, int) {
		t.Helper()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, ln.Addr())
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return c, 0
		}
		answer.Body.Close()
		return c, answer.StatusCode
	}
	for i := range 2 * most {
		c, status := ask("/curves/ws")
		defer c.Close()
		if status != http.StatusBadRequest {
			t.Errorf("request %d: %d, want 400: it is no WebSocket", i, status)
		}
	}
	c, status := ask("/page.json")
	defer c.Close()
	if status != http.StatusOK {
		t.Errorf("the operator gets %d", status)
	}
}

// TestCurves: the socket tells the plots and their values, four at once; places come back when
// browsers leave, and the end closes all.
func TestCurves(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := newStand(t)
	server := httptest.NewServer(s.mux)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	open := func(origin string) (net.Conn, *bufio.Reader, int) { return openCurves(t, host, origin) }
	if c, _, status := open("http://evil.example"); status != 403 {
		t.Errorf("a foreign page gets %d", status)
	} else {
		c.Close()
	}
	var conns []net.Conn
	for i := range curvesOpen {
		c, in, status := open(server.URL)
		if status != 101 {
			t.Fatalf("socket %d: %d", i, status)
		}
		conns = append(conns, c)
		said := ""
		for line := make([]byte, 4096); !strings.Contains(said, "clobd-stage-p99"); {
			n, err := in.Read(line)
			if said += string(line[:n]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c, _, status := open(server.URL); status != 503 {
		t.Errorf("one too many gets %d", status)
	} else {
		c.Close()
	}
	conns[0].Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c, _, status := open(server.URL)
		if status == 101 {
			conns[0] = c
			break
		}
		if c.Close(); time.Now().After(end) {
			t.Fatal("the place of a browser that left never comes back")
		}
	}
	s.Close()
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		for b := make([]byte, 4096); ; {
			if _, err := c.Read(b); err != nil {
				if failed, is := err.(net.Error); is && failed.Timeout() {
					t.Error("a socket stays open")
				}
				break
			}
		}
		c.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestMended: the library's page has the two faults that mend takes out.
func TestMended(t *testing.T) {
	s := newStand(t)
	page := s.get("/curves/").Body.String()
	_, name, _ := strings.Cut(page, `src="./`)
	name, _, _ = strings.Cut(name, `"`)
	a := s.get("/curves/"+name, "Range", "bytes=0-10", "If-Modified-Since", time.Now().Format(http.TimeFormat))
	script := a.Body.String()
	if a.Code != 200 || strings.Contains(script, tagless) || strings.Count(script, tagged) != 1 ||
		strings.Contains(script, unfound) || strings.Count(script, findable) != 1 {
		t.Errorf("%s: %d, %d bytes", name, a.Code, len(script))
	}
	if a := s.get("/curves/assets/none.js"); a.Code != 404 {
		t.Errorf("no script: %d", a.Code)
	}
}

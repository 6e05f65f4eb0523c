package pages

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// world is what pages are made of, and how often they are.
type world struct {
	cache   *Cache
	version Version
	clock   time.Time
	made    int
	body    string // of all pages
}

func newWorld() *world {
	w := &world{cache: New(), clock: time.Unix(1_700_000_000, 0), body: "[]"}
	w.cache.now = func() time.Time { return w.clock }
	return w
}

// ask asks for a page with some headers.
func (w *world) ask(method, key string, headers ...string) *fasthttp.Response {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod(method)
	for i := 0; i < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	w.cache.Answer(&ctx, &Source{Key: []byte(key),
		Version: func() Version { return w.version },
		Append: func(b []byte) ([]byte, bool) {
			w.made++
			return append(b, w.body...), w.body != ""
		}})
	return &ctx.Response
}

// makes reports how many pages two requests make.
func (w *world) makes(key string) int {
	before := w.made
	w.ask("GET", key)
	w.ask("HEAD", key)
	return w.made - before
}

// TestMadeOnce: a page that was asked for twice is made no more, for GET, HEAD or a 304, and all
// answers are the same bytes in memory.
func TestMadeOnce(t *testing.T) {
	w := newWorld()
	if w.makes("a") != 2 || w.makes("a") != 0 {
		t.Errorf("%d pages made for four requests", w.made)
	}
	r := w.ask("GET", "a")
	if again := w.ask("GET", "a").Body(); &again[0] != &r.Body()[0] || string(again) != "[]" {
		t.Errorf("another %q", again)
	}
	tag := string(r.Header.Peek("ETag"))
	for _, known := range []string{tag, `"x", W/` + tag, " * "} {
		r := w.ask("GET", "a", "If-None-Match", known)
		if r.StatusCode() != 304 || len(r.Body()) > 0 || string(r.Header.Peek("ETag")) != tag {
			t.Errorf("If-None-Match: %s: %s", known, r)
		}
	}
	if r := w.ask("GET", "a", "If-None-Match", `"x"`); r.StatusCode() != 200 {
		t.Errorf("another tag: %s", r)
	}
	if w.made != 2 {
		t.Errorf("%d pages made", w.made)
	}
}

// TestAtOnce: of many who ask at once for a page that nobody has, one makes it.
func TestAtOnce(t *testing.T) {
	const callers = 64
	c := New()
	var made, asked atomic.Int32
	var first [callers]*byte
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			var ctx fasthttp.RequestCtx
			c.Answer(&ctx, &Source{Key: []byte("a"),
				Version: func() Version { asked.Add(1); return Version{} },
				Append: func(b []byte) ([]byte, bool) {
					made.Add(1)
					for asked.Load() < callers { // until all have asked
						time.Sleep(time.Millisecond)
					}
					return append(b, "[]"...), true
				}})
			first[i] = &ctx.Response.Body()[0]
		})
	}
	all.Wait()
	for _, at := range first {
		if at != first[0] {
			t.Fatal("two pages")
		}
	}
	// Who has read the Version may come to the page after its making, and nobody has kept the page.
	if n := made.Load(); n > 2 {
		t.Errorf("made %d times", n)
	}
}

// TestNewEnough: a page is made anew for whatever changes, a large one at once for states, sources
// and hours, and at most four times a second for prices.
func TestNewEnough(t *testing.T) {
	changes := map[string]func(*Version){
		"source": func(v *Version) { v.Source = "other" },
		"hour":   func(v *Version) { v.Hour-- }, // clocks are set
		"states": func(v *Version) { v.States++ },
		"books":  func(v *Version) { v.Books++ },
		"index":  func(v *Version) { v.Index++ },
	}
	for name, change := range changes {
		for _, size := range []int{large - 1, large} {
			w := newWorld()
			w.body = strings.Repeat("x", size)
			w.makes("a")
			change(&w.version)
			waits := size >= large && (name == "books" || name == "index")
			if made := w.makes("a"); made != 1 && !waits || made != 0 && waits {
				t.Errorf("%s, %d bytes: made %d times", name, size, made)
			}
			w.clock = w.clock.Add(patience)
			if made := w.makes("a"); made != 1 && waits || made != 0 && !waits {
				t.Errorf("%s, %d bytes, later: made %d times", name, size, made)
			}
		}
	}
}

// TestFails: a page that cannot be made is not kept, and the next request tries again, also after a
// panic.
func TestFails(t *testing.T) {
	w := newWorld()
	w.body = ""
	for range 2 {
		if w.makes("a") != 2 {
			t.Errorf("made %d times", w.made)
		}
	}
	func() {
		defer func() { _ = recover() }()
		w.cache.page(&Source{Key: []byte("a"), Version: func() Version { return Version{} },
			Append: func([]byte) ([]byte, bool) { panic("a bug") }})
	}()
	w.body = "[1]"
	if got := w.ask("GET", "a").Body(); string(got) != "[1]" {
		t.Errorf("%q", got)
	}
}

// TestBound: whatever is asked for, the kept bytes stay within the bound, and pages that are asked
// for once or twice do not drive out a page that many want.
func TestBound(t *testing.T) {
	w := newWorld()
	w.cache.most = 1 << 20
	w.body = strings.Repeat("x", 40<<10)
	for range 10 {
		w.ask("GET", "wanted")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 5_000 {
		key := fmt.Sprint("offset=", i)
		w.ask("GET", key)
		if random.IntN(2) == 0 {
			w.ask("GET", key)
		}
		if i%1000 == 0 {
			before := w.made
			if w.ask("GET", "wanted"); w.made != before {
				t.Fatalf("after %d others the page is made anew", i)
			}
		}
	}
	bytes := 0
	for e := w.cache.order.Front(); e != nil; e = e.Next() {
		bytes += e.Value.(*page).weight
	}
	if bytes != w.cache.bytes || bytes > w.cache.most || bytes < w.cache.most/2 ||
		len(w.cache.kept) != w.cache.order.Len() || len(w.cache.making) > 0 {
		t.Errorf("%d pages of %d bytes, counted %d", len(w.cache.kept), bytes, w.cache.bytes)
	}
}

// TestGivesWay: what was popular once gives way to what is popular now.
func TestGivesWay(t *testing.T) {
	w := newWorld()
	w.cache.most = 1 << 20
	w.body = strings.Repeat("x", 200<<10)
	for range 200 {
		for key := range 5 {
			w.ask("GET", fmt.Sprint("old", key))
		}
	}
	for range 300 {
		for key := range 5 {
			w.ask("GET", fmt.Sprint("new", key))
		}
	}
	for key := range 5 {
		if w.makes(fmt.Sprint("new", key)) != 0 {
			t.Errorf("page %d is not kept", key)
		}
	}
}

// TestTag: the tag of a page follows its bytes.
func TestTag(t *testing.T) {
	one, two := appendEntityTag(nil, []byte("[1]")), appendEntityTag(nil, []byte("[2]"))
	if bytes.Equal(one, two) || !bytes.Equal(one, appendEntityTag(nil, []byte("[1]"))) {
		t.Errorf("%s %s", one, two)
	}
}

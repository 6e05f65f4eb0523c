package pages

import (
	"bytes"
	"container/list"
	"hash/crc32"
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

const (
	maxKept = 64 << 20 // bytes of all pages of a Cache
	// entryBytes is what a page takes beside its body and its key.
	entryBytes = 512
	// maxScratch is the largest room that is kept for making pages.
	maxScratch = 8 << 20
)

// Cache makes pages and keeps those that are asked for often. Any number of goroutines may use a
// Cache.
type Cache struct {
	now     func() time.Time
	most    int // bytes of kept pages
	seed    maphash.Seed
	scratch sync.Pool // of *[]byte, in which pages are made
	press   press
	shared  budget // of compressing kept pages
	singles budget // of compressing all else

	mutex  sync.Mutex // guards what follows
	asked  asked
	making map[string]*flight
	kept   map[string]*list.Element
	order  list.List // of *page, the last used first
	bytes  int       // of kept pages
}

// flight is a page that is being made.
type flight struct {
	done chan struct{} // closed when it is made, or has failed
	page *page         // nil: it has failed
}

// New makes an empty Cache.
func New() *Cache {
	return &Cache{now: time.Now, most: maxKept, seed: maphash.MakeSeed(),
		scratch: sync.Pool{New: func() any { return new([]byte) }},
		shared:  budget{rate: keptRate}, singles: budget{rate: singleRate},
		making: map[string]*flight{}, kept: map[string]*list.Element{}}
}

// Source is how a request's page is made.
type Source struct {
	// Key names all that the page shows, but for the facts that Version tells of.
	Key []byte
	// Version returns how new the facts are at the moment.
	Version func() Version
	// Append appends the page; false: it fails.
	Append func([]byte) ([]byte, bool)
}

// Answer answers a request with a page. If the page cannot be made, Answer returns false and leaves
// the answer alone.
func (c *Cache) Answer(ctx *fasthttp.RequestCtx, s *Source) bool {
	p := c.page(s)
	if p == nil {
		return false
	}
	p.send(ctx, c)
	return true
}

// send answers with a page in the encoding that the client wants, or with 304 if the client has the
// page in any encoding: the tag tells which.
func (p *page) send(ctx *fasthttp.RequestCtx, c *Cache) {
	header := &ctx.Response.Header
	ctx.SetContentType(wire.JSON)
	packs := false
	if len(p.body) > least {
		header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
		packs = wantsGzip(&ctx.Request.Header)
	}
	known := ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)
	anything := string(bytes.TrimSpace(known)) == "*"
	if packs && (anything || bytes.Contains(known, p.zipTag)) {
		header.SetBytesV(fasthttp.HeaderETag, p.zipTag)
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	if anything || bytes.Contains(known, p.tag) {
		header.SetBytesV(fasthttp.HeaderETag, p.tag)
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	if packs {
		if z := c.zip(p); z != nil {
			header.SetBytesV(fasthttp.HeaderETag, p.zipTag)
			header.Set(fasthttp.HeaderContentEncoding, "gzip")
			ctx.Response.SetBodyRaw(z)
			return
		}
	}
	header.SetBytesV(fasthttp.HeaderETag, p.tag)
	ctx.Response.SetBodyRaw(p.body)
}

// page returns a page that is new enough: a kept one, one that another request makes, or a new one.
// It is nil if the page cannot be made.
func (c *Cache) page(s *Source) *page {
	hash := maphash.Bytes(c.seed, s.Key)
	for first := true; ; first = false {
		v, now := s.Version(), c.now()
		c.mutex.Lock()
		if first {
			c.asked.count(hash)
		}
		if e := c.kept[string(s.Key)]; e != nil && e.Value.(*page).answers(&v, now) {
			c.order.MoveToFront(e)
			c.mutex.Unlock()
			return e.Value.(*page)
		}
		f := c.making[string(s.Key)]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			c.making[string(s.Key)] = f
			c.mutex.Unlock()
			return c.make(s, f, &page{key: string(s.Key), hash: hash, version: v, begun: now})
		}
		c.mutex.Unlock()
		<-f.done
		if f.page != nil && f.page.answers(&v, c.now()) {
			return f.page
		}
	}
}

// make makes a page. Those who wait for it go on even if that panics.
func (c *Cache) make(s *Source, f *flight, p *page) *page {
	defer func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		delete(c.making, p.key)
		if f.page != nil {
			c.keep(f.page)
		}
		close(f.done)
	}()
	scratch := c.scratch.Get().(*[]byte)
	b, ok := s.Append((*scratch)[:0])
	if ok {
		c.fill(p, b)
		f.page = p
	}
	if cap(b) <= maxScratch {
		*scratch = b
		c.scratch.Put(scratch)
	}
	return f.page
}

// fill fills a page with a body. What has not changed stays shared with the page before, also in
// gzip.
func (c *Cache) fill(p *page, body []byte) {
	c.mutex.Lock()
	e := c.kept[p.key]
	c.mutex.Unlock()
	if e != nil {
		if old := e.Value.(*page); bytes.Equal(old.body, body) {
			p.body, p.tag, p.zipTag, p.zipped = old.body, old.tag, old.zipTag, old.zipped
			return
		}
	}
	p.body, p.zipped = bytes.Clone(body), new(zipped)
	p.tag = appendEntityTag(make([]byte, 0, 64), body)
	p.zipTag = append(bytes.TrimSuffix(bytes.Clone(p.tag), []byte{'"'}), `-gzip"`...)
}

// size is what a page takes in memory, before it is compressed.
func (p *page) size() int { return len(p.body) + 2*len(p.key) + entryBytes }

// keep keeps a page in place of an older one, or if it was asked for twice and more often than what
// would have to go. Callers hold the mutex.
func (c *Cache) keep(p *page) {
	inGzip := 0
	if e := c.kept[p.key]; e != nil {
		if old := e.Value.(*page); old.zipped == p.zipped {
			inGzip = old.weight - old.size()
		}
		c.drop(e)
	}
	often := c.asked.of(p.hash)
	if often < 2 || p.size() > c.most/4 {
		return
	}
	for c.bytes+p.size() > c.most {
		last := c.order.Back()
		if c.asked.of(last.Value.(*page).hash) >= often {
			return
		}
		c.drop(last)
	}
	e := c.order.PushFront(p)
	c.kept[p.key] = e
	c.weigh(e, p.size()+inGzip)
}

// weigh counts n more bytes of a kept page, and makes room. Callers hold the mutex.
func (c *Cache) weigh(e *list.Element, n int) {
	e.Value.(*page).weight += n
	c.bytes += n
	for c.bytes > c.most && c.order.Back() != e {
		c.drop(c.order.Back())
	}
}

// drop forgets a page. Callers hold the mutex.
func (c *Cache) drop(e *list.Element) {
	p := c.order.Remove(e).(*page)
	delete(c.kept, p.key)
	c.bytes -= p.weight
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendEntityTag appends the entity tag of a body: its length and two checksums. Nobody gains from
// a second body with the same tag, so the checksums need not be cryptographic.
func appendEntityTag(b, body []byte) []byte {
	b = strconv.AppendInt(append(b, '"'), int64(len(body)), 36)
	b = strconv.AppendUint(append(b, '-'), uint64(crc32.Checksum(body, castagnoli)), 36)
	b = strconv.AppendUint(append(b, '-'), uint64(crc32.ChecksumIEEE(body)), 36)
	return append(b, '"')
}

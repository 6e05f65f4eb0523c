package pages

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

const (
	// least is the size above which answers are compressed: a smaller one fits into one packet.
	least = 1 << 10
	// Bytes that are compressed in a second: of kept pages, each of which many will read, and of
	// answers that nobody else reads. A core compresses some 200 million. Whatever finds no room
	// goes out as it is.
	keptRate   = 32 << 20
	singleRate = 8 << 20
)

// press compresses one text after another. It holds the memory of one compressor, whoever asks.
type press struct {
	mutex  sync.Mutex
	writer *gzip.Writer // nil before the first use
	out    bytes.Buffer
}

// compress returns a text in gzip. If wait is false and the press is at work, it returns nil.
func (p *press) compress(text []byte, wait bool) []byte {
	if wait {
		p.mutex.Lock()
	} else if !p.mutex.TryLock() {
		return nil
	}
	defer p.mutex.Unlock()
	p.out.Reset()
	if p.writer == nil {
		p.writer, _ = gzip.NewWriterLevel(&p.out, gzip.BestSpeed) // the level is valid
	} else {
		p.writer.Reset(&p.out)
	}
	_, err := p.writer.Write(text)
	if err == nil {
		err = p.writer.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("BUG: a buffer refuses bytes: %v", err))
	}
	z := bytes.Clone(p.out.Bytes())
	if p.out.Cap() > maxScratch {
		p.out = bytes.Buffer{}
	}
	return z
}

// budget is how many bytes may be compressed. It fills by rate a second, up to rate.
type budget struct {
	rate  int
	mutex sync.Mutex
	left  int
	at    time.Time // when left was computed
}

// take takes n bytes if they are there.
func (b *budget) take(n int, now time.Time) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if gone := now.Sub(b.at); gone >= time.Second {
		b.left, b.at = b.rate, now
	} else if more := int(int64(b.rate) * int64(gone) / int64(time.Second)); more > 0 {
		b.left, b.at = min(b.rate, b.left+more), now
	}
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}

// zipped is the body of a page in gzip, made when the first client asks for it.
type zipped struct {
	mutex sync.Mutex
	body  []byte // nil: not made yet
}

// zip returns a page in gzip, nil if there is no room for the work. Of many clients who ask at once
// the first has it made.
func (c *Cache) zip(p *page) []byte {
	p.zipped.mutex.Lock()
	defer p.zipped.mutex.Unlock()
	if p.zipped.body != nil {
		return p.zipped.body
	}
	c.mutex.Lock()
	e := c.kept[p.key]
	kept := e != nil && e.Value.(*page).zipped == p.zipped
	c.mutex.Unlock()
	budget := &c.singles
	if kept {
		budget = &c.shared
	}
	if !budget.take(len(p.body), c.now()) {
		return nil
	}
	z := c.press.compress(p.body, kept)
	if p.zipped.body = z; kept {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if e := c.kept[p.key]; e != nil && e.Value.(*page).zipped == p.zipped {
			c.weigh(e, len(z))
		}
	}
	return z
}

// Compress compresses an answer that has no page, if the client wants that, and if there is room
// for the work.
func (c *Cache) Compress(ctx *fasthttp.RequestCtx) {
	r := &ctx.Response
	if r.IsBodyStream() || len(r.Body()) <= least || r.StatusCode() != fasthttp.StatusOK ||
		len(r.Header.Peek(fasthttp.HeaderETag)) > 0 {
		return
	}
	r.Header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if !wantsGzip(&ctx.Request.Header) || !c.singles.take(len(r.Body()), c.now()) {
		return
	}
	if z := c.press.compress(r.Body(), false); z != nil {
		r.Header.Set(fasthttp.HeaderContentEncoding, "gzip")
		r.SetBodyRaw(z)
	}
}

// wantsGzip reports whether a client takes gzip at least as gladly as the bytes as they are.
func wantsGzip(h *fasthttp.RequestHeader) bool {
	packed, plain, other := -1.0, -1.0, -1.0
	for _, line := range h.PeekAll(fasthttp.HeaderAcceptEncoding) {
		for coding := range strings.SplitSeq(wire.Text(line), ",") {
			name, parameters, _ := strings.Cut(coding, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "gzip", "x-gzip":
				packed = max(packed, quality(parameters))
			case "identity":
				plain = quality(parameters)
			case "*":
				other = quality(parameters)
			}
		}
	}
	if packed < 0 {
		packed = other
	}
	return packed > 0 && packed >= plain
}

// quality reads the weight of a coding: 1 without one, 0 for one that cannot be read.
func quality(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}

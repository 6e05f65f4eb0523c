package catalog

import (
	"errors"
	"fmt"
	"io"
	"runtime"
)

const (
	// batchBytes is how much text a batch holds, but for its last record.
	batchBytes = 256 << 10
	// maxBatches are on their way at once.
	maxBatches = 16
)

// flow reads records in one goroutine, makes items of them in several, and hands them on in order.
//
//	split ── todo ──► parse ─┐
//	   └──── order ──────────┴──► take, in the order of the text
type flow struct {
	next  func() (record []byte, line int, err error)
	parse func(p *parser, record []byte, line int32)

	todo, order chan *batch
	idle        chan *batch
	quit        chan struct{}
}

// batch is a number of records on their way.
type batch struct {
	text    []byte
	records []rawRecord
	parser  *parser
	done    chan struct{}
	err     error // nothing more can be read
}

type rawRecord struct {
	from, to int
	line     int32
	broken   string // instead of a text
}

// run reads all records and calls take with their items, on the caller's goroutine, until take
// fails.
func (f *flow) run(take func(*parser, *item) error) error {
	f.todo, f.order = make(chan *batch, maxBatches), make(chan *batch, maxBatches)
	f.idle, f.quit = make(chan *batch, maxBatches), make(chan struct{})
	defer close(f.quit)
	for range maxBatches {
		f.idle <- &batch{parser: newParser(), done: make(chan struct{}, 1)}
	}
	go f.split()
	for range min(runtime.GOMAXPROCS(0), 4) {
		go f.work()
	}
	for b := range f.order {
		<-b.done
		for i := range b.parser.items {
			if err := take(b.parser, &b.parser.items[i]); err != nil {
				return err
			}
		}
		if b.err != nil {
			return b.err
		}
		f.idle <- b
	}
	return nil
}

// split reads batches of records.
func (f *flow) split() {
	defer close(f.todo)
	defer close(f.order)
	for more := true; more; {
		var b *batch
		select {
		case b = <-f.idle:
		case <-f.quit:
			return
		}
		more = b.fill(f.next)
		f.order <- b // as many fit as there are
		f.todo <- b
	}
}

// fill reads records into a batch. It returns false at the end of the text.
func (b *batch) fill(next func() ([]byte, int, error)) bool {
	b.text, b.records = b.text[:0], b.records[:0]
	b.parser.reset()
	for len(b.text) < batchBytes {
		record, line, err := next()
		r := rawRecord{from: len(b.text), line: int32(line)}
		switch {
		case err == nil:
			b.text = append(b.text, record...)
			r.to = len(b.text)
		case errors.Is(err, io.EOF):
			return false
		case ofRecord(err):
			r.broken = err.Error()
		default:
			b.err = fmt.Errorf("read line %d: %w", line, err)
			return false
		}
		b.records = append(b.records, r)
	}
	return true
}

func (f *flow) work() {
	for b := range f.todo {
		for i := range b.records {
			r := &b.records[i]
			if r.broken != "" {
				b.parser.line = r.line
				b.parser.broken("", r.broken)
				continue
			}
			f.parse(b.parser, b.text[r.from:r.to], r.line)
		}
		b.done <- struct{}{}
	}
}

package catalog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"
)

// compactAt is how much of a log must be garbage, and at least half of it, before it is written
// anew.
const compactAt = 64 << 20

// frameReader reads the frames of a log up to the first that cannot be whole.
type frameReader struct {
	in    *bufio.Reader
	frame []byte
}

// readFrames reads the title of a log. It returns false if there is none.
func readFrames(r io.Reader) (*frameReader, bool) {
	in := bufio.NewReaderSize(r, logBuffer)
	title := make([]byte, len(logTitle))
	_, err := io.ReadFull(in, title)
	return &frameReader{in: in}, err == nil && string(title) == logTitle
}

func (r *frameReader) next() ([]byte, int, error) {
	start, err := r.in.Peek(4)
	if err != nil {
		return nil, 0, io.EOF
	}
	size := 8 + int64(binary.LittleEndian.Uint32(start))
	if size < headSize || size > maxFrame {
		return nil, 0, io.EOF
	}
	r.frame = slices.Grow(r.frame[:0], int(size))[:size]
	if _, err := io.ReadFull(r.in, r.frame); err != nil {
		return nil, 0, io.EOF
	}
	return r.frame, 0, nil
}

// restore makes exactly one item of a frame. A broken frame makes a broken item.
func restore(p *parser, frame []byte, _ int32) {
	before := len(p.items)
	h, err := readHead(frame)
	if err == nil {
		p.restoring, p.members = true, p.members[:0]
		clear(p.values[:])
		record := partsOf(frame, &h)
		for _, list := range [][]byte{record.Core, record.Rest, record.Live} {
			for key, value := range Members(list) {
				p.values[memberUses[string(key)].field] = value
			}
		}
		p.restoreRow(&h, record.Core)
	}
	if len(p.items) == before {
		p.items = append(p.items, item{broken: true})
	}
	p.items = p.items[:before+1]
	it := &p.items[before]
	it.head = h
	it.record = location{size: uint32(len(frame)), hash: maphash.Bytes(seed, frame[headSize:])}
}

func (p *parser) restoreRow(h *head, core []byte) {
	switch h.kind {
	case aLink:
		p.items = append(p.items, item{kind: aLink})
	case aMark:
		p.items = append(p.items, item{kind: aMark, mark: slices.Clone(core)})
	default:
		p.takeKind(h.kind, h.partial)
	}
}

// replay enters all frames of a log, and returns where the good ones end.
func (s *Store) replay(e *editor, log *recordLog) (end int64, err error) {
	reader, ok := readFrames(io.NewSectionReader(log.file, 0, 1<<62))
	if !ok {
		return 0, nil
	}
	f := &flow{next: reader.next, parse: restore}
	end = int64(len(logTitle))
	err = f.run(func(p *parser, it *item) error {
		it.record.at = end
		if it.broken || it.why != "" {
			return errFrame
		}
		if err := e.restore(it); err != nil {
			return err
		}
		if it.kind == aMark {
			s.mark = it.mark
		}
		end += int64(it.record.size)
		return nil
	})
	if errors.Is(err, errFrame) {
		err = nil
		s.mark = nil // the mark may cover the lost part
	}
	return end, err
}

// resume readies a log that was read for more frames, and cuts off the bytes behind its end.
func (l *recordLog) resume(end int64) error {
	if end == 0 {
		if _, err := l.file.WriteAt([]byte(logTitle), 0); err != nil {
			return fmt.Errorf("write catalog log: %w", err)
		}
		end = int64(len(logTitle))
	}
	return l.rewind(end)
}

// rewind cuts off what was appended from a place on.
func (l *recordLog) rewind(end int64) error {
	err := l.file.Truncate(end)
	if err == nil {
		_, err = l.file.Seek(end, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("cut catalog log: %w", err)
	}
	l.size, l.out = end, bufio.NewWriterSize(l.file, logBuffer)
	return nil
}

// flush makes the appended frames readable.
func (l *recordLog) flush() error {
	if err := l.out.Flush(); err != nil {
		return fmt.Errorf("write catalog log: %w", err)
	}
	return nil
}

// sync makes the appended frames durable.
func (l *recordLog) sync() error { return errors.Join(l.flush(), l.file.Sync()) }

// compact writes the log anew once half of it is garbage. Catalogs in use go on reading the old
// file, which has no name any more.
func (s *Store) compact() error {
	if g := s.log.garbage; g < compactAt || g < s.log.size/2 {
		return nil
	}
	old := s.Current()
	fresh, name, err := s.newGeneration()
	if err != nil {
		return err
	}
	c, err := rewritten(old, fresh)
	if err == nil && s.mark != nil {
		_, err = fresh.append(markFrame(s.mark))
	}
	if err = errors.Join(err, fresh.sync()); err == nil && name != "" {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write catalog log anew: %w", err), fresh.file.Close())
	}
	s.log = fresh
	s.publish(c)
	if name == "" {
		return nil
	}
	s.gen++
	return errors.Join(syncDir(s.o.Dir), os.Remove(logName(s.o.Dir, s.gen-1)))
}

// newGeneration makes the next log, and returns its later name: "" without a folder.
func (s *Store) newGeneration() (log *recordLog, name string, err error) {
	if s.o.Dir == "" {
		log, err = newLog("", "")
		return log, "", err
	}
	name = logName(s.o.Dir, s.gen+1)
	log, err = newLog(s.o.Dir, name+".new")
	return log, name, err
}

// rewritten copies a catalog whose records are then in another log.
func rewritten(c *Catalog, to *recordLog) (*Catalog, error) {
	e := edit(c, to, 0)
	var buf []byte
	var err error
	move := func(of *location, h head) {
		if err != nil {
			return
		}
		if buf, err = c.log.read(*of, buf); err != nil {
			return
		}
		var was head
		if was, err = readHead(buf); err == nil {
			h.core, h.rest = was.core, was.rest
			putHead(buf, &h)
			*of, err = to.append(buf)
		}
	}
	for no := range int32(c.Tags.Len()) {
		t := e.tags.own(no)
		move(&t.record, head{kind: aTag, partial: t.Partial, no: no, link: None})
	}
	for no := range int32(c.Series.Len()) {
		row := e.series.own(no)
		move(&row.record, head{kind: aSeries, partial: row.Partial, no: no, link: None})
	}
	for no := range int32(c.Events.Len()) {
		row := e.events.own(no)
		move(&row.record, head{kind: anEvent, partial: row.Partial, no: no, link: None, group: row.Group})
	}
	for no := range int32(c.Markets.Len()) {
		m := e.markets.own(no)
		if !m.BookOnly {
			move(&m.record, head{kind: aMarket, no: no, link: m.EventNo, group: m.Group})
		}
		if m.HasBook {
			move(&m.book, head{kind: aBook, no: no, link: m.EventNo, group: m.Group})
		}
	}
	return e.next, err
}

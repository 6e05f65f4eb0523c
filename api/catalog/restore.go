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

// compactAt is how much of a log must be garbage before it is written anew; it must also be as much
// as what counts.
const compactAt = 64 << 20

// frameReader reads the frames of a log one after the other, up to one that cannot be whole.
type frameReader struct {
	in    *bufio.Reader
	frame []byte
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

// restore makes an item of a frame: exactly one. It is broken if the frame is.
func restore(p *parser, frame []byte, _ int32) {
	before := len(p.items)
	h, err := readHead(frame)
	if err == nil {
		p.restoring, p.members = true, p.members[:0]
		clear(p.values[:])
		record := partsOf(frame, &h)
		for _, list := range [][]byte{record.Core, record.Rest, record.Live} {
			for key, value := range Members(list) {
				p.values[fieldOf(key)] = value
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
	case aTag:
		p.takeTag(h.partial)
	case aSeries:
		p.takeSeries(h.partial)
	case anEvent:
		p.takeEvent(h.partial)
	case aMarket:
		p.takeMarket("")
	case aBook:
		p.takeBook()
	case aLink:
		p.items = append(p.items, item{kind: aLink})
	case aMark:
		p.items = append(p.items, item{kind: aMark, mark: slices.Clone(core)})
	}
}

// replay enters all frames of a log. It answers where they end.
func (s *Store) replay(e *editor, log *recordLog) (end int64, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(log.file, 0, 1<<62), logBuffer)
	title := make([]byte, len(logTitle))
	if _, err := io.ReadFull(in, title); err != nil || string(title) != logTitle {
		return 0, nil
	}
	reader := &frameReader{in: in}
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
		s.mark = nil // it may be that of the part that was lost
	}
	return end, err
}

// resume makes a log that was read ready for more: what is behind its end is cut off.
func (l *recordLog) resume(end int64) error {
	if end == 0 {
		if _, err := l.file.WriteAt([]byte(logTitle), 0); err != nil {
			return fmt.Errorf("write catalog log: %w", err)
		}
		end = int64(len(logTitle))
	}
	return l.rewind(end)
}

// rewind forgets what was appended from a place on.
func (l *recordLog) rewind(end int64) error {
	if err := l.file.Truncate(end); err != nil {
		return fmt.Errorf("cut catalog log: %w", err)
	}
	if _, err := l.file.Seek(end, io.SeekStart); err != nil {
		return fmt.Errorf("cut catalog log: %w", err)
	}
	l.size, l.out = end, bufio.NewWriterSize(l.file, logBuffer)
	return nil
}

// flush makes what was appended readable.
func (l *recordLog) flush() error {
	if err := l.out.Flush(); err != nil {
		return fmt.Errorf("write catalog log: %w", err)
	}
	return nil
}

// sync makes what was appended durable.
func (l *recordLog) sync() error { return errors.Join(l.flush(), l.file.Sync()) }

// compact writes the log anew once most of it is garbage. Catalogs that are in use go on reading
// the old file, which has no name any more.
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

// newGeneration makes the next log, and says what it will be called: nothing without a folder.
func (s *Store) newGeneration() (log *recordLog, name string, err error) {
	if s.o.Dir == "" {
		log, err = newLog("", "")
		return log, "", err
	}
	name = logName(s.o.Dir, s.gen+1)
	log, err = newLog(s.o.Dir, name+".new")
	return log, name, err
}

// rewritten is the same catalog with its records in another log.
func rewritten(c *Catalog, to *recordLog) (*Catalog, error) {
	e := edit(c, to, 0)
	var buf []byte
	var problems []error
	move := func(of *location, h head) {
		frame, err := c.log.read(*of, buf)
		var was head
		if err == nil {
			was, err = readHead(frame)
		}
		if err != nil {
			problems = append(problems, err)
			return
		}
		h.core, h.rest = was.core, was.rest
		putHead(frame, &h)
		*of, err = to.append(frame)
		problems = append(problems, err)
		buf = frame
	}
	moveEntry := func(kind recordKind, row *Identity, group uint64) {
		move(&row.record,
			head{kind: kind, partial: row.Partial, no: row.No, link: None, group: group})
	}
	for no := range int32(c.Tags.Len()) {
		moveEntry(aTag, &e.tags.own(no).Identity, 0)
	}
	for no := range int32(c.Series.Len()) {
		moveEntry(aSeries, &e.series.own(no).Identity, 0)
	}
	for no := range int32(c.Events.Len()) {
		row := e.events.own(no)
		moveEntry(anEvent, &row.Identity, row.Group)
	}
	for no := range int32(c.Markets.Len()) {
		m := e.markets.own(no)
		if !m.BookOnly {
			move(&m.record, head{kind: aMarket, no: no, link: m.EventNo, group: m.Group})
		}
		if m.HasBook {
			move(&m.book, head{kind: aBook, no: no, link: m.EventNo, group: m.Group})
		}
		if len(problems) > 0 && errors.Join(problems...) != nil {
			break
		}
	}
	next := clone(c)
	next.Markets, next.Events, next.log = e.markets.Rows, e.events.Rows, to
	next.Series, next.Tags = e.series.Rows, e.tags.Rows
	return next, errors.Join(problems...)
}

package catalog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// maxRecord bounds one record (a line, or an element of the array), in bytes.
const maxRecord = 16 << 20

// recordError is the error of one record: the splitter goes on behind it.
type recordError string

func (e recordError) Error() string { return string(e) }

const (
	errCut       recordError = "the file ends inside the record"
	errNotObject recordError = "not a JSON object"
	errGarbage   recordError = "text after the end of the array"
)

var errTooLong = recordError(fmt.Sprintf("longer than %d bytes", maxRecord))

// ofRecord reports whether an error concerns one record only.
func ofRecord(err error) bool { return errors.As(err, new(recordError)) }

// splitter cuts a stream into records. It holds one of them at a time.
type splitter struct {
	in    *bufio.Reader
	array bool
	done  bool // the array was closed
	line  int  // the line being read, from 1
	buf   []byte
}

// newSplitter unpacks a gzip stream, tells which of the two forms the text has, and stops before
// the first record.
func newSplitter(r io.Reader) (*splitter, error) {
	in := bufio.NewReaderSize(r, 256<<10)
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("open gzip: %w", err)
		}
		in = bufio.NewReaderSize(unpacked, 256<<10)
	}
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	s := &splitter{in: in, line: 1}
	c, err := s.blank()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the file is empty")
	case err != nil:
		return nil, err
	case c == '[':
		s.array = true
		_, _ = in.Discard(1)
	case c != '{':
		return nil, errors.New("neither a JSON array nor JSON lines")
	}
	return s, nil
}

// next returns the next record, good until the next call, and the line where it begins. A
// recordError concerns this record only; io.EOF is the end; any other error is final.
func (s *splitter) next() ([]byte, int, error) {
	if s.array {
		return s.element()
	}
	return s.row()
}

// row returns the next line that is not blank.
func (s *splitter) row() ([]byte, int, error) {
	for {
		at := s.line
		s.buf = s.buf[:0]
		long := false
		for {
			part, err := s.in.ReadSlice('\n')
			if long = long || len(s.buf)+len(part) > maxRecord; !long {
				s.buf = append(s.buf, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && (!errors.Is(err, io.EOF) || len(s.buf) == 0 && !long) {
				return nil, at, err
			}
			break
		}
		s.line++
		if long {
			return nil, at, errTooLong
		}
		if record := bytes.TrimSpace(s.buf); len(record) > 0 {
			return record, at, nil
		}
	}
}

// element returns the next object of the array.
func (s *splitter) element() ([]byte, int, error) {
	for {
		c, err := s.blank()
		if err != nil {
			if errors.Is(err, io.EOF) && !s.done {
				s.done = true
				return nil, s.line, errCut
			}
			return nil, s.line, err
		}
		at := s.line
		switch {
		case s.done:
			// One error is enough for all text behind the array.
			if _, err := io.Copy(io.Discard, s.in); err != nil {
				return nil, at, err
			}
			return nil, at, errGarbage
		case c == '{':
			record, err := s.object()
			return record, at, err
		case c == ',' || c == ']':
			s.done = c == ']'
			_, _ = s.in.Discard(1)
		default:
			return nil, at, s.scalar()
		}
	}
}

// blank skips white space and returns the byte behind it, which stays in the stream.
func (s *splitter) blank() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		default:
			return c, s.in.UnreadByte()
		}
	}
}

// object collects the bytes of the object that begins here.
func (s *splitter) object() ([]byte, error) {
	s.buf = s.buf[:0]
	var w walk
	long := false
	for {
		if _, err := s.in.Peek(1); err != nil {
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			s.done = true
			return nil, errCut
		}
		chunk, _ := s.in.Peek(s.in.Buffered())
		n := w.over(chunk)
		s.line += bytes.Count(chunk[:n], []byte{'\n'})
		if long = long || len(s.buf)+n > maxRecord; !long {
			s.buf = append(s.buf, chunk[:n]...)
		}
		_, _ = s.in.Discard(n)
		if w.depth > 0 {
			continue
		}
		if long {
			return nil, errTooLong
		}
		return s.buf, nil
	}
}

// scalar skips an element that is no object, up to the next comma or bracket.
func (s *splitter) scalar() error {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			s.done = true
			return errCut
		}
		switch c {
		case '\n':
			s.line++
		case ',', ']', '{':
			_ = s.in.UnreadByte()
			return errNotObject
		}
	}
}

// walk is the state of a scan through JSON text: the number of open brackets, and whether the scan
// is inside a string.
type walk struct {
	depth   int
	quoted  bool
	escaped bool
}

// over goes through text and stops behind the bracket that closes the outermost one, or at the end.
func (w *walk) over(text []byte) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case w.escaped:
			w.escaped = false
		case w.quoted:
			w.escaped, w.quoted = c == '\\', c != '"'
		case c == '"':
			w.quoted = true
		case c == '{' || c == '[':
			w.depth++
		case c == '}' || c == ']':
			if w.depth--; w.depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

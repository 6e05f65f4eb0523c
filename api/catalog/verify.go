package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Checked tells what Verify has read.
type Checked struct {
	Records int
	Bytes   int64 // up to the end of the last good frame
	// Cuts are the ends that Open put aside and that lie there still.
	Cuts []Cut
}

// Verify reads the catalog in a folder from the first byte to the last, and changes nothing. A
// folder that is not there, or has no catalog, is good. The error says where the log is damaged, or
// where it ends in the middle of a frame.
func Verify(dir string) (v Checked, err error) {
	aside, err := cuts(dir)
	if err != nil {
		return v, fmt.Errorf("verify catalog: %w", err)
	}
	defer func() { v.Cuts = aside }()
	file, err := newestLog(dir)
	if err != nil || file == nil {
		return v, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	about, err := file.Stat()
	if err != nil {
		return v, fmt.Errorf("verify catalog: %w", err)
	}
	if about.Size() == 0 {
		return v, nil // made, and not written yet
	}
	if v, err = scanLog(file); err == nil && v.Bytes != about.Size() {
		err = errFrame
	}
	if err != nil {
		return v, fmt.Errorf("verify %s: at byte %d of %d, after %d records: %w", file.Name(), v.Bytes,
			about.Size(), v.Records, err)
	}
	return v, nil
}

// Scrub reads the catalog in a folder while it may be open and grow, and tells note how much. The
// error says where the log is damaged; one of note ends the reading.
func Scrub(dir string, note func(bytes int) error) error {
	file, err := newestLog(dir)
	if err != nil || file == nil {
		return err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil || about.Size() == 0 {
		return err
	}
	v, bad := scanLog(noted{io.NewSectionReader(file, 0, about.Size()), note})
	if bad == nil && v.Bytes < about.Size() {
		rest, err := io.ReadAll(io.NewSectionReader(file, v.Bytes, about.Size()-v.Bytes))
		if err != nil {
			return err
		}
		if !judgeCut(rest).Torn { // else somebody is writing
			bad = errFrame
		}
	}
	if bad != nil {
		return fmt.Errorf("catalog %s: at byte %d of %d, after %d records: %w", file.Name(), v.Bytes,
			about.Size(), v.Records, bad)
	}
	return nil
}

// noted is a reader that tells how much was read.
type noted struct {
	io.Reader
	note func(bytes int) error
}

// Read reads, and returns the error of note.
func (r noted) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if told := r.note(n); told != nil {
		return n, told
	}
	return n, err
}

// newestLog opens the log that Open would read; nil without one.
func newestLog(dir string) (*os.File, error) {
	for {
		found, err := generations(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		file, err := os.Open(logName(dir, found[0]))
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
		// It was written anew meanwhile.
	}
}

// scanLog reads the frames of a log up to the first one that is not good.
func scanLog(r io.Reader) (v Checked, err error) {
	frames, ok := readFrames(r)
	if !ok {
		return v, errors.New("it does not begin as a catalog does")
	}
	v.Bytes = int64(len(logTitle))
	for {
		frame, _, err := frames.next()
		if err != nil {
			return v, nil // the end
		}
		if _, err := readHead(frame); err != nil {
			return v, err
		}
		v.Records++
		v.Bytes += int64(len(frame))
	}
}

// Copied tells what CopyFolder has written.
type Copied struct {
	Bytes int64 // 0: there is no catalog
	// Missing is the damaged end that was left out; of no bytes if there was none.
	Missing Cut
}

// CopyFolder copies the catalog of a folder into another one, durably, while it may be open and
// grow. The copy ends with a whole frame, before any damage.
func CopyFolder(from, to string) (c Copied, err error) {
	file, err := newestLog(from)
	if err != nil || file == nil {
		return c, err
	}
	if err := c.copy(file, to); err != nil {
		return c, errors.Join(fmt.Errorf("copy catalog: %w", err), file.Close())
	}
	return c, file.Close()
}

func (c *Copied) copy(file *os.File, to string) error {
	about, err := file.Stat()
	if err != nil {
		return err
	}
	v, bad := scanLog(io.NewSectionReader(file, 0, about.Size()))
	if bad != nil || v.Bytes < about.Size() {
		rest, err := io.ReadAll(io.NewSectionReader(file, v.Bytes, about.Size()-v.Bytes))
		if err != nil {
			return err
		}
		if missing := judgeCut(rest); !missing.Torn { // else somebody is writing
			missing.File = file.Name()
			c.Missing = missing
		}
	}
	if v.Bytes == 0 {
		return nil
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(logName(to, 0), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(file, 0, v.Bytes))
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = syncDir(to)
	}
	if err == nil {
		c.Bytes = v.Bytes
	}
	return err
}

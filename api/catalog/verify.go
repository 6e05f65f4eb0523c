package catalog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Checked is what Verify has read.
type Checked struct {
	Records int
	Bytes   int64 // up to the end of the last good frame
	// Cuts are what was put aside when the catalog was opened, and lies there still.
	Cuts []Cut
}

// Verify reads the catalog that is kept in a folder, from its first byte to its last, and changes
// nothing. A folder that is not there, or has no catalog, has nothing wrong with it. The error says
// where the log is damaged, or where it ends in the middle of a frame.
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

// newestLog opens the log that Open would read; nil if there is none.
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
	in := bufio.NewReaderSize(r, logBuffer)
	title := make([]byte, len(logTitle))
	if _, err := io.ReadFull(in, title); err != nil || string(title) != logTitle {
		return v, errors.New("it does not begin as a catalog does")
	}
	v.Bytes = int64(len(logTitle))
	frames := &frameReader{in: in}
	for {
		frame, _, err := frames.next()
		if errors.Is(err, io.EOF) {
			return v, nil
		} else if err != nil {
			return v, err
		}
		if _, err := readHead(frame); err != nil {
			return v, err
		}
		v.Records++
		v.Bytes += int64(len(frame))
	}
}

// Copied is what CopyFolder has written.
type Copied struct {
	Bytes int64 // 0: there is no catalog
	// Missing is what was left out because it does not check out; of no bytes if nothing was.
	Missing Cut
}

// CopyFolder copies the catalog that is kept in a folder into another one, durably, while it may be
// open and grow: the copy ends with a whole frame, before what is damaged.
func CopyFolder(from, to string) (c Copied, err error) {
	file, err := newestLog(from)
	if err != nil || file == nil {
		return c, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	about, err := file.Stat()
	if err != nil {
		return c, fmt.Errorf("copy catalog: %w", err)
	}
	v, bad := scanLog(io.NewSectionReader(file, 0, about.Size()))
	if bad != nil || v.Bytes < about.Size() {
		rest, err := io.ReadAll(io.NewSectionReader(file, v.Bytes, about.Size()-v.Bytes))
		if err != nil {
			return c, fmt.Errorf("copy catalog: %w", err)
		}
		if missing := judgeCut(rest); !missing.Torn { // else somebody is writing
			missing.File = file.Name()
			c.Missing = missing
		}
	}
	if v.Bytes == 0 {
		return c, nil
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return c, fmt.Errorf("copy catalog: %w", err)
	}
	out, err := os.OpenFile(logName(to, 0), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return c, fmt.Errorf("copy catalog: %w", err)
	}
	_, err = io.Copy(out, io.NewSectionReader(file, 0, v.Bytes))
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = syncDir(to)
	}
	if err != nil {
		return c, fmt.Errorf("copy catalog: %w", err)
	}
	c.Bytes = v.Bytes
	return c, nil
}

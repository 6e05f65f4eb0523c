package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"clobd/engine"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// entryRow is what the database says of an entry.
type entryRow struct{ term, frame uint64 }

func entryKey(space byte, index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{space}, index)
}

// setEntry writes an entry whose frame has that number, 0 if it is none.
func setEntry(batch *pebble.Batch, e *Entry, frame uint64) error {
	err := setRow(batch, e.EntryID, frame)
	switch {
	case frame > 0:
		key := frameKey(frame)
		return errors.Join(err, batch.Set(key[:], e.Data, nil))
	case e.Kind != 0:
		words := append([]byte{e.Kind}, e.Data...)
		return errors.Join(err, batch.Set(entryKey(spaceWords, e.Index), words, nil))
	}
	return err
}

func setRow(batch *pebble.Batch, e EntryID, frame uint64) error {
	row := binary.BigEndian.AppendUint64(make([]byte, 0, rowSize), e.Term)
	row = binary.BigEndian.AppendUint64(row, frame)
	return batch.Set(entryKey(spaceEntry, e.Index), row, nil)
}

func (a *Agreed) setBallot(batch *pebble.Batch, b Ballot) error {
	v := make([]byte, 0, 24)
	for _, n := range []uint64{b.Term, b.Vote, b.Commit} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	return batch.Set(metaKey(metaBallot), v, nil)
}

// row reads the row of an entry behind Base.
func (a *Agreed) row(index uint64) (entryRow, error) {
	b, found, err := disk.Get(a.j.db, entryKey(spaceEntry, index), nil)
	if err == nil && (!found || len(b) != rowSize) {
		err = &Break{Key: fmt.Sprintf("%c/%016x", spaceEntry, index), Path: a.j.Path,
			What: fmt.Sprintf("the row of entry %d is missing or malformed", index)}
	}
	if err != nil {
		return entryRow{}, err
	}
	return entryRow{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// Term is the term of an entry up to the last one.
func (a *Agreed) Term(index uint64) (uint64, error) {
	if !a.j.gate.Enter() {
		return 0, ErrClosed
	}
	defer a.j.gate.Leave()
	return a.term(index)
}

func (a *Agreed) term(index uint64) (uint64, error) {
	if index > a.Base {
		r, err := a.row(index)
		return r.term, err
	}
	if index == 0 {
		return 0, nil
	}
	b, err := a.j.frameBytes(index)
	if err != nil {
		return 0, err
	}
	var f engine.Frame
	if err := engine.DecodeUnhashed(b, &f); err != nil {
		broken := unreadable(index, err)
		broken.Path = a.j.Path
		return 0, broken
	}
	return f.Epoch, nil
}

// Entries reads the entries from low on and before high, at least one, and stops early before the
// Data exceed the given bytes. They must have been written.
func (a *Agreed) Entries(low, high, bytes uint64) (entries []Entry, err error) {
	if !a.j.gate.Enter() {
		return nil, ErrClosed
	}
	defer a.j.gate.Leave()
	size := uint64(0)
	for i := low; i < high; i++ {
		e, err := a.entry(i)
		if err != nil {
			return nil, fmt.Errorf("read entry %d: %w", i, err)
		}
		if size += uint64(len(e.Data)); len(entries) > 0 && size > bytes {
			break
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// entry reads one entry.
func (a *Agreed) entry(index uint64) (e Entry, err error) {
	e.Index = index
	if index <= a.Base {
		if e.Term, err = a.term(index); err == nil {
			e.Data, err = a.j.frameBytes(index)
		}
		return e, err
	}
	r, err := a.row(index)
	if e.Term = r.term; err != nil {
		return e, err
	}
	if r.frame > 0 {
		e.Data, err = a.j.frameBytes(r.frame)
		return e, err
	}
	words, found, err := disk.Get(a.j.db, entryKey(spaceWords, index), nil)
	if err == nil && found && len(words) > 0 {
		e.Kind, e.Data = words[0], words[1:]
	}
	return e, err
}

// Words reads all entries up to entry index that are neither frames nor empty, in order.
func (a *Agreed) Words(index uint64) (entries []Entry, err error) {
	if !a.j.gate.Enter() {
		return nil, ErrClosed
	}
	defer a.j.gate.Leave()
	it, err := a.j.db.NewIter(&pebble.IterOptions{LowerBound: entryKey(spaceWords, 0),
		UpperBound: entryKey(spaceWords, index+1)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		e, err := a.entry(binary.BigEndian.Uint64(it.Key()[1:]))
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, it.Error()
}

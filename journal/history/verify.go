package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// hintIndex is the advice for an index that differs from what the journal makes.
const hintIndex = "nothing is lost: clobd recover --index makes it anew"

// VerifyOptions say how Verify works.
type VerifyOptions struct {
	// Index are the options with which the index was made; Dir and FS say where it is.
	Index Options
	// Scratch is a folder on the same filesystem for a second index, made from the journal. It
	// needs as much room as the first one. Verify does not remove what it leaves there.
	Scratch string
	// Last is the number of the journal's last good frame.
	Last uint64
	// Progress, if not nil, gets now and then how many of all frames are done.
	Progress func(done, total uint64)
}

// Verdict is the result of Verify.
type Verdict struct {
	Sequence engine.Sequence // up to which the index was compared
	Rows     uint64          // equal rows of all kinds
	Findings []journal.Finding
	Notes    []string
}

// Verify compares the index with a second one that it makes from the journal up to the same frame:
// row by row, however the frames came in batches. It writes only to Scratch. The error is about the
// machine (the lock, space, Scratch), or that of ctx.
func Verify(ctx context.Context, j *journal.Journal, o VerifyOptions) (*Verdict, error) {
	v := &Verdict{}
	if err := o.Index.validate(j); err != nil {
		return v, err
	}
	x := &Index{Path: filepath.Join(o.Index.Dir, "index"), j: j, options: o.Index,
		gauges: newGauges()}
	x.options.readOnly, x.options.Log = true, slog.New(slog.DiscardHandler)
	err := x.openPebble()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.Notes = append(v.Notes, "there is no index: the next start makes one from the journal")
		return v, nil
	case err != nil && disk.Unreadable(err):
		v.addFinding(x.Path, err)
		return v, nil
	case err != nil:
		return v, err
	}
	err = v.verify(ctx, x, &o)
	x.guard.Retire()
	return v, errors.Join(err, x.guard.Close(x.db))
}

func (v *Verdict) addFinding(where string, err error) {
	v.Findings = append(v.Findings, journal.Finding{Where: where, What: disk.Plain(err, ""),
		Hint: hintIndex})
}

func (v *Verdict) verify(ctx context.Context, x *Index, o *VerifyOptions) error {
	at, why, err := x.judge()
	if err == nil && why == "" {
		why, err = x.compare(&at)
	}
	switch {
	case err != nil && !disk.Unreadable(err):
		return err
	case err != nil:
		v.addFinding(x.Path, err)
		return nil
	case why != "":
		v.addFinding(x.Path, errors.New(why))
		return nil
	case at.frame > o.Last:
		v.Notes = append(v.Notes, fmt.Sprintf("the index goes up to frame %d, the journal is good up "+
			"to %d: it was not compared", at.frame, o.Last))
		return nil
	}
	v.Sequence = at.sequence
	fresh := x.options
	fresh.Dir, fresh.readOnly = o.Scratch, false
	y, err := Open(x.j, fresh)
	if err != nil {
		return fmt.Errorf("make another index: %w", err)
	}
	y.fold.pace = 1
	err = y.build(ctx, at.frame, o.Progress)
	if err == nil {
		y.fold.recent.keep = 0 // all of the lists, so that they can be compared
		err = y.fold.commit()
	}
	if err == nil {
		v.compare(x, y, &at)
	}
	return errors.Join(err, y.Close())
}

// build folds the frames up to number last. The caller does not call Run.
func (x *Index) build(ctx context.Context, last uint64, progress func(done, total uint64)) error {
	for x.fold.at.frame < last {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := x.waitForDisk(); err != nil {
			return err
		}
		for most := x.batchSize(); x.fold.at.frame < last && x.fold.commands < most; {
			b, ready, err := x.tail.Poll()
			if err == nil && !ready {
				err = fmt.Errorf("frame %d is not there", x.fold.at.frame+1)
			}
			if err == nil {
				err = x.fold.apply(b)
			}
			if err != nil {
				return err
			}
		}
		if err := x.fold.commit(); err != nil {
			return err
		}
		x.History.publish(x.fold.at.sequence)
		x.flush()
		if progress != nil {
			progress(x.fold.at.frame, last)
		}
	}
	return nil
}

// Rebuild deletes the index of j and makes it anew from all frames. It calls progress, if not nil,
// now and then with how many of all frames are done. It returns the last Sequence of the index,
// which is durable if err is nil. The node must not run.
func Rebuild(ctx context.Context, j *journal.Journal, o Options,
	progress func(done, total uint64)) (engine.Sequence, error) {
	if err := o.validate(j); err != nil {
		return 0, err
	}
	path := filepath.Join(o.Dir, "index")
	if lock, err := disk.LockFolder(o.FS, path, false); err == nil {
		if err := lock.Close(); err != nil {
			return 0, fmt.Errorf("delete index %s: %w", path, err)
		}
	} else if _, no := o.FS.Stat(path); no == nil {
		return 0, err
	}
	if err := o.FS.RemoveAll(path); err != nil {
		return 0, fmt.Errorf("delete index %s: %w", path, err)
	}
	x, err := Open(j, o)
	if err != nil {
		return 0, err
	}
	if err = x.build(ctx, j.Last(), progress); err == nil {
		err = x.guard.Flush(ctx, x.db)
		if torn := x.torn.Load(); torn != nil {
			err = *torn
		}
	}
	at := x.fold.at.sequence
	if err != nil {
		x.guard.Abandon() // do not try again what could not be written
		err = fmt.Errorf("make index %s anew: it came to Sequence %d in memory: %w", x.Path, at, err)
	}
	return at, errors.Join(err, x.Close())
}

// Covers reports whether the index of j goes up to a frame, fits the journal, and can be read as a
// whole.
func Covers(ctx context.Context, j *journal.Journal, frame uint64) bool {
	o := Options{readOnly: true}
	if o.validate(j) != nil {
		return false
	}
	x := &Index{Path: filepath.Join(o.Dir, "index"), j: j, options: o, gauges: newGauges()}
	if x.openPebble() != nil {
		return false
	}
	at, why, err := x.judge()
	if err == nil && why == "" {
		why, err = x.compare(&at)
	}
	if err == nil && why == "" && at.frame >= frame {
		err = readable(ctx, x.db)
	}
	x.guard.Retire()
	return errors.Join(err, x.guard.Close(x.db)) == nil && why == "" && at.frame >= frame
}

func readable(ctx context.Context, db *pebble.DB) (err error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if _, err := it.ValueAndErr(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return it.Error()
}

// rowStream returns rows in key order; ok is false at the end. A row is valid until the next call.
type rowStream func() (key, value []byte, ok bool, err error)

// compare compares all rows of two indexes. The lists of x may end early; the entries after that
// follow from its trades, which have a comparison of their own.
func (v *Verdict) compare(x, y *Index, at *reached) {
	mine, fresh := y.fold.at, *at
	if mine.listed = fresh.listed; mine != fresh {
		v.addFinding(x.Path, fmt.Errorf("it says that it holds %+v, made anew it holds %+v", fresh, mine))
	}
	for _, space := range []struct {
		letter byte
		name   string
	}{{spaceOrder, "orders"}, {spaceTrades, "trades of orders"}, {spaceRules, "rules"},
		{spaceBuilder, "builders"}, {spacePurse, "collateral"}, {spaceLink, "links"},
		{spacePosition, "positions"}, {spaceHolder, "holders"}, {spaceMove, "moves"},
		{spaceMarket, "markets"}, {spacePoint, "prices"},
		{spaceVolume, "volumes"}} {
		v.rows(space.name, x, y, func(db *pebble.DB) (rowStream, func() error, error) {
			return rawRows(db, space.letter)
		})
	}
	v.rows("trades", x, y, dealRows)
	v.rows("lists of trades", x, y, func(db *pebble.DB) (rowStream, func() error, error) {
		return listRows(db, at.listed)
	})
	v.rows("resting orders", x, y, restingRows)
	v.marks(x, y)
	v.unknown(x)
}

// streams opens the rows of one kind in two indexes.
type streams struct {
	name string // of the kind, in Findings
	x, y *Index
	open func(*pebble.DB) (rowStream, func() error, error)
}

// both hands both streams to compare. An error becomes a Finding.
func (v *Verdict) both(s streams, compare func(a, b rowStream) error) {
	a, closeA, err := s.open(s.x.db)
	if err != nil {
		v.addFinding(s.x.Path, fmt.Errorf("%s: %w", s.name, err))
		return
	}
	b, closeB, err := s.open(s.y.db)
	if err != nil {
		v.addFinding(s.y.Path, errors.Join(fmt.Errorf("%s: %w", s.name, err), closeA()))
		return
	}
	if err = errors.Join(compare(a, b), closeA(), closeB()); err != nil {
		v.addFinding(s.x.Path, fmt.Errorf("%s: %w", s.name, err))
	}
}

// rows compares two streams. A Finding says how many rows differ, and which is the first one.
func (v *Verdict) rows(name string, x, y *Index,
	open func(*pebble.DB) (rowStream, func() error, error)) {
	differ, first := uint64(0), ""
	v.both(streams{name, x, y, open}, func(a, b rowStream) (err error) {
		differ, first, err = v.merge(a, b)
		return err
	})
	if differ > 0 {
		v.addFinding(x.Path, fmt.Errorf("%s: %d rows are not what the journal makes, the first one: %s",
			name, differ, first))
	}
}

// merge walks two streams side by side, and returns how many rows differ and the first of them.
func (v *Verdict) merge(a, b rowStream) (differ uint64, first string, err error) {
	wrong := func(format string, key []byte) {
		if differ++; differ == 1 {
			first = fmt.Sprintf(format, key)
		}
	}
	keyA, valueA, okA, err := a()
	if err != nil {
		return differ, first, err
	}
	keyB, valueB, okB, err := b()
	for err == nil && (okA || okB) {
		order := bytes.Compare(keyA, keyB)
		if !okA {
			order = 1
		} else if !okB {
			order = -1
		}
		switch {
		case order < 0:
			wrong("%x should not be there", keyA)
		case order > 0:
			wrong("%x is missing", keyB)
		case !bytes.Equal(valueA, valueB):
			wrong("%x says something else", keyA)
		default:
			v.Rows++
		}
		if order <= 0 {
			keyA, valueA, okA, err = a()
		}
		if order >= 0 && err == nil {
			keyB, valueB, okB, err = b()
		}
	}
	return differ, first, err
}

func rawRows(db *pebble.DB, space byte) (rowStream, func() error, error) {
	it, err := iterate(db, space)
	if err != nil {
		return nil, nil, err
	}
	next := it.First
	return func() ([]byte, []byte, bool, error) {
		ok := next()
		if next = it.Next; !ok {
			return nil, nil, false, it.Error()
		}
		value, err := it.ValueAndErr()
		return it.Key(), value, true, err
	}, it.Close, nil
}

// dealRows returns trades, however they lie in chunks: the number, and the rest of the record.
func dealRows(db *pebble.DB) (rowStream, func() error, error) {
	raw, end, err := rawRows(db, spaceDeals)
	if err != nil {
		return nil, nil, err
	}
	var chunk, key []byte
	var from engine.Sequence
	c := varints{}
	return func() ([]byte, []byte, bool, error) {
		if len(c.rest) == 0 {
			at, value, ok, err := raw()
			if !ok || err != nil {
				return nil, nil, false, err
			}
			no, known := numberOf(at)
			if !known || len(value) == 0 {
				return nil, nil, false, errRow
			}
			chunk, from = append(chunk[:0], value...), refOf(no).seq
			c = varints{rest: chunk}
		}
		record, ok := c.record()
		t := tradeRef{from + engine.Sequence(record.uvarint()), uint32(record.uvarint())}
		if !ok || record.bad {
			return nil, nil, false, errRow
		}
		key = binary.BigEndian.AppendUint64(key[:0], t.number())
		return key, record.rest, true, nil
	}, end, nil
}

// listRows returns the entries of all lists up to the trade number last: list and number, and the
// bits of the tokens.
func listRows(db *pebble.DB, last uint64) (rowStream, func() error, error) {
	raw, end, err := rawRows(db, spaceLists)
	if err != nil {
		return nil, nil, err
	}
	var run, key, value []byte
	var list [8]byte
	var seq engine.Sequence
	c := varints{}
	return func() ([]byte, []byte, bool, error) {
		for {
			if len(c.rest) == 0 {
				at, some, ok, err := raw()
				if !ok || err != nil {
					return nil, nil, false, err
				}
				if len(at) != listKeyLen || len(some) == 0 {
					return nil, nil, false, errRow
				}
				copy(list[:], at[1:])
				run, seq = append(run[:0], some...), refOf(binary.BigEndian.Uint64(at[9:])).seq
				c = varints{rest: run}
			}
			v := c.uvarint()
			seq += engine.Sequence(v >> entryBits)
			number := tradeRef{seq, uint32(c.uvarint())}.number()
			if c.bad {
				return nil, nil, false, errRow
			}
			if number > last {
				continue
			}
			key = binary.BigEndian.AppendUint64(append(key[:0], list[:]...), number)
			value = append(value[:0], byte(v&entryTokens))
			return key, value, true, nil
		}
	}, end, nil
}

// restingRows returns resting orders: owner and Sequence, and the rest.
func restingRows(db *pebble.DB) (rowStream, func() error, error) {
	r := newResting()
	if err := r.load(db); err != nil {
		return nil, nil, err
	}
	owners := make([]engine.WalletNo, 0, len(r.owners))
	for owner := range r.owners {
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	var key, value []byte
	at := 0
	return func() ([]byte, []byte, bool, error) {
		for len(owners) > 0 {
			q := r.owners[owners[0]]
			if at == len(q.orders) {
				owners, at = owners[1:], 0
				continue
			}
			o := &q.orders[at]
			if at++; o.market == 0 {
				continue
			}
			key = binary.BigEndian.AppendUint32(key[:0], uint32(owners[0]))
			key = binary.BigEndian.AppendUint64(key, uint64(o.seq))
			value = appendAddition(value[:0], owners[0], o)
			return key, value, true, nil
		}
		return nil, nil, false, nil
	}, func() error { return nil }, nil
}

// marks compares the marks of time. The fresh index y has a mark for every time, x has some of
// them, at least markEvery apart.
func (v *Verdict) marks(x, y *Index) {
	differ, marked := 0, engine.Time(0)
	open := func(db *pebble.DB) (rowStream, func() error, error) { return rawRows(db, spaceMarks) }
	v.both(streams{"marks of time", x, y, open}, func(a, b rowStream) error {
		key, value, ok, err := a()
		for err == nil {
			var time, first []byte
			var more bool
			if time, first, more, err = b(); err != nil || !more {
				break
			}
			no, _ := numberOf(time)
			now := engine.Time(no)
			switch order := bytes.Compare(key, time); {
			case ok && order < 0:
				differ++ // no frame has this time
				key, value, ok, err = a()
			case ok && order == 0:
				if !bytes.Equal(value, first) {
					differ++
				}
				v.Rows++
				marked = now
				key, value, ok, err = a()
			case now >= marked+markEvery:
				differ, marked = differ+1, now
			}
		}
		if ok {
			differ++
		}
		return err
	})
	if differ > 0 {
		v.addFinding(x.Path, fmt.Errorf("marks of time: %d are not what the journal makes", differ))
	}
}

// unknown looks for keys outside all key spaces.
func (v *Verdict) unknown(x *Index) {
	known := []byte{spaceState, spaceOrder, spaceTrades, spaceDeals, spaceLists, spaceResting,
		spaceMarks, spaceRules, spaceBuilder, spacePurse, spaceLink, spacePosition, spaceHolder,
		spaceMove, spaceMarket, spacePoint, spaceVolume}
	it, err := x.db.NewIter(nil)
	if err != nil {
		v.addFinding(x.Path, err)
		return
	}
	for ok := it.First(); ok; {
		if key := it.Key(); len(key) == 0 || !bytes.Contains(known, key[:1]) {
			v.addFinding(x.Path, fmt.Errorf("key %x is of no kind", key))
			break
		} else if key[0] == 0xff {
			break
		} else {
			ok = it.SeekGE([]byte{key[0] + 1})
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		v.addFinding(x.Path, err)
	}
}

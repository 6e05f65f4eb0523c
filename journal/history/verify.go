package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"clobd/engine"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// hintIndex is the advice for an index that differs from what the journal makes.
const hintIndex = "nothing is lost: clobd recover --index makes it anew"

// VerifyOptions say how Verify works.
type VerifyOptions struct {
	Index Options // the options with which the index was made; Dir and FS say where it is
	// Scratch is a folder on the same filesystem for a second index of the same size. The caller
	// removes it.
	Scratch string
	Last    uint64 // the number of the journal's last good frame
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

// Verify compares the index row by row with a second one, which it makes in Scratch from the
// journal up to the same frame. The error is about the machine (the lock, space, Scratch), or that
// of ctx.
func Verify(ctx context.Context, j *journal.Journal, o VerifyOptions) (*Verdict, error) {
	v := &Verdict{}
	if err := o.Index.validate(j); err != nil {
		return v, err
	}
	x := newIndex(j, o.Index)
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

// Rebuild deletes the index of j and makes it anew from all frames. progress, if not nil, gets now
// and then how many of all frames are done. Rebuild returns the last Sequence of the index, which
// is durable if err is nil. The node must not run.
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
	x := newIndex(j, o)
	if x.openPebble() != nil {
		return false
	}
	at, why, err := x.judge()
	if err == nil && why == "" {
		why, err = x.compare(&at)
	}
	if err == nil && why == "" && at.frame >= frame {
		err = each(x.db, nil, nil, func(_, _ []byte) (bool, error) { return true, ctx.Err() })
	}
	x.guard.Retire()
	return errors.Join(err, x.guard.Close(x.db)) == nil && why == "" && at.frame >= frame
}

// Witness tells how far the index of a data folder saw the journal go. It returns false if there is
// no index that can be read: that is no damage, for the index is made anew.
func Witness(on vfs.FS, data string) (journal.Witness, bool) {
	w := journal.Witness{By: "the index", Path: filepath.Join(data, "index")}
	o := Options{Dir: data, FS: disk.Filesystem(on), readOnly: true, MemTable: 1 << 20}
	x := &Index{Path: w.Path, options: o}
	if _, err := o.FS.Stat(w.Path); err != nil {
		return w, false
	}
	x.guard = disk.NewGuard(disk.GuardOptions{Name: "index", Path: w.Path, Words: io.Discard,
		Log: slog.New(slog.DiscardHandler), Exit: func(int) {}, Fatal: func(error) {}})
	var err error
	if x.db, err = x.guard.Open(o.pebbleOptions()); err != nil {
		return w, false
	}
	at, why, err := x.place()
	x.guard.Retire()
	if errors.Join(err, x.guard.Close(x.db)) != nil || why != "" {
		return w, false
	}
	w.Mark = journal.Mark{Journal: at.journal, Frame: at.frame, Sequence: at.sequence, Hash: at.hash}
	return w, true
}

// rowSource yields the rows of one kind in key order. A row is valid until yield returns.
type rowSource func(db *pebble.DB, yield func(key, value []byte) bool) error

// rowStream returns rows in key order; ok is false at the end. A row is valid until the next call.
type rowStream func() (key, value []byte, ok bool, err error)

func (s rowSource) pull(db *pebble.DB) (next rowStream, stop func()) {
	var failed error
	row, stop := iter.Pull2(func(yield func(key, value []byte) bool) { failed = s(db, yield) })
	return func() ([]byte, []byte, bool, error) {
		key, value, ok := row()
		if ok {
			return key, value, true, nil
		}
		return nil, nil, false, failed
	}, stop
}

type comparison struct {
	*Verdict
	x, y *Index
}

// compare compares all rows of two indexes. The lists of x may end early; the entries after that
// follow from its trades, which have a comparison of their own.
func (v *Verdict) compare(x, y *Index, at *reached) {
	c := comparison{v, x, y}
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
		{spaceRequest, "requests"}, {spaceTouch, "frames of owners"}, {spaceNotice, "notices"}, {spaceMarket, "markets"},
		{spacePoint, "prices"}, {spaceVolume, "volumes"}} {
		c.rows(space.name, rawRows(space.letter))
	}
	c.rows("trades", dealRows)
	c.rows("lists of trades", listRows(at.listed))
	c.rows("resting orders", restingRows)
	c.marks()
	v.unknown(x)
}

func (c *comparison) both(name string, of rowSource, compare func(a, b rowStream) error) {
	a, stopA := of.pull(c.x.db)
	defer stopA()
	b, stopB := of.pull(c.y.db)
	defer stopB()
	if err := compare(a, b); err != nil {
		c.addFinding(c.x.Path, fmt.Errorf("%s: %w", name, err))
	}
}

func (c *comparison) rows(name string, of rowSource) {
	differ, first := uint64(0), ""
	c.both(name, of, func(a, b rowStream) (err error) {
		differ, first, err = c.merge(a, b)
		return err
	})
	if differ > 0 {
		c.addFinding(c.x.Path, fmt.Errorf("%s: %d rows are not what the journal makes, the first one: %s",
			name, differ, first))
	}
}

func (c *comparison) merge(a, b rowStream) (differ uint64, first string, err error) {
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
			c.Rows++
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

func rawRows(space byte) rowSource {
	return func(db *pebble.DB, yield func(key, value []byte) bool) error {
		return each(db, []byte{space}, []byte{space + 1}, func(key, value []byte) (bool, error) {
			return yield(key, value), nil
		})
	}
}

// dealRows gives trades, however they lie in chunks: the number, and the rest of the record.
func dealRows(db *pebble.DB, yield func(key, value []byte) bool) error {
	var key []byte
	return each(db, []byte{spaceDeals}, []byte{spaceDeals + 1}, func(at, chunk []byte) (bool, error) {
		if len(chunk) == 0 {
			return false, errRow
		}
		return eachRecord(at, chunk, func(t tradeRef, record varints) (bool, error) {
			key = binary.BigEndian.AppendUint64(key[:0], t.number())
			return yield(key, record.rest), nil
		})
	})
}

// listRows gives the entries of all lists up to the trade number last: list and number, and the
// bits of the tokens.
func listRows(last uint64) rowSource {
	return func(db *pebble.DB, yield func(key, value []byte) bool) error {
		var row []byte
		return each(db, []byte{spaceLists}, []byte{spaceLists + 1}, func(at, run []byte) (bool, error) {
			if len(at) != listKeyLen || len(run) == 0 {
				return false, errRow
			}
			seq := refOf(binary.BigEndian.Uint64(at[9:])).seq
			for c := (varints{rest: run}); len(c.rest) > 0; {
				entry := c.entry(&seq)
				if c.bad {
					return false, errRow
				}
				number := entry >> entryBits
				row = binary.BigEndian.AppendUint64(append(row[:0], at[1:9]...), number)
				row = append(row, byte(entry&entryTokens))
				if number <= last && !yield(row[:16], row[16:]) {
					return false, nil
				}
			}
			return true, nil
		})
	}
}

func restingRows(db *pebble.DB, yield func(key, value []byte) bool) error {
	r := newResting()
	if err := r.load(db); err != nil {
		return err
	}
	var key, value []byte
	for _, owner := range slices.Sorted(maps.Keys(r.owners)) {
		for _, o := range r.owners[owner].orders {
			if o.market == 0 {
				continue
			}
			key = binary.BigEndian.AppendUint32(key[:0], uint32(owner))
			key = binary.BigEndian.AppendUint64(key, uint64(o.seq))
			value = appendAddition(value[:0], owner, &o)
			if !yield(key, value) {
				return nil
			}
		}
	}
	return nil
}

// marks compares the marks of time. The fresh index y has a mark for every time, x has some of
// them, at least markEvery apart.
func (c *comparison) marks() {
	differ, marked := 0, engine.Time(0)
	c.both("marks of time", rawRows(spaceMarks), func(a, b rowStream) error {
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
				c.Rows++
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
		c.addFinding(c.x.Path, fmt.Errorf("marks of time: %d are not what the journal makes", differ))
	}
}

func (v *Verdict) unknown(x *Index) {
	known := []byte{spaceState, spaceOrder, spaceTrades, spaceDeals, spaceLists, spaceResting,
		spaceMarks, spaceRules, spaceBuilder, spacePurse, spaceLink, spacePosition, spaceHolder,
		spaceMove, spaceRequest, spaceNotice, spaceTouch, spaceMarket, spacePoint, spaceVolume}
	it, err := x.db.NewIter(nil)
	if err != nil {
		v.addFinding(x.Path, err)
		return
	}
	for ok := it.First(); ok; {
		key := it.Key()
		if len(key) == 0 || !bytes.Contains(known, key[:1]) {
			v.addFinding(x.Path, fmt.Errorf("key %x is of no kind", key))
			break
		}
		ok = it.SeekGE([]byte{key[0] + 1})
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		v.addFinding(x.Path, err)
	}
}

package history

import (
	"bytes"
	"cmp"
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

// hintIndex is what to do with an index that is not what the journal makes.
const hintIndex = "nothing is lost: clobd recover --index makes it anew"

// VerifyIndexOptions says how VerifyIndex works.
type VerifyOptions struct {
	// Index is how the index was made. Dir and FS are where it is.
	Index Options
	// Scratch is a folder on the same filesystem for another index, made from the journal; what it
	// holds is not removed. Its room is that of the first one.
	Scratch string
	// Last is the number of the journal's last good frame.
	Last uint64
	// Progress is told now and then how many frames of how many are done; nil: nobody is.
	Progress func(done, total uint64)
}

// VerifiedIndex is what VerifyIndex found.
type Verdict struct {
	Sequence engine.Sequence // up to which it was compared
	Rows     uint64          // that were compared, of all kinds
	Findings []journal.Finding
	Notes    []string
}

// VerifyIndex compares the index with one that is made anew from the journal as far as the first
// one goes: row by row, whatever batches they were written in. It changes nothing but in Scratch.
// The error is about the machine (the lock, space, Scratch), or that of ctx.
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

// find adds a Finding.
func (v *Verdict) addFinding(where string, err error) {
	v.Findings = append(v.Findings, journal.Finding{Where: where, What: disk.Plain(err, ""),
		Hint: hintIndex})
}

// verify compares an open index.
func (v *Verdict) verify(ctx context.Context, x *Index, o *VerifyOptions) error {
	at, why, err := x.judge()
	if err == nil && why == "" {
		at, why, err = x.compare(at)
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

// build folds the frames up to number last, in the place of Run.
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

// RebuildIndex deletes the index of j and makes it anew from all its frames. It calls progress,
// which may be nil, now and then, and returns how far the index goes, durably if there is no error.
// The node must not run.
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
		x.guard.Abandon() // what it could not write it need not try again
		err = fmt.Errorf("make index %s anew: it came to Sequence %d in memory: %w", x.Path, at, err)
	}
	return at, errors.Join(err, x.Close())
}

// Covers reports whether the index of j goes beyond a frame and fits the journal, and all of it can
// be read.
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
		at, why, err = x.compare(at)
	}
	if err == nil && why == "" && at.frame >= frame {
		err = readable(ctx, x.db)
	}
	x.guard.Retire()
	return errors.Join(err, x.guard.Close(x.db)) == nil && why == "" && at.frame >= frame
}

// readable reads all of a database.
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

// rowStream gives rows in the order of their keys; false at the end. They hold until the next call.
type rowStream func() (key, value []byte, ok bool, err error)

// compare compares all that two indexes hold. Where the lists of the first one end, it has the rest
// from the trades, which are compared for themselves.
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

// rows compares two streams and says how many rows differ, and which is the first one.
func (v *Verdict) rows(name string, x, y *Index,
	open func(*pebble.DB) (rowStream, func() error, error)) {
	a, closeA, err := open(x.db)
	if err != nil {
		v.addFinding(x.Path, fmt.Errorf("%s: %w", name, err))
		return
	}
	b, closeB, err := open(y.db)
	if err != nil {
		v.addFinding(y.Path, errors.Join(fmt.Errorf("%s: %w", name, err), closeA()))
		return
	}
	differ, first, err := v.merge(a, b)
	if err = errors.Join(err, closeA(), closeB()); err != nil {
		v.addFinding(x.Path, fmt.Errorf("%s: %w", name, err))
	}
	if differ > 0 {
		v.addFinding(x.Path, fmt.Errorf("%s: %d rows are not what the journal makes, the first one: %s",
			name, differ, first))
	}
}

// merge walks two streams side by side.
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
		order := cmp.Compare(btoi(okB), btoi(okA)) // what has ended comes last
		if okA && okB {
			order = bytes.Compare(keyA, keyB)
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

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// walk opens a walk over one space of keys.
func walk(db *pebble.DB, space byte) (it *pebble.Iterator, next func() bool, err error) {
	it, err = db.NewIter(&pebble.IterOptions{LowerBound: []byte{space},
		UpperBound: []byte{space + 1}})
	if err != nil {
		return nil, nil, err
	}
	step := it.First
	return it, func() bool {
		ok := step()
		step = it.Next
		return ok
	}, nil
}

// rawRows are keys and values as they are.
func rawRows(db *pebble.DB, space byte) (rowStream, func() error, error) {
	it, next, err := walk(db, space)
	if err != nil {
		return nil, nil, err
	}
	return func() ([]byte, []byte, bool, error) {
		if !next() {
			return nil, nil, false, it.Error()
		}
		value, err := it.ValueAndErr()
		return it.Key(), value, true, err
	}, it.Close, nil
}

// dealRows are the trades, whatever chunks they lie in: number, and all that is stored of it but
// for its number.
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

// listRows are the entries of all lists up to the trade number last: list and number, and the
// tokens that it moved.
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

// restingRows are the orders that rest: owner and Sequence, and the rest of it. They are kept in
// memory while the node runs, too.
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

// marks compares the marks of time. The fresh index has one for each time, the other one some of
// them, as far apart as they may be.
func (v *Verdict) marks(x, y *Index) {
	a, closeA, err := rawRows(x.db, spaceMarks)
	if err != nil {
		v.addFinding(x.Path, fmt.Errorf("marks of time: %w", err))
		return
	}
	b, closeB, err := rawRows(y.db, spaceMarks)
	if err != nil {
		v.addFinding(y.Path, errors.Join(fmt.Errorf("marks of time: %w", err), closeA()))
		return
	}
	differ, marked := 0, engine.Time(0)
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
			differ++ // of a time that no frame has
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
	if err = errors.Join(err, closeA(), closeB()); err != nil {
		v.addFinding(x.Path, fmt.Errorf("marks of time: %w", err))
	}
	if ok {
		differ++
	}
	if differ > 0 {
		v.addFinding(x.Path, fmt.Errorf("marks of time: %d are not what the journal makes", differ))
	}
}

// unknown looks for keys that are in no space of the index.
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

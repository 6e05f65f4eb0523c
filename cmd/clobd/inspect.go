package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strings"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/journal"
)

type inspectCommand struct {
	offline
	From   uint64 `help:"Sequence to begin with."`
	Until  uint64 `help:"Sequence to end with."`
	Order  string `help:"Only what concerns the order with this id, 0x and 64 hex digits."`
	Wallet string `help:"Only what concerns this wallet: its address, or its number."`
	Tx     string `help:"Only the record that made a trade: its transaction hash, 0x and 64 hex digits, or its id."`
	State  bool   `help:"Print what the state is after --until, or at the end, instead of records."`
	Diff   string `help:"Another data folder, or a backup: name the first record in which the two differ. Then the code is 1."`
	JSON   bool   `name:"json" help:"Print one JSON object a line."`
}

func (c *inspectCommand) Run(ctx context.Context) error {
	want, err := c.wanted()
	if err != nil {
		return err
	}
	j, err := c.open(true)
	if err != nil {
		return err
	}
	defer j.Close()
	switch {
	case c.Diff != "":
		return c.diff(j)
	case c.State:
		return c.state(ctx, j)
	}
	return c.records(ctx, j, want)
}

type wanted struct {
	from, until engine.Sequence
	order       engine.OrderID
	wallet      string // a number, or an address in lower case; empty: any
	journal     uint64 // of the trade that is asked for; 0: none is
}

func (c *inspectCommand) wanted() (*wanted, error) {
	w := &wanted{engine.Sequence(c.From), engine.Sequence(c.Until), engine.OrderID{},
		strings.ToLower(c.Wallet), 0}
	if c.Until == 0 {
		w.until = math.MaxInt64
	}
	var problems []error
	if c.From > uint64(w.until) {
		problems = append(problems, errors.New("--from lies behind --until"))
	}
	if c.Order != "" {
		if err := parseID(c.Order, w.order[:]); err != nil {
			problems = append(problems, fmt.Errorf("--order: %w", err))
		}
	}
	if strings.HasPrefix(w.wallet, "0x") {
		if _, ok := auth.ParseAddress(c.Wallet); !ok {
			problems = append(problems, errors.New("--wallet is no address: 0x and 40 hex digits"))
		}
	}
	if c.Tx != "" {
		problems = append(problems, w.trade(c.Tx))
	}
	if c.Diff != "" && (c.State || c.Order != "" || c.Wallet != "" || c.Tx != "") {
		problems = append(problems, errors.New("--diff compares all: give it alone"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return w, nil
}

func parseID(text string, b []byte) error {
	digits, is := strings.CutPrefix(text, "0x")
	raw, err := hex.DecodeString(digits)
	if !is || err != nil || len(raw) != len(b) {
		return fmt.Errorf("%q is not 0x and %d hex digits", text, 2*len(b))
	}
	copy(b, raw)
	return nil
}

func (w *wanted) trade(text string) error {
	var seq engine.Sequence
	known := false
	if strings.HasPrefix(text, "0x") {
		var hash [32]byte
		if err := parseID(text, hash[:]); err != nil {
			return fmt.Errorf("--tx: %w", err)
		}
		w.journal, seq, _, known = engine.ParseTxHash(hash)
	} else {
		var id [16]byte
		if raw, err := hex.DecodeString(strings.ReplaceAll(text, "-", "")); err == nil &&
			copy(id[:], raw) == len(id) && len(raw) == len(id) {
			w.journal, seq, _, known = engine.ParseTradeID(id)
		}
	}
	if !known {
		return fmt.Errorf("--tx %s: neither a transaction hash nor the id of a trade", text)
	}
	w.from, w.until = seq, seq
	return nil
}

func (w *wanted) has(r *recorded, n *names) bool {
	if seq := r.sequence(); seq < w.from || seq > w.until {
		return false
	}
	c := r.command
	replaced, replaces := c.Replaced()
	if w.order != (engine.OrderID{}) && c.ID != w.order && replaced != w.order &&
		!slices.ContainsFunc(r.events, func(e engine.Event) bool { return e.Order == w.order }) {
		return false
	}
	return w.wallet == "" || w.is(n, c.Wallet) || w.is(n, c.Owner) ||
		!replaces && (strings.EqualFold(c.Address.Hex(), w.wallet) ||
			strings.EqualFold(c.Holder.Hex(), w.wallet)) ||
		slices.ContainsFunc(r.events, func(e engine.Event) bool {
			return w.is(n, e.Wallet) || w.is(n, e.Owner)
		})
}

func (w *wanted) is(n *names, no engine.WalletNo) bool {
	if no == 0 {
		return false
	}
	a, known := n.wallets[no]
	return w.wallet == fmt.Sprint(no) || known && a.Hex() == w.wallet
}

// records reads from the first frame on, because the names of wallets are there.
func (c *inspectCommand) records(ctx context.Context, j *journal.Journal, w *wanted) error {
	if w.journal != 0 && w.journal != j.ID {
		return fmt.Errorf("the trade is of journal %016x, this is %016x", w.journal, j.ID)
	}
	out := bufio.NewWriter(os.Stdout)
	n, bar, printed := newNames(), newProgress(newScreen(), "journal", "frames"), 0
	var failed error
	err := j.Frames(1, func(f *engine.Frame) bool {
		n.learn(f)
		bar.show(f.No, j.Last())
		for i := range f.Commands {
			if r := recordedAt(f, i); w.has(&r, n) {
				printed++
				failed = errors.Join(failed, c.print(out, &r, n))
			}
		}
		return f.Last() < w.until && failed == nil && ctx.Err() == nil
	})
	bar.end()
	err = errors.Join(failed, err, out.Flush(), ctx.Err())
	if err == nil && printed == 0 {
		return fmt.Errorf("no record of %s is like that", c.Data)
	}
	return role.Advised(err)
}

func (c *inspectCommand) print(out *bufio.Writer, r *recorded, n *names) error {
	if !c.JSON {
		_, err := out.WriteString(r.text(n))
		return err
	}
	b, err := r.json(n)
	if err == nil {
		_, err = out.Write(append(b, '\n'))
	}
	return err
}

func (c *inspectCommand) state(ctx context.Context, j *journal.Journal) error {
	until := engine.Sequence(math.MaxInt64)
	if c.Until != 0 {
		until = engine.Sequence(c.Until)
	}
	var board *view.Board
	s, at, err := j.StateAt(ctx, until, func() *journal.State {
		var s *journal.State
		s, board = role.NewState()
		return s
	})
	if err != nil {
		return failed(role.Advised(err))
	}
	board.Show()
	counts := board.Counters()
	levels := uint64(0)
	for no := engine.MarketNo(1); uint32(no) <= counts.Markets; no++ {
		m := board.Directory.Market(no)
		if book := board.Condition(m.Condition); book != nil {
			for _, side := range []engine.Side{engine.Buy, engine.Sell} {
				book.Levels(0, side, func(engine.Price, engine.Size) bool { levels++; return true })
			}
		}
	}
	told := struct {
		Sequence engine.Sequence `json:"sequence"`
		Digest   string          `json:"digest"`
		Books    engine.Sequence `json:"booksSequence"`
		Markets  uint32          `json:"markets"`
		Wallets  uint32          `json:"wallets"`
		Levels   uint64          `json:"levels"`
	}{at, fmt.Sprintf("%016x", uint64(s.Exchange.Digest())), board.Sequence(), counts.Markets,
		counts.Wallets, levels}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(&told)
	}
	fmt.Printf("Sequence %d, digest %s\n%d markets, %d wallets, %d price levels in the books (as of "+
		"Sequence %d, the last whole frame)\n", told.Sequence, told.Digest, told.Markets,
		told.Wallets, told.Levels, told.Books)
	return nil
}

// errDiffer ends a diff that has printed the difference.
var errDiffer = errors.New("the folders differ")

func (c *inspectCommand) diff(j *journal.Journal) error {
	other := offline{Data: c.Diff}
	k, err := other.open(true)
	if err != nil {
		return err
	}
	defer k.Close()
	if j.ID != k.ID {
		fmt.Printf("%s has journal %016x, %s has %016x\n", c.Data, j.ID, c.Diff, k.ID)
		return errDiffer
	}
	n, bar := newNames(), newProgress(newScreen(), "frames", "frames")
	defer bar.end()
	var found, unread error
	next, stop := iter.Pull(func(yield func(*engine.Frame) bool) { unread = k.Frames(1, yield) })
	defer stop()
	last := engine.Sequence(0)
	err = j.Frames(1, func(f *engine.Frame) bool {
		bar.show(f.No, j.Last())
		g, more := next()
		switch {
		case unread != nil:
			found = unread
		case !more:
			fmt.Printf("%s ends with Sequence %d, %s goes on\n", c.Diff, last, c.Data)
			found = errDiffer
		case !bytes.Equal(f.Bytes, g.Bytes):
			n.learn(f)
			found = c.tell(f, g, n)
		}
		n.learn(f)
		last = f.Last()
		return found == nil
	})
	if err == nil && found == nil {
		if _, more := next(); more {
			fmt.Printf("%s ends with Sequence %d, %s goes on\n", c.Data, last, c.Diff)
			found = errDiffer
		}
		err = unread
	}
	if err = errors.Join(err, found); err != nil {
		return failed(role.Advised(err))
	}
	fmt.Printf("the same, up to Sequence %d\n", last)
	return nil
}

func (c *inspectCommand) tell(f, g *engine.Frame, n *names) error {
	for i := range min(len(f.Commands), len(g.Commands)) {
		a, b := recordedAt(f, i), recordedAt(g, i)
		if one, two := a.text(n), b.text(n); one != two {
			fmt.Printf("Sequence %d differs, in frame %d\n%s: %s%s: %s", a.sequence(), f.No, c.Data, one,
				c.Diff, two)
			return errDiffer
		}
	}
	for i, h := range []*engine.Frame{f, g} {
		fmt.Printf("%s: frame %d has Sequences %d to %d, epoch %d, digest %016x, hash %x\n",
			[]string{c.Data, c.Diff}[i], h.No, h.First, h.Last(), h.Epoch, uint64(h.Digest), h.Hash[:8])
	}
	return errDiffer
}

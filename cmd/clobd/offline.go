package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/history"
)

// offline is the flag of every command that works on a folder without a running node.
type offline struct {
	Data string `default:"clobd-data" help:"The data folder, of a node that does not run, or a backup."`
}

func (o *offline) options(readOnly bool) journal.Options {
	return journal.Options{Dir: o.Data, ReadOnly: readOnly, Log: quiet(),
		Witnesses: func() []journal.Witness { return witnesses(o.Data) }}
}

// witnesses are the index, and the catalog's folder, which notes how far the journal went when the
// node began and ended.
func witnesses(data string) (all []journal.Witness) {
	if w, ok := history.Witness(nil, data); ok {
		all = append(all, w)
	}
	folder := filepath.Join(data, "catalog")
	if m, ok, err := journal.ReadMark(nil, folder); ok && err == nil {
		all = append(all, journal.Witness{Mark: m, By: "the catalog",
			Path: filepath.Join(folder, "mark")})
	}
	return all
}

// noteEnd notes in the catalog's folder how far the journal goes. One witness less is no failure: a
// full disk keeps nobody from a start or a stop.
func noteEnd(j *journal.Journal, log *slog.Logger) {
	if err := journal.NoteEnd(j, filepath.Join(j.Dir, "catalog")); err != nil {
		log.Warn("the catalog does not note how far the journal goes", "error", err)
	}
}

func rescuing(o journal.Options, fresh func() *journal.State) journal.RescueOptions {
	return journal.RescueOptions{Options: o, Fresh: fresh, Indexed: history.Covers}
}

// quiet logs only errors, with their texts and without their stacks.
func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if err, is := a.Value.Any().(error); is {
				a.Value = slog.StringValue(err.Error())
			}
			return a
		}}))
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (o *offline) open(readOnly bool) (*journal.Journal, error) {
	j, err := journal.Open(o.options(readOnly))
	return j, o.explain(err)
}

func (o *offline) explain(err error) error {
	var locked *disk.LockedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &locked):
		what := errors.New(strings.Replace(err.Error(), "; "+journal.Advice(err), "", 1))
		return cli.Hint(what, "stop that one first; beside a running node: clobd backup, then work on "+
			"the copy")
	case errors.Is(err, fs.ErrNotExist) && !o.begun():
		return cli.Hint(err, "--data names a folder with a journal in it")
	}
	return failed(role.Advised(err))
}

func (o *offline) begun() bool { return exists(o.Data, "journal") || exists(o.Data, "mark") }

// openable reports whether there is a journal to look at, whatever is wrong with it.
func (o *offline) openable(err error) bool {
	var locked *disk.LockedError
	return !errors.As(err, &locked) && !errors.Is(err, fs.ErrPermission) && o.begun()
}

// failed drops the exit code of a broken node: a command has only failed.
func failed(err error) error {
	var broken *cli.BrokenError
	if errors.As(err, &broken) {
		return broken.Err
	}
	return err
}

func replayed(bar *progress, total uint64) func() *journal.State {
	return func() *journal.State {
		s := role.Fresh()
		each := s.Each
		s.Each = func(f *engine.Frame) error {
			bar.show(f.No, total)
			return each(f)
		}
		return s
	}
}

func builderOf(proof []byte) history.BuilderCode { return auth.BuilderOf(proof) }

// names are the addresses and the markets behind the numbers in Events.
type names struct {
	wallets map[engine.WalletNo]engine.Address
	markets map[engine.MarketNo]*engine.Listing
}

func newNames() *names {
	return &names{map[engine.WalletNo]engine.Address{}, map[engine.MarketNo]*engine.Listing{}}
}

func (n *names) learn(f *engine.Frame) {
	for i := range f.Commands {
		c := &f.Commands[i]
		for _, e := range f.EventsOf(i) {
			switch e.Kind {
			case engine.Deposited, engine.Collected:
				n.wallets[e.Wallet] = c.Address
			case engine.Linked:
				n.wallets[e.Wallet], n.wallets[e.Owner] = c.Address, c.Holder
			case engine.Listed, engine.Adjusted:
				n.markets[e.Market] = c.Listing
			}
		}
	}
}

func exists(parts ...string) bool {
	_, err := os.Lstat(filepath.Join(parts...))
	return err == nil
}

package role

import (
	"errors"
	"strings"

	"clobd/cmd/cli"
	"clobd/journal"
	"clobd/journal/disk"
)

// Advised returns an error of the journal or the index with its advice as a hint, and any other
// error, or nil, as it is. Damage is a broken promise: the exit code of the process says so.
func Advised(err error) error {
	advice := journal.Advice(err)
	if advice == "" { // or no error
		return err
	}
	var locked *disk.LockedError
	text := strings.Replace(err.Error(), "; "+advice, "", 1)
	// Pebble adds this line to an error of which it has no more to say.
	what := errors.New(strings.ReplaceAll(text, "\n<corruption detail carrier>", ""))
	switch {
	case journal.IsDamage(err):
		return &cli.BrokenError{Err: cli.Hint(what, "%s", advice)}
	case errors.As(err, &locked):
		return cli.Hint(what, "--data names another folder; the process that has this one: %s",
			locked.Holder)
	}
	return cli.Hint(what, "%s", advice)
}

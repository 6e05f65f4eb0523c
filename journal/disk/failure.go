package disk

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// HintDamaged is what to do with a database that cannot be read.
const HintDamaged = "clobd recover makes it good if everything can be found in its files, and else " +
	"says what is lost; clobd restore brings back a copy"

const hintUnopened = "if another version of clobd wrote it, start that one; else " + HintDamaged

// AdvisedError is a failure whose text ends with what to do about it.
type AdvisedError struct {
	Err    error
	Advice string
}

// Advise adds to a failure what to do about it.
func Advise(err error, advice string) error { return &AdvisedError{err, advice} }

// Error is the failure, "; " and the advice.
func (e *AdvisedError) Error() string { return e.Err.Error() + "; " + e.Advice }

// Unwrap gives the failure.
func (e *AdvisedError) Unwrap() error { return e.Err }

// DamagedError is a failure that only a rescue or a copy makes good.
type DamagedError struct{ error }

// Damaged marks a failure as one that only a rescue or a copy makes good.
func Damaged(err error) error { return &DamagedError{err} }

// Unwrap gives the failure.
func (e *DamagedError) Unwrap() error { return e.error }

// DerivedError is a failure of a database that can be made anew from another database.
type DerivedError struct{ error }

// Derived marks a failure as one of a database that can be made anew.
func Derived(err error) error { return &DerivedError{err} }

// Unwrap gives the failure.
func (e *DerivedError) Unwrap() error { return e.error }

// Plain is an error's text without its advice, and without what Pebble adds to every damage.
func Plain(err error, advice string) string {
	text := strings.ReplaceAll(err.Error(), "\n<corruption detail carrier>", "")
	return strings.TrimSuffix(text, "; "+advice)
}

// Unreadable reports whether err, of opening or reading a database, is caused by the contents of
// its folder. It is not if the folder is in use, or if the machine refuses or fails: a new database
// in the same place would fail, too, and this one may be whole.
func Unreadable(err error) bool {
	var locked *LockedError
	if pebble.IsCorruptionError(err) {
		return true
	}
	if errors.As(err, &locked) || errors.Is(err, fs.ErrPermission) {
		return false
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.EISDIR) {
		return true // something of the folder is missing, or is not what it should be
	}
	var refused syscall.Errno // of the disk, of the machine's limits
	return !errors.As(err, &refused)
}

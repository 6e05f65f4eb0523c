package journal

import (
	"errors"

	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// IsDamage says whether an error means that what was once promised is not there any more, or not as
// it was: starting again will not help. Damage of the index is none: it is made anew.
func IsDamage(err error) bool {
	var broken *Break
	var lost *LossError
	var damaged *disk.DamagedError
	var condemned *disk.DerivedError
	if errors.As(err, &condemned) {
		return false
	}
	return errors.As(err, &broken) || errors.As(err, &lost) || errors.As(err, &damaged) ||
		pebble.IsCorruptionError(err)
}

// Advice is what to do about an error of this package, "" if it does not say. The error's own text
// holds it behind "; ".
func Advice(err error) string {
	var locked *disk.LockedError
	var broken *Break
	var lost *LossError
	var advised *disk.AdvisedError
	switch {
	case errors.As(err, &locked):
		return disk.HintLocked
	case errors.As(err, &broken):
		return broken.advice()
	case errors.As(err, &lost):
		return lost.advice()
	case errors.As(err, &advised):
		return advised.Advice
	}
	return ""
}

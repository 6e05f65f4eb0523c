package journal

import (
	"errors"

	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2"
)

// IsDamage reports whether an error means that acknowledged data is missing or has changed, so that
// starting again does not help. Damage of the index does not count: the index is made anew.
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

// Advice is what to do about an error of this package, "" if it has no advice. The error's text
// ends with "; " and the advice.
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

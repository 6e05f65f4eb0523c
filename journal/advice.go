package journal

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// advisedError is a failure that ends with what to do about it.
type advisedError struct {
	err    error
	advice string
}

// Error is the failure, "; " and the advice.
func (e *advisedError) Error() string { return e.err.Error() + "; " + e.advice }

// Unwrap gives the failure.
func (e *advisedError) Unwrap() error { return e.err }

// damagedError is what only a rescue or a copy makes good.
type damagedError struct{ error }

// Unwrap gives what is wrong.
func (e *damagedError) Unwrap() error { return e.error }

// IsDamage says whether an error means that what was once promised is not there any more, or not as
// it was: starting again will not help. Damage of the index is none: it is made anew.
func IsDamage(err error) bool {
	var broken *Break
	var lost *LossError
	var damaged *damagedError
	var condemned *condemnedError
	if errors.As(err, &condemned) {
		return false
	}
	return errors.As(err, &broken) || errors.As(err, &lost) || errors.As(err, &damaged) ||
		pebble.IsCorruptionError(err)
}

// Advice is what to do about an error of this package, "" if it does not say. The error's own text
// holds it behind "; ".
func Advice(err error) string {
	var locked *LockedError
	var broken *Break
	var lost *LossError
	var advised *advisedError
	switch {
	case errors.As(err, &locked):
		return hintLocked
	case errors.As(err, &broken):
		return broken.advice()
	case errors.As(err, &lost):
		return lost.advice()
	case errors.As(err, &advised):
		return advised.advice
	}
	return ""
}

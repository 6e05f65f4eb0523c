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

// IsDamage says whether an error means that what was once durable is not there any more, or not as
// it was: starting again will not help.
func IsDamage(err error) bool {
	var broken *Break
	var lost *LossError
	return errors.As(err, &broken) || errors.As(err, &lost) || pebble.IsCorruptionError(err)
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

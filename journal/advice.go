package journal

import "errors"

// advisedError is a failure that ends with what to do about it.
type advisedError struct {
	err    error
	advice string
}

// Error is the failure, "; " and the advice.
func (e *advisedError) Error() string { return e.err.Error() + "; " + e.advice }

// Unwrap gives the failure.
func (e *advisedError) Unwrap() error { return e.err }

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

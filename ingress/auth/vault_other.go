//go:build !linux

package auth

import "errors"

// lockedPage knows only how Linux does it.
func lockedPage(int) ([]byte, error) {
	return nil, errors.New("secrets are locked in memory on Linux only")
}

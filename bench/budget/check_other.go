//go:build !cgo

package budget

// check returns 0: libsecp256k1 is C.
func check([]byte, []byte) (micros float64, err error) { return 0, nil }

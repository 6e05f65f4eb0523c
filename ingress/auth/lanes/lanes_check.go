//go:build cgo && amd64 && lanescheck

package lanes

// #cgo CFLAGS: -DLANES_CHECK
import "C"

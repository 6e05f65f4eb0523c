//go:build cgo

package curve

// implementation names the implementation of the curve in this build.
const implementation = "libsecp256k1 (C)"

//go:build !cgo

package curve

// implementation names the implementation of the curve in this build.
const implementation = "decred/secp256k1 (pure Go)"

//go:build !cgo

package auth

// curveName says which implementation of the curve this build has.
const curveName = "decred/secp256k1 (pure Go)"

func curveRecover(digest *[32]byte, rs *[65]byte) ([]byte, bool) { return pureRecover(digest, rs) }

func curveSign(digest, key *[32]byte, rs *[65]byte) bool { return pureSign(digest, key, rs) }

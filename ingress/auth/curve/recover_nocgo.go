//go:build !cgo

package curve

// Recovery names the code behind Recover.
const Recovery = "pure Go"

// Recover returns the uncompressed public key (65 bytes, 0x04 first) behind the signature rs of
// digest: r, s, v with v 0 or 1. It is false if no key made it.
func Recover(digest *[32]byte, rs *[65]byte) ([]byte, bool) { return pureRecover(digest, rs) }

// Sign writes the RFC 6979 signature of digest into rs, as r, s, v with v 0 or 1 and low s. It is
// false for a private key out of range.
func Sign(digest, key *[32]byte, rs *[65]byte) bool { return pureSign(digest, key, rs) }

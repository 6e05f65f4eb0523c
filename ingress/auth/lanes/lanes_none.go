//go:build !cgo || !amd64

package lanes

import "runtime"

// Have is false: this build has no lanes.
func Have() bool { return false }

// Lack says what is missing where Have is false.
const Lack = "the program was built without cgo, or for " + runtime.GOARCH

const none = "BUG: lanes used without asking whether there are any"

// Add must not be called in this build.
func Add(_, _ *Point, _ *Factors, _ *Sum) { panic(none) }

// AddAll must not be called in this build.
func AddAll(_ *Point, _ *[Width]*Point, _ *[Width]Factors, _ *[Width]Sum) { panic(none) }

// Keccak must not be called in this build.
func Keccak(_ *Messages, _ int, _ *[Width][32]byte) { panic(none) }

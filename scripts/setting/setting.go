package setting

import (
	"os"
	"strconv"
	"testing"
)

// Number returns the number in an environment variable, usual if the variable is not set. Anything
// but a number above 0 ends the test.
func Number(t testing.TB, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		t.Fatalf("%s=%s: not a number above 0", name, text)
	}
	return n
}

// Size returns how much a test does: CLOBD_SIZE if it is set, else the usual, or little of it in a
// short run.
func Size(t testing.TB, usual, little int) int {
	t.Helper()
	if testing.Short() {
		usual = little
	}
	return int(Number(t, "CLOBD_SIZE", uint64(usual)))
}

// Full leaves a test out of a short run, and says why: what it shows beyond the tests that stay
// takes long. Under the race detector or with audits it stays, short or not, and so it does if
// CLOBD_SIZE says how much is wanted.
func Full(t testing.TB, why string) {
	t.Helper()
	if testing.Short() && !thorough && os.Getenv("CLOBD_SIZE") == "" {
		t.Skip("full size only: " + why)
	}
}

// Seed returns CLOBD_SEED, usual if it is not set, and logs what it returns.
func Seed(t testing.TB, usual uint64) uint64 {
	t.Helper()
	n := Number(t, "CLOBD_SEED", usual)
	t.Logf("seed: CLOBD_SEED=%d", n)
	return n
}

// Package setting reads what the environment says about tests: how much a test does, and with which
// random numbers.
//
//	CLOBD_SIZE=1000 CLOBD_SEED=7 go test ./… ──► Size, Number ──► the test
//	go test -short                           ──► Size: the short one; Full: the test is left out,
//	                                             both only if CLOBD_SIZE is not set
//
// # Contract
//
// Each test says in its comment what its size counts. A run with a large size is how a claim about
// many repetitions is shown; a run with the seed that a failed test has logged repeats the failure.
//
// Reading order: setting.go, ordinary.go, thorough.go.
package setting

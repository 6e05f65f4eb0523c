package simulator

import (
	"errors"
	"strings"
	"testing"
)

// TestEarlyRaise: a leader that puts later rules in force without those who do not answer is found,
// by a program that knows two versions.
func TestEarlyRaise(t *testing.T) {
	for seed := range uint64(500) {
		_, err := RunCluster(ClusterOptions{Seed: seed, Events: clusterEvents, Sabotage: EarlyRaise})
		var failure *Failure
		switch found := errors.As(err, &failure); {
		case !twoVersions && (found || err == nil):
			t.Fatalf("a program with one version of the rules: %v", err)
		case !twoVersions:
			t.Skip("the program knows one version of the rules: build it with -tags nextrules")
		case found && strings.Contains(err.Error(), "OLD: "):
			t.Logf("seed %d, %.100s", seed, strings.ReplaceAll(err.Error(), "\n", " "))
			return
		}
	}
	t.Error("not found in 500 seeds")
}

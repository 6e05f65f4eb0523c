package simulator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"clobd/scripts/setting"
)

// clusterEvents is how much happens in a run of these tests.
const clusterEvents = 5000

// TestCluster runs a cluster through all faults, and requires that every one of them occurs. Its
// size counts seeds.
func TestCluster(t *testing.T) {
	var sum ClusterResult
	runs, from := uint64(setting.Size(t, 16, 4)), setting.Seed(t, 1)
	for seed := from; seed < from+runs; seed++ {
		r, err := RunCluster(ClusterOptions{Seed: seed, Events: clusterEvents})
		if err != nil {
			t.Errorf("seed %d: %s: %v", seed, r.String(), err)
		}
		sum.Events += r.Events
		sum.Frames += r.Frames
		sum.Acknowledged += r.Acknowledged
		sum.Unknown += r.Unknown
		sum.Trades += r.Trades
		sum.Terms += r.Terms
		sum.Crashes += r.Crashes
		sum.Torn += r.Torn
		sum.Cuts += r.Cuts
		sum.Pauses += r.Pauses
		sum.Replaced += r.Replaced
		sum.Flips += r.Flips
		sum.Joined += r.Joined
		sum.Healed += r.Healed
		sum.Own += r.Own
		sum.Fetched += r.Fetched
		sum.Interrupted += r.Interrupted
		sum.Lies += r.Lies
		sum.Upgraded += r.Upgraded
	}
	if twoVersions && sum.Upgraded < 3*int(runs) {
		t.Errorf("%d members got a new program", sum.Upgraded)
	}
	t.Logf("figures: seeds=%d events=%d frames=%d acknowledged=%d unknown=%d terms=%d crashes=%d "+
		"torn=%d cuts=%d pauses=%d replaced=%d flips=%d healed=%d own=%d fetched=%d interrupted=%d "+
		"joined=%d lies=%d", runs, sum.Events, sum.Frames,
		sum.Acknowledged, sum.Unknown, sum.Terms, sum.Crashes, sum.Torn, sum.Cuts, sum.Pauses,
		sum.Replaced, sum.Flips, sum.Healed, sum.Own, sum.Fetched, sum.Interrupted, sum.Joined, sum.Lies)
	least := min(sum.Frames/1000, sum.Acknowledged/1000, sum.Unknown/100, sum.Trades/100,
		sum.Terms/50, sum.Crashes/50, sum.Torn, sum.Cuts/50, sum.Pauses/20, sum.Replaced,
		sum.Flips/5, sum.Healed/5, sum.Own, sum.Fetched, sum.Interrupted, sum.Joined/5, sum.Lies/50)
	if runs >= 40 && least == 0 {
		t.Errorf("something hardly happens: %s", sum.String())
	}
}

// TestClusterRepeats: two runs of one seed are the same, line for line.
func TestClusterRepeats(t *testing.T) {
	for seed := range uint64(setting.Size(t, 5, 1)) {
		var traces [2][]string
		var results [2]ClusterResult
		for i := range traces {
			var err error
			results[i], err = RunCluster(ClusterOptions{Seed: seed, Events: clusterEvents,
				Say: func(line string) { traces[i] = append(traces[i], line) }})
			if err != nil {
				t.Fatal(err)
			}
			results[i].Own, results[i].Fetched = 0, 0 // the database decides that, not the seed
		}
		if results[0] != results[1] || !slices.Equal(traces[0], traces[1]) {
			t.Errorf("seed %d: %s\n%s", seed, results[0].String(), results[1].String())
		}
		other, err := RunCluster(ClusterOptions{Seed: seed + 1000, Events: 500})
		if err != nil || other.Trace == results[0].Trace {
			t.Errorf("another seed is the same run: %v", err)
		}
	}
}

// TestClusterSabotage: each mistake that can be built in is found by a seed that is known to find
// it. The full size looks for another seed if the program has changed what happens in a run; its
// size says among how many.
func TestClusterSabotage(t *testing.T) {
	known := map[string]uint64{EarlyCommit: 8, EarlyAnswer: 16, UnsyncedVote: 360,
		ForgottenVote: 344, KeptTail: 0, LostAck: 0, TwiceTaken: 4, OwnClock: 0, EarlyRead: 6,
		OldDisk: 0, Impostor: 0, StaleCancel: 39, BlindHeal: 252, ForgetfulHeal: 0}
	further := setting.Size(t, 500, 0)
	for _, sabotage := range ClusterSabotages() {
		seeds := []uint64{known[sabotage]}
		for seed := range uint64(further) {
			seeds = append(seeds, seed)
		}
		found := false
		for _, seed := range seeds {
			_, err := RunCluster(ClusterOptions{Seed: seed, Events: clusterEvents, Sabotage: sabotage})
			var failure *Failure
			if found = errors.As(err, &failure); found {
				t.Logf("%s: seed %d, %.100s", sabotage, seed, strings.ReplaceAll(err.Error(), "\n", " "))
				break
			}
		}
		if !found {
			t.Errorf("%s is not found by seed %d, nor by %d others: the full size looks for one",
				sabotage, known[sabotage], further)
		}
	}
	if _, err := RunCluster(ClusterOptions{Sabotage: "all"}); err == nil {
		t.Error("an unknown mistake, and no events")
	}
}

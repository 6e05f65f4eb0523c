package simulator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"clobd/scripts/setting"
)

// must carries out a run that has to succeed.
func must(t *testing.T, o Options) Result {
	t.Helper()
	r, err := Run(o)
	if err != nil {
		t.Errorf("seed %d: %s: %v", o.Seed, r.Plan, err)
	}
	return r
}

// TestSeeds runs all faults on both disks, and requires that every drawn event occurs.
func TestSeeds(t *testing.T) {
	for disk, steps := range map[string]int{MemoryDisk: 2000, PebbleDisk: 600} {
		t.Run(disk, func(t *testing.T) {
			t.Parallel()
			var sum Result
			runs, from := uint64(setting.Size(t, 25, 2)), setting.Seed(t, 1)
			// Pebble's own random bytes decide what a flipped bit hits, so perhaps no start
			// refuses.
			for n := uint64(0); n < runs || runs >= 25 && sum.Refused == 0 && n < 3*runs; n++ {
				r := must(t, Options{Seed: from + n, Steps: steps, Disk: disk, Faults: AllFaults})
				sum.Acknowledged += r.Acknowledged
				sum.Trades += r.Trades
				sum.Starts += r.Starts
				sum.Flips += r.Flips
				sum.Refused += r.Refused
				sum.Unknown += r.Unknown
				sum.Returned += r.Returned
				sum.Duplicates += r.Duplicates
				sum.Busy += r.Busy
			}
			t.Logf("figures: seeds=%d acknowledged=%d fills=%d starts=%d flips=%d refused=%d unknown=%d "+
				"returned=%d duplicates=%d", runs, sum.Acknowledged, sum.Trades, sum.Starts, sum.Flips,
				sum.Refused, sum.Unknown, sum.Returned, sum.Duplicates)
			least := min(sum.Acknowledged/1000, sum.Trades/100, sum.Starts/10, sum.Refused,
				sum.Unknown/10, sum.Returned, sum.Duplicates/10, sum.Busy/10)
			if runs >= 25 && least == 0 {
				t.Errorf("something hardly happens: %s", sum.String())
			}
		})
	}
}

// TestSameSeedSameRun compares two runs of one seed byte for byte.
func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	for _, disk := range []string{MemoryDisk, PebbleDisk} {
		var traces [2][]string
		var results [2]Result
		for i := range traces {
			results[i] = must(t, Options{Seed: 11, Steps: 800, Disk: disk, Faults: AllFaults,
				Say: func(line string) { traces[i] = append(traces[i], line) }})
		}
		if results[0].String() != results[1].String() || len(traces[0]) < 800 ||
			!slices.Equal(traces[0], traces[1]) {
			for i := range min(len(traces[0]), len(traces[1])) {
				if traces[0][i] != traces[1][i] {
					t.Fatalf("%s: line %d:\n%s\n%s", disk, i, traces[0][i], traces[1][i])
				}
			}
			t.Errorf("%s:\n%s\n%s", disk, results[0].String(), results[1].String())
		}
		other := must(t, Options{Seed: 12, Steps: 800, Disk: disk, Faults: AllFaults})
		if other.Trace == results[0].Trace {
			t.Errorf("%s: another seed is the same run", disk)
		}
	}
}

// TestSabotage: a few seeds find each mistake that can be built in, and find nothing without it.
func TestSabotage(t *testing.T) {
	t.Parallel()
	const seeds = 10
	for _, c := range []struct{ disk, sabotage, want string }{
		{MemoryDisk, EarlyAck, "LOST"},
		{PebbleDisk, EarlyAck, "LOST"},
		{MemoryDisk, LostFrame, "LOST"},
		{MemoryDisk, SecondOrder, "TWICE"},
		{MemoryDisk, EarlyPublish, "the Board shows Sequence"},
		{PebbleDisk, EarlyPublish, "the Board shows Sequence"},
	} {
		found := -1
		for seed := uint64(0); seed < seeds && found < 0; seed++ {
			_, err := Run(Options{Seed: seed, Steps: 1000, Disk: c.disk, Faults: AllFaults,
				Sabotage: c.sabotage})
			var failure *Failure
			if errors.As(err, &failure) {
				found = int(seed)
				if !strings.Contains(err.Error(), c.want) || failure.Step < 1 {
					t.Errorf("%s on the %s disk, seed %d: %v", c.sabotage, c.disk, seed, err)
				}
			} else if err != nil {
				t.Error(err)
			}
		}
		if found < 0 {
			t.Errorf("%s on the %s disk is not found in %d seeds", c.sabotage, c.disk, seeds)
		}
	}
}

// TestOptions: the error names all problems at once.
func TestOptions(t *testing.T) {
	_, err := Run(Options{Disk: "tape", Faults: 1 << 15, Sabotage: "all"})
	for _, want := range []string{"steps 0", "tape", "8000", `"all"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in: %v", want, err)
		}
	}
	if _, err := ParseFaults([]string{"crash", "flood"}); err == nil ||
		!strings.Contains(err.Error(), "flood") {
		t.Errorf("%v", err)
	}
	if f, err := ParseFaults(strings.Split(AllFaults.String(), ",")); f != AllFaults || err != nil {
		t.Errorf("%v %v", f, err)
	}
}

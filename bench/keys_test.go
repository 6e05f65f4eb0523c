package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/bench/workload"
	"clobd/engine"
)

func TestReadKeys(t *testing.T) {
	one, two := "0x"+strings.Repeat("01", 32), "0x"+strings.Repeat("02", 32)
	for text, says := range map[string]string{
		one + "\n# a comment\n\n" + two + " # the second\n": "",
		one + "\nsecret\n" + one:                            "line 2: want 0x and 64 hex digits\n",
		one + "\n" + two + "\n" + one:                       "line 3: the key of line 1 again",
		"@" + os.DevNull:                                    "line 1: want 0x",
		"\n":                                                "there is none in it",
	} {
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := ReadKeys(file)
		if says == "" && (err != nil || len(keys) != 2 || keys[1][0] != 2) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		if says != "" && (err == nil || !strings.Contains(err.Error()+"\n", says) ||
			strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNeeds(t *testing.T) {
	unit := engine.Unit
	ops := []workload.Op{
		{Side: engine.Buy, Price: 5000, Size: 10 * engine.Size(unit), Trader: 0},
		{Side: engine.Sell, Price: 6000, Size: 7 * engine.Size(unit), Trader: 1, Outcome: 1},
		{Cancel: true, Target: 0, Trader: 2},
		{Side: engine.Buy, Price: 2000, Size: 10 * engine.Size(unit), Trader: 2},
		{Read: workload.ReadBook, Trader: 1},
	}
	need := needs(ops, 2)
	// The second order is not paid by the cancel of the first: that may be filled before.
	want := engine.Cost(10*engine.Size(unit), 5000) + engine.Cost(10*engine.Size(unit), 2000)
	if need[0].cash != want || need[0].shares != [2]engine.Size{} {
		t.Errorf("first wallet %+v, want %v", need[0], want)
	}
	if need[1].cash != 0 || need[1].shares[1] != 7*engine.Size(unit) || need[1].shares[0] != 0 {
		t.Errorf("second wallet %+v", need[1])
	}
}

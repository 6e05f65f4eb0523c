package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clobd/bench"
	"clobd/bench/workload"
	"clobd/scripts/setting"
)

// TestWorkloads lists the workloads, and runs those with lists, with several books and with reads
// over HTTP for a moment.
func TestWorkloads(t *testing.T) {
	out, err := exec.Command(filepath.Join(programs, "clobench"), "workloads").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, w := range append(workload.Known(), workload.Workload{Name: workload.Replay}) {
		if !strings.Contains(string(out), "  "+w.Name+" ") {
			t.Errorf("%s is not listed:\n%s", w.Name, out)
		}
	}
	all := [][]string{
		{"--mix", "../../bench/mixes/evening.mix"},
		{"--workload", "market-maker", "--books", "3"},
		{"--workload", "sweep"},
	}
	if testing.Short() {
		all = all[:1]
	}
	for _, args := range all {
		var r bench.Report
		args = append([]string{"run", "--level", "L3", "--durability", "async", "--duration", "200ms",
			"--connections", "8", "--dir", t.TempDir()}, args...)
		measure(t, &r, func() bool { return r.Acknowledged > 0 }, args...)
		if r.Failure != "" || r.Errors != 0 || r.Filled == nil || *r.Filled == 0 {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// TestReplay records a node under load, kills it, and plays its journal again: as Commands, and as
// orders over one connection and at a pace.
func TestReplay(t *testing.T) {
	setting.Full(t, "a node is recorded and played again; package bench has it in one process")
	data := filepath.Join(t.TempDir(), "data")
	var r bench.Report
	t.Run("recorded", func(t *testing.T) { // the node is killed at its end
		node := startNode(t, data)
		measure(t, &r, func() bool { return r.Acknowledged > 0 }, "run", "--level", "L3",
			"--duration", "300ms", "--connections", "8", "--url", node.url, "--admin", node.admin,
			"--token-file", filepath.Join(data, "admin.token"), "--market", "101,102")
	})
	all := [][]string{
		{"--level", "L0", "--duration", "100ms"},
		{"--level", "L3", "--durability", "async", "--duration", "2m", "--connections", "1"},
		{"--level", "L3", "--duration", "2s", "--connections", "8", "--pace", "20"},
	}
	for _, args := range all {
		args = append([]string{"run", "--workload", "replay", "--data", data}, args...)
		measure(t, &r, func() bool { return r.Acknowledged > 0 }, args...)
		if r.Failure != "" || r.Errors != 0 || r.Workload != workload.Replay || r.Checked == "" {
			t.Errorf("%v: %+v", args, r)
		}
		switch one := args[len(args)-2] == "--connections"; {
		case one && !strings.Contains(r.Checked, "equal to those of an Exchange alone"):
			t.Errorf("the end was not compared: %s", r.Checked)
		case args[len(args)-2] == "--pace" && (r.Loop != "open" || r.CorrectedMicros == nil):
			t.Errorf("not an open loop: %+v", r)
		}
	}
}

func TestWrongChoices(t *testing.T) {
	for args, says := range map[string]string{
		"--workload nope":   "no workload is called",
		"--workload replay": "belong together",
		"--data /tmp":       "belong together",
		"--workload replay --data /tmp --books 3": "neither --mix nor --books",
		"--pace 3":                                       "--pace belongs to --workload replay",
		"--workload replay --data /tmp --pace 0":         `--pace "0"`,
		"--workload quiet --mix ../../bench/mixes/x.mix": "like quiet",
		"--mix ../../bench/mixes/none.mix":               "none.mix",
		"--workload mint-merge --books 3":                "even number of books",
	} {
		cmd := exec.Command(filepath.Join(programs, "clobench"),
			append([]string{"run"}, strings.Fields(args)...)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), says) {
			t.Errorf("%s: code %d, want %q:\n%s", args, cmd.ProcessState.ExitCode(), says, out)
		}
	}
}

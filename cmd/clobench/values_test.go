package main

import (
	"strings"
	"testing"
)

// TestWrongValues: a command that is given a value which it cannot have measures nothing and ends
// with code 2. It says what is wrong, and where to read on.
func TestWrongValues(t *testing.T) {
	order := "order --key 0x" + strings.Repeat("1", 64) + " --token 1 --side BUY --price 0.5 --size 5 "
	for _, c := range []struct {
		command string
		flags   string // a wrong value each, between |
	}{
		{"run", "--duration 0|--duration=-1s|--rounds 0|--rounds=-1|--rounds 10001|--connections 0|" +
			"--connections 65|--processes 0|--processes=-1|--processes 65|--warmup=-1|--warmup 1000001|" +
			"--books=-1|--books 10001|--level L9|--duration soon"},
		{"run --level L1", "--rate=-1|--rate NaN|--rate Inf|--rate 2000000|--rate 1 --rounds 2"},
		{"run --level L3 --workload streams", "--subscribers 0|--subscribers=-1|--subscribers 10001"},
		{"run --workload replay --data nowhere --level L3", "--pace 0|--pace=-1|--pace NaN|--pace Inf"},
		{"soak", "--rate 0|--rate=-5|--rate NaN|--rate Inf|--rate 0.5|--duration 0|--duration=-1m|" +
			"--connections 0|--connections 65|--rate 1 --duration 1s|--books=-1"},
		{"compare orders", "--rounds 0|--rounds=-1|--rounds 10001|--duration 0|--duration=-1s|" +
			"--duration 61s|--connections 0|--connections 65"},
		{"compare entry", "--rounds 0|--duration 0|--connections=-1"},
		{"compare book", "--rounds 0|--connections 0|--connections 10001"},
		{"compare fanout", "--rounds 0|--rounds=-1|--duration 0|--duration 2m|--idle=-1|--idle 20001|" +
			"--cases 0x1@1|--cases 1x0@1|--cases 1x1@0|--cases 1x1@NaN|--cases none --idle 0"},
		{"ramp orders", "--start 0|--start NaN|--start Inf|--factor 1|--factor NaN|--factor Inf|--steps 0|" +
			"--duration 0|--duration 2m|--connections 0|--connections 65|--limit 0|--limit=-1ms"},
		{"ramp book", "--connections 0|--connections 10001|--start=-1"},
		{"agree", "--rounds 0|--duration 0|--duration 1500ms|--connections 0"},
		{"flood", "--rounds 0|--duration 0|--rate 0|--rate NaN|--readers 0|--connections 0|--connections 65"},
		{"overload", "--rounds 0|--duration 0|--duration 999ms|--connections 63|--connections 10001|" +
			"--factors 0|--factors=-1|--factors NaN|--factors 11"},
		{"streams", "--rounds 0|--duration 0|--rate 0|--rate NaN|--burst 0|--burst 1000000|--connections 0|" +
			"--subscribers 0|--markets 0|--markets 16"},
		{"budget", "--rounds 0|--duration 1s|--duration 61s|--connections 0|--connections 65"},
		{"stall", "--rounds 0|--length 0|--length 2m|--rate 0|--rate NaN|--readers 0|--writers 0|--writers 65"},
		{"pages", "--trades 0|--rounds 0|--reads 0|--trades=-1"},
		{"turns --node a,b", "--rounds 0|--duration 0|--duration 61s|--connections 0|--connections 65"},
		{"turns", "--node a|--node a,b,c"},
		{"matching", "--rounds 0|--rounds=-1|--books 0|--books=-1|--ticks 0|--ticks 7|--ops=-1|--peer x"},
		{order, "--chain-id 0|--price 0|--price 1|--price=-1|--price NaN|--size 0|--size=-5|--token=-1|" +
			"--wallet 0x12|--builder 0x12|--signature 4"},
	} {
		all := strings.Split(c.flags, "|")
		if testing.Short() {
			all = all[:1] // a process each
		}
		for _, flags := range all {
			code, said := clobench(t, strings.Fields(c.command+" "+flags)...)
			if code != 2 || !strings.HasPrefix(said, "error: ") || !strings.Contains(said, "\nhint: ") {
				t.Errorf("clobench %s %s: code %d\n%s", c.command, flags, code, said)
			}
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"clobd/cmd/cli"
)

type reliabilityCommand struct {
	Out   string   `default:"reliability.json" help:"File for the results. It is written anew after each item."`
	Only  []string `help:"Names of the items to carry out. All if left out."`
	Seed  uint64   `help:"Seed of every item; the clock's if left out. It is told, and repeats a failure."`
	Small bool     `help:"The sizes of the ordinary tests instead of the full ones."`
	List  bool     `help:"Name the items and end."`
}

// item is one fault test and its full size.
type item struct {
	name   string
	what   string
	folder string
	test   string   // pattern of the names of its tests
	size   int      // CLOBD_SIZE; 0: the test has one size, or args say it
	args   []string // further flags of go test
}

// items are all fault tests. Their sizes show a fault that happens once in a hundred times.
func items() []item {
	const (
		node, sim  = "./cmd/clobd", "./cmd/clobsim/simulator"
		disk, core = "./journal", "./engine"
		past       = "./journal/history"
	)
	return append(slices.Concat(doorItems(), streamItems(), clusterItems()), []item{
		{name: "simulate", what: "seeds of the simulator, all faults, both disks", folder: sim,
			test: "TestSeeds", size: 1000},
		{name: "kill", what: "kill -9 under load of orders, bundles and cancels", folder: node,
			test: "TestKill", size: 200},
		{name: "kill-starting", what: "kill -9 while the node starts", folder: node,
			test: "TestKillWhileStarting", size: 50},
		{name: "kill-checkpoint", what: "kill -9 while checkpoints are written", folder: node,
			test: "TestKillWhileSaving", size: 50},
		{name: "kill-compaction", what: "kill -9 while tables are flushed and merged", folder: node,
			test: "TestKillWhileCompacting|TestKillWhileFlushing", size: 50},
		{name: "crash-compaction", what: "power cuts within flushes and compactions", folder: disk,
			test: "TestCrashWhileCompacting", size: 500},
		{name: "kill-stopping", what: "kill -9 while the node drains", folder: node,
			test: "TestKillWhileStopping", size: 50},
		{name: "crash", what: "power cuts with 0, 50 and 100 % of unsynced data kept", folder: disk,
			test: "TestCrash", size: 500},
		{name: "disk-fails", what: "the n-th sync fails; the n-th write finds the disk full",
			folder: sim, test: "TestDiskFails", size: 100},
		{name: "full-disk", what: "a real disk fills up under load, watched and not", folder: node,
			test: "TestFullDisk|TestFullDiskUnguarded|TestFullDiskGuarded", size: 5},
		{name: "stall", what: "the disk hangs for 5 s", folder: sim, test: "TestStall", size: 10},
		{name: "stalled-disk", what: "a real disk hangs for 5 s under load: answers, books, readyz",
			folder: node, test: "TestStalledDisk", size: 10},
		{name: "torn-tail", what: "the log cut at every byte of its last three frames", folder: sim,
			test: "TestTornTail", size: 1_000_000},
		{name: "flips", what: "single bits of every file: check, start, every answer, way out",
			folder: node, test: "TestFlips", size: 5000},
		{name: "damage", what: "files cut, emptied, zeroed, gone, or folders: check, start, way out",
			folder: node, test: "TestDamage|TestWaysOut|TestRecoverTellsOfHistory|TestInterruptedRecover|" +
				"TestBadSecrets", size: 1000},
		{name: "flips-start", what: "single bits of every file of the journal: start and its state",
			folder: sim, test: "TestFlips|TestFlipsAreFound", size: 5000},
		{name: "flips-verify", what: "single bits of every file, by clobd verify's own checks",
			folder: past, test: "TestFlips", size: 5000},
		{name: "recover", what: "damaged ends, accepted; each file of the journal gone, cut, flipped",
			folder: disk, test: "TestAcceptLoss|TestSalvage|TestHistoryBeforeTheCheckpoint|" +
				"TestInterruptedSwap|TestForeignMark|TestEmptiedJournal|" +
				"TestRescueAgain|TestRescueWithoutRoom|TestCollectForks"},
		{name: "recover-index", what: "a journal with a hole, with and without the index of it",
			folder: past, test: "TestHistoryBeforeTheCheckpoint|TestHistoryThatCannotBeRead"},
		{name: "backup", what: "backups under load, restored: the digests are equal", folder: node,
			test: "TestBackup", size: 20},
		{name: "disk-guard", what: "cancel-only on a real disk that fills, and back", folder: node,
			test: "TestDiskGuard|TestCatalogWaitsForRoom", size: 5},
		{name: "checkpoints", what: "damaged, missing, foreign and cut checkpoints and marks",
			folder: disk, test: "TestBadCheckpoints|TestFlippedCheckpoint|TestCheckpointOfAnother|" +
				"TestCheckpointCrash|TestLostEnd|TestDamagedMark|TestMarkIsNoLie"},
		{name: "determinism", what: "1,000 histories on 1, 2 and 8 threads", folder: core,
			test: "TestHistories"},
		{name: "model", what: "random histories against the reference", folder: core,
			test: "TestReference", args: []string{"-rapid.checks=100000"}},
		{name: "ring", what: "many producers, small rings that wrap all the time",
			folder: "./engine/sequencer", test: "TestRingStress|TestRingModel", size: 1_000_000_000},
		{name: "stop", what: "SIGTERM under load: nothing lost, nothing ambiguous", folder: node,
			test: "TestStop", size: 100},
		{name: "resend", what: "every order sent three times through kills", folder: node,
			test: "TestResend", size: 10_000},
		{name: "histories", what: "recorded answers under kills and pauses are linearizable",
			folder: node, test: "TestHistories", size: 200},
	}...)
}

// doorItems are the fault tests of what strangers do.
func doorItems() []item {
	const door = "./scripts/door"
	return []item{
		{name: "raw-http", what: "requests that two readers understand in two ways", folder: door,
			test: "TestRawHTTP"},
		{name: "smuggling", what: "signed orders behind such requests: the state stays as it was",
			folder: "./ingress", test: "TestSmuggledOrders|TestTruncatedChunks"},
		{name: "wallet-allow", what: "disguised paths, methods and senders of reads about wallets",
			folder: "./api", test: "TestWalletAllow|TestWalletAllowBypasses"},
		{name: "connections", what: "connections of all kinds of abuse, while others are served",
			folder: door, test: "TestAbusiveConnections", size: 20_000},
		{name: "gzip-bombs", what: "MiB that a packed catalog of a few KiB unpacks to",
			folder: "./api/catalog", test: "TestGzipBombs", size: 1024},
		{name: "limits", what: "more requests than each row allows", folder: door, test: "TestLimits"},
		{name: "attacks", what: "strangers at the door, from 1 and 8 addresses: memory, p99 of others",
			folder: door, test: "TestAttacks", size: 60},
		{name: "soak", what: "60 % load: memory, goroutines and descriptors stand still", folder: door,
			test: "TestSoak", size: 600},
		{name: "bodies", what: "mutated orders are read as encoding/json reads them, or refused",
			folder: "./ingress/form", test: "TestDecodeMutations", size: 10_000_000},
		{name: "fuzz", what: "inputs of each fuzz target: parsers of all that others write",
			folder: "./scripts/fuzz", test: "TestParsers|TestTargets", size: 10_000_000,
			args: []string{"-timeout=48h"}},
	}
}

// clusterItems are the fault tests of several nodes that agree.
func clusterItems() []item {
	return []item{
		{name: "cluster", what: "seeds of a cluster: crashes, partitions, flips, members that change",
			folder: "./cmd/clobsim/simulator", test: "TestCluster", size: 20_000},
		{name: "cluster-kill", what: "kill -9 of the node that leads, under load at all four nodes",
			folder: "./cmd/clobd", test: "TestClusterKill", size: 100},
		{name: "cluster-kill-others", what: "kill -9 of a follower; after every fourth, of the gateway",
			folder: "./cmd/clobd", test: "TestClusterKillOthers", size: 100},
		{name: "cluster-stops", what: "SIGSTOP of 10 s: the node that leads, a follower, the gateway",
			folder: "./cmd/clobd", test: "TestClusterStops", size: 50},
		{name: "cluster-partitions", what: "one node cut off, deaf or mute, two halves, ways of 200 ms",
			folder: "./cmd/clobd", test: "TestClusterPartitions", size: 50},
		{name: "cluster-full", what: "the disk of a leader or follower fills, watched and at once",
			folder: "./cmd/clobd", test: "TestClusterFullDisk", size: 10},
		{name: "cluster-hand-over", what: "the lead is handed over, on request and by SIGTERM",
			folder: "./cmd/clobd", test: "TestClusterHandOver", size: 50},
		{name: "cluster-upgrade", what: "programs with later rules, one node at a time under load",
			folder: "./cmd/clobd", test: "TestClusterUpgrade|TestUpgradeAlone"},
		{name: "cluster-flips", what: "single bits of a member's folder: it heals from the others",
			folder: "./cmd/clobd", test: "TestClusterFlips", size: 500},
		{name: "cluster-histories", what: "answers of all nodes are linearizable: kills, pauses, cuts",
			folder: "./cmd/clobd", test: "TestClusterHistories", size: 200},
		{name: "cluster-reads", what: "a gateway beside a leader that is cut off; who is to lead",
			folder: "./cmd/clobd", test: "TestClusterCutOff|TestClusterPriority"},
	}
}

// streamItems are the fault tests of what listens.
func streamItems() []item {
	return []item{
		{name: "streams", what: "kill -9 under load: 50 owners and 50 readers of books resume",
			folder: "./cmd/clobd", test: "TestStreams", size: 100},
		{name: "stopped-readers", what: "SIGSTOP of readers: they are cut, others do not wait for them",
			folder: "./cmd/clobd", test: "TestStoppedReaders", size: 20},
		{name: "reconstruction", what: "changes applied to the first books, hash after hash",
			folder: "./api", test: "TestReconstructionUnderLoad", size: 1_000_000},
		{name: "told-again", what: "Commands in the journal: who resumes is told what a listener was",
			folder: "./api", test: "TestToldAgain", size: 2_000_000},
		{name: "handshakes", what: "2,000 half handshakes, 2,000 unused sockets: memory, p99 of others",
			folder: "./scripts/door", test: "TestHandshakes", size: 60},
		{name: "protocol", what: "frames that keep the rules of WebSocket, and that break one",
			folder: "./api/wire/live", test: "TestProtocol|TestCloseCodes|TestPongsUnread"},
	}
}

// outcome is the result of one item.
type outcome struct {
	Name     string             `json:"name"`
	What     string             `json:"what"`
	Seed     uint64             `json:"seed"`
	Size     int                `json:"size,omitempty"`
	Passed   bool               `json:"passed"`
	Failures int                `json:"failures"`
	Skipped  string             `json:"skipped,omitempty"` // why
	Seconds  float64            `json:"seconds"`
	Counts   map[string]float64 `json:"counts"`
	Repeat   string             `json:"repeat"`
	Said     string             `json:"said,omitempty"` // the end of what a failure said
}

// results is the content of the file.
type results struct {
	Program string    `json:"program"`
	Go      string    `json:"go"`
	Machine string    `json:"machine"`
	Began   string    `json:"began"`
	Small   bool      `json:"small"`
	Items   []outcome `json:"items"`
}

// Run runs the items one after the other. It fails if one does.
func (c *reliabilityCommand) Run() error {
	chosen, err := c.choose()
	if err != nil || c.List {
		return err
	}
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	all := results{Program: version, Go: runtime.Version(), Small: c.Small,
		Machine: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Began:   time.Now().UTC().Format(time.RFC3339)}
	fmt.Printf("seed %d\n", c.Seed)
	var failed []string
	for i := range chosen {
		o := c.carry(&chosen[i])
		all.Items = append(all.Items, o)
		if !o.Passed {
			failed = append(failed, o.Name)
		}
		if err := c.save(&all); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return cli.Hint(fmt.Errorf("%d of %d items failed: %s", len(failed), len(chosen),
			strings.Join(failed, ", ")), "%s has for each the command that repeats it", c.Out)
	}
	fmt.Printf("%d items, 0 failed: %s\n", len(chosen), c.Out)
	return nil
}

// choose returns the items that were asked for.
func (c *reliabilityCommand) choose() (chosen []item, err error) {
	var names []string
	for _, i := range items() {
		names = append(names, i.name)
		if len(c.Only) == 0 || slices.Contains(c.Only, i.name) {
			chosen = append(chosen, i)
		}
		if c.List {
			fmt.Printf("%-19s %9s  %s\n", i.name, sized(i.size), i.what)
		}
	}
	for _, name := range c.Only {
		if !slices.Contains(names, name) {
			err = errors.Join(err, fmt.Errorf("no item %q", name))
		}
	}
	if err != nil {
		return nil, &cli.UsageError{Err: cli.Hint(err, "--list names them")}
	}
	return chosen, nil
}

// sized formats a size for people.
func sized(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// carry runs one item.
func (c *reliabilityCommand) carry(i *item) outcome {
	args := []string{"test", i.folder, "-count=1", "-v", "-timeout", "3h", "-run", "^(" + i.test + ")$"}
	env := []string{fmt.Sprintf("CLOBD_SEED=%d", c.Seed)}
	o := outcome{Name: i.name, What: i.what, Seed: c.Seed, Counts: map[string]float64{}}
	if !c.Small {
		args = append(args, i.args...)
		if o.Size = i.size; i.size > 0 {
			env = append(env, fmt.Sprintf("CLOBD_SIZE=%d", i.size))
		}
	}
	quoted := make([]string, len(args))
	for n, a := range args {
		if quoted[n] = a; strings.ContainsAny(a, "()|$") {
			quoted[n] = "'" + a + "'"
		}
	}
	o.Repeat = strings.Join(env, " ") + " go " + strings.Join(quoted, " ")
	fmt.Printf("%-19s %9s  ", i.name, sized(o.Size))
	begun := time.Now()
	run := exec.Command("go", args...)
	run.Env = append(os.Environ(), env...)
	said, err := run.CombinedOutput()
	o.Seconds = time.Since(begun).Round(time.Millisecond).Seconds()
	o.read(said)
	o.Passed = err == nil && o.Failures == 0
	if !o.Passed {
		o.Failures = max(o.Failures, 1)
		o.Said = string(said[max(0, len(said)-8000):])
		fmt.Printf("FAILED after %.1f s\n%s\nrepeat it: %s\n", o.Seconds, o.Said, o.Repeat)
		return o
	}
	fmt.Printf("%8.1f s  %s %s\n", o.Seconds, o.text(), o.Skipped)
	return o
}

// figure is one count of a test's line of figures.
var figure = regexp.MustCompile(`([a-z_]+)=([0-9.]+)`)

// read takes the figures, failures and skips from the output of go test.
func (o *outcome) read(said []byte) {
	ran := 0
	lines := bufio.NewScanner(bytes.NewReader(said))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		_, figures, found := strings.Cut(line, " figures: ")
		trimmed := strings.TrimSpace(line)
		switch {
		case found:
			for _, m := range figure.FindAllStringSubmatch(figures, -1) {
				if n, err := strconv.ParseFloat(m[2], 64); err == nil {
					o.Counts[m[1]] += n
				}
			}
		case strings.HasPrefix(trimmed, "--- FAIL"):
			o.Failures++
		case strings.HasPrefix(trimmed, "--- PASS"):
			ran++
		case strings.Contains(line, "SKIPPED: "):
			_, o.Skipped, _ = strings.Cut(line, "SKIPPED: ")
		}
	}
	if ran == 0 && o.Skipped == "" {
		o.Failures = max(o.Failures, 1) // no such test: that is no proof
	}
}

// text is the counts in one line.
func (o *outcome) text() string {
	var all []string
	for name, n := range o.Counts {
		all = append(all, fmt.Sprintf("%s=%g", name, n))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// save writes the file.
func (c *reliabilityCommand) save(all *results) error {
	b, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.WriteFile(c.Out, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"clobd/ingress/auth"
	"clobd/journal/disk"
)

const gib = 1 << 30

// asked is what a node is started with.
func asked() *Options {
	return &Options{Data: "/srv/clobd", Reserve: gib, Ballast: gib / 4, Connections: 8192,
		Sockets: 16384, SpareFiles: 512, Window: 30 * time.Second}
}

// sound returns the measurements of a machine on which every check is ok.
func sound() *machine {
	return &machine{folder: "/srv/clobd", exists: true, cores: 4,
		syncs:  &syncs{100 * time.Microsecond, 120 * time.Microsecond, 300 * time.Microsecond},
		checks: &checks{13500, 10_000, 5_000, 27_000, "Go"}, ring: true,
		mount:  &mount{"ext4", "/dev/sda1", []string{"rw", "relatime"}},
		room:   &room{free: 10 * gib, files: 1_000_000, capped: true},
		clock:  &discipline{synced: true, maxError: 3 * time.Millisecond},
		limits: &limits{files: 65536, locked: 8 << 20}, quota: &quota{},
		demand: &demand{}, hiccups: &hiccups{p99: 100 * time.Microsecond, longest: time.Millisecond},
		memory: &memory{total: 16 * gib, available: 15 * gib},
		kernel: &kernel{release: "6.12.0", hugePages: "madvise", ringSwitch: "0", swappiness: 60,
			backlog: 4096, ports: [2]int{32768, 60999}}}
}

// TestSound: nothing is wrong with a good machine, and nothing is to be changed.
func TestSound(t *testing.T) {
	d := sound().judge(asked())
	for _, c := range d.Checks {
		if c.Grade != Good || c.Value == "" || c.Reason == "" || c.Change != "" {
			t.Errorf("%+v", c)
		}
	}
	if len(d.Changes) > 0 || len(d.Broken()) > 0 || d.Estimate == nil {
		t.Errorf("%+v", d)
	}
}

// flaw is what is wrong with a machine, and what is said about it.
type flaw struct {
	check string
	grade Grade
	spoil func(*machine, *Options)
	says  string
}

// TestFlaws: each flaw is found by its check and by no other, with its grade and with what to do.
func TestFlaws(t *testing.T) {
	for _, f := range slices.Concat(diskFlaws(), limitFlaws(), coreFlaws()) {
		m, o := sound(), asked()
		f.spoil(m, o)
		d := m.judge(o)
		var found []Check
		for _, c := range d.Checks {
			if c.Grade != Good {
				found = append(found, c)
			}
		}
		if len(found) != 1 || found[0].Name != f.check || found[0].Grade != f.grade ||
			!strings.Contains(found[0].Value+" — "+found[0].Reason, f.says) {
			t.Errorf("%s, %s: want %s %q, got %+v", f.check, f.says, f.grade, f.says, found)
			continue
		}
		change := []string{found[0].Name + ": " + found[0].Change}
		if f.grade == Unknown {
			change = []string{}
		}
		if !slices.Equal(d.Changes, change) || f.grade != Unknown && found[0].Change == "" {
			t.Errorf("%s, %s: changes %q", f.check, f.says, d.Changes)
		}
		if broken := d.Broken(); (len(broken) > 0) != (f.grade == Failing) {
			t.Errorf("%s, %s: broken %q", f.check, f.says, broken)
		}
	}
}

func diskFlaws() (all []flaw) {
	add := func(check string, grade Grade, says string, spoil func(*machine, *Options)) {
		all = append(all, flaw{check, grade, spoil, says})
	}
	add("folder", Failing, "would not start: whose", func(_ *machine, o *Options) {
		o.Refused = errors.New("whose")
	})
	for kind, says := range map[string]string{"tmpfs": "memory", "ramfs": "memory",
		"devtmpfs": "memory", "hugetlbfs": "memory", "nfs": "network", "nfs4": "network",
		"cifs": "network", "smb3": "network", "smbfs": "network", "ceph": "network", "9p": "network",
		"afs": "network", "lustre": "network", "beegfs": "network", "gfs2": "network",
		"ocfs2": "network"} {
		add("filesystem", Failing, says, func(m *machine, _ *Options) { m.mount.kind = kind })
	}
	for option, says := range map[string]string{"ro": "reading only", "nobarrier": "barriers",
		"barrier=0": "barriers"} {
		add("filesystem", Failing, says, func(m *machine, _ *Options) {
			m.mount.options = append(m.mount.options, option)
		})
	}
	for kind, says := range map[string]string{"overlay": "container", "fuse": "another program",
		"fuse.sshfs": "another program", "fuseblk": "another program", "virtiofs": "another program"} {
		add("filesystem", Warning, says, func(m *machine, _ *Options) { m.mount.kind = kind })
	}
	add("filesystem", Unknown, "does not tell", func(m *machine, _ *Options) { m.mount = nil })
	add("fsync", Failing, "made durable: no", func(m *machine, _ *Options) {
		m.syncs, m.failed = nil, errors.New("no")
	})
	for says, s := range map[string]syncs{
		"is that fast":  {1000, 2000, 4000, time.Millisecond},
		"late, though":  {slowSync + 1, slowSync + 1, lateSync},
		"waits that":    {1e5, 1e5, lateSync + 1},
		"stood still":   {1e5, 1e5, 2*time.Second + 1},
		"max 2.1 s of ": {1e5, 1e5, 2100 * time.Millisecond},
	} {
		add("fsync", Warning, says, func(m *machine, _ *Options) { m.syncs = &s })
	}
	room := func(grade Grade, says string, free int64) {
		add("disk", grade, says, func(m *machine, _ *Options) { m.room.free = free })
	}
	room(Failing, "only cancels", gib-1)
	room(Warning, "no checkpoints", gib)
	room(Warning, "no checkpoints", 2*gib-1)
	room(Warning, "no room for --disk-ballast 256 MiB", 2*gib)
	room(Warning, "no room for --disk-ballast 256 MiB", 2*gib+gib/8+gib/4-1)
	files := func(grade Grade, says string, n int64) {
		add("inodes", grade, says, func(m *machine, _ *Options) { m.room.files = n })
	}
	files(Failing, "stops itself", 999)
	files(Warning, "others may", 1000)
	files(Warning, "others may", 9_999)
	return all
}

func limitFlaws() (all []flaw) {
	add := func(check string, grade Grade, says string, spoil func(*machine)) {
		all = append(all, flaw{check, grade, func(m *machine, _ *Options) { spoil(m) }, says})
	}
	add("clock", Failing, "behind the last write to the data folder by 1m1s",
		func(m *machine) { m.newest = 61 * time.Second })
	add("clock", Failing, "off by 30 s", func(m *machine) { m.clock.maxError = 30*time.Second + 1 })
	for _, offset := range []time.Duration{30*time.Second + 1, -30*time.Second - 1} {
		add("clock", Failing, "off by 30 s", func(m *machine) { m.clock.offset = offset })
	}
	add("clock", Failing, "not synchronised — it may be off by 31 s",
		func(m *machine) { *m.clock = discipline{false, 0, -31 * time.Second} })
	add("clock", Warning, "not synchronised — nobody", func(m *machine) { m.clock.synced = false })
	add("clock", Unknown, "does not tell", func(m *machine) { m.clock = nil })
	add("steps", Failing, "only", func(m *machine) { m.shift = -31 * time.Second })
	add("steps", Failing, "31 s back", func(m *machine) { m.back = 31 * time.Second })
	add("steps", Warning, "moved by 5", func(m *machine) { m.shift = steadyClock + 1 })
	add("steps", Warning, "moved by -", func(m *machine) { m.shift = -steadyClock - 1 })
	add("steps", Warning, "1 µs back", func(m *machine) { m.back = time.Microsecond })
	add("files", Failing, "less than the 25,088", func(m *machine) { m.limits.files = 25087 })
	add("files", Failing, "256 open files", func(m *machine) { m.limits.files = 256 })
	add("memlock", Warning, "swapped out to a disk: no", func(m *machine) { m.vault = errors.New("no") })
	add("core dumps", Warning, "show keys: no", func(m *machine) { m.sealed = errors.New("no") })
	add("io_uring", Warning, "is not to be had — ", func(m *machine) { m.ring = false })
	for _, off := range []string{"1", "2"} {
		add("io_uring", Warning, "disabled is "+off, func(m *machine) {
			m.ring, m.kernel.ringSwitch = false, off
		})
	}
	add("io_uring", Warning, "with 63 KiB of locked memory", func(m *machine) {
		m.ring, m.limits.locked = false, 63<<10
	})
	add("backlog", Warning, "somaxconn 4,095", func(m *machine) { m.kernel.backlog = 4095 })
	add("backlog", Unknown, "does not tell", func(m *machine) { m.kernel.backlog = -1 })
	add("ports", Warning, "the node's port", func(m *machine) { m.kernel.ports = [2]int{1024, 60999} })
	add("ports", Warning, "the node's port", func(m *machine) { m.kernel.ports = [2]int{8081, 60999} })
	add("ports", Warning, "24,576", func(m *machine) { m.kernel.ports = [2]int{36424, 60998} })
	add("ports", Unknown, "does not tell", func(m *machine) { m.kernel.ports = [2]int{} })
	return all
}

func coreFlaws() (all []flaw) {
	add := func(check string, grade Grade, says string, spoil func(*machine)) {
		all = append(all, flaw{check, grade, func(m *machine, _ *Options) { spoil(m) }, says})
	}
	add("cores", Warning, "1 — ", func(m *machine) { m.cores = 1 })
	add("cores", Warning, "may use 1.5 — matching", func(m *machine) { m.quota.cpus = 1.5 })
	add("cores", Warning, "may use 3 — the container was held 7 times",
		func(m *machine) { m.quota = &quota{cpus: 3, throttled: 7} })
	add("steal", Warning, "2.1 %", func(m *machine) { m.demand.stolen = 0.021 })
	add("others", Warning, "26 %", func(m *machine) { m.demand.others = 0.26 })
	add("hiccups", Warning, "woke that late, and", func(m *machine) { m.hiccups.p99 = lateWake + 1 })
	add("hiccups", Warning, "woke that late, and", func(m *machine) { m.hiccups.longest = longWake + 1 })
	add("hiccups", Unknown, "does not tell", func(m *machine) { m.hiccups = nil })
	add("memory", Warning, "killed", func(m *machine) { m.memory.total = 2*gib - 1 })
	add("memory", Warning, "use 1 GiB — a node", func(m *machine) { m.quota.memory = gib })
	add("memory", Warning, "other programs", func(m *machine) { m.memory.available = 2*gib - 1 })
	add("swap", Warning, "1 GiB, vm.swappiness 60", func(m *machine) { m.memory.swap = gib })
	add("swap", Warning, "vm.swappiness -1",
		func(m *machine) { m.memory.swap, m.kernel.swappiness = gib, -1 })
	add("overcommit", Warning, "memory 2", func(m *machine) { m.kernel.overcommit = 2 })
	add("overcommit", Unknown, "does not tell", func(m *machine) { m.kernel.overcommit = -1 })
	add("huge pages", Warning, "never", func(m *machine) { m.kernel.hugePages = "never" })
	add("huge pages", Warning, "when asked", func(m *machine) { m.kernel.release = "6.0.19" })
	add("huge pages", Unknown, "does not tell", func(m *machine) { m.kernel.hugePages = "" })
	return all
}

// TestMayNotWrite: a folder of somebody else fails twice, for nothing can be measured there.
func TestMayNotWrite(t *testing.T) {
	m := sound()
	m.syncs, m.failed = nil, &fs.PathError{Op: "open", Path: "/srv", Err: fs.ErrPermission}
	d := m.judge(asked())
	if broken := d.Broken(); !slices.Equal(broken, []string{"folder", "fsync"}) ||
		!strings.Contains(d.Checks[0].Reason, "may not write") || d.Estimate != nil {
		t.Errorf("%v, %+v", broken, d)
	}
}

// TestGoodAllTheSame: what looks like a flaw and is none.
func TestGoodAllTheSame(t *testing.T) {
	for what, spoil := range map[string]func(*machine){
		"the last bytes of room": func(m *machine) { m.room.free = 2*gib + gib/8 + gib/4 },
		"a node that has its ballast": func(m *machine) {
			m.holder, m.room.free = 7, 2*gib+gib/8
		},
		"as many inodes as one likes": func(m *machine) { m.room.files, m.room.capped = 0, false },
		"just enough files":           func(m *machine) { m.limits.files = 25088 },
		"no limits":                   func(m *machine) { m.limits = &limits{unlimited, unlimited} },
		"swap for need only":          func(m *machine) { m.memory.swap, m.kernel.swappiness = gib, 10 },
		"a node's own work":           func(m *machine) { m.holder, m.demand.others = 7, 0.9 },
		"a node's own memory":         func(m *machine) { m.holder, m.memory.available = 7, gib },
		"a quota above the cores":     func(m *machine) { m.quota.cpus, m.quota.throttled = 8, 3 },
		"a clock of the file server":  func(m *machine) { m.newest = 59 * time.Second },
		"a folder to come":            func(m *machine) { m.exists = false },
		"the slowest disk":            func(m *machine) { m.syncs = &syncs{slowSync, slowSync, lateSync} },
		"the fastest disk":            func(m *machine) { m.syncs = &syncs{lyingSync} },
		"a disk that stood": func(m *machine) {
			fast := make(syncs, 200)
			for i := range fast {
				fast[i] = slowSync
			}
			fast[199] = disk.StallTime
			m.syncs = &fast
		},
		"the fewest inodes":       func(m *machine) { m.room.files = fewFiles },
		"the oldest last write":   func(m *machine) { m.newest = time.Minute },
		"the worst clock":         func(m *machine) { m.clock.maxError = 30 * time.Second },
		"a clock put right":       func(m *machine) { m.clock.offset = -30 * time.Second },
		"a clock that is slewed":  func(m *machine) { m.shift = steadyClock },
		"the fewest ports":        func(m *machine) { m.kernel.ports = [2]int{36424, 60999} },
		"a quota without waiting": func(m *machine) { m.quota.cpus = 2 },
		"the most others":         func(m *machine) { m.demand.others = mostOthers },
		"the most stolen":         func(m *machine) { m.demand.stolen = mostStolen },
		"the worst hiccups":       func(m *machine) { m.hiccups = &hiccups{lateWake, longWake} },
		"the least memory":        func(m *machine) { *m.memory = memory{2 * gib, 2 * gib, 0} },
		"swap, and never": func(m *machine) {
			m.memory.swap, m.kernel.swappiness = gib, 0
		},
	} {
		m := sound()
		spoil(m)
		if d := m.judge(asked()); len(d.Changes) > 0 {
			t.Errorf("%s: %q", what, d.Changes)
		}
	}
}

// TestValues: what is shown beside a verdict.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		check, value, reason string
		set                  func(*machine)
	}{
		{"folder", "/srv/clobd", "of this shell", func(*machine) {}},
		{"folder", "/srv/clobd, in use by process 7", "of that process", func(m *machine) {
			m.holder = 7
		}},
		{"folder", "/srv/clobd does not exist yet: /srv was measured", "", func(m *machine) {
			m.folder, m.exists = "/srv", false
		}},
		{"steps", "the wall clock moved by 0 s against the monotonic one", "", func(*machine) {}},
		{"cores", "4", "", func(*machine) {}},
		{"cores", "4, of which the container may use 2.5", "", func(m *machine) { m.quota.cpus = 2.5 }},
		{"memory", "16 GiB, 15 GiB available", "", func(m *machine) { m.quota.memory = 16 * gib }},
		{"memlock", "up to 8 MiB of locked memory", "", func(*machine) {}},
		{"memlock", "no limit of locked memory", "", func(m *machine) { m.limits.locked = unlimited }},
		{"files", "no limit of open files", "", func(m *machine) { m.limits.files = unlimited }},
		{"inodes", "no limit", "", func(m *machine) { m.room.capped = false }},
		{"io_uring", "is not to be had", "", func(m *machine) { m.ring, m.limits.locked = false, 64<<10 }},
	} {
		m := sound()
		c.set(m)
		checks := m.judge(asked()).Checks
		i := slices.IndexFunc(checks, func(found Check) bool { return found.Name == c.check })
		if checks[i].Value != c.value || !strings.Contains(checks[i].Reason, c.reason) {
			t.Errorf("%+v, want %q, %q", checks[i], c.value, c.reason)
		}
	}
}

// TestElsewhere: a system that tells nothing gets no verdict on it, and no praise.
func TestElsewhere(t *testing.T) {
	s := sound()
	d := (&machine{folder: "/srv", exists: true, cores: 2, syncs: s.syncs,
		checks: s.checks}).judge(asked())
	var unknown, rest []string
	for _, c := range d.Checks {
		if c.Grade == Unknown {
			unknown = append(unknown, c.Name)
		} else {
			rest = append(rest, c.Name)
		}
	}
	if got := fmt.Sprint(rest); got != "[folder fsync steps cores core dumps]" || len(unknown) != 16 ||
		len(d.Changes) > 0 || d.Estimate == nil {
		t.Errorf("told %v, not told %v, changes %q", rest, unknown, d.Changes)
	}
}

// TestEstimate: each of the three limits binds on a machine of its kind.
func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		cores   int
		sync    time.Duration
		slower  time.Duration // than the machine of the figures, times
		limit   string
		singles int
		lists   int
		micros  int
	}{
		{2, 150 * time.Microsecond, 1, "cores", 22_000, 51_000, 340},
		{2, 150 * time.Microsecond, 2, "cores", 11_000, 26_000, 530},
		{64, 150 * time.Microsecond, 1, "matcher", 150_000, 150_000, 340},
		{8, 20 * time.Millisecond, 1, "disk", 51_000, 51_000, 20_000},
		{1, 20 * time.Millisecond, 1, "cores", 11_000, 26_000, 20_000},
	} {
		m := sound()
		m.cores, m.syncs = c.cores, &syncs{c.sync}
		m.checks = &checks{13500 * c.slower, 10_000 * c.slower, 5_000 * c.slower,
			27_000 * c.slower, "Go"}
		e := m.estimate()
		if e.Limit != c.limit || e.Singles != c.singles || e.Lists != c.lists ||
			e.PostMicros != c.micros || e.InFlight < 64 {
			t.Errorf("%+v: %+v", c, e)
		}
		m.checks.listed *= 4
		if f := m.estimate(); f.Singles != e.Singles || c.limit == "cores" && f.Lists >= e.Lists {
			t.Errorf("checks in lists take longer: %+v, was %+v", f, e)
		}
		m.checks.listed /= 4
		m.quota.cpus, m.demand.stolen = float64(c.cores)/2, 0.5
		if f := m.estimate(); c.limit == "cores" && (4*f.Lists < e.Lists-e.Lists/10 ||
			4*f.Lists > e.Lists+e.Lists/10) {
			t.Errorf("half of the quota, of which half is stolen: %d of %d", f.Lists, e.Lists)
		}
	}
}

// TestChecks: a signature costs less in a list than alone, whatever body checks it, and the body
// says which it is.
func TestChecks(t *testing.T) {
	for _, without := range []bool{false, true} {
		got := measureChecks(2, without)
		if got == nil || got.listed <= 0 || got.listed >= got.known || got.known >= got.stranger {
			t.Fatalf("without lanes %v: %+v", without, got)
		}
		if lanes := strings.HasPrefix(got.body, "lanes of AVX-512, "); lanes == without &&
			(lanes || auth.NewVerifier(nil).Lanes()) || !strings.Contains(got.body, "recovered by ") {
			t.Errorf("without lanes %v: %s", without, got.body)
		}
	}
}

// TestText: a line a check, the estimate, and the changes: what breaks a promise comes first.
func TestText(t *testing.T) {
	m := sound()
	m.hiccups.p99, m.limits.files, m.clock.synced = time.Second, 20_000, false
	var b strings.Builder
	d := m.judge(asked())
	if err := d.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(d.Checks) != 21 || lines[21] != "" {
		t.Errorf("%d checks:\n%s", len(d.Checks), b.String())
	}
	for _, c := range d.Checks {
		for _, text := range []string{c.Value, c.Reason, c.Change} {
			if strings.Contains(text, "\n") || strings.Contains(text, "  ") {
				t.Errorf("%q", text)
			}
		}
	}
	for _, want := range []string{"FAIL  files       20,000 open files — it is less",
		"\n   43,000 orders/s in POST /order, with ", "  100,000 orders/s in POST /orders of 15: the cores",
		"\n  1. files: ", "some 12,992 sockets", "\n  2. clock: ", "\n  3. hiccups: ",
		"takes 10.0 µs, in a list of 15 5.0 µs, ", "\nSignatures are checked in Go; the program was built " +
			"by " + runtime.Version()} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	text, err := json.Marshal(d)
	var back Diagnosis
	if err != nil || json.Unmarshal(text, &back) != nil || back.Broken()[0] != "files" ||
		back.Estimate.Singles != 43_000 || !strings.Contains(string(text), `"grade":"warn"`) {
		t.Errorf("%v %s", err, text)
	}
	m.syncs, m.failed = nil, errors.New("no")
	b.Reset()
	if err := m.judge(asked()).WriteText(&b); err != nil || !strings.Contains(b.String(),
		"\nno estimate") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		count(7): "7", count(999): "999", count(1000): "1,000", count(-25088): "-25,088",
		count(uint64(1234567)): "1,234,567", count(-100): "-100",
		size(0): "0 B", size(1023): "1023 B", size(1536): "1.5 KiB", size(gib): "1 GiB",
		short(0): "0 s", short(141_337): "141 µs", short(1_234_567): "1.23 ms", short(-2_100_000): "-2.1 ms",
		short(30 * time.Second): "30 s", short(90 * time.Second): "1m30s", short(12): "12 ns",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

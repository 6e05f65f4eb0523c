package doctor

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestMountOf(t *testing.T) {
	const text = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 27 0:27 / /srv rw,nosuid shared:3 - tmpfs tmpfs rw,size=4k
31 27 8:1 /sub /srv/with\040space rw,noatime - xfs /dev/sda1 rw,nobarrier
32 27 0:40 / /srv rw - nfs4 host:/export rw,vers=4.2
too short
`
	for folder, want := range map[string]string{
		"/":                    "ext4 /dev/vda [rw relatime rw discard]",
		"/home/a":              "ext4 /dev/vda [rw relatime rw discard]",
		"/srvother":            "ext4 /dev/vda [rw relatime rw discard]",
		"/srv":                 "nfs4 host:/export [rw rw vers=4.2]", // the later one hides the other
		"/srv/with space/data": "xfs /dev/sda1 [rw noatime rw nobarrier]",
	} {
		m := mountOf(text, folder)
		if m == nil {
			t.Errorf("%s: none", folder)
		} else if got := fmt.Sprintf("%s %s %v", m.kind, m.source, m.options); got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
	if m := mountOf("", "/"); m != nil {
		t.Errorf("of nothing: %+v", m)
	}
}

func TestLimitsOf(t *testing.T) {
	const text = `Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    unlimited            bytes
Max open files            1024                 20000                files
Max locked memory         unlimited            unlimited            bytes
`
	if l := limitsOf(text); l == nil || *l != (limits{1024, unlimited}) {
		t.Errorf("%+v", l)
	}
	if l := limitsOf(strings.Replace(text, "Max open", "Min open", 1)); l != nil {
		t.Errorf("without a limit of files: %+v", l)
	}
	if l := limitsOf(""); l != nil {
		t.Errorf("of nothing: %+v", l)
	}
}

func TestMemoryOf(t *testing.T) {
	const text = "MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable:  1024 kB\nSwapTotal: 512 kB\n"
	if m := memoryOf(text); m == nil || *m != (memory{2 << 20, 1 << 20, 1 << 19}) {
		t.Errorf("%+v", m)
	}
	if m := memoryOf("nothing"); m != nil {
		t.Errorf("of nothing: %+v", m)
	}
}

// TestDemandOf: what this process did is not the others', and what was stolen is nobody's here.
func TestDemandOf(t *testing.T) {
	from, known := timesOf("cpu  100 10 50 1000 40 0 10 5 7 7\ncpu0 1 1\n")
	to, still := timesOf("cpu  150 10 60 1100 60 0 10 25 7 7\n")
	if !known || !still || from.all != 1215 || to.all != 1415 {
		t.Fatalf("%+v %+v", from, to)
	}
	// 200 ticks: 120 idle, 20 stolen, 60 in use, of which 400 ms are this process's.
	if l := demandOf(from, to, 400*time.Millisecond); l.stolen != 0.25 || l.others != 0.1 {
		t.Errorf("%+v", l)
	}
	if l := demandOf(from, from, time.Second); l.stolen != 0 || l.others != 0 {
		t.Errorf("of no time: %+v", l)
	}
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9"} {
		if _, known := timesOf(text); known {
			t.Errorf("%q is known", text)
		}
	}
}

// TestQuotaOf: the least limit on the way up holds, in either version of control groups.
func TestQuotaOf(t *testing.T) {
	files := func(pairs ...string) fstest.MapFS {
		all := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			all[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1] + "\n")}
		}
		return all
	}
	for name, c := range map[string]struct {
		files fstest.MapFS
		self  string
		want  quota
	}{
		"nothing": {files(), "", quota{}},
		"version 2": {files("a/b/cpu.max", "max 100000", "a/cpu.max", "150000 100000",
			"a/b/memory.max", "max", "a/memory.max", "2147483648", "memory.max", "4294967296",
			"a/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4"), "0::/a/b\n",
			quota{1.5, 2 << 30, 4}},
		"version 1": {files("cpu/x/cpu.cfs_quota_us", "-1", "cpu/cpu.cfs_quota_us", "50000",
			"cpu/cpu.cfs_period_us", "100000", "cpu/x/cpu.cfs_period_us", "100000",
			"memory/x/memory.limit_in_bytes", "9223372036854771712",
			"memory/memory.limit_in_bytes", "1073741824"),
			"4:memory:/x\n2:cpuacct,cpu:/x\n1:name=systemd:/\n0::/\n", quota{0.5, 1 << 30, 0}},
		"both": {files("unified/s/memory.max", "1073741824", "cpu/cpu.cfs_quota_us", "200000",
			"cpu/cpu.cfs_period_us", "100000"), "1:cpu:/\n0::/s\n", quota{2, 1 << 30, 0}},
		"a group out of sight": {files("cpu.max", "300000 100000"), "0::/../../pod/x\n",
			quota{3, 0, 0}},
		"nonsense": {files("cpu.max", "a b", "memory.max", "", "cpu.stat", "nr_throttled"),
			"0::/\nx\n", quota{}},
	} {
		if got := quotaOf(c.files, c.self); *got != c.want {
			t.Errorf("%s: %+v, want %+v", name, *got, c.want)
		}
	}
}

func TestKernelOf(t *testing.T) {
	texts := map[string]string{"/proc/sys/kernel/osrelease": "6.12.3-cloud",
		"/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
		"/proc/sys/kernel/io_uring_disabled":          "2", "/proc/sys/vm/overcommit_memory": "2",
		"/proc/sys/vm/swappiness": "60", "/proc/sys/net/core/somaxconn": "128",
		"/proc/sys/net/ipv4/ip_local_port_range": "1024\t65535"}
	got := *kernelOf(func(name string) string { return texts[name] })
	if got != (kernel{"6.12.3-cloud", "madvise", "2", 2, 60, 128, [2]int{1024, 65535}}) {
		t.Errorf("%+v", got)
	}
	got = *kernelOf(func(string) string { return "" })
	if got != (kernel{overcommit: -1, swappiness: -1, backlog: -1}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestAtLeast(t *testing.T) {
	for release, want := range map[string]bool{"6.1.0-13-amd64": true, "6.1": true, "6.18.44": true,
		"7.0": true, "6.0.19": false, "5.15.0": false, "4.99": false, "": false, "x.y": false, "6": false} {
		if got := atLeast(release, 6, 1); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}

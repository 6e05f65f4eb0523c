package doctor

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// mount is the file system that a folder is on.
type mount struct {
	kind    string
	source  string
	options []string // of the mount and of the file system
}

// mountOf finds the mount of a path in the text of /proc/self/mountinfo; nil if there is none. Of
// two mounts on one point the later one hides the other.
func mountOf(text, folder string) (found *mount) {
	longest := 0
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if len(left) < 6 || len(right) < 3 {
			continue
		}
		point := strings.TrimSuffix(unescape.Replace(left[4]), "/") + "/"
		if strings.HasPrefix(folder+"/", point) && len(point) >= longest {
			longest = len(point)
			found = &mount{right[0], unescape.Replace(right[1]),
				strings.Split(left[5]+","+right[2], ",")}
		}
	}
	return found
}

// limits are those of a process.
type limits struct{ files, locked int64 }

// unlimited stands for no limit.
const unlimited = 1<<63 - 1

// limitsOf reads the text of /proc/PID/limits; nil if it has not both limits.
func limitsOf(text string) *limits {
	found, l := 0, &limits{}
	for line := range strings.Lines(text) {
		for name, into := range map[string]*int64{"Max open files": &l.files,
			"Max locked memory": &l.locked} {
			rest, is := strings.CutPrefix(line, name)
			if words := strings.Fields(rest); is && len(words) > 0 {
				found++
				*into = number(words[0], unlimited)
			}
		}
	}
	if found < 2 {
		return nil
	}
	return l
}

// number is the number in a text, or other if there is none.
func number(text string, other int64) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return other
	}
	return n
}

// memory is the machine's, in bytes.
type memory struct{ total, available, swap int64 }

// memoryOf reads the text of /proc/meminfo; nil if it has no total.
func memoryOf(text string) *memory {
	m := &memory{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		switch bytes := number(kib, 0) << 10; name {
		case "MemTotal":
			m.total = bytes
		case "MemAvailable":
			m.available = bytes
		case "SwapTotal":
			m.swap = bytes
		}
	}
	if m.total == 0 {
		return nil
	}
	return m
}

// times is the CPU time of all cores since the machine started, in units of 10 ms: all of it, the
// part in which a core had nothing to do, and the part that the host gave to other machines.
type times struct{ all, idle, stolen int64 }

// timesOf reads the first line of /proc/stat.
func timesOf(text string) (t times, known bool) {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	if len(words) < 9 || words[0] != "cpu" {
		return t, false
	}
	for _, word := range words[1:9] {
		t.all += number(word, 0)
	}
	t.idle, t.stolen = number(words[4], 0)+number(words[5], 0), number(words[8], 0)
	return t, true
}

// demand is who else wanted the cores between two readings.
type demand struct {
	stolen float64 // the host's share of the time that anybody here wanted
	others float64 // the share of all time that other programs here had
}

// demandOf computes the demand between two readings, of which this process had the time own.
func demandOf(from, to times, own time.Duration) *demand {
	all, stolen := to.all-from.all, to.stolen-from.stolen
	wanted := all - (to.idle - from.idle)
	others := wanted - stolen - int64(own/(10*time.Millisecond))
	return &demand{float64(stolen) / float64(max(wanted, 1)),
		float64(max(others, 0)) / float64(max(all, 1))}
}

// quota is what a container or a service may use. Zero values are no limits.
type quota struct {
	cpus      float64
	memory    int64
	throttled int64 // how often it has had to wait for its share
}

// quotaOf reads the limits of a process in a file system of control groups, of version 1, 2 or
// both. self is the text of /proc/self/cgroup. What holds for a group holds for those below it.
func quotaOf(groups fs.FS, self string) *quota {
	q := &quota{}
	for line := range strings.Lines(self) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		tops := strings.Split(parts[1], ",")
		if parts[1] == "" {
			tops = []string{".", "unified"} // version 2, alone or beside version 1
		}
		for _, top := range tops {
			for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
				q.look(groups, path.Join(top, group))
				if group == "/" {
					break
				}
			}
		}
	}
	return q
}

// look takes the limits of one group that are below those found so far.
func (q *quota) look(groups fs.FS, folder string) {
	read := func(name string) []string {
		b, _ := fs.ReadFile(groups, path.Join(folder, name)) // a group without the file has no limit
		return strings.Fields(string(b))
	}
	share := read("cpu.max")
	if len(share) < 2 {
		share = append(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")...)
	}
	if len(share) == 2 {
		used, period := number(share[0], 0), number(share[1], 0)
		if cpus := float64(used) / float64(max(period, 1)); used > 0 && (q.cpus == 0 || cpus < q.cpus) {
			q.cpus = cpus
		}
	}
	for _, name := range []string{"memory.max", "memory.limit_in_bytes"} {
		words := read(name)
		if len(words) == 0 {
			continue
		}
		// Version 1 says a number near the largest where there is no limit.
		if most := number(words[0], 0); most > 0 && most < 1<<60 && (q.memory == 0 || most < q.memory) {
			q.memory = most
		}
	}
	words := read("cpu.stat")
	for i := 0; i+1 < len(words); i += 2 {
		if words[i] == "nr_throttled" {
			q.throttled += number(words[i+1], 0)
		}
	}
}

// chosen is the word in brackets in a text like "always [madvise] never".
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// atLeast reports whether a kernel's release, as 6.1.0-13-amd64, is major.minor or later.
func atLeast(release string, major, minor int64) bool {
	first, rest, _ := strings.Cut(release, ".")
	second := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	has, had := number(first, 0), number(second, 0)
	return has > major || has == major && had >= minor
}

// kernelOf reads the settings of the machine. read returns a file's text, empty if there is none.
func kernelOf(read func(name string) string) *kernel {
	k := &kernel{release: read("/proc/sys/kernel/osrelease"),
		hugePages:  chosen(read("/sys/kernel/mm/transparent_hugepage/enabled")),
		ringSwitch: read("/proc/sys/kernel/io_uring_disabled"),
		overcommit: int(number(read("/proc/sys/vm/overcommit_memory"), -1)),
		swappiness: int(number(read("/proc/sys/vm/swappiness"), -1)),
		backlog:    int(number(read("/proc/sys/net/core/somaxconn"), -1))}
	for i, word := range strings.Fields(read("/proc/sys/net/ipv4/ip_local_port_range")) {
		if i < len(k.ports) {
			k.ports[i] = int(number(word, 0))
		}
	}
	return k
}
